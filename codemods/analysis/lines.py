"""A text as it was written, with whatever line ends it has, and its twin with ``\\n`` alone.

Rows and columns are the same in both, which is why findings and edits are made on the twin. Only ``\\n``,
``\\r\\n`` and ``\\r`` end a line, as in Python's own tokenizer; ``str.splitlines`` knows more than Python does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ..rewrite.edits import TextEdit, ordered

_LINE_END = re.compile(r"\r\n|\r|\n")


def unified(text: str) -> str:
    """``text`` with every line end written ``\\n``."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n")


class WrittenText:
    """A text with its own line ends, addressed by the rows and columns of its twin."""

    __slots__ = ("_ends", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] | None = None
        self._ends: list[str] = []

    def replacements(self, edits: Iterable[TextEdit]) -> list[tuple[int, int, str]]:
        """Edits as start offset, end offset and content with this text's line ends, in the order of the text.

        A position on the row after the last, column 1, is the end of the text, so that whole lines can be edited even
        where the last one has no line end. Raises ``EditConflict``, and ``IndexError`` for a position that is none.
        """
        return [self._replacement(edit) for edit in ordered(edits)]

    def apply(self, edits: Iterable[TextEdit]) -> str:
        """The text with the edits made; errors as ``replacements``."""
        pieces: list[str] = []
        position = 0
        for start, end, content in self.replacements(edits):
            pieces.append(self.text[position:start])
            pieces.append(content)
            position = end
        pieces.append(self.text[position:])
        return "".join(pieces)

    def _replacement(self, edit: TextEdit) -> tuple[int, int, str]:
        self._read_lines()
        span, content = edit.span, edit.content
        if self._is_past_the_end(span.end_row):
            # The last line has no line end, so it must not gain one from an edit that only looks as if it had.
            content = content.removesuffix("\n")
            if self._is_past_the_end(span.row) and edit.content:
                content = "\n" + content
        start, end = self._offset(span.row, span.column), self._offset(span.end_row, span.end_column)
        if "\n" in content:
            content = content.replace("\n", self._line_end(span.row))
        return start, end, content

    def _read_lines(self) -> None:
        if self._starts is None:
            ends = list(_LINE_END.finditer(self.text))
            self._starts = [0, *(match.end() for match in ends)]
            self._ends = [match.group() for match in ends]

    def _is_past_the_end(self, row: int) -> bool:
        assert self._starts is not None
        return row == len(self._starts) + 1 and self._starts[-1] < len(self.text)

    def _offset(self, row: int, column: int) -> int:
        assert self._starts is not None
        starts, ends = self._starts, self._ends
        if column == 1 and self._is_past_the_end(row):
            return len(self.text)
        if row < 1 or row > len(starts) or column < 1:
            raise IndexError(f"no position {row}:{column} in a text of {len(starts)} lines")
        offset = starts[row - 1] + column - 1
        line_end = starts[row] - len(ends[row - 1]) if row < len(starts) else len(self.text)
        if offset > line_end:
            raise IndexError(f"line {row} has no column {column}")
        return offset

    def _line_end(self, row: int) -> str:
        """The line end to write at a row: the row's own, else the commonest of the text."""
        if row <= len(self._ends):
            return self._ends[row - 1]
        if not self._ends:
            return "\n"
        return Counter(self._ends).most_common(1)[0][0]
