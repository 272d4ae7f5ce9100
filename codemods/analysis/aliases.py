"""Who else holds the memory of a tensor that is changed in place."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from enum import Enum
from typing import Any

from .facts import Facts, frame_statement, frames_of
from .tape import Change
from .values import DictCell, Frame, ListCell, Phi, Sequence, Storage, Tensor, TupleValue, Value

DEEPEST: int = 4
LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Alias(Enum):
    """What else reads the memory after a change in place."""

    NONE = "none"
    SAME = "same"
    """Another name of the very tensor, or of what may be it."""
    VIEW = "view"
    """A view of it, or what it is a view of: the change is meant to be seen there."""


def aliases(facts: Facts, change: Change, rebound: ast.expr | None) -> Alias:
    """Who reads the changed memory afterwards, other than through ``rebound``, which the statement assigns anew."""
    found = Alias.NONE
    for frame, name, tensor in _holders(facts, change, rebound):
        if frame is not None and not _is_read_after(frame, name, change):
            continue
        if tensor is not change.tensor and tensor.storage in change.storages:
            return Alias.VIEW
        found = Alias.SAME
    return found


def _holders(facts: Facts, change: Change, rebound: ast.expr | None) -> Iterator[tuple[Frame | None, str, Tensor]]:
    """Variables (with their frame), and attributes and containers (without), that hold the memory."""
    storages = {*change.storages, change.tensor.shares} - {None}
    frames = {id(frame.slots): frame for frame in frames_of(change.where)}
    last: dict[tuple[int, Hashable], tuple[dict[Any, Any], Value, Frame]] = {}
    for frame in frames.values():
        for name, value in frame.slots.items():
            last[id(frame.slots), name] = (frame.slots, value, frame)
    for stored in facts.stored:
        if stored.index < change.index:
            last[id(stored.slots), stored.key] = (stored.slots, stored.value, stored.where.frame)
    for (identity, key), (slots, value, writer) in last.items():
        tensor = _held(value, storages)
        if tensor is None:
            continue
        holder = frames.get(identity)
        name = key if isinstance(key, str) else ""
        if _is_rebound(change, rebound, holder, name):
            continue
        if holder is None and slots is writer.slots and writer.returned:
            continue
        yield holder, name, tensor


def _is_rebound(change: Change, rebound: ast.expr | None, holder: Frame | None, name: str) -> bool:
    if isinstance(rebound, ast.Name):
        return holder is change.where.frame and rebound.id == name
    return isinstance(rebound, ast.Attribute) and holder is None and rebound.attr == name


def _held(value: Value, storages: set[Storage], depth: int = 0) -> Tensor | None:
    """The tensor in ``value`` that has this memory, or may have it."""
    kind = type(value)
    if kind is Tensor:
        return value if value.storage in storages or value.shares in storages else None
    if depth > DEEPEST:
        return None
    parts: list[Value] = []
    if kind is TupleValue:
        parts = list(value.items)
    elif kind is ListCell:
        parts = [item for _, item in value.slots["items"]]
    elif kind is Sequence:
        parts = [item for _, item in value.items]
    elif kind is Phi:
        parts = [one for _, one in value.alternatives]
    elif kind is DictCell:
        parts = list(value.slots.values())
    for part in parts:
        tensor = _held(part, storages, depth + 1)
        if tensor is not None:
            return tensor
    return None


def _is_read_after(frame: Frame, name: str, change: Change) -> bool:
    """Whether the text of the function reads ``name`` once the statement that made the change is over."""
    statement = frame_statement(change.where, frame)
    body = frame.function.node if frame.function is not None else frame.module.tree
    if not isinstance(statement, ast.AST) or not name.isidentifier():
        return True
    if not isinstance(statement, ast.stmt):
        statement = _statement_around(body, statement)
        if statement is None:
            return True
    if any(
        isinstance(node, ast.Name) and node.id == name for target in _targets(statement) for node in ast.walk(target)
    ):
        return False
    end = getattr(statement, "end_lineno", 0)
    names = [node for node in ast.walk(body) if isinstance(node, ast.Name) and node.id == name]
    if any(isinstance(node.ctx, ast.Load) and node.lineno > end for node in names):
        return True
    for loop in ast.walk(body):
        if isinstance(loop, LOOPS) and any(inner is statement for inner in ast.walk(loop)):
            inside = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == name]
            first = min(inside, key=lambda node: (node.lineno, node.col_offset), default=None)
            if first is not None and isinstance(first.ctx, ast.Load):
                return True
    return False


def _statement_around(body: ast.AST, wanted: ast.AST) -> ast.stmt | None:
    """The innermost statement of ``body`` that contains a node."""
    found: ast.stmt | None = None
    for node in ast.walk(body):
        if isinstance(node, ast.stmt) and node is not body and any(inner is wanted for inner in ast.walk(node)):
            found = node
    return found


def _targets(statement: ast.stmt) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AnnAssign) else []


__all__ = ["Alias", "aliases"]
