"""Builders of edits on the arguments of calls."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..analysis.source import Source
from .edits import EditRefused, TextEdit
from .expressions import checked, replace_node
from .trivia import line_end, line_start, skip_trivia, starts_row


@dataclass(frozen=True, slots=True)
class _Argument:
    node: ast.expr | ast.keyword
    start: int
    """Offset of its first character, grouping parentheses included."""
    end: int
    comma: int | None
    """Offset of the comma behind it."""


@dataclass(frozen=True, slots=True)
class _ArgumentList:
    opening: int
    """Offset of the parenthesis."""
    closing: int
    arguments: tuple[_Argument, ...]


def remove_keyword(source: Source, call: ast.Call, name: str) -> tuple[TextEdit, ...]:
    """Edits that take the keyword argument ``name`` out of a call, with the comma, lines and comment that belong to it.

    Raises ``EditRefused`` if the call has no such keyword or its place in the text is in doubt.
    """
    layout = _layout(source, call)
    keyword = _keyword(call, name)
    if keyword is None:
        raise EditRefused(f"line {call.lineno}: the call has no argument {name}")
    return _remove(source, layout, _index(layout, keyword))


def remove_positional(source: Source, call: ast.Call, index: int) -> tuple[TextEdit, ...]:
    """As ``remove_keyword`` for the positional argument ``index``, from 0; those behind it move up."""
    layout = _layout(source, call)
    if not 0 <= index < len(call.args):
        raise EditRefused(f"line {call.lineno}: the call has no positional argument {index}")
    return _remove(source, layout, _index(layout, call.args[index]))


def set_keyword(source: Source, call: ast.Call, name: str, value: str) -> tuple[TextEdit, ...]:
    """Edits after which a call has ``name=value``: the value replaced, or the argument added in the call's own layout.

    Raises ``EditRefused`` where the call's place in the text is in doubt.
    """
    keyword = _keyword(call, name)
    if keyword is not None:
        return replace_node(source, keyword.value, value)
    return _append(source, _layout(source, call), f"{name}={value}")


def rename_keyword(
    source: Source, call: ast.Call, old: str, new: str, value: str | None = None
) -> tuple[TextEdit, ...]:
    """Edits that make ``new=value`` of the keyword argument ``old``; without ``value`` it keeps its own.

    Where the call has ``new`` already, that one is set and ``old`` goes. Errors as ``remove_keyword``.
    """
    keyword = _keyword(call, old)
    if keyword is None:
        raise EditRefused(f"line {call.lineno}: the call has no argument {old}")
    if value is None:
        checked(source, keyword.value)
        value = source.segment(keyword.value)
    if old == new:
        return set_keyword(source, call, new, value)
    if _keyword(call, new) is not None:
        return (*remove_keyword(source, call, old), *set_keyword(source, call, new, value))
    checked(source, keyword)
    start = source.offsets(keyword)[0]
    renamed = TextEdit(source.table.span(start, start + len(old)), new)
    if value == source.segment(keyword.value):
        return (renamed,)
    return (renamed, *replace_node(source, keyword.value, value))


def _keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def _index(layout: _ArgumentList, node: ast.AST) -> int:
    return next(index for index, argument in enumerate(layout.arguments) if argument.node is node)


def _layout(source: Source, call: ast.Call) -> _ArgumentList:
    checked(source, call)
    text = source.text
    position = source.offsets(call.func)[1]
    # Behind the function may come the rest of its grouping parentheses.
    while text[position := skip_trivia(text, position)] == ")":
        position += 1
    opening = position
    closing = source.offsets(call)[1] - 1
    nodes: list[ast.expr | ast.keyword] = sorted((*call.args, *call.keywords), key=source.offsets)
    if len(nodes) == 1 and isinstance(nodes[0], ast.GeneratorExp) and source.offsets(nodes[0])[0] == opening:
        raise EditRefused(f"line {call.lineno}: the only argument is a generator without parentheses of its own")
    arguments: list[_Argument] = []
    position += 1
    for node in nodes:
        start = position = skip_trivia(text, position)
        node_start, end = source.offsets(node)
        depth = 0
        while position < node_start and text[position] == "(":
            depth += 1
            position = skip_trivia(text, position + 1)
        for _ in range(depth):
            end = skip_trivia(text, end) + 1
        position = skip_trivia(text, end)
        comma = position if text[position] == "," else None
        if comma is not None:
            position += 1
        elif position != closing:
            raise EditRefused(f"line {call.lineno}: the layout of the call's arguments is not understood")
        arguments.append(_Argument(node, start, end, comma))
    return _ArgumentList(opening, closing, tuple(arguments))


def _remove(source: Source, layout: _ArgumentList, index: int) -> tuple[TextEdit, ...]:
    text = source.text
    arguments = layout.arguments
    argument = arguments[index]
    behind = argument.end if argument.comma is None else argument.comma + 1
    before = arguments[index - 1] if index > 0 else None
    after = arguments[index + 1] if index + 1 < len(arguments) else None
    owns_rows = _owns_rows(text, argument.start, behind)
    stretches: list[tuple[int, int]] = []
    if before is None and after is None:
        comment_end = line_end(text, behind) if owns_rows else behind
        if _only_space(text, layout.opening + 1, argument.start) and _only_space(text, comment_end, layout.closing):
            stretches = [(layout.opening + 1, layout.closing)]
        elif owns_rows:
            stretches = [_rows(text, argument.start, behind)]
        else:
            stretches = [(argument.start, behind)]
    elif owns_rows:
        stretches = [_rows(text, argument.start, behind)]
        if argument.comma is None and before is not None and before.comma is not None:
            stretches.insert(0, (before.comma, before.comma + 1))
    elif after is not None and (before is None or starts_row(text, argument.start)):
        same_row = _only_space(text, behind, after.start)
        stretches = [(argument.start, after.start if same_row else behind)]
    else:
        assert before is not None
        assert before.comma is not None
        if _only_space(text, before.comma + 1, argument.start):
            stretches = [(before.comma, argument.end)]
        elif argument.comma is not None:
            stretches = [(argument.start, behind)]
        else:
            # A comment stands between the comma and the argument, and it is the other argument's.
            stretches = [(before.comma, before.comma + 1), (argument.start, argument.end)]
    return tuple(TextEdit(source.table.span(*stretch), "") for stretch in stretches)


def _append(source: Source, layout: _ArgumentList, code: str) -> tuple[TextEdit, ...]:
    text = source.text

    def insert(offset: int, content: str) -> TextEdit:
        return TextEdit(source.table.span(offset, offset), content)

    if not layout.arguments:
        return (insert(layout.closing, code),)
    last = layout.arguments[-1]
    if not _one_a_row(text, layout):
        if last.comma is not None:
            return (insert(last.comma + 1, f" {code},"),)
        return (insert(last.end, f", {code}"),)
    new_row = f"\n{source.indentation(source.table.position(last.start)[0])}{code}"
    behind = last.end if last.comma is None else last.comma + 1
    row_end = line_end(text, behind)
    if row_end > layout.closing:
        # The closing parenthesis stands on the row of the last argument.
        return (insert(behind, f"{new_row},"),) if last.comma is not None else (insert(last.end, f",{new_row}"),)
    comment = text[behind:row_end].strip()
    if last.comma is not None:
        return (insert(row_end if comment else behind, f"{new_row},"),)
    if comment:
        return (insert(last.end, ","), insert(row_end, new_row))
    return (insert(last.end, f",{new_row}"),)


def _one_a_row(text: str, layout: _ArgumentList) -> bool:
    """Whether every argument starts a row, the first one possibly behind the parenthesis."""
    first, *others = layout.arguments
    if not others:
        return starts_row(text, first.start)
    return all(starts_row(text, argument.start) for argument in others)


def _owns_rows(text: str, start: int, behind: int) -> bool:
    """Whether nothing else stands on the rows of an argument but a comment behind it."""
    rest = text[behind : line_end(text, behind)].lstrip(" \t\f")
    return starts_row(text, start) and (not rest or rest.startswith("#"))


def _rows(text: str, start: int, behind: int) -> tuple[int, int]:
    return line_start(text, start), line_end(text, behind) + 1


def _only_space(text: str, start: int, end: int) -> bool:
    return not text[start:end].strip(" \t\f\n\\")
