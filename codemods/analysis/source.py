"""One file as text: bytes to analysis text and tree, spans, and edits back to bytes.

The *analysis text* has ``\\n`` line ends and no byte order mark. A notebook's is all its Python cells one after the
other, with what only IPython understands blanked line by line. Rows and columns count from 1, columns in characters.

Only the standard library is imported here: this module is on the path of every run.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from ..finding import Span
from ..rewrite.edits import LineTable, TextEdit
from .errors import SourceError
from .lines import WrittenText, unified
from .matching import all_in_place, parse, parses_to

if TYPE_CHECKING:
    from .notebook import Notebook

__all__ = ["Source", "SourceError"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIRST_LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)?[^\r\n]*")
_PYTHON_2 = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
)
_FSTRING_SPANS_ARE_RIGHT = sys.version_info >= (3, 12)


class Source:
    """One file as text.

    Make it with ``from_bytes`` or ``from_text``; all methods that take or give spans mean the analysis text.
    """

    __slots__ = (
        "_bom",
        "_encoding",
        "_lines",
        "_notebook",
        "_parents",
        "_raw",
        "_table",
        "_tree",
        "_written",
        "filename",
        "problems",
        "text",
    )

    def __init__(
        self,
        filename: str,
        written: WrittenText,
        notebook: Notebook | None = None,
        *,
        encoding: str = "utf-8",
        bom: bool = False,
        raw: bytes | None = None,
    ) -> None:
        self.filename = filename
        self._written = written
        self._notebook = notebook
        self._encoding = encoding
        self._bom = bom
        self._raw = raw
        self.text: str = unified(written.text) if notebook is None else notebook.text
        self.problems: tuple[str, ...] = ()
        """What could not be looked at, in words for people: cells that do not parse."""
        self._tree: ast.Module | None = None
        self._lines: list[str] | None = None
        self._table: LineTable | None = None
        self._parents: dict[int, ast.AST] | None = None
        if notebook is not None:
            self._tree = notebook.parse(parse)
            self.text = notebook.text
            self.problems = tuple(notebook.problems)

    @classmethod
    def from_bytes(cls, raw: bytes, filename: str) -> Source:
        """The file ``filename`` with the content ``raw``; a name that ends in ``.ipynb`` is a notebook.

        Raises ``SourceError`` for what is no Python text: not UTF-8 and no coding line, NUL bytes, a notebook that is
        not the JSON of one. Syntax is looked at later, by ``tree``.
        """
        if b"\0" in raw:
            utf16 = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
            what = "is UTF-16; save it as UTF-8" if utf16 else "contains NUL bytes: it is damaged or no Python source"
            raise SourceError(filename, what)
        if _is_notebook(filename):
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                raise SourceError(filename, f"is not UTF-8 (byte {error.start + 1}); save the notebook again") from None
            return cls(filename, WrittenText(text), _notebook(text, filename))
        bom = raw.startswith(_BYTE_ORDER_MARK)
        body = raw[3:] if bom else raw
        encoding = "utf-8"
        if b"coding" in (head := _FIRST_LINES.match(body).group()):  # type: ignore[union-attr]
            encoding = _declared_encoding(head, filename, bom)
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError as error:
            row = body.count(b"\n", 0, error.start) + 1
            if encoding == "utf-8":
                message = (
                    f"line {row} is not UTF-8; save the file as UTF-8 or name its encoding in the first line, "
                    "such as # -*- coding: latin-1 -*-"
                )
            else:
                message = f"line {row} is not {encoding}, which the file says it is"
            raise SourceError(filename, message) from None
        except (LookupError, ValueError):
            raise SourceError(filename, f"{encoding}, which the file names, is no text encoding") from None
        if "\0" in text:
            raise SourceError(filename, "contains NUL characters: it is damaged or no Python source")
        return cls(filename, WrittenText(text), encoding=encoding, bom=bom, raw=raw if encoding != "utf-8" else None)

    @classmethod
    def from_text(cls, text: str, filename: str = "<string>") -> Source:
        """As ``from_bytes`` for text that is decoded already; a coding line in it means nothing."""
        if "\0" in text:
            raise SourceError(filename, "contains NUL characters: it is damaged or no Python source")
        if _is_notebook(filename):
            return cls(filename, WrittenText(text), _notebook(text, filename))
        bom = text.startswith("\ufeff")
        return cls(filename, WrittenText(text[1:] if bom else text), bom=bom)

    @property
    def is_notebook(self) -> bool:
        """Whether spans lie in cells."""
        return self._notebook is not None

    @property
    def cells(self) -> tuple[tuple[int, str], ...]:
        """The Python cells of a notebook: number from 1 among all cells, source with ``\\n`` line ends."""
        if self._notebook is None:
            return ()
        return tuple((cell.number, unified(cell.written.text)) for cell in self._notebook.cells)

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the text. Raises ``SourceError`` where it does not parse or is nested too deeply."""
        if self._tree is None:
            try:
                self._tree = parse(self.text)
            except SyntaxError as error:
                raise SourceError(self.filename, _in_words(error)) from None
            except (RecursionError, MemoryError):
                raise SourceError(self.filename, "is nested too deeply for Python to parse") from None
            except ValueError as error:
                raise SourceError(self.filename, f"does not parse: {error}") from None
        return self._tree

    @property
    def lines(self) -> list[str]:
        """The rows of the text without their line ends."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines

    @property
    def table(self) -> LineTable:
        """Offsets of the rows of the text."""
        if self._table is None:
            self._table = LineTable(self.text)
        return self._table

    def span(self, node: ast.AST) -> Span:
        """Where a node of ``tree`` stands (not for nodes without a position, such as ``ast.arguments``)."""
        row: int = node.lineno  # type: ignore[attr-defined]
        end_row: int = node.end_lineno  # type: ignore[attr-defined]
        column: int = node.col_offset  # type: ignore[attr-defined]
        end_column: int = node.end_col_offset  # type: ignore[attr-defined]
        if self.text.isascii():
            return Span(row, column + 1, end_row, end_column + 1)
        return Span(row, self._characters(row, column) + 1, end_row, self._characters(end_row, end_column) + 1)

    def offsets(self, node: ast.AST) -> tuple[int, int]:
        """Start and end offset of a node in the text."""
        span = self.span(node)
        starts = self.table.starts
        length = len(self.text)
        start = starts[min(span.row, len(starts)) - 1] + span.column - 1
        end = starts[min(span.end_row, len(starts)) - 1] + span.end_column - 1
        return min(start, length), min(end, length)

    def segment(self, node: ast.AST) -> str:
        """The text of a node, without parentheses that are not part of it."""
        start, end = self.offsets(node)
        return self.text[start:end]

    def segment_matches(self, node: ast.expr | ast.keyword | ast.stmt) -> bool:
        """Whether the text at the node's span is this node.

        Python before 3.12 gives wrong positions to much that stands inside an f-string: there the text must also be the
        only one of its kind in the string, or all positions in the string be right.
        """
        segment = self.segment(node)
        fstring = None if _FSTRING_SPANS_ARE_RIGHT else self._enclosing_fstring(node)
        if fstring is not None and fstring is not node and not all_in_place(fstring, self.text, self.offsets):
            start, end = self.offsets(fstring)
            node_start, node_end = self.offsets(node)
            if not start < node_start <= node_end < end or self.text.count(segment, start, end) != 1:
                return False
        return parses_to(segment, node, self.indentation(node.lineno) or " ")

    def indentation(self, row: int) -> str:
        """The white space that a row starts with, from the last form feed on, where Python starts to count."""
        line = self.lines[row - 1]
        white = line[: len(line) - len(line.lstrip(" \t\f"))]
        return white[white.rfind("\f") + 1 :]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node of ``tree`` that holds ``node``; None for the module and for nodes of other trees."""
        if self._parents is None:
            # Kept by identity: the nodes live as long as the tree does.
            self._parents = {id(inner): outer for outer in ast.walk(self.tree) for inner in ast.iter_child_nodes(outer)}
        return self._parents.get(id(node))

    def locate(self, span: Span) -> tuple[int | None, Span]:
        """A span of the text as cell and span in the cell.

        The cell is its number from 1 among all cells, None where this is no notebook.
        """
        if self._notebook is None or not self._notebook.cells:
            return None, span
        cells = self._notebook.cells
        cell = cells[max(bisect_right(cells, span.row, key=attrgetter("first_row")) - 1, 0)]
        above = cell.first_row - 1
        return cell.number, Span(span.row - above, span.column, span.end_row - above, span.end_column)

    def unlocate(self, cell: int | None, span: Span) -> Span:
        """The other way round: a span in a cell as span of the text. ``KeyError`` for a cell that holds no Python."""
        if self._notebook is None or cell is None:
            return span
        for candidate in self._notebook.cells:
            if candidate.number == cell:
                above = candidate.first_row - 1
                return Span(span.row + above, span.column, span.end_row + above, span.end_column)
        raise KeyError(cell)

    def apply(self, edits: Iterable[TextEdit]) -> bytes:
        """The bytes of the file with the edits made; outside of them every byte stays.

        Raises ``EditConflict`` on overlap, ``EditRefused`` where a notebook line is no Python line, ``IndexError`` for
        a span outside the text, ``SourceError`` if the encoding of the file cannot express the result.
        """
        text = self._applied(edits)
        if self._raw is not None and self._encoded(self._written.text) != self._raw:
            raise SourceError(self.filename, f"cannot be written back in {self._encoding} without changing other bytes")
        return self._encoded(text)

    def apply_text(self, edits: Iterable[TextEdit]) -> str:
        """As ``apply``, as text: what ``from_text`` was given, with the edits made."""
        return ("\ufeff" if self._bom else "") + self._applied(edits)

    def _applied(self, edits: Iterable[TextEdit]) -> str:
        if self._notebook is None:
            return self._written.apply(edits)
        return self._notebook.apply(list(edits))

    def _encoded(self, text: str) -> bytes:
        try:
            return (_BYTE_ORDER_MARK if self._bom else b"") + text.encode(self._encoding)
        except UnicodeEncodeError as error:
            raise SourceError(self.filename, f"cannot be written in {self._encoding}: {error.reason}") from None

    def _characters(self, row: int, column: int) -> int:
        line = self.lines[min(row, len(self.lines)) - 1]
        if line.isascii():
            return min(column, len(line))
        return len(line.encode()[:column].decode(errors="ignore"))

    def _enclosing_fstring(self, node: ast.AST) -> ast.JoinedStr | None:
        outermost: ast.JoinedStr | None = None
        outer: ast.AST | None = node
        while outer is not None and not isinstance(outer, ast.stmt):
            if isinstance(outer, ast.JoinedStr):
                outermost = outer
            outer = self.parent(outer)
        return outermost


def _is_notebook(filename: str) -> bool:
    return filename.endswith(".ipynb")


def _notebook(text: str, filename: str) -> Notebook:
    # Few files are notebooks, and the others need not wait for json.
    from .notebook import Notebook

    return Notebook(text, filename)


def _declared_encoding(head: bytes, filename: str, bom: bool) -> str:
    import tokenize

    lines = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    # Undecodable bytes are reported by their line later on, a declaration is ASCII.
    readable = [line.decode("ascii", "replace").encode("ascii", "replace") + b"\n" for line in lines]
    try:
        encoding, _ = tokenize.detect_encoding(iter(readable).__next__)
    except SyntaxError as error:
        raise SourceError(filename, f"{error.msg}; correct its coding line") from None
    if bom and encoding not in ("utf-8", "utf-8-sig"):
        raise SourceError(filename, f"has a UTF-8 byte order mark and says it is {encoding}; correct its coding line")
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _in_words(error: SyntaxError) -> str:
    where = f"line {error.lineno} " if error.lineno else ""
    message = f"{where}does not parse: {error.msg}"
    if error.msg.startswith(_PYTHON_2):
        message += " (this looks like Python 2; convert it to Python 3 first)"
    return message
