"""Text from outside, made fit for a terminal.

File names and source lines come from repositories that nobody has vetted. What a terminal would obey instead of show
(escape sequences, the C1 controls, marks that reverse the reading direction) is spelled out.
"""

from __future__ import annotations

import re

_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # zero width, line separators, direction marks
    "\ufffe\uffff"  # no characters, which XML refuses
    "\ud800-\udfff]"  # lone surrogates: bytes of a name that are not UTF-8
)


def _spell(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def printable(text: str) -> str:
    """``text`` with everything spelled out that a terminal would obey; tabs and newlines stay."""
    if text.isascii() and text.isprintable():
        return text
    return _UNFIT.sub(_spell, text)


def printable_name(name: str) -> str:
    """The same for a file name, where a newline or tab would break the line that names it."""
    return printable(name).replace("\n", "\\n").replace("\t", "\\t")
