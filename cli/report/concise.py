"""One line a finding, as editors and grep like it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradmend.cli.printable import printable, printable_name
from gradmend.cli.terminal import Paint

from . import Listing

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding


def where(finding: Finding) -> str:
    """``file:row:column``, with the cell between for a notebook."""
    cell = "" if finding.cell is None else f"cell {finding.cell}:"
    return f"{printable_name(finding.filename)}:{cell}{finding.span.row}:{finding.span.column}"


def mark(finding: Finding) -> str:
    """``[*]`` and a space where a repair is at hand."""
    return "[*] " if finding.repair is not None else ""


def render(listing: Listing) -> Iterator[str]:
    paint = Paint(listing.color)
    for finding in listing.findings:
        code = paint(finding.code, "red", bold=True)
        yield f"{paint(where(finding), bold=True)}: {code} {paint(mark(finding), 'cyan')}{printable(finding.message)}\n"
