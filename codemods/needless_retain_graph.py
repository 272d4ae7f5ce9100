"""# needless-retain-graph (GM304)

## What it does

Finds `retain_graph=True` where no later traversal reaches what it retains.

## Why is this bad?

Without the flag `backward()` frees the saved tensors as it goes. With it they live until the graph itself goes, usually
when the next iteration overwrites the loss: at the peak two iterations' activations are in memory instead of one. The
flag also hides real mistakes, because people add it until the error goes away.

## Example

```python
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(4, 5, 3):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
```

## Use instead

```python
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(4, 5, 3):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Fix safety

Safe: offered only where everything that could traverse the graph again is in view, and nothing does. Where the flag
hides a missing detach, that is mended first and the flag goes in the same repair.

## When to leave it

Two losses on one forward pass, row-by-row Jacobians, Hessian-vector products: there a later traversal needs the graph,
and nothing is reported.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .analysis.facts import Facts, edges_reach
from .analysis.source import Source
from .analysis.tape import Edge, Node, Traversal
from .carried_hidden_state import read_first
from .draft import Allowance, Context, Draft, Edits, Plan, Rule
from .finding import Role, Safety, Severity
from .rewrite.builders import remove_keyword

RULE = Rule("GM304", "needless-retain-graph", "`retain_graph=True` and no later traversal reaches what it retains")
FLAGS = ("retain_graph", "retain_variables")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every call whose flag serves no traversal in this run."""
    facts = context.facts
    calls: dict[ast.Call, list[Traversal]] = {}
    for traversal in facts.traversals:
        if traversal.retain is True and traversal.create is False and _flag(traversal.call) is not None:
            calls.setdefault(traversal.call, []).append(traversal)
    for call, traversals in calls.items():
        if all(context.shows_all(t.where) and _needless(context, t) for t in traversals):
            draft = _draft(context, call, traversals[0])
            draft.concerns = (RULE.code, call)
            yield draft
        else:
            context.veto(RULE.code, call)


def _flag(call: ast.Call) -> ast.keyword | None:
    for keyword in call.keywords:
        if keyword.arg in FLAGS and isinstance(keyword.value, ast.Constant) and keyword.value.value in (True, 1):
            return keyword
    return None


def _needless(context: Context, traversal: Traversal) -> bool:
    facts = context.facts
    if not traversal.roots or not traversal.reached:
        return False
    kept = {node for node in traversal.reached if node.kind != "leaf" and node.saves is not False}
    if not kept or not _seen_whole(facts, traversal, kept):
        return False
    for later in facts.traversals:
        if later.index > traversal.index and any(node in later.reached for node in kept):
            return False
    return not _handed_on(context, traversal, kept)


def _handed_on(context: Context, traversal: Traversal, kept: set[Node]) -> bool:
    """Whether an iteration around the traversal leaves some of the graph in a state that later iterations read.

    They may traverse it where two of them do not show it.
    """
    for boundary in context.facts.boundaries:
        if traversal.where.turn(boundary.loop) != boundary.number:
            continue
        for carried in boundary.carried:
            if not {edge.node for edge in carried.edges} & kept:
                continue
            reads = context.machine.reads.get((id(carried.slots), carried.key), {})
            if isinstance(carried.value, tuple):
                if any(loop is boundary.loop and turn > boundary.number for loops in reads for loop, turn in loops):
                    return True
            elif read_first(context, carried, boundary.loop, boundary.number + 1, traversal.path) and any(
                (boundary.loop, boundary.number + 1) in loops for loops in reads
            ):
                return True
    return False


def _seen_whole(facts: Facts, traversal: Traversal, kept: set[Node]) -> bool:
    """Whether everything that could traverse the graph again is in view."""
    for node in traversal.reached:
        if node.kind == "unknown" or (node.kind == "leaf" and node.assumed):
            return False
    return not any(set(edges_reach(escape.edges)) & kept for escape in facts.escapes)


def _draft(context: Context, call: ast.Call, traversal: Traversal) -> Draft:
    filename = context.filename(traversal.where)
    return Draft(
        RULE,
        "`retain_graph=True` keeps the graph, and no later traversal reaches it: its memory is held for nothing",
        Severity.WARNING,
        call,
        filename,
        [(Role.REACHED, traversal.where, "the only traversal of this graph")],
        [
            Plan(
                Safety.SAFE,
                "Remove `retain_graph=True`",
                lambda: dropped(context.source_of(filename), traversal),
                Allowance(),
            )
        ],
        explains=False,
    )


def dropped(source: Source | None, traversal: Traversal) -> Edits | None:
    """Edits that take the flag away."""
    flag = _flag(traversal.call)
    if source is None or flag is None or flag.arg is None:
        return None
    return {source.filename: remove_keyword(source, traversal.call, flag.arg)}


__all__ = ["RULE", "Edge", "dropped", "find"]
