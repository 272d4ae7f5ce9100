"""Annotated source: lines with their numbers, and under them the marks and what they mean, in the manner of rustc."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from gradmend.cli.printable import printable
from gradmend.cli.terminal import Paint

if TYPE_CHECKING:
    from gradmend.codemods.finding import Span

CONTEXT = 1
TAB = "    "
LONGEST = 160
"""Longer lines are cut: they are generated, or data."""
LEAST_LABEL = 24
"""Columns that a label gets at least."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch to underline."""

    span: Span
    label: str
    main: bool
    """Whether it is the finding itself (``^``) or a place that explains it (``-``)."""


def frame(
    lines: Sequence[str], marks: Sequence[Mark], paint: Paint, gutter: int, width: int = LONGEST
) -> Iterator[str]:
    """The lines around ``marks`` with the marks under them; each piece is one line with its end.

    ``gutter`` is the width of the line numbers. Stretches far apart are parted by ``...``.
    """
    room = max(width - gutter - 3, 20)
    bar = paint(" " * gutter + " |", "blue", bold=True)
    yield bar + "\n"
    # After the last line end there is no line.
    rows = _rows(marks, len(lines) - (lines[-1:] == [""]))
    before = rows[0] if rows else 0
    for row in rows:
        if row > before + 1:
            yield paint("...", "blue", bold=True) + "\n"
        before = row
        shown = _show(lines[row - 1])
        number = paint(f"{row:>{gutter}} |", "blue", bold=True)
        yield f"{number} {_cut(shown, room)}".rstrip() + "\n"
        for mark in sorted((mark for mark in marks if mark.span.row == row), key=lambda mark: mark.span.column):
            for under in _under(lines[row - 1], mark, paint, room):
                yield f"{bar} {under}\n"
    yield bar + "\n"


def _rows(marks: Sequence[Mark], last: int) -> list[int]:
    rows = {
        row for mark in marks for row in range(mark.span.row - CONTEXT, mark.span.row + CONTEXT + 1) if 1 <= row <= last
    }
    # A gap of one line is shorter shown than told.
    rows |= {row + 1 for row in rows if row + 2 in rows}
    return sorted(rows)


def _show(line: str) -> str:
    return printable(line.replace("\t", TAB))


def _cut(shown: str, room: int) -> str:
    return shown if _columns(shown) <= room else shown[: room - 1] + "…"


def _columns(shown: str) -> int:
    if shown.isascii():
        return len(shown)
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in shown)


def _under(line: str, mark: Mark, paint: Paint, room: int) -> Iterator[str]:
    """The mark and its label; the label below the mark where there is no room beside it."""
    span = mark.span
    stop = span.end_column if span.end_row == span.row else len(line) + 1
    start = _columns(_show(line[: span.column - 1]))
    length = max(_columns(_show(line[span.column - 1 : stop - 1].rstrip())), 1)
    if start >= room - 1:
        start, length = room - 1, 1
    length = min(length, room - start)
    label = printable(mark.label if span.end_row == span.row else f"{mark.label} (to line {span.end_row})".lstrip())
    drawn = ("^" if mark.main else "-") * length
    colour = "red" if mark.main else "cyan"
    if start + length + 1 + _columns(label) <= room:
        yield " " * start + paint(f"{drawn} {label}".rstrip(), colour, bold=True)
        return
    yield " " * start + paint(drawn, colour, bold=True)
    indent = max(min(start, room - LEAST_LABEL), 0)
    for part in textwrap.wrap(label, max(room - indent, LEAST_LABEL)):
        yield " " * indent + paint(part, colour, bold=True)
