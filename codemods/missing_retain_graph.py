"""# missing-retain-graph (GM305)

## What it does

Finds two traversals that share a part of the graph within one iteration, the first of which frees it; and loops that
walk back from the rows of one result, or from a list of losses of one forward pass.

## Why is this bad?

`backward()` and `torch.autograd.grad` free the saved tensors of every node they walk. The second traversal finds them
gone:

    RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have
    already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad().
    Specify retain_graph=True if you need to backward through the graph a second time

## Example

```python
import torch

trunk, head, tail = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters(), *tail.parameters()], lr=0.1)
for batch in torch.randn(4, 5, 3):
    features = trunk(batch).tanh()
    optimizer.zero_grad()
    head(features).mean().backward()
    tail(features).pow(2).mean().backward()
    optimizer.step()
```

## Use instead

```python
import torch

trunk, head, tail = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters(), *tail.parameters()], lr=0.1)
for batch in torch.randn(4, 5, 3):
    features = trunk(batch).tanh()
    optimizer.zero_grad()
    head(features).mean().backward(retain_graph=True)
    tail(features).pow(2).mean().backward()
    optimizer.step()
```

Where no step lies between the two, `(one_loss + other_loss).backward()` gives the same gradients with one walk.

## Fix safety

Safe where both traversals belong to one update: every gradient is what the code asks for, only the error goes. Unsafe
where an optimizer steps in between, or where both start from the very same loss: a detach, or one traversal less, may
be what was meant.

## When to leave it

Nothing to leave: the run ends there. Where the second loss should not train what it shares with the first, detach it
instead; a loss that walks through another optimizer's network is reported as GM201, a state that is carried over as
GM101, and what is computed once before a loop as GM103.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
- https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .analysis.facts import Facts
from .analysis.tape import Refreed, Step, Traversal, ZeroGrad
from .draft import Context, Draft, Edits, Plan, Rule
from .finding import Role, Safety, Severity
from .rewrite.builders import replace_node, set_keyword

RULE = Rule("GM305", "missing-retain-graph", "Two traversals of one graph, and the first frees it")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every call that frees what a later traversal of the same iteration, or of the next part, walks."""
    facts = context.facts
    last: dict[Traversal, Refreed] = {}
    for event in facts.refreed:
        together = _same_iteration(facts, event) or facts.walks_parts(event)
        if together and _is_sure(facts, event) and not context.is_expected(event.traversal.where):
            known = last.get(event.traversal)
            # Each traversal is laid at the door of the one just before it, so that all but the last get their flag.
            if known is None or known.earlier.index < event.earlier.index:
                last[event.traversal] = event
    for event in last.values():
        yield _draft(context, event)


def _same_iteration(facts: Facts, event: Refreed) -> bool:
    return (
        facts.parting(event.node.where, event.traversal.where) is None
        and facts.parting(event.earlier.where, event.traversal.where) is None
    )


def _is_sure(facts: Facts, event: Refreed) -> bool:
    """Whether both traversals surely walk the node, and on one path."""
    return (
        facts.coincide(event)
        and facts.reaches_plainly(event.earlier, event.node)
        and facts.reaches_plainly(event.traversal, event.node)
    )


def _draft(context: Context, event: Refreed) -> Draft:
    earlier, later = event.earlier, event.traversal
    filename = context.filename(earlier.where)
    between = _events_between(context.facts, earlier, later)
    both_accumulate = earlier.accumulates and later.accumulates
    same_loss = both_accumulate and {e.node for e in earlier.roots} == {e.node for e in later.roots}
    apart = any(type(one) is Step for one in between)
    message = "this traversal frees the graph, and a later one walks it again"
    if earlier.call is later.call and context.facts.walks_parts(event):
        message = (
            "this traversal frees the graph, and walks it again for the next part of what was computed before the loop"
        )
    elif same_loss:
        message += ": both start from the same loss"
    elif _sum_does_the_same(earlier, later, between):
        message += "; back-propagating the sum of both losses once gives the same gradients"
    return Draft(
        RULE,
        message,
        Severity.ERROR,
        earlier.call,
        filename,
        [
            (Role.RECORDED, event.node.where, "recorded here"),
            (Role.FREED, earlier.where, "freed here"),
            (Role.REACHED, later.where, "reached again here"),
        ],
        [
            Plan(
                Safety.UNSAFE if same_loss or apart else Safety.SAFE,
                "Retain the graph for the traversal that follows",
                lambda: retained(context, earlier),
            )
        ],
        traversal=later,
    )


def _events_between(facts: Facts, earlier: Traversal, later: Traversal) -> list[Step | ZeroGrad]:
    events: list[Step | ZeroGrad] = [*facts.steps, *facts.clears]
    return [one for one in events if earlier.index < one.index < later.index]


def _sum_does_the_same(earlier: Traversal, later: Traversal, between: list[Step | ZeroGrad]) -> bool:
    return (
        not between
        and earlier.accumulates
        and later.accumulates
        and earlier.where.loops == later.where.loops
        and earlier.path == later.path
        and not (earlier.gradient_argument or later.gradient_argument)
        and earlier.inputs is None
        and later.inputs is None
    )


def retained(context: Context, traversal: Traversal) -> Edits | None:
    """Edits that make ``traversal`` keep the graph; None where its flag is not written in the call."""
    source = context.source_of(context.filename(traversal.where))
    call = traversal.call
    if source is None or not isinstance(call, ast.Call):
        return None
    if traversal.flag is not None:
        if not isinstance(traversal.flag, ast.Constant):
            return None
        return {source.filename: replace_node(source, traversal.flag, "True")}
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    return {source.filename: set_keyword(source, call, "retain_graph", "True")}


__all__ = ["RULE", "find", "retained"]
