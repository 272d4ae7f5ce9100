"""Builders of edits on expressions."""

from __future__ import annotations

import ast

from ..analysis.source import Source
from .edits import EditRefused, TextEdit
from .trivia import grouping_end

_ATOMS = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.List,
    ast.ListComp,
    ast.Dict,
    ast.DictComp,
    ast.Set,
    ast.SetComp,
    ast.GeneratorExp,
    ast.JoinedStr,
)
_OPEN_PLACES: tuple[type[ast.AST], ...] = (ast.stmt, ast.keyword, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.withitem)
"""Parents whose expressions end at a comma, a bracket or a line end, so that any operator may stand in them."""


def append_call(source: Source, expression: ast.expr | ast.keyword, call: str) -> tuple[TextEdit, ...]:
    """Edits that put ``call``, such as ``.detach()``, behind an expression, in parentheses where it needs them.

    For a keyword or starred argument its value is meant. Raises ``EditRefused`` where the position of the expression in
    the text is in doubt.
    """
    node = expression
    while isinstance(node, ast.keyword | ast.Starred):
        node = node.value
    checked(source, node)
    if isinstance(node, ast.Slice) or (
        isinstance(node, ast.Tuple) and any(isinstance(x, ast.Slice) for x in node.elts)
    ):
        raise EditRefused(f"line {node.lineno}: a slice is no value")
    start, end = source.offsets(node)
    if isinstance(node, ast.GeneratorExp) and _is_whole_argument_list(source, node):
        # Its parentheses are the call's, so the call needs new ones.
        return (_insert(source, start, "("), _insert(source, end, f"{call})"))
    if is_atom(node, source.segment(node)):
        return (_insert(source, end, call),)
    grouped = grouping_end(source.text, start, end)
    if grouped is not None:
        return (_insert(source, grouped, call),)
    return (_insert(source, start, "("), _insert(source, end, f"){call}"))


def replace_node(source: Source, node: ast.expr | ast.keyword, code: str) -> tuple[TextEdit, ...]:
    """The edit that puts the expression ``code`` in the place of a node, in parentheses where the place needs them.

    Raises ``EditRefused`` where the position of the node is in doubt or ``code`` is no expression.
    """
    checked(source, node)
    start, end = source.offsets(node)
    if isinstance(node, ast.expr) and not isinstance(node, ast.Starred | ast.Slice):
        code = _fitted(source, node, code)
    return (TextEdit(source.table.span(start, end), code),)


def checked(source: Source, node: ast.expr | ast.keyword) -> None:
    """Raises ``EditRefused`` unless the text at the node's span is the node."""
    outer: ast.AST | None = node
    while isinstance(outer, ast.expr):
        outer = source.parent(outer)
    if isinstance(outer, ast.pattern):
        raise EditRefused(f"line {node.lineno}: a case takes patterns, not expressions")
    if not source.segment_matches(node):
        raise EditRefused(f"line {node.lineno}: the place of this expression in the text is not certain")


def is_atom(node: ast.expr, segment: str) -> bool:
    """Whether an attribute or a call can follow the node as it is written."""
    if isinstance(node, ast.Constant):
        # 1.detach() is no Python.
        return not isinstance(node.value, int | float | complex) or isinstance(node.value, bool)
    if isinstance(node, ast.Tuple):
        return _has_own_parentheses(segment)
    return isinstance(node, _ATOMS)


def _has_own_parentheses(segment: str) -> bool:
    """Whether the text of a tuple has the tuple's parentheses: ``(a), (b)`` has not."""
    if not segment.startswith("("):
        return False
    try:
        ast.parse(f"[{segment[1:-1]}\n]", mode="eval")
    except SyntaxError:
        return False
    return True


def _is_whole_argument_list(source: Source, node: ast.GeneratorExp) -> bool:
    """Whether the parentheses of the generator expression are those of the call that it is given to."""
    outer = source.parent(node)
    return isinstance(outer, ast.Call) and source.offsets(outer)[1] == source.offsets(node)[1]


def _insert(source: Source, offset: int, content: str) -> TextEdit:
    return TextEdit(source.table.span(offset, offset), content)


def _fitted(source: Source, node: ast.expr, code: str) -> str:
    try:
        new = ast.parse(f"({code}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        raise EditRefused(f"{code!r} is no expression") from None
    if isinstance(node, ast.GeneratorExp) and _is_whole_argument_list(source, node):
        # A tuple or a yield needs parentheses of its own within those of the call.
        alone = isinstance(new, ast.Tuple | ast.Yield | ast.YieldFrom) and not is_atom(new, code.strip())
        return f"(({code}))" if alone else f"({code})"
    is_bracketed = is_atom(new, code.strip()) or (isinstance(new, ast.Constant) and not _is_dotted(source, node))
    if is_bracketed or grouping_end(source.text, *source.offsets(node)) is not None:
        return code
    outer = source.parent(node)
    open_place = isinstance(outer, _OPEN_PLACES)
    if isinstance(outer, ast.Call):
        open_place = outer.func is not node
    elif isinstance(outer, ast.Subscript):
        open_place = outer.slice is node
    elif isinstance(outer, ast.Dict):
        # Not behind **, where the key is missing.
        open_place = any(key is node for key in outer.keys) or any(
            value is node and key is not None for key, value in zip(outer.keys, outer.values, strict=True)
        )
    if isinstance(new, ast.NamedExpr | ast.Tuple | ast.Yield | ast.YieldFrom):
        open_place = isinstance(outer, ast.Assign | ast.Return) and not isinstance(new, ast.NamedExpr)
    return code if open_place else f"({code})"


def _is_dotted(source: Source, node: ast.expr) -> bool:
    outer = source.parent(node)
    return isinstance(outer, ast.Attribute | ast.Call | ast.Subscript) and node in ast.iter_child_nodes(outer)
