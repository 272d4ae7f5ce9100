"""The source text that findings speak of, as lines for people: cells apart, CRLF and BOM away."""

from __future__ import annotations

import json
from typing import Any

from gradmend.cli.run import read_regular


class Texts:
    """Lines of files and of notebook cells; reads a file at most once, and gives no lines for what it cannot read."""

    def __init__(self) -> None:
        self._raw: dict[str, bytes] = {}
        self._lines: dict[tuple[str, int | None], list[str]] = {}

    def add(self, filename: str, raw: bytes) -> None:
        """Bytes at hand already; they count even if the file has changed since."""
        self._raw[filename] = raw

    def lines(self, filename: str, cell: int | None = None) -> list[str]:
        """The lines of ``filename``, or of its ``cell`` (from 1 among all cells)."""
        key = (filename, cell)
        if key not in self._lines:
            try:
                raw = self._raw[filename] if filename in self._raw else read_regular(filename)
                text = decode(raw) if cell is None else cell_source(raw, cell)
            except (OSError, ValueError, LookupError, TypeError, AttributeError):
                text = ""
            self._lines[key] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return self._lines[key]


def decode(raw: bytes) -> str:
    """Python source as text, by its coding line; ValueError or LookupError where that fails."""
    if raw.isascii():
        return raw.decode()
    import io
    from tokenize import detect_encoding

    try:
        encoding = detect_encoding(io.BytesIO(raw).readline)[0]
    except SyntaxError as error:
        raise ValueError(error.msg) from None
    return raw.decode(encoding)


def cell_source(raw: bytes, cell: int) -> str:
    """The source of a notebook's cell."""
    notebook: Any = json.loads(raw)
    source = notebook["cells"][cell - 1]["source"]
    return source if isinstance(source, str) else "".join(source)
