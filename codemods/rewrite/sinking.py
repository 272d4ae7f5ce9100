"""Whether statements that stand before a loop may run in it instead, and where in it they go (code sinking).

Everything here is decided on the syntax tree; what it cannot decide it refuses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..analysis.source import Source
from .builders import move_statements
from .edits import EditRefused, TextEdit

LoopStatement = ast.For | ast.While | ast.AsyncFor
IMPURE_CALLS: Final = frozenset(
    {"print", "next", "input", "open", "exec", "eval", "setattr", "delattr", "append", "extend", "insert", "remove",
     "pop", "popleft", "popitem", "clear", "update", "setdefault", "write", "send", "put", "backward", "step",
     "zero_grad", "load_state_dict", "load", "save", "train"}
)  # fmt: skip
"""Calls whose second run does something else than the first, or something to others."""
DRAWING_CALLS: Final = frozenset(
    {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "bernoulli",
     "multinomial", "poisson", "sample", "rsample", "uniform", "choice", "shuffle", "standard_normal", "random"}
)  # fmt: skip
"""Calls that give another result each time because that is what they are for."""
CHANGING_METHODS: Final = frozenset(
    {"train", "eval", "load_state_dict", "append", "extend", "insert", "pop", "update", "clear", "remove"}
)
"""Methods that change what they are called on, besides those whose names end with an underscore."""
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_BRANCHES: Final = (ast.If, ast.Try, ast.Match, ast.TryStar)
Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sinking:
    """Statements, the statement of the loop's body before which they go, and whether more than the graph changes."""

    statements: tuple[ast.stmt, ...]
    target: ast.stmt
    changes_meaning: bool
    """Random numbers are drawn anew in each iteration, or the result is read after the loop."""

    def edits(self, source: Source) -> tuple[TextEdit, ...]:
        return move_statements(source, self.statements, before=self.target)


def sinking(source: Source, statements: Sequence[ast.stmt], loop: LoopStatement, first_use: ast.stmt | None) -> Sinking:
    """How ``statements`` move into ``loop``, before ``first_use`` or whatever statement of its body needs them earlier.

    Raises ``EditRefused`` where the loop would not compute the same from the same inputs.
    """
    moved = tuple(sorted(statements, key=_start))
    scope = scope_of(source, loop)
    defined: set[str] = set()
    read: set[str] = set()
    for statement in moved:
        if scope_of(source, statement) is not scope:
            raise EditRefused(f"line {statement.lineno}: computed in another function than the loop")
        _check_pure(statement)
        read |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} - defined
        if isinstance(statement, ast.AugAssign):
            read |= {t.id for t in (statement.target,) if isinstance(t, ast.Name)} - defined
        defined |= set(_targets(statement))
    if read & defined:
        raise EditRefused(f"line {moved[0].lineno}: computed from its own earlier value")
    _check_inputs(source, scope, moved, loop, read)
    branch = _branch_towards(source, moved, loop)
    target, read_later = _uses(source, scope, moved, loop, branch, defined, first_use)
    draws = any(name in DRAWING_CALLS for statement in moved for name in called_names(statement))
    return Sinking(moved, target, draws or read_later)


def scope_of(source: Source, node: ast.AST) -> ast.AST:
    """The function, class or module whose block a node stands in."""
    outer = source.parent(node)
    while outer is not None and not isinstance(outer, _SCOPES):
        outer = source.parent(outer)
    return outer or source.tree


