"""# detached-derivative (GM306)

## What it does

Finds a whole term of a back-propagated loss that is a constant because `.detach()`, `.data`, `.item()` or `no_grad` cut
it from the parameters that it should train: a penalty on a gradient that was taken with `create_graph=True`, or a loss
term that compares the output of the network after its graph was thrown away. Also a gradient that went through a
`torch.autograd.Function` whose backward is marked `once_differentiable` and is differentiated again.

## Why is this bad?

The loss shows the term, no parameter feels it, and PyTorch says nothing. Where the term is all that is back-propagated:

    RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn

And where the backward of a Function cannot be differentiated:

    RuntimeError: trying to differentiate twice a function that was marked with @once_differentiable

## Example

```python
import torch

critic = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(3):
    points = torch.randn(5, 2, requires_grad=True)
    score = critic(points)
    (slope,) = torch.autograd.grad(score.sum(), points, create_graph=True)
    penalty = slope.detach().square().sum(1).mean()
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
    penalty = slope.square().sum(1).mean()
    optimizer.zero_grad()
    (score.mean() + penalty).backward()
    optimizer.step()
```

## Fix safety

Safe where the term hangs on a gradient that was taken with `create_graph=True`: whoever asks for that graph wants to
differentiate it. Unsafe elsewhere: a term may have been cut on purpose, to show it beside the others. Nothing is
offered for `no_grad` and for `once_differentiable`: whether a backward may be differentiated is its author's promise.

## When to leave it

Detached weights, targets, baselines and normalisers, straight-through estimators, and values that are only displayed
are no terms of their own and are not reported.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
- https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.function.once_differentiable
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from .analysis.facts import LINEAR, SCALING, edges_reach
from .analysis.recording import ADDITIVE, owns
from .analysis.source import Source
from .analysis.tape import Cut, Edge, Flat, Node, OnceOnly, Traversal, Unused, Where
from .analysis.values import NO_CUTS, Symbol, Tensor, Value
from .draft import Allowance, Context, Draft, Edits, Plan, Rule
from .finding import Role, Safety, Severity
from .rewrite.builders import append_call, replace_node
from .rewrite.edits import EditRefused, TextEdit

RULE = Rule("GM306", "detached-derivative", "A term of the loss is a constant because its graph was cut")
CUTS: Final = frozenset({"detach", "data", "item", "no_grad"})
ADDING: Final = ADDITIVE - {"sub", "rsub"}


@dataclass(frozen=True, slots=True)
class Term:
    """A whole term of a loss that has lost its graph at one place."""

    cut: Cut
    """One of the cuts at that place."""
    edges: tuple[Edge, ...]
    """What was cut off there."""
    derivative: Node | None
    """The gradient with a graph among it, if there is one."""


def find(context: Context) -> Iterator[Draft]:
    """Drafts for every constant term of a loss, and for gradients that cannot be differentiated again."""
    facts = context.facts
    seen: set[ast.AST] = set()
    for event in facts.tape.of(OnceOnly):
        if event.derivative.where.node not in seen:
            seen.add(event.derivative.where.node)
            yield _draft_of_function(context, event)
    for traversal in facts.traversals:
        for term in _terms(context, traversal):
            if term.cut.where.node not in seen:
                seen.add(term.cut.where.node)
                yield _draft(context, term, traversal.where, "it adds a constant, which no parameter feels")
    for flat in facts.flats:
        flat_term = _flat_term(context, flat)
        if flat_term is not None and flat_term.cut.where.node not in seen:
            seen.add(flat_term.cut.where.node)
            yield _draft(context, flat_term, flat.where, "differentiating it raises")
    for output, where in _cut_outputs(context):
        if output.cut.where.node not in seen:
            seen.add(output.cut.where.node)
            yield _draft(context, output, where, "the derivative does not get through to its input")


# -- terms of a loss -----------------------------------------------------------------------------------------------


def _terms(context: Context, traversal: Traversal) -> Iterator[Term]:
    """The terms of what ``traversal`` walks that are constants although they were computed from what it trains."""
    if not traversal.accumulates:
        return
    trained = _trained(context, traversal)
    if not trained:
        return
    chain = _sum(traversal)
    if _cancels(context, chain):
        return
    for node in chain:
        if not node.terms:
            continue
        attached = {edge.node for edge in node.edges}
        for _, value in node.operands:
            if context.machine.edges_of(value):
                continue
            term = _term(context.machine.cuts_of(value), trained)
            if term is None:
                continue
            top = {edge.node for edge in term.edges}
            if attached & edges_reach(term.edges) or top & chain:
                # A straight-through estimator, or the loss itself once more: the value counts, not the gradient.
                continue
            if term.derivative is None and not (node.operation in ADDING and _is_number(value)):
                continue
            if term.derivative is not None or not _is_chosen(context, term.cut, node):
                yield term


def _trained(context: Context, traversal: Traversal) -> set[Node]:
    """The leaves that the next step after ``traversal`` changes; empty where that is not known."""
    steps = context.facts.first_steps(traversal)
    if any(step.parameters is None for step in steps):
        return set()
    return {
        leaf
        for leaf in context.facts.tape.leaves.values()
        if any(step.parameters is not None and owns(step.parameters, leaf) for step in steps)
    }


def _sum(traversal: Traversal) -> set[Node]:
    """The operations that only add up and scale the terms of the loss."""
    chain: set[Node] = set()
    stack = [edge.node for edge in traversal.roots]
    while stack:
        node = stack.pop()
        if node in chain or node.operation not in LINEAR or node.kind != "operation":
            continue
        inputs = {edge.node for edge in node.edges}
        if node.operation in SCALING and len(inputs) > 1:
            continue
        chain.add(node)
        stack += inputs
    return chain


def _cancels(context: Context, chain: set[Node]) -> bool:
    """Whether something is added and its own value taken away again (``x - x.detach()``): then only gradients count."""
    for node in chain:
        if node.operation in {"sub", "rsub"}:
            attached = {edge.node for edge in node.edges}
            if any(edge.node in attached for cut in node.terms for edge in cut.edges):
                return True
    return False


def _term(cuts: frozenset[Cut], trained: set[Node]) -> Term | None:
    """The term with these cuts; None where it is not cut at one place from trained leaves."""
    if not cuts or any(cut.kind not in CUTS for cut in cuts):
        return None
    relevant = [cut for cut in cuts if edges_reach(cut.edges) & trained]
    if len({cut.where.node for cut in relevant}) != 1:
        return None
    edges = tuple(dict.fromkeys(edge for cut in relevant for edge in cut.edges))
    derivatives = [node for node in edges_reach(edges) if node.kind == "derivative"]
    first = next((node for node in derivatives if edges_reach(node.edges) & trained), None)
    return Term(relevant[0], edges, first)


def _is_number(value: Value) -> bool:
    """Whether ``value`` is a loss of its own: one number."""
    return (type(value) is Tensor and value.scalar) or type(value) is Symbol


def _is_chosen(context: Context, cut: Cut, added: Node) -> bool:
    """Whether a condition decides about the cut, but not about the term: then somebody thought about it."""
    source = context.source_of(context.filename(cut.where))
    if source is None:
        return True
    around = set(_ancestors(source, added.where.node))
    outers = _ancestors(source, cut.where.node)
    return any(isinstance(outer, (ast.If, ast.IfExp)) and outer not in around for outer in outers)


def _ancestors(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    outer = source.parent(node)
    while outer is not None and not isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        yield outer
        outer = source.parent(outer)


def _flat_term(context: Context, flat: Flat) -> Term | None:
    """What is differentiated although it has no graph, where it was cut at one place from what that was meant for."""
    wanted = set(flat.inputs or ())
    if flat.inputs is None:
        for step in context.facts.steps:
            if step.parameters is None:
                return None
            wanted |= {leaf for leaf in context.facts.tape.leaves.values() if owns(step.parameters, leaf)}
    term = _term(flat.cuts, wanted)
    if term is None or not all(context.facts.certain(edge.node) for edge in term.edges):
        return None
    return term


def _cut_outputs(context: Context) -> Iterator[tuple[Term, Where]]:
    """Differentiations that cannot get to their input, because the output was detached and made a leaf in between."""
    for event in context.facts.tape.of(Unused):
        for traversal in context.facts.traversals:
            if traversal.call is not event.call or traversal.where != event.where or traversal.inputs is None:
                continue
            for edge in traversal.roots:
                for leaf in edges_reach((edge,)):
                    term = _term(leaf.slots.get("cuts", NO_CUTS), set(traversal.inputs))
                    if term is not None:
                        yield term, event.where


# -- the finding ---------------------------------------------------------------------------------------------------


def _draft(context: Context, term: Term, needs: Where, consequence: str) -> Draft:
    cut = term.cut
    what = {"detach": "`.detach()`", "data": "`.data`", "item": "a number", "no_grad": "`no_grad`"}[cut.kind]
    if term.derivative is not None:
        message = f"this gradient was taken with its graph, and {what} throws the graph away"
        origin = term.derivative.where
        label = "the gradient is taken here, with `create_graph=True`"
    else:
        message = f"{what} cuts this from what it should be differentiated by"
        origin = term.edges[0].node.where
        label = "recorded here, from what it should be differentiated by"
    draft = Draft(
        RULE,
        f"{message}: {consequence}",
        Severity.ERROR,
        cut.where.node,
        context.filename(cut.where),
        [
            (Role.RECORDED, origin, label),
            (Role.FREED, cut.where, "its graph is cut off here"),
            (Role.REACHED, needs, "differentiated here"),
        ],
        explains=False,
    )
    if cut.kind != "no_grad":
        draft.plans = list(_plans(context, term, needs))
    return draft


def _plans(context: Context, term: Term, needs: Where) -> Iterator[Plan]:
    safety = Safety.SAFE if term.derivative is not None else Safety.UNSAFE
    targets = _targets(context, term, needs) if term.derivative is None else ()
    anything: Callable[[Node, Traversal], bool] = lambda node, traversal: True  # noqa: E731
    allowances = Allowance(gained=anything), Allowance(gained=True)
    for allowance in allowances:
        for kept in dict.fromkeys((targets, ())):
            yield Plan(safety, "Leave the term its graph", partial(_uncut, context, term.cut, kept), allowance)


def _draft_of_function(context: Context, event: OnceOnly) -> Draft:
    return Draft(
        RULE,
        "this gradient went through a Function whose backward is marked `once_differentiable`, and differentiating it"
        " again raises: that backward would have to be written with differentiable operations",
        Severity.ERROR,
        event.derivative.where.node,
        context.filename(event.derivative.where),
        [
            (Role.RECORDED, event.node.where, "the Function is applied here"),
            (Role.FREED, event.derivative.where, "the gradient is taken here"),
            (Role.REACHED, event.traversal.where, "and differentiated again here"),
        ],
        explains=False,
    )


# -- repairs -------------------------------------------------------------------------------------------------------


def _uncut(context: Context, cut: Cut, targets: tuple[ast.expr, ...]) -> Edits | None:
    """Edits that take the cut away, and detach ``targets`` alone; None where it is not written at one place."""
    filename = context.filename(cut.where)
    source = context.source_of(filename)
    if source is None:
        return None
    edits = [*_without(source, cut.where.node)]
    if not edits:
        return None
    for expression in targets:
        edits += append_call(source, expression, ".detach()")
    return {filename: tuple(edits)}


def _without(source: Source, node: ast.AST) -> tuple[TextEdit, ...]:
    """Edits that take ``.detach()``, ``.data``, ``.item()`` or ``float()`` from an expression."""
    attribute = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else node
    if isinstance(attribute, ast.Attribute) and attribute.attr in {"detach", "data", "item"}:
        if not source.segment_matches(attribute):
            raise EditRefused(f"line {attribute.lineno}: the place of this expression in the text is not certain")
        _, end = source.offsets(node)
        dot = source.text.rindex(".", 0, source.offsets(attribute)[1] - len(attribute.attr))
        return (TextEdit(source.table.span(dot, end), ""),)
    is_function = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
    if is_function and isinstance(node, ast.Call) and len(node.args) == 1:
        return replace_node(source, node, source.segment(node.args[0]))
    return ()


def _targets(context: Context, term: Term, needs: Where) -> tuple[ast.expr, ...]:
    """What the term compares with the network's output: operands that hang on nothing that is trained there."""
    traversal = next((one for one in context.facts.traversals if one.where == needs), None)
    trained = _trained(context, traversal) if traversal is not None else set()
    nodes = {edge.node for edge in term.cut.edges}
    while len(nodes) == 1:
        node = nodes.pop()
        tracked = [
            (expression, edges_reach(edges))
            for expression, value in node.operands
            if (edges := context.machine.edges_of(value))
        ]
        if len(tracked) == 1:
            nodes = {edge.node for edge in node.edges}
            continue
        if node.where.frame is not term.cut.where.frame:
            break
        fixed = [expression for expression, below in tracked if expression is not None and not below & trained]
        return tuple(fixed) if len(fixed) < len(tracked) else ()
    return ()


__all__ = ["RULE", "Term", "find"]
