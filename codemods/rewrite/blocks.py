"""Where the statements of a block stand: on rows of their own, several on one row, or on the row of the header."""

from __future__ import annotations

import ast

from ..analysis.source import Source
from .edits import EditRefused
from .trivia import line_end, skip_blank

_BLOCK_FIELDS = ("body", "orelse", "finalbody")


class Block:
    """The statements of one block; they are named by their index, places are offsets in the text."""

    def __init__(self, source: Source, owner: ast.AST, statements: list[ast.stmt]) -> None:
        self._source = source
        self._owner = owner
        self.statements = statements
        self.header_end = self._find_header_end()
        """For a block on the row of its header the offset behind the colon; else -1."""

    @property
    def is_inline(self) -> bool:
        """Whether the block stands on the row of its header."""
        return self.header_end >= 0

    @property
    def may_be_empty(self) -> bool:
        """Whether Python takes the block without any statement."""
        return isinstance(self._owner, ast.Module)

    @property
    def indentation(self) -> str:
        """What the rows of the block start with, or would if it had rows of its own."""
        if not self.is_inline:
            return self._source.indentation(self._row(0))
        return self._source.indentation(_header_row(self._source, self._owner)) + _unit(self._source, self._owner)

    def index(self, statement: ast.stmt) -> int:
        """The index of a statement of this block."""
        return next(index for index, member in enumerate(self.statements) if member is statement)

    def start(self, index: int) -> int:
        """Where a statement starts, at its first decorator's ``@`` if it has any."""
        statement = self.statements[index]
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        if decorators:
            return self._source.text.rfind("@", 0, self._source.offsets(decorators[0])[0])
        return self._source.offsets(statement)[0]

    def end(self, index: int) -> int:
        """Where a statement ends; neither its semicolon nor its comment is part of it."""
        return self._source.offsets(self.statements[index])[1]

    def shares_line_with_next(self, index: int) -> bool:
        """Whether the next statement stands on the same logical line."""
        if index < 0 or index + 1 >= len(self.statements):
            return False
        text = self._source.text
        behind = skip_blank(text, self.end(index))
        return text[behind : behind + 1] == ";" and skip_blank(text, behind + 1) == self.start(index + 1)

    def line_end(self, index: int) -> int:
        """Where the logical line that a statement ends on is over: the offset of its line end."""
        text = self._source.text
        while self.shares_line_with_next(index):
            index += 1
        behind = skip_blank(text, self.end(index))
        if text[behind : behind + 1] == ";":
            behind = skip_blank(text, behind + 1)
        return line_end(text, behind)

    def line_of(self, index: int) -> tuple[int, int]:
        """The first and the last statement of the logical line of a statement."""
        first = last = index
        while self.shares_line_with_next(first - 1):
            first -= 1
        while self.shares_line_with_next(last):
            last += 1
        return first, last

    def _row(self, index: int) -> int:
        return self._source.table.position(self.start(index))[0]

    def _find_header_end(self) -> int:
        if self.may_be_empty:
            return -1
        text = self._source.text
        position = self.start(0)
        while position > 0:
            if text[position - 1] in " \t\f":
                position -= 1
            elif text.startswith("\\\n", position - 2):
                position -= 2
            else:
                break
        return position if text[position - 1 : position] == ":" else -1


def block_of(source: Source, statement: ast.stmt) -> Block:
    """The block that holds a statement of ``source.tree``; ``EditRefused`` for a node of another tree."""
    owner = source.parent(statement)
    for field in _BLOCK_FIELDS:
        statements = getattr(owner, field, None)
        if owner is not None and isinstance(statements, list) and any(member is statement for member in statements):
            return Block(source, owner, statements)
    raise EditRefused(f"line {statement.lineno}: the statement is not of this file")


def _header_row(source: Source, owner: ast.AST) -> int:
    if isinstance(owner, ast.match_case):
        row = owner.pattern.lineno
        while row > 1 and not source.lines[row - 1].lstrip(" \t\f").startswith("case"):
            row -= 1
        return row
    return source.span(owner).row


def _unit(source: Source, owner: ast.AST) -> str:
    """One step of indentation, as it is around ``owner``, else as it is first met in the file."""
    outer = source.parent(owner)
    while outer is not None and not isinstance(outer, ast.Module):
        if (step := _step(source, outer)) is not None:
            return step
        outer = source.parent(outer)
    for node in ast.walk(source.tree):
        if (step := _step(source, node)) is not None:
            return step
    return "    "


def _step(source: Source, owner: ast.AST) -> str | None:
    body = getattr(owner, "body", None)
    if isinstance(owner, ast.Module) or not isinstance(body, list):
        return None
    block = Block(source, owner, body)
    if block.is_inline:
        return None
    outer = source.indentation(_header_row(source, owner))
    inner = block.indentation
    return inner[len(outer) :] if inner.startswith(outer) and inner != outer else None
