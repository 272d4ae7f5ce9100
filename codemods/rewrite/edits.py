"""Edits on the analysis text of one file: their order, what may overlap, and where positions end up.

Spans are those of ``Source.text``: rows and columns from 1, columns in characters, lines ended by ``\\n`` alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ..finding import Span


class EditConflict(ValueError):  # noqa: N818
    """Two different edits want the same stretch of text."""


class EditRefused(ValueError):  # noqa: N818
    """An edit cannot be made here without risk to the text around it; the message says why."""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace what lies at ``span`` by ``content``; an empty span inserts, empty content deletes."""

    span: Span
    content: str


class LineTable:
    """Character offsets of the rows of a text whose lines end in ``\\n``."""

    __slots__ = ("_length", "starts")

    def __init__(self, text: str) -> None:
        self._length = len(text)
        starts = [0]
        position = text.find("\n") + 1
        while position:
            starts.append(position)
            position = text.find("\n", position) + 1
        self.starts = starts

    def offset(self, row: int, column: int) -> int:
        """The offset of a position; ``IndexError`` if the text has no such position."""
        if row < 1 or row > len(self.starts) or column < 1:
            raise IndexError(f"no position {row}:{column} in a text of {len(self.starts)} lines")
        offset = self.starts[row - 1] + column - 1
        line_end = self.starts[row] - 1 if row < len(self.starts) else self._length
        if offset > line_end:
            raise IndexError(f"line {row} has no column {column}")
        return offset

    def position(self, offset: int) -> tuple[int, int]:
        """The row and column of an offset."""
        row = bisect_right(self.starts, offset)
        return row, offset - self.starts[row - 1] + 1

    def offsets(self, span: Span) -> tuple[int, int]:
        """Start and end offset of a span."""
        return self.offset(span.row, span.column), self.offset(span.end_row, span.end_column)

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets."""
        return Span(*self.position(start), *self.position(end))


def ordered(edits: Iterable[TextEdit]) -> tuple[TextEdit, ...]:
    """The edits in the order of the text, equal ones once.

    Different insertions at one position keep the order in which they were given. Raises ``EditConflict`` where two
    edits overlap, or where one inserts inside what the other replaces. An insertion at the border of a replaced
    stretch does not overlap it.
    """
    distinct = sorted(dict.fromkeys(edits), key=lambda edit: edit.span)
    reached = (0, 0)
    for edit in distinct:
        span = edit.span
        start, end = (span.row, span.column), (span.end_row, span.end_column)
        if end < start:
            raise EditConflict(f"the edit at {span.row}:{span.column} ends before it starts")
        if start < reached:
            raise EditConflict(f"two different edits of the text at {span.row}:{span.column}")
        reached = end
    return tuple(distinct)


def splice(text: str, edits: Iterable[TextEdit]) -> str:
    """``text`` with all edits applied.

    Raises ``EditConflict`` on overlap and ``IndexError`` for a span that lies outside the text.
    """
    in_order = ordered(edits)
    if not in_order:
        return text
    table = LineTable(text)
    pieces: list[str] = []
    position = 0
    for edit in in_order:
        start, end = table.offsets(edit.span)
        pieces.append(text[position:start])
        pieces.append(edit.content)
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


class PositionMap:
    """Where the positions of the text before the edits are found after them."""

    __slots__ = ("_edits",)

    def __init__(self, edits: Iterable[TextEdit]) -> None:
        """Raises ``EditConflict`` as ``splice`` does."""
        self._edits = ordered(edits)

    def map(self, row: int, column: int) -> tuple[int, int]:
        """The new position of an old one.

        What was inserted at a position comes before it. A position inside a replaced stretch, its end excluded, maps to
        the start of the replacement.
        """
        row_shift = 0
        # Valid only for positions on the row where the last edit ended.
        shifted_row, column_shift = 0, 0
        for edit in self._edits:
            span = edit.span
            if (span.row, span.column) > (row, column):
                break
            new_row = span.row + row_shift
            new_column = span.column + (column_shift if span.row == shifted_row else 0)
            if (span.row, span.column) <= (row, column) < (span.end_row, span.end_column):
                return new_row, new_column
            content_rows = edit.content.count("\n")
            if content_rows:
                new_column = len(edit.content) - edit.content.rfind("\n")
            else:
                new_column += len(edit.content)
            new_row += content_rows
            row_shift = new_row - span.end_row
            shifted_row, column_shift = span.end_row, new_column - span.end_column
        return row + row_shift, column + (column_shift if row == shifted_row else 0)
