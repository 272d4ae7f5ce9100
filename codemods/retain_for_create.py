"""# retain-for-create (GM301)

## What it does

Finds a gradient that was taken with `retain_graph=True` and is then used as if it could be differentiated again.

## Why is this bad?

`retain_graph=True` keeps the graph of the *output*. The gradient itself gets a graph only with `create_graph=True`. A
gradient penalty, a force loss or a PDE residual built from it is a constant: the loss shows it, no parameter feels it.
PyTorch says nothing, unless the gradient is all there is:

    RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn

## Example

```python
import torch

critic = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(3):
    points = torch.randn(5, 2, requires_grad=True)
    score = critic(points)
    (slope,) = torch.autograd.grad(score.sum(), points, retain_graph=True)
    penalty = (slope.norm(dim=1) - 1).pow(2).mean()
    optimizer.zero_grad()
    (score.mean() + penalty).backward()
    optimizer.step()
```

## Use instead

```python
import torch

critic = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(3):
    points = torch.randn(5, 2, requires_grad=True)
    score = critic(points)
    (slope,) = torch.autograd.grad(score.sum(), points, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).pow(2).mean()
    optimizer.zero_grad()
    (score.mean() + penalty).backward()
    optimizer.step()
```

## Fix safety

Safe where a whole term of the loss consists of the gradient: it was a constant, which nobody adds on purpose.

## When to leave it

A gradient that is only a target, a weight or a number (normals, adaptive loss weights, forces in evaluation) needs no
graph and is not reported.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Final

from .analysis.guards import ALWAYS
from .analysis.tape import Cut, Edge, Flat, Node, Traversal, Where, reach
from .draft import Allowance, Context, Draft, Edits, Plan, Rule, combined
from .finding import Role, Safety, Severity
from .rewrite.builders import rename_keyword, set_keyword

RULE = Rule("GM301", "retain-for-create", "`retain_graph=True` where the gradient is differentiated again")
MOST_ORDERS: Final = 5
"""How many derivatives of derivatives get their graph in one repair."""


def find(context: Context) -> Iterator[Draft]:
    """Drafts for gradients taken with ``retain_graph`` whose derivative is wanted."""
    for use in differentiated_again(context):
        if _retained(use.cut.gradient):
            yield draft_for(context, use, RULE)


class Use:
    """A gradient without a graph where one is needed: where it was taken and what needs it."""

    __slots__ = ("cut", "error", "needs")

    def __init__(self, cut: Cut, needs: Where, error: bool) -> None:
        self.cut = cut
        self.needs = needs
        self.error = error


def differentiated_again(context: Context) -> Iterator[Use]:
    """Every gradient taken without ``create_graph`` that makes up a whole term of something back-propagated, or all of
    what is differentiated."""
    facts = context.facts
    seen: set[ast.AST] = set()
    for flat in facts.flats:
        for cut in _derivatives(flat.cuts):
            if cut.gradient is not None and cut.gradient.call not in seen and _differentiates(flat):
                seen.add(cut.gradient.call)
                yield Use(cut, flat.where, error=True)
    for traversal in facts.traversals:
        for node in traversal.reached:
            for cut in _derivatives(node.terms):
                if cut.gradient is None or cut.gradient.call in seen:
                    continue
                if not _depends_on_trained(traversal, cut) or _may_move(node, cut.gradient):
                    continue
                seen.add(cut.gradient.call)
                yield Use(cut, traversal.where, error=False)


def _differentiates(flat: Flat) -> bool:
    return True


def _derivatives(cuts: frozenset[Cut]) -> list[Cut]:
    return sorted((c for c in cuts if c.kind == "derivative"), key=lambda c: getattr(c.where.node, "lineno", 0))


def _may_move(node: Node, gradient: Traversal) -> bool:
    """Whether ``node`` may be an update, ``parameter - rate * gradient``, rather than a sum of losses."""
    moved = {edge.node for edge in node.edges}
    if gradient.accumulates:
        return any(one.kind == "leaf" for one in moved)
    return gradient.inputs is None or bool(moved & set(gradient.inputs))


def _depends_on_trained(traversal: Traversal, cut: Cut) -> bool:
    """Whether the gradient depends on leaves that the traversal trains: else a graph would change nothing."""
    trained = {node for node in traversal.reached if node.kind == "leaf"}
    below = {node for node in reach(cut.edges, ALWAYS) if node.kind == "leaf"}
    return bool(trained & below)


def _retained(traversal: Traversal | None) -> bool:
    return traversal is not None and traversal.retain is True and traversal.create is False


def draft_for(context: Context, use: Use, rule: Rule) -> Draft:
    """The draft of a gradient that needs ``create_graph=True``."""
    gradient = use.cut.gradient
    assert gradient is not None
    call = gradient.call
    filename = context.filename(gradient.where)
    what = "the loss that contains it is a constant there: no parameter feels it"
    if use.error:
        what = "differentiating it raises"
    draft = Draft(
        rule,
        f"this gradient has no graph of its own, yet it is differentiated again: {what}",
        Severity.ERROR,
        call,
        filename,
        [
            (Role.RECORDED, gradient.where, "the gradient is taken here, without `create_graph=True`"),
            (Role.REACHED, use.needs, "and differentiated again here"),
        ],
        explains=False,
    )

    draft.plans = [
        Plan(
            Safety.SAFE,
            f"Take the {'gradients' if len(chain) > 1 else 'gradient'} with `create_graph=True`",
            partial(_created, context, chain),
            Allowance(gained=True),
        )
        for chain in _chains(context, gradient)
    ]
    return draft


def _chains(context: Context, gradient: Traversal) -> Iterator[tuple[Traversal, ...]]:
    """``gradient``, then with it more and more of its derivatives that are taken without a graph as well.

    Which of them are differentiated again shows only once it has a graph.
    """
    chain: tuple[Traversal, ...] = (gradient,)
    yield chain
    taken = {traversal.call: traversal for traversal in context.facts.traversals}
    later = [flat for flat in context.facts.flats if flat.index > gradient.index]
    second = [f for f in later if any(c.gradient is not None and c.gradient.call is gradient.call for c in f.cuts)]
    for flat in (*second, *(f for f in later if not f.cuts)):
        further = taken[flat.call]
        if len(chain) < MOST_ORDERS and not further.accumulates and further.create is False and further not in chain:
            chain = (*chain, further)
            yield chain


def _created(context: Context, chain: tuple[Traversal, ...]) -> Edits | None:
    """The edits that give each gradient of ``chain`` a graph."""
    return combined(_with_graph(context, traversal) for traversal in chain)


def _with_graph(context: Context, traversal: Traversal) -> Edits | None:
    filename, call = context.filename(traversal.where), traversal.call
    source = context.source_of(filename)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if source is None or None in named:
        return None
    if "create_graph" not in named and isinstance(named.get("retain_graph"), ast.Constant):
        return {filename: rename_keyword(source, call, "retain_graph", "create_graph", "True")}
    return {filename: set_keyword(source, call, "create_graph", "True")}


__all__ = ["RULE", "Edge", "Use", "differentiated_again", "draft_for", "find"]
