"""# inplace-on-graph (GM401)

## What it does

Finds an in-place operation (`x += y`, `x[i] = y`, `x.masked_fill_(...)`, `nn.ReLU(inplace=True)` and their like) on
memory that an earlier operation saved for the backward pass, and in-place changes of a leaf that requires a gradient.

## Why is this bad?

Some operations keep their input for the derivative (`pow`, `softplus`, `mul`, `Linear`), some their result (`exp`,
`tanh`, `sigmoid`, `relu`, `softmax`). Every tensor counts its in-place changes, and the traversal compares:

    RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation

A leaf that requires a gradient may not be changed in place at all while operations are recorded:

    RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.

## Example

```python
import torch

layer, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
for batch in torch.randn(4, 5, 3):
    hidden = layer(batch).relu()
    hidden += batch
    loss = head(hidden).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

layer, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
for batch in torch.randn(4, 5, 3):
    hidden = layer(batch).relu()
    hidden = hidden + batch
    loss = head(hidden).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Where an index is written, the operation that saved the tensor gets a copy: `softplus(x[:, 1].clone())`.

## Fix safety

Safe where nothing else reads the changed memory afterwards, and for a copy: every value stays what it was. Unsafe where
another name of the same tensor is read later, which sees the change now and would not see it then. A changed leaf is
reported without a repair: `torch.no_grad()` is right for an update by hand, wrong for what is to be trained through.

## When to leave it

In-place operations on what nothing saved are right and are not reported: on the result of `add`, `mul` by a number,
`sum`, `Linear`, `Conv2d`, `BatchNorm2d`, on a fresh buffer, under `no_grad`, on `.data`, and after the backward pass.

## References

- https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
- https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from .analysis.aliases import Alias, aliases
from .analysis.facts import Facts, frames_of
from .analysis.tape import Change, Node, Saved, Stale, Traversal, Where
from .analysis.values import Tensor
from .draft import Allowance, Context, Draft, Edits, Plan, Rule, combined
from .finding import Role, Safety, Severity
from .rewrite.builders import append_call, insert_before, remove_keyword, remove_positional
from .rewrite.edits import EditRefused
from .rewrite.out_of_place import SYMBOLS, assigned_place, is_place, out_of_place

Part = TypeVar("Part")
RULE = Rule("GM401", "inplace-on-graph", "An in-place operation on a tensor that a later traversal needs")


def find(context: Context) -> Iterator[Draft]:
    """Drafts for in-place operations that make a later traversal fail, and for those on leaves, which fail at once."""
    seen: set[ast.AST] = set()
    for event in context.facts.stale:
        if event.change.step is not None or context.is_expected(event.traversal.where):
            continue
        if _is_sure(context.facts, event):
            clash = _clash(context.facts, event)
            yield _draft(context, event, clash)
            seen.update(change.where.node for change in clash.changes)
    for change in context.facts.tape.of(Change):
        if change.leaf is None or change.where.node in seen or context.is_expected(change.where):
            continue
        if _is_recorded(context.facts, change):
            seen.add(change.where.node)
            yield _leaf_draft(context, change)


@dataclass(frozen=True, slots=True)
class _Clash:
    """What a traversal misses: who saved it, and all that changed it since."""

    traversal: Traversal
    saved: tuple[tuple[Node, Saved], ...]
    changes: tuple[Change, ...]


def _is_sure(facts: Facts, event: Stale) -> bool:
    return (
        facts.parting(event.node.where, event.traversal.where) is None
        and facts.coincide(event)
        and facts.reaches_plainly(event.traversal, event.node)
    )


def _clash(facts: Facts, event: Stale) -> _Clash:
    """All savers and all changes of the memory; the event names the last change only."""
    saved = [
        (node, one)
        for node in event.traversal.reached
        for one in node.saved
        if one.storage is event.storage and _version(one) < event.change.index
    ]
    since = min(_version(one) for _, one in saved)
    changes = [
        change
        for change in facts.tape.of(Change)
        if event.storage in change.storages
        and since < change.index < event.traversal.index
        and change.path.compatible(event.path)
    ]
    return _Clash(event.traversal, tuple(saved), tuple(changes) or (event.change,))


def _version(saved: Saved) -> int:
    return saved.version.index if isinstance(saved.version, Change) else -1


def _is_recorded(facts: Facts, change: Change) -> bool:
    """Whether operations are surely recorded where ``change`` happens: what is recorded there gets back-propagated."""
    leaf = change.leaf
    if leaf is None or leaf.assumed or (isinstance(leaf.key, tuple) and leaf.key[0] == "params"):
        return False
    frames = set(frames_of(change.where))
    return any(
        node.kind != "leaf" and node.where.frame in frames
        for traversal in facts.traversals
        for node in traversal.reached
    )


# -- drafts --------------------------------------------------------------------------------------------------------


def _draft(context: Context, event: Stale, clash: _Clash) -> Draft:
    change = clash.changes[0]
    node = event.node
    draft = Draft(
        RULE,
        f"{_spelled(change)} changes in place what backward() needs: it was saved before",
        Severity.ERROR,
        change.where.node,
        context.filename(change.where),
        [
            (Role.RECORDED, node.where, "saved for backward() here"),
            (Role.FREED, change.where, "changed in place here"),
            (Role.REACHED, event.traversal.where, "needed here"),
        ],
    )
    if not _is_parameter(context.facts, event):
        draft.plans = list(_plans(context, clash))
    return draft


def _leaf_draft(context: Context, change: Change) -> Draft:
    return Draft(
        RULE,
        f"{_spelled(change)} changes a leaf that requires a gradient in place while operations are recorded: PyTorch "
        "raises",
        Severity.ERROR,
        change.where.node,
        context.filename(change.where),
        [(Role.REACHED, change.where, "use `torch.no_grad()` for an update by hand, else the out-of-place form")],
    )


def _is_parameter(facts: Facts, event: Stale) -> bool:
    return any(leaf.slots["storage"] is event.storage for leaf in facts.tape.leaves.values())


def _spelled(change: Change) -> str:
    """The operation as the source spells it."""
    node = change.where.node
    if change.module is not None:
        return f"`{change.module.name}(inplace=True)`"
    if isinstance(node, ast.AugAssign):
        return f"`{SYMBOLS.get(type(node.op), '')}=`"
    if isinstance(node, ast.Call):
        function = node.func
        name = (
            function.attr
            if isinstance(function, ast.Attribute)
            else function.id
            if isinstance(function, ast.Name)
            else ""
        )
        return f"`{name}`" if name.endswith("_") else f"`{name}(..., inplace=True)`"
    return "The assignment to an index"


# -- repairs -------------------------------------------------------------------------------------------------------


def _plans(context: Context, clash: _Clash) -> Iterator[Plan]:
    allowance = _allowance(clash)
    first = clash.changes[0]
    sites: dict[ast.AST, Change] = {}
    for change in clash.changes:
        sites.setdefault(change.where.node, change)
    for chosen in ((first,), tuple(sites.values())):
        sharing = [_sharing(context, change) for change in chosen]
        if Alias.VIEW in sharing:
            continue
        safety = Safety.UNSAFE if Alias.SAME in sharing else Safety.SAFE
        edits = partial(_all, context, _out_of_place, chosen)
        yield Plan(safety, "Use the out-of-place form", edits, allowance)
    edits = partial(_all, context, _copied_operand, clash.saved)
    yield Plan(Safety.SAFE, "Save a copy", edits, allowance)
    edits = partial(_all, context, _copied, clash.saved)
    yield Plan(Safety.SAFE, "Change a copy of what was saved", edits, allowance)
    alone = all(aliases(context.facts, change, _base(change)) is Alias.NONE for change in sites.values())
    edits = partial(_all, context, _copied_before, tuple(sites.values()))
    yield Plan(Safety.SAFE if alone else Safety.UNSAFE, "Change a copy", edits, allowance)


def _base(change: Change) -> ast.expr | None:
    """The tensor that is changed, without the index that is written."""
    return change.target.value if isinstance(change.target, ast.Subscript) else change.target


def _allowance(clash: _Clash) -> Allowance:
    nodes = {change.where.node for change in clash.changes}
    operations = {"clone", *(change.operation for change in clash.changes)}
    operations |= {change.module.name for change in clash.changes if change.module is not None}
    return Allowance(
        lost=lambda node, _: node.where.node in nodes,
        gained=lambda node, _: node.operation in operations,
    )


def _all(context: Context, edit: Callable[[Context, Part], Edits | None], parts: tuple[Part, ...]) -> Edits | None:
    return combined(edit(context, part) for part in parts)


def _sharing(context: Context, change: Change) -> Alias:
    source = context.source_of(context.filename(change.where))
    if source is None:
        return Alias.SAME
    node = change.where.node
    if change.module is None and not isinstance(node, ast.AugAssign | ast.Call):
        return aliases(context.facts, change, change.target)
    return aliases(context.facts, change, assigned_place(source, node, change.target))


def _out_of_place(context: Context, change: Change) -> Edits | None:
    if change.module is not None:
        return _constructor(context, change)
    source = context.source_of(context.filename(change.where))
    return {source.filename: out_of_place(source, change.where.node, change.target)} if source is not None else None


def _constructor(context: Context, change: Change) -> Edits | None:
    """Edits that take ``inplace=True`` out of the call that made the module."""
    site: Where | None = change.module.site if change.module is not None else None
    source = context.source_of(context.filename(site)) if site is not None else None
    if site is None or source is None or not isinstance(site.node, ast.Call):
        return None
    call = site.node
    for keyword in call.keywords:
        if keyword.arg == "inplace":
            written = isinstance(keyword.value, ast.Constant)
            return {source.filename: remove_keyword(source, call, "inplace")} if written else None
    last = call.args[-1] if call.args else None
    if not isinstance(last, ast.Constant) or last.value is not True:
        return None
    return {source.filename: remove_positional(source, call, len(call.args) - 1)}


def _copied_operand(context: Context, part: tuple[Node, Saved]) -> Edits | None:
    """Give the operation that saved its input a copy of it."""
    node, saved = part
    if _is_in_place(context.facts, node):
        return None
    for operand in node.operands:
        value = context.machine.resolve(operand.value)
        if operand.expression is not None and type(value) is Tensor and value.storage is saved.storage:
            return _cloned(context, node, operand.expression)
    return None


def _copied(context: Context, part: tuple[Node, Saved]) -> Edits | None:
    """Copy the result that an operation saved."""
    node, saved = part
    if _is_in_place(context.facts, node):
        return None
    if any(edge.node is not node for edge in saved.edges) or not isinstance(node.where.node, ast.expr):
        return None
    return _cloned(context, node, node.where.node)


def _is_in_place(facts: Facts, node: Node) -> bool:
    """Whether the operation itself changes its operand: on a copy, others would not see the change."""
    return any(change.where.node is node.where.node for change in facts.tape.of(Change))


def _cloned(context: Context, node: Node, expression: ast.expr) -> Edits | None:
    source = context.source_of(context.filename(node.where))
    return {source.filename: append_call(source, expression, ".clone()")} if source is not None else None


def _copied_before(context: Context, change: Change) -> Edits | None:
    """Rebind the name to a copy before the statement that changes it."""
    source = context.source_of(context.filename(change.where))
    target = _base(change)
    if source is None or target is None or not is_place(target) or not isinstance(change.statement, ast.stmt):
        raise EditRefused("what is changed has no name")
    name = source.segment(target)
    return {source.filename: insert_before(source, change.statement, [f"{name} = {name}.clone()"])}


__all__ = ["RULE", "find"]
