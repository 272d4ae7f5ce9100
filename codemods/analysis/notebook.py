"""Jupyter notebooks, format 3 and 4: the Python cells as one text, and edits of that text back into the JSON.

Facts: the notebook format's JSON schema (``cells`` with ``source`` in format 4, ``worksheets`` of ``cells`` with
``input`` in format 3; a source is one string or a list of strings to be joined; the language is in the metadata).
"""

from __future__ import annotations

import ast
import json
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from ..finding import Span
from ..rewrite.edits import EditRefused, TextEdit
from .errors import SourceError
from .json_edits import Change, changes_in_json
from .json_text import JsonPath, find_texts
from .lines import WrittenText, unified
from .magics import set_aside


@dataclass(slots=True)
class Cell:
    """One Python cell."""

    number: int
    """Its position from 1 among all cells."""
    path: JsonPath
    """Where its source is in the JSON."""
    written: WrittenText
    python: str
    """Its part of the analysis text, the last line end included."""
    foreign_rows: frozenset[int]
    """Rows, from 1, whose analysis text is not what was written."""
    first_row: int = 1


class Notebook:
    """The cells of one notebook."""

    def __init__(self, text: str, filename: str) -> None:
        """``text`` is the JSON. Raises ``SourceError`` for what is no notebook."""
        self._text = text
        self._filename = filename
        self.problems: list[str] = []
        self._sources = _python_sources(text, filename)
        self.cells: list[Cell] = []
        self.text = ""

    def parse(self, parse: Callable[[str], ast.Module]) -> ast.Module:
        """Read the cells and give the tree of all; fills ``cells``, ``text`` and ``problems``.

        A cell that does not parse is blanked and said in ``problems``.
        """
        row = 1
        for number, path, source in self._sources:
            written = unified(source).removesuffix("\n")
            try:
                python, foreign = set_aside(written, parse)
            except RecursionError:
                python, foreign = written, frozenset()
            cell = Cell(number, path, WrittenText(source), python + "\n", foreign, row)
            self.cells.append(cell)
            row += cell.python.count("\n")
        tree = self._parsed_together(parse)
        if tree is None:
            for cell in self.cells:
                self._blank_unless_it_parses(cell, parse)
            tree = self._parsed_together(parse)
        if tree is None:
            raise SourceError(self._filename, "its cells parse one by one but not together")
        return tree

    def apply(self, edits: list[TextEdit]) -> str:
        """The JSON with edits of the analysis text made; every other character stays.

        Raises ``EditRefused`` where an edit touches a row that IPython alone understands, or more than one cell.
        """
        by_cell: dict[int, list[TextEdit]] = {}
        for edit in edits:
            index, local = self._in_its_cell(edit)
            by_cell.setdefault(index, []).append(local)
        if not by_cell:
            return self._text
        places = find_texts(self._text, {self.cells[index].path for index in by_cell})
        # The file's own habit; Jupyter writes other characters as they are.
        ascii_only = self._text.isascii() and "\\u" in self._text
        changes: list[Change] = []
        for index, cell_edits in by_cell.items():
            cell = self.cells[index]
            replacements = cell.written.replacements(cell_edits)
            place = places[cell.path]
            if not place.strings:
                raise EditRefused(f"cell {cell.number} has no source to edit")
            changes.extend(changes_in_json(self._text, place, cell.written.text, replacements, ascii_only))
        pieces: list[str] = []
        position = 0
        # By place alone: what is inserted at one place stays in the order that it was given in.
        for start, end, content in sorted(changes, key=lambda change: change[:2]):
            pieces += (self._text[position:start], content)
            position = end
        return "".join((*pieces, self._text[position:]))

    def _parsed_together(self, parse: Callable[[str], ast.Module]) -> ast.Module | None:
        self.text = "".join(cell.python for cell in self.cells)
        try:
            tree = parse(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        # A bracket or a block that one cell leaves open must not swallow the next cell.
        first_rows = [cell.first_row for cell in self.cells]
        for statement in tree.body:
            start = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
            if bisect_right(first_rows, start) != bisect_right(first_rows, statement.end_lineno or start):
                return None
        return tree

    def _blank_unless_it_parses(self, cell: Cell, parse: Callable[[str], ast.Module]) -> None:
        try:
            parse(cell.python)
            return
        except SyntaxError as error:
            reason = f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
        except (RecursionError, MemoryError):
            reason = "it is nested too deeply"
        except ValueError as error:
            reason = str(error)
        self.problems.append(f"cell {cell.number} does not parse and is left out ({reason})")
        rows = cell.python.count("\n")
        cell.python = "\n" * rows
        cell.foreign_rows = frozenset(range(1, rows + 1))

    def _in_its_cell(self, edit: TextEdit) -> tuple[int, TextEdit]:
        span = edit.span
        index = bisect_right([cell.first_row for cell in self.cells], span.row) - 1
        if index < 0:
            raise EditRefused("the notebook has no Python cell to edit")
        cell = self.cells[index]
        above = cell.first_row - 1
        local = Span(span.row - above, span.column, span.end_row - above, span.end_column)
        rows = cell.python.count("\n")
        if local.end_row > rows + 1 or (local.end_row == rows + 1 and local.end_column > 1):
            raise EditRefused("the edit reaches into another cell")
        touched = range(local.row, local.end_row + (local.end_column > 1))
        if local.row == local.end_row and local.column == 1 == local.end_column:
            touched = range(0)
        if any(row in cell.foreign_rows for row in touched):
            raise EditRefused(f"the edit touches a line of cell {cell.number} that only IPython understands")
        return index, TextEdit(local, edit.content)


def _python_sources(text: str, filename: str) -> list[tuple[int, JsonPath, str]]:
    """Number, path and source of each Python cell."""
    try:
        document = json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise SourceError(filename, "is nested too deeply for a notebook") from None
    except ValueError as error:
        raise SourceError(filename, f"is no notebook: its JSON is broken ({error})") from None
    if not isinstance(document, dict):
        raise SourceError(filename, "is no notebook: its JSON is not an object")
    if not _is_python(document.get("metadata")):
        return []
    cells: list[tuple[JsonPath, object]] = []
    if isinstance(document.get("cells"), list):
        cells = [(("cells", index), cell) for index, cell in enumerate(document["cells"])]
    elif isinstance(document.get("worksheets"), list):
        for sheet_index, sheet in enumerate(document["worksheets"]):
            sheet_cells = sheet.get("cells") if isinstance(sheet, dict) else None
            if isinstance(sheet_cells, list):
                prefix: JsonPath = ("worksheets", sheet_index, "cells")
                cells.extend(((*prefix, index), cell) for index, cell in enumerate(sheet_cells))
    else:
        raise SourceError(filename, "is no notebook: it has neither cells nor worksheets")
    sources: list[tuple[int, JsonPath, str]] = []
    for number, (path, cell) in enumerate(cells, start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        if cell.get("language", "python") not in ("python", "python3"):
            continue
        key = "source" if "source" in cell else "input"
        source = cell.get(key, "")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise SourceError(filename, f"is no notebook: the source of cell {number} is not text")
        sources.append((number, (*path, key), source))
    return sources


def _is_python(metadata: object) -> bool:
    """Whether the metadata allow for Python; a notebook that says nothing is Python."""
    if not isinstance(metadata, dict):
        return True
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        described = metadata.get(section)
        language = described.get(key) if isinstance(described, dict) else None
        if isinstance(language, str):
            return language.lower() in ("python", "ipython", "python3")
    return True
