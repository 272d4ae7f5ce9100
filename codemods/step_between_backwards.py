"""# step-between-backwards (GM403)

## What it does

Finds an optimizer's step between the forward pass of a loss and its `backward()`, where that step changes parameters
in place that the `backward()` still needs.

## Why is this bad?

The gradient with respect to a layer's input is calculated with the layer's weight. The graph keeps the weight itself,
not a copy, and the step overwrites it:

    RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation

Before PyTorch 1.5 the run went on, with a gradient that belonged neither to the old weights nor to the new ones.

## Example

```python
import torch

actor = torch.nn.Linear(3, 2)
critic = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for state in torch.randn(4, 5, 3):
    critic_loss = critic(actor(state).detach()).pow(2).mean()
    actor_loss = -critic(actor(state)).mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
```

## Use instead

```python
import torch

actor = torch.nn.Linear(3, 2)
critic = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for state in torch.randn(4, 5, 3):
    critic_loss = critic(actor(state).detach()).pow(2).mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    actor_loss = -critic(actor(state)).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
```

## Fix safety

Unsafe: the loss may be meant for the weights before the step (then its `backward()` comes before the step) or for those
after it (then it is computed after the step, as in DDPG, TD3 and SAC). Either is offered only where it is proved that
each step applies the gradients of the same losses as before; where neither can be, the mistake is reported alone.

## When to leave it

Nothing to leave: the run ends there. A step that changes nothing that the later `backward()` kept is not reported.

## References

- https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
- https://github.com/pytorch/pytorch/releases/tag/v1.5.0
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .analysis.facts import Facts, frames_of
from .analysis.tape import Stale, Step, Where
from .draft import Context, Draft, Rule
from .finding import Role, Severity
from .step_between_repairs import Clash, common_frame, plans

RULE = Rule("GM403", "step-between-backwards", "An optimizer changes what a later traversal needs")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every step that comes between the forward pass and the traversal of one iteration."""
    clashes: dict[object, Clash] = {}
    for event in context.facts.stale:
        if event.change.step is None or context.is_expected(event.traversal.where):
            continue
        if _same_iteration(context.facts, event) and _is_sure(context.facts, event):
            clash = clashes.setdefault(event.traversal, Clash(event.traversal, []))
            clash.events.append(event)
    for clash in clashes.values():
        yield _draft(context, clash)


def _same_iteration(facts: Facts, event: Stale) -> bool:
    """Whether forward pass, step and traversal follow each other without a loop in between."""
    recorded = {loop for loop, _ in event.node.where.loops}
    return (
        facts.parting(event.node.where, event.traversal.where) is None
        and facts.parting(event.change.where, event.traversal.where) is None
        and all(loop in recorded for loop, _ in event.traversal.where.loops)
    )


def _is_sure(facts: Facts, event: Stale) -> bool:
    return facts.coincide(event) and facts.reaches_plainly(event.traversal, event.node)


def _draft(context: Context, clash: Clash) -> Draft:
    event = min(clash.events, key=lambda one: one.change.index)
    site, where = _site(event)
    draft = Draft(
        RULE,
        "this step changes parameters in place that a later backward() needs as they were when its loss was computed",
        Severity.ERROR,
        site,
        context.filename(where),
        [
            (Role.RECORDED, event.node.where, "recorded here, with the parameters of before"),
            (Role.FREED, event.change.where, "changed in place here"),
            (Role.REACHED, event.traversal.where, "needed here"),
        ],
        traversal=event.traversal,
    )
    draft.plans = list(plans(context, clash))
    return draft


def _site(event: Stale) -> tuple[ast.AST, Where]:
    """The step, or the call that makes it, in the function that goes on to the traversal."""
    where = event.change.where
    frame = common_frame(where, event.traversal.where)
    for inner in frames_of(where):
        if inner.caller is frame and frame is not None and isinstance(inner.call, ast.Call):
            return inner.call, Where(inner.call, frame, where.loops)
    return where.node, where


__all__ = ["RULE", "Step", "find"]