def called_names(node: ast.AST) -> Iterator[str]:
    """The bare names of everything that is called in ``node``."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            if isinstance(inner.func, ast.Attribute):
                yield inner.func.attr
            elif isinstance(inner.func, ast.Name):
                yield inner.func.id


def check_repeatable(expression: ast.AST) -> None:
    """Raises ``EditRefused`` where running ``expression`` again does something else than running it once."""
    for inner in ast.walk(expression):
        if isinstance(inner, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)):
            raise EditRefused("what is computed before the loop does more than compute")
    for name in called_names(expression):
        if name in IMPURE_CALLS or (name.endswith("_") and not name.endswith("__")):
            raise EditRefused(f"{name}() does more than compute")


def _check_pure(statement: ast.stmt) -> None:
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or statement.value is None:
        raise EditRefused(f"line {statement.lineno}: only assignments are moved")
    if not _targets(statement):
        raise EditRefused(f"line {statement.lineno}: it does not assign to variables alone")
    check_repeatable(statement.value)


def _targets(statement: ast.stmt) -> list[str]:
    """The variables that an assignment sets; empty where it sets anything else."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    names: list[str] = []
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Name):
            names.append(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets += target.elts
        elif isinstance(target, ast.Starred):
            targets.append(target.value)
        else:
            return []
    return names


def _check_inputs(
    source: Source, scope: ast.AST, moved: Sequence[ast.stmt], loop: LoopStatement, read: set[str]
) -> None:
    """The inputs must be in the loop what they were before it."""
    chains = {ast.unparse(n) for s in moved for n in ast.walk(s) if isinstance(n, ast.Attribute)}
    start, end = _end(moved[0]), _end(loop)
    for node in ast.walk(scope):
        position = _place(node)
        if position is None or not start <= position < end or _inside(position, moved):
            continue
        name: str | None = None
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            name = node.id
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            if isinstance(node, ast.Subscript) or ast.unparse(node) in chains:
                name = _root(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            changes = method in CHANGING_METHODS or (method.endswith("_") and not method.endswith("__"))
            if changes and (position < _start(loop) or method not in {"train", "eval"}):
                name = _root(node.func)
        elif isinstance(node, (ast.Global, ast.Nonlocal)) and read & set(node.names):
            name = next(iter(read & set(node.names)))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = node.name
        if name is not None and name in read:
            raise EditRefused(f"line {position[0]}: {name} is changed before or in the loop")


def _branch_towards(source: Source, moved: Sequence[ast.stmt], loop: LoopStatement) -> ast.AST:
    """The statement of the block of ``moved`` that is the loop or holds it, outermost where the blocks differ."""
    outermost: ast.AST = loop
    for statement in moved:
        block = _block(source, statement)
        inner: ast.AST | None = loop
        while inner is not None and not any(member is inner for member in block):
            inner = source.parent(inner)
            if isinstance(inner, _SCOPES):
                inner = None
        if inner is None or _start(statement) > _start(inner):
            raise EditRefused(f"line {statement.lineno}: the loop is not always reached after it")
        if _start(inner) < _start(outermost):
            outermost = inner
    return outermost


def _uses(
    source: Source,
    scope: ast.AST,
    moved: Sequence[ast.stmt],
    loop: LoopStatement,
    branch: ast.AST,
    defined: set[str],
    first_use: ast.stmt | None,
) -> tuple[ast.stmt, bool]:
    """The statement of the loop's body that needs ``defined`` first, and whether anything after the loop does."""
    read_later = False
    index = len(loop.body)
    if first_use is not None:
        index = next((i for i, s in enumerate(loop.body) if s is first_use), index)
    around = _loop_around(source, moved[0])
    for node in ast.walk(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and defined & set(node.names):
            raise EditRefused(f"line {node.lineno}: the variable is shared with other functions")
        if not isinstance(node, ast.Name) or node.id not in defined:
            continue
        position = _start(node)
        if _inside(position, moved):
            continue
        inside = next((i for i, s in enumerate(loop.body) if _start(s) <= position < _end(s)), None)
        if inside is not None:
            if not isinstance(node.ctx, ast.Load):
                raise EditRefused(f"line {node.lineno}: {node.id} is set in the loop as well")
            index = min(index, inside)
        elif scope_of(source, node) is not scope:
            raise EditRefused(f"line {node.lineno}: another function reads {node.id}")
        elif position < _start(moved[0]):
            if around is not None and position >= _start(around) and isinstance(node.ctx, ast.Load):
                raise EditRefused(f"line {node.lineno}: the iteration before reads {node.id}")
        elif position < _end(branch):
            raise EditRefused(f"line {node.lineno}: {node.id} is needed outside the loop")
        elif not isinstance(node.ctx, ast.Store):
            read_later = True
    if index == len(loop.body):
        raise EditRefused("nothing in the loop needs it")
    return loop.body[index], read_later


def _loop_around(source: Source, statement: ast.stmt) -> ast.AST | None:
    """The outermost loop of the same function around a statement."""
    found: ast.AST | None = None
    outer = source.parent(statement)
    while outer is not None and not isinstance(outer, _SCOPES):
        if isinstance(outer, LoopStatement):
            found = outer
        outer = source.parent(outer)
    return found


def _block(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    outer = source.parent(statement)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(outer, field, None)
        if isinstance(block, list) and any(member is statement for member in block):
            return block
    return []


def _root(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _inside(position: Position, statements: Sequence[ast.stmt]) -> bool:
    return any(_start(s) <= position < _end(s) for s in statements)


def _place(node: ast.AST) -> Position | None:
    return (node.lineno, node.col_offset) if isinstance(node, (ast.expr, ast.stmt)) else None


def _start(node: ast.AST) -> Position:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> Position:
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0
