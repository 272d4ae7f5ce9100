"""The parts of a text that can be parsed alone: its top-level statements with the rows above them."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from .edits import LineTable


@dataclass(frozen=True, slots=True)
class Change:
    """One edit in offsets."""

    start: int
    end: int
    content: str


def changed(text: str, changes: Sequence[Change]) -> str:
    """``text`` with changes made that are in order and apart from each other."""
    pieces: list[str] = []
    position = 0
    for change in changes:
        pieces += (text[position : change.start], change.content)
        position = change.end
    pieces.append(text[position:])
    return "".join(pieces)


def shifted(changes: Sequence[Change], offset: int) -> list[Change]:
    """The changes as offsets in the text that starts at ``offset``."""
    return [Change(change.start - offset, change.end - offset, change.content) for change in changes]


def regions_of(tree: ast.Module, text: str, table: LineTable, changes: Sequence[Change]) -> list[tuple[int, int]]:
    """The stretches of whole top-level statements, in order and apart, in which the changes lie.

    What stands above a statement belongs to it, and what stands below the last one to that.
    """
    ends = _ends(tree, text, table)
    regions: list[tuple[int, int]] = []
    for change in changes:
        first = min(bisect_right(ends, change.start), len(ends) - 1)
        last = max(first, min(bisect_left(ends, change.end), len(ends) - 1))
        start, end = (ends[first - 1] if first else 0), ends[last]
        if regions and start < regions[-1][1]:
            start = regions.pop()[0]
        regions.append((start, end))
    return regions


def _ends(tree: ast.Module, text: str, table: LineTable) -> list[int]:
    """Where each top-level statement's last row is over; statements that share a row count as one."""
    ends: list[int] = []
    for statement in tree.body:
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        first_row = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        row = statement.end_lineno or statement.lineno
        end = table.starts[row] if row < len(table.starts) else len(text)
        if ends and (table.starts[first_row - 1] < ends[-1] or text[ends[-1] - 2 : ends[-1]] == "\\\n"):
            ends.pop()
        ends.append(end)
    # Below the last statement there may be comments.
    return [*ends[:-1], len(text)]
