"""# discarded-detach (GM202)

## What it does

Finds `x.detach()` as a statement of its own, where `x` is then used in something that is back-propagated.

## Why is this bad?

`detach()` gives a new tensor and leaves `x` as it is, unlike `detach_()`. The result is thrown away, so the gradient
still flows through `x`: a target network is trained towards its own prediction, a critic is trained to please the
actor. PyTorch says nothing.

## Example

```python
import torch

critic = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for state, following in torch.randn(4, 2, 5, 3):
    later = critic(following)
    later.detach()
    loss = (critic(state) - 0.9 * later).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

critic = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for state, following in torch.randn(4, 2, 5, 3):
    later = critic(following)
    later = later.detach()
    loss = (critic(state) - 0.9 * later).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix safety

Safe: whoever writes the statement wants the tensor cut from its graph. Only gradients through that tensor go, which the
repair is proved to do before it is offered.

## When to leave it

Where `x` is not back-propagated afterwards the statement does nothing, and nothing is reported. Where the walk through
`x` is a mistake with a rule of its own (GM101, GM103, GM201), that rule reports it and mends it in the same way.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach_.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .analysis.facts import Facts, edges_reach, frames_of
from .analysis.tape import Discarded, Node, Refreed, Stale, Traversal, Where
from .draft import Allowance, Context, Draft, Plan, Rule
from .finding import Role, Safety, Severity
from .rewrite.discarding import assigned
from .undetached_fake import upstream

RULE = Rule("GM202", "discarded-detach", "`x.detach()` as a statement, and `x` is still back-propagated through")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every discarded ``detach()`` of something that a later traversal walks."""
    facts = context.facts
    seen: set[ast.AST] = set()
    for event in facts.discarded:
        if event.statement in seen:
            continue
        found = _use(context, event)
        if found is not None:
            seen.add(event.statement)
            yield _draft(context, event, *found)


def _use(context: Context, event: Discarded) -> tuple[Traversal, Node] | None:
    """A later traversal that walks through the tensor, and the operation by which it gets there; None where there is
    none, or where that traversal is another rule's affair."""
    facts = context.facts
    held = {edge.node for edge in event.edges}
    below = edges_reach(event.edges)
    for traversal in facts.traversals:
        if traversal.index < event.index or not traversal.path.compatible(event.path):
            continue
        use = next((node for node in traversal.reached if _reads(context, event, held, node)), None)
        if use is None or not any(edge.node in traversal.reached for edge in use.edges if edge.node in held):
            continue
        if _explained(facts, traversal, below):
            return None
        if facts.certain(use) and any(leaf in facts.applied(traversal) for leaf in below):
            return traversal, use
    return None


def _reads(context: Context, event: Discarded, held: set[Node], node: Node) -> bool:
    """Whether ``node`` was recorded on the tensor after the statement, under the same name."""
    if not any(edge.node in held for edge in node.edges):
        return False
    name = ast.unparse(event.receiver)
    reads = [
        (expression, node.where)
        for expression, value in node.operands
        if expression is not None and held & {edge.node for edge in context.machine.edges_of(value)}
    ]
    for frame in frames_of(node.where):
        if frame.caller is event.where.frame:
            caller = Where(node.where.node, frame.caller, node.where.loops)
            reads += [(expression, caller) for expression, _ in frame.arguments if expression is not None]
    return any(ast.unparse(expression) == name and _after(event, where, expression) for expression, where in reads)


def _after(event: Discarded, where: Where, expression: ast.expr) -> bool:
    turns = [where.turn(loop) for loop, _ in event.where.loops]
    own = [turn for _, turn in event.where.loops]
    if turns != own:
        return all(turn is not None for turn in turns) and [t or 0 for t in turns] > own
    return where.frame is not event.where.frame or expression.lineno >= (event.statement.end_lineno or 0)


def _explained(facts: Facts, traversal: Traversal, below: set[Node]) -> bool:
    """Whether the walk dies, or walks through a network that another optimizer trains: those have their own rules."""
    events: list[Refreed | Stale] = [*facts.refreed, *facts.stale]
    for event in events:
        walks = event.traversal is traversal or (isinstance(event, Refreed) and event.earlier is traversal)
        if walks and event.node in below:
            return True
    found = upstream(facts, traversal)
    return found is not None and bool(found[0] & below)


def _draft(context: Context, event: Discarded, traversal: Traversal, use: Node) -> Draft:
    filename = context.filename(event.where)
    name = ast.unparse(event.receiver)
    source = context.source_of(filename)
    below = edges_reach(event.edges)
    places = {(node.where.node, node.operation) for node in below}
    return Draft(
        RULE,
        f"the result of `{name}.detach()` is thrown away: `{name}` keeps its graph, and backward() walks through it",
        Severity.ERROR,
        event.statement,
        filename,
        [
            (Role.RECORDED, event.where, "this leaves the tensor as it is"),
            (Role.FREED, use.where, "used here with its graph"),
            (Role.REACHED, traversal.where, "back-propagated here"),
        ],
        [
            Plan(
                Safety.SAFE,
                "Assign the detached tensor",
                lambda: assigned(source, event),
                Allowance(
                    lost=lambda node, _: (node.where.node, node.operation) in places,
                    gradients=lambda leaf, _: leaf in below,
                ),
            )
        ],
        explains=False,
    )


__all__ = ["RULE", "find"]
