"""Whether statements of one block may change places, as far as variables, attributes and control flow tell.

What a statement does through the functions of its own file is followed by their names; library calls count for what
they are called on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..analysis.source import Source
from .edits import EditRefused
from .sinking import CHANGING_METHODS

DEEPEST: Final = 4
UPDATING: Final = frozenset(
    {"zero_grad", "step", "backward", "manual_backward", "unscale_", "clip_grad_norm_", "update"}
)
"""They change gradients and parameters, which the proof looks after, and nothing that a name stands for."""
_LEAVING: Final = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(slots=True)
class Effects:
    """What a statement reads and writes: variables by name, attributes as ``.name`` whatever they are attributes of."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)


class Order:
    """The statements of one block with their effects."""

    def __init__(self, source: Source, statements: Sequence[ast.stmt]) -> None:
        self.statements = list(statements)
        self._functions: dict[str, list[ast.AST]] = {}
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions.setdefault(node.name, []).append(node)
        self._known: dict[int, Effects] = {}

    def index(self, statement: ast.stmt) -> int:
        return next(index for index, member in enumerate(self.statements) if member is statement)

    def effects(self, index: int) -> Effects:
        if index not in self._known:
            self._known[index] = effects = Effects()
            self._collect(self.statements[index], effects, True, set(), 0)
        return self._known[index]

    def readers(self, moved: Iterable[int], last: int) -> set[int]:
        """``moved`` and all statements up to ``last`` that read what they write, directly or through one another."""
        found = set(moved)
        for index in range(min(found) + 1, last + 1):
            if index not in found and any(
                self.effects(one).writes & self.effects(index).reads for one in found if one < index
            ):
                found.add(index)
        return found

    def check(self, moved: Iterable[int], target: int) -> None:
        """Raises ``EditRefused`` unless the statements ``moved`` may go to the place of ``target``."""
        chosen = set(moved)
        for index in chosen:
            crossed = range(index + 1, target + 1) if target > index else range(target, index)
            for other in crossed:
                if other not in chosen:
                    self._check_swap(index, other)

    def _check_swap(self, one: int, other: int) -> None:
        first, second = self.effects(one), self.effects(other)
        clash = first.writes & (second.reads | second.writes) or second.writes & first.reads
        if clash:
            row = self.statements[one].lineno
            raise EditRefused(f"line {row}: {min(clash)} would be read or written in another order")
        for index in (one, other):
            for node in ast.walk(self.statements[index]):
                if isinstance(node, _LEAVING) and not _is_inside_function(self.statements[index], node):
                    raise EditRefused(f"line {self.statements[index].lineno}: it may leave the block")

    def _collect(self, node: ast.AST, effects: Effects, local: bool, seen: set[str], depth: int) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                if local:
                    (effects.reads if isinstance(inner.ctx, ast.Load) else effects.writes).add(inner.id)
            elif isinstance(inner, ast.Attribute):
                (effects.reads if isinstance(inner.ctx, ast.Load) else effects.writes).add(f".{inner.attr}")
            elif isinstance(inner, ast.Subscript) and not isinstance(inner.ctx, ast.Load):
                self._written(inner, effects, local)
            elif isinstance(inner, ast.AugAssign):
                effects.reads |= {f".{inner.target.attr}"} if isinstance(inner.target, ast.Attribute) else set()
                if isinstance(inner.target, ast.Name) and local:
                    effects.reads.add(inner.target.id)
            elif isinstance(inner, ast.Call):
                self._called(inner, effects, local, seen, depth)

    def _called(self, call: ast.Call, effects: Effects, local: bool, seen: set[str], depth: int) -> None:
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        changes = name in CHANGING_METHODS or (name.endswith("_") and not name.endswith("__"))
        if isinstance(function, ast.Attribute) and changes and name not in UPDATING:
            self._written(function.value, effects, local)
        if name in self._functions and name not in seen and depth < DEEPEST:
            for body in self._functions[name]:
                self._collect(body, effects, False, seen | {name}, depth + 1)

    def _written(self, node: ast.expr, effects: Effects, local: bool) -> None:
        """Note that the value of ``node`` is changed."""
        while isinstance(node, ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Attribute):
            effects.writes.add(f".{node.attr}")
        elif isinstance(node, ast.Name) and local:
            effects.writes.add(node.id)


def _is_inside_function(statement: ast.stmt, wanted: ast.AST) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        and any(inner is wanted for inner in ast.walk(node))
        for node in ast.walk(statement)
    )


def block_around(source: Source, statements: Sequence[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The innermost block that holds all ``statements``, and for each the statement of that block that it lies in.

    Raises ``EditRefused`` where they lie in different branches of one statement.
    """
    paths = [_path(source, statement) for statement in statements]
    shared: list[list[ast.stmt]] = []
    for level in zip(*paths, strict=False):
        if any(block is not level[0][0] for block, _ in level):
            break
        shared.append(level[0][0])
    if not shared:
        raise EditRefused("the statements have no block in common")
    depth = len(shared) - 1
    return shared[-1], [path[depth][1] for path in paths]


def _path(source: Source, statement: ast.stmt) -> list[tuple[list[ast.stmt], ast.stmt]]:
    """The blocks around a statement within its function, outermost first, each with its member on the way."""
    path: list[tuple[list[ast.stmt], ast.stmt]] = []
    current: ast.AST | None = statement
    while current is not None:
        outer = source.parent(current)
        if isinstance(current, ast.stmt):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(outer, name, None)
                if isinstance(block, list) and any(member is current for member in block):
                    path.append((block, current))
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module):
            break
        current = outer
    return path[::-1]


__all__ = ["Effects", "Order", "block_around"]
