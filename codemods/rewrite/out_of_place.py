"""Edits that turn an in-place operation into its out-of-place form."""

from __future__ import annotations

import ast

from ..analysis.knowledge.torch_operations import IN_PLACE, IN_PLACE_ARGUMENT
from ..analysis.source import Source
from .arguments import remove_keyword, remove_positional
from .detaching import torch_name
from .edits import EditRefused, TextEdit
from .expressions import checked, replace_node
from .trivia import grouping_end

SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_TIGHTER: dict[type[ast.operator], int] = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2, ast.FloorDiv: 2, ast.Mod: 2}
_WHOLE = {"zero_": "zeros_like", "fill_": "full_like"}
"""Methods that overwrite everything, and the function that makes the same tensor anew."""


def out_of_place(source: Source, node: ast.AST, tensor: ast.expr | None) -> tuple[TextEdit, ...]:
    """Edits that make ``x = x + y`` of ``x += y``, and ``x = x.relu()`` of the statement ``x.relu_()``.

    Where the result is used they drop the underscore or ``inplace=True``. ``tensor`` is what is changed.

    Raises ``EditRefused`` for what is written into an index, and for operations that have no such form.
    """
    if isinstance(node, ast.AugAssign):
        return _augmented(source, node)
    if isinstance(node, ast.Call):
        return _called(source, node, tensor)
    raise EditRefused(f"line {getattr(node, 'lineno', '?')}: there is no out-of-place form of this")


def assigned_place(source: Source, node: ast.AST, tensor: ast.expr | None) -> ast.expr | None:
    """What the out-of-place form is assigned to; None where it is used in an expression."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Call) and isinstance(source.parent(_top_of_chain(source, node)), ast.Expr):
        return _root(tensor)
    return None


def is_place(node: ast.expr) -> bool:
    """Whether an assignment to the expression rebinds a variable or an attribute."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _augmented(source: Source, statement: ast.AugAssign) -> tuple[TextEdit, ...]:
    symbol = SYMBOLS.get(type(statement.op))
    if symbol is None or not is_place(statement.target):
        raise EditRefused(f"line {statement.lineno}: an index is written, or no sum")
    checked(source, statement.target)
    checked(source, statement.value)
    behind = source.offsets(statement.target)[1]
    start, end = source.offsets(statement.value)
    token = source.text.find(f"{symbol}=", behind, start)
    if token < 0:
        raise EditRefused(f"line {statement.lineno}: the operator is not found")
    name = source.segment(statement.target)
    edits = [TextEdit(source.table.span(token, token + len(symbol) + 1), f"= {name} {symbol}")]
    if not _binds_tighter(statement.value, statement.op) and grouping_end(source.text, start, end) is None:
        edits.append(TextEdit(source.table.span(start, start), "("))
        edits.append(TextEdit(source.table.span(end, end), ")"))
    return tuple(edits)


def _binds_tighter(value: ast.expr, operator: ast.operator) -> bool:
    if isinstance(value, ast.BinOp):
        return _TIGHTER.get(type(value.op), 9 if isinstance(value.op, ast.Pow) else 0) > _TIGHTER.get(type(operator), 9)
    if isinstance(value, ast.UnaryOp):
        return not isinstance(value.op, ast.Not) and not isinstance(operator, ast.Pow)
    return not isinstance(
        value, ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda | ast.Tuple | ast.NamedExpr | ast.Yield | ast.YieldFrom
    )


def _called(source: Source, call: ast.Call, tensor: ast.expr | None) -> tuple[TextEdit, ...]:
    top = _top_of_chain(source, call)
    if not isinstance(source.parent(top), ast.Expr):
        return _renamed(source, call)
    root = _root(tensor)
    if root is None or not is_place(root):
        raise EditRefused(f"line {call.lineno}: what is changed has no name")
    name = source.segment(root)
    whole = _WHOLE.get(call.func.attr) if isinstance(call.func, ast.Attribute) else None
    if whole is not None and top is call:
        return _made_anew(source, call, name, whole)
    edits: list[TextEdit] = []
    one: ast.expr = top
    while isinstance(one, ast.Call):
        if _bare(one.func) in IN_PLACE or _bare(one.func) in IN_PLACE_ARGUMENT:
            edits += _renamed(source, one)
        one = one.func.value if isinstance(one.func, ast.Attribute) else root
    start = source.offsets(top)[0]
    return (TextEdit(source.table.span(start, start), f"{name} = "), *edits)


def _made_anew(source: Source, call: ast.Call, name: str, function: str) -> tuple[TextEdit, ...]:
    torch = torch_name(source)
    if torch is None or call.keywords or any(isinstance(argument, ast.Starred) for argument in call.args):
        raise EditRefused(f"line {call.lineno}: the same tensor cannot be made anew")
    arguments = ", ".join([name, *(source.segment(argument) for argument in call.args)])
    start = source.offsets(call)[0]
    assignment = TextEdit(source.table.span(start, start), f"{name} = ")
    return (assignment, *replace_node(source, call, f"{torch}.{function}({arguments})"))


def _renamed(source: Source, call: ast.Call) -> tuple[TextEdit, ...]:
    """Edits that drop the underscore or the ``inplace`` argument of one call."""
    checked(source, call)
    function = call.func
    name = _bare(function)
    if name.endswith("_"):
        rule = IN_PLACE.get(name)
        if rule is None or not rule.changes_data or rule.cuts or not isinstance(function, ast.Attribute):
            raise EditRefused(f"line {call.lineno}: {name} has no out-of-place form")
        end = source.offsets(function)[1]
        return (TextEdit(source.table.span(end - 1, end), ""),)
    if any(keyword.arg == "inplace" for keyword in call.keywords):
        return remove_keyword(source, call, "inplace")
    position = IN_PLACE_ARGUMENT.get(name)
    if position is None or position >= len(call.args):
        raise EditRefused(f"line {call.lineno}: {name} is not in place")
    if position == len(call.args) - 1:
        return remove_positional(source, call, position)
    return replace_node(source, call.args[position], "False")


def _bare(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _top_of_chain(source: Source, call: ast.Call) -> ast.Call:
    """The last call of ``x.add_(a).mul_(b)``."""
    top = call
    while True:
        attribute = source.parent(top)
        outer = source.parent(attribute) if isinstance(attribute, ast.Attribute) else None
        if not isinstance(outer, ast.Call) or outer.func is not attribute:
            return top
        top = outer


def _root(tensor: ast.expr | None) -> ast.expr | None:
    """The tensor at the start of a chain of calls."""
    while isinstance(tensor, ast.Call):
        tensor = tensor.func.value if isinstance(tensor.func, ast.Attribute) else None
    return tensor


__all__ = ["assigned_place", "is_place", "out_of_place"]
