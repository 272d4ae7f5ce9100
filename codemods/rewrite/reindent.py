"""Lines that are given to a new place: which take its indentation, and which lie inside a string and must not."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One row without its line end."""

    text: str
    is_fixed: bool = False
    """Whether it stays as it is, wherever it goes."""


def fresh_lines(lines: Sequence[str]) -> list[Line]:
    """New lines as a builder's caller writes them; one with line ends in it is several."""
    if isinstance(lines, str):
        lines = (lines,)
    return [Line(row) for line in lines for row in line.split("\n")]


def moved_lines(above: str, statement: str, behind: str, indentation: str) -> list[Line]:
    """The rows of a statement and its comments without ``indentation``, which all but its first row have.

    ``above`` is whole rows whose first has lost its indentation, ``behind`` goes on with the statement's last row.
    """
    inside_strings = _rows_inside_strings(indentation + statement)
    rows = statement.split("\n")
    rows[-1] += behind
    comments = above.removesuffix("\n").split("\n") if above else []
    lines = [Line(row.lstrip(" \t\f")) for row in comments if row.strip()]
    for index, row in enumerate(rows):
        if index in inside_strings:
            lines.append(Line(row, is_fixed=True))
        elif index == 0 or not row.strip(" \t\f"):
            lines.append(Line(row))
        else:
            # A row with less indentation than its block is the rest of a bracket or a comment; it stays where it is.
            inner = row.removeprefix(indentation)
            lines.append(Line(inner, is_fixed=not row.startswith(indentation)))
    return lines


def _rows_inside_strings(statement: str) -> set[int]:
    """The rows, from 0, that start inside a string."""
    rows: set[int] = set()
    fstrings: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(statement, newline="\n").readline):
            name = tokenize.tok_name[token.type]
            if name in ("FSTRING_START", "TSTRING_START"):
                fstrings.append(token.start[0])
            elif name in ("FSTRING_END", "TSTRING_END"):
                rows.update(range(fstrings.pop(), token.end[0]))
            elif name == "STRING":
                rows.update(range(token.start[0], token.end[0]))
    except (tokenize.TokenError, IndentationError):
        # What follows the statement in its block is missing; all of the strings have been seen.
        pass
    return rows
