"""Unified diffs: one that ``git apply`` and ``patch -p1`` take, and one by notebook cells that people can read.

Facts: the unified format of GNU diff ("Detailed Description of Unified Format" in its manual) and what git adds to it,
``\\ No newline at end of file`` and quoted names (``core.quotePath`` in git-config).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from .shortest import Difference, differences

_CONTEXT = 3
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_TO_QUOTE = re.compile(r'[\x00-\x1f\x7f"\\]')
_SHORT_QUOTES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f"}
_SHORT_QUOTES["\v"] = "\\v"


def unified_diff(before: bytes | str, after: bytes | str, filename: str) -> str:
    """The changes of one file as a patch, empty if there are none.

    Bytes that are no UTF-8 come back as surrogate escapes: to write the patch, encode it with ``surrogateescape`` and
    translate no line ends. A line ends at ``\\n`` alone, as for git, so that ``\\r`` stays part of its line.
    """
    if before == after:
        return ""
    name = filename.replace(os.sep, "/")
    while name.startswith("./"):
        name = name[2:]
    name = name.lstrip("/")
    return _file_diff(_text(before), _text(after), _quoted(f"a/{name}"), _quoted(f"b/{name}"))


def notebook_diff(before: bytes | str, after: bytes | str, filename: str) -> str:
    """The changes of a notebook cell by cell, for people: no tool applies it. Raises ``SourceError`` as ``Source``."""
    from ..analysis.source import Source

    old, new = (
        Source.from_bytes(raw, filename) if isinstance(raw, bytes) else Source.from_text(raw, filename)
        for raw in (before, after)
    )
    new_cells = dict(new.cells)
    pieces: list[str] = []
    for number, cell in old.cells:
        header = f"{filename}:cell {number}"
        changed = new_cells.get(number, "")
        if cell != changed:
            # A cell mostly ends without a line end, and that is not worth a word here.
            name = _quoted(header).removesuffix("\t")
            pieces.append(_file_diff(_ended(cell), _ended(changed), name, name))
    return "".join(pieces)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _text(content: bytes | str) -> str:
    return content.decode("utf-8", "surrogateescape") if isinstance(content, bytes) else content


def _quoted(name: str) -> str:
    """A file name as git writes it in a header."""
    if _TO_QUOTE.search(name):
        return '"' + _TO_QUOTE.sub(lambda match: _SHORT_QUOTES.get(match[0], f"\\{ord(match[0]):03o}"), name) + '"'
    # Without the tab, patch would end the name at the space.
    return f"{name}\t" if " " in name else name


def _file_diff(before: str, after: str, old_name: str, new_name: str) -> str:
    old, new = _LINES.findall(before), _LINES.findall(after)
    pieces = [f"--- {old_name}\n", f"+++ {new_name}\n"]
    for hunk in _hunks(differences(old, new)):
        old_start, old_end = max(hunk[0][0] - _CONTEXT, 0), min(hunk[-1][1] + _CONTEXT, len(old))
        new_start, new_end = max(hunk[0][2] - _CONTEXT, 0), min(hunk[-1][3] + _CONTEXT, len(new))
        pieces.append(f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@\n")
        position = old_start
        for low, high, new_low, new_high in hunk:
            pieces += _marked(" ", old[position:low])
            pieces += _marked("-", old[low:high])
            pieces += _marked("+", new[new_low:new_high])
            position = high
        pieces += _marked(" ", old[position:old_end])
    return "".join(pieces)


def _hunks(changed: Sequence[Difference]) -> Iterator[list[Difference]]:
    """Differences whose context would meet, together."""
    hunk: list[Difference] = []
    for difference in changed:
        if hunk and difference[0] - hunk[-1][1] > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(difference)
    if hunk:
        yield hunk


def _range(start: int, end: int) -> str:
    if end - start == 1:
        return str(start + 1)
    # An empty stretch is named by the line before it.
    return f"{start + 1 if end > start else start},{end - start}"


def _marked(mark: str, lines: Sequence[str]) -> list[str]:
    return [mark + (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n") for line in lines]
