"""Annotated source: the finding, the three places that explain it, and the repair as a small diff."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradmend.cli.printable import printable, printable_name
from gradmend.cli.terminal import Paint

from . import Listing
from .concise import mark
from .frame import Mark, frame
from .preview import preview
from .texts import Texts

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding, Repair, Span

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def render(listing: Listing) -> Iterator[str]:
    paint = Paint(listing.color)
    for finding in listing.findings:
        yield from annotated(finding, listing.texts, paint)
        if finding.repair is not None:
            yield from _help(finding.repair, listing, paint, gutter_of(finding))
        yield "\n"


def annotated(finding: Finding, texts: Texts, paint: Paint, width: int = 160) -> Iterator[str]:
    """The head line and the annotated source of one finding."""
    colour = COLOURS[finding.severity.value]
    head = f"{paint(finding.code, colour, bold=True)} {paint(mark(finding), 'cyan')}{paint(finding.name, bold=True)}: "
    yield f"{head}{printable(finding.message)}\n"
    gutter = gutter_of(finding)
    arrow = "-->"
    for filename, cell, marks in _grouped(finding):
        first = next((found for found in marks if found.main), marks[0]).span
        inside = f"cell {cell}:" if cell is not None else ""
        place = f"{printable_name(filename)}:{inside}{first.row}:{first.column}"
        yield f"{paint(' ' * gutter + arrow, 'blue', bold=True)} {place}\n"
        yield from frame(texts.lines(filename, cell), marks, paint, gutter, width)
        arrow = ":::"


def gutter_of(finding: Finding) -> int:
    """The width that the line numbers of a finding and its repair need."""
    rows = [finding.span.row, *(place.span.row for place in finding.places)]
    rows += [edit.span.end_row for edit in (finding.repair.edits if finding.repair else ())]
    return len(str(max(rows) + 2))


def _grouped(finding: Finding) -> list[tuple[str, int | None, list[Mark]]]:
    """The marks by file and cell, the finding's own first."""
    own = (finding.filename, finding.cell)
    groups: dict[tuple[str, int | None], list[Mark]] = {own: []}
    said: set[tuple[str, int | None, Span]] = set()
    for place in finding.places:
        key = (place.filename, place.cell)
        main = key == own and place.span == finding.span
        groups.setdefault(key, []).append(Mark(place.span, place.label, main))
        said.add((*key, place.span))
    if (*own, finding.span) not in said:
        groups[own].append(Mark(finding.span, "", True))
    return [(filename, cell, marks) for (filename, cell), marks in groups.items()]


def _help(repair: Repair, listing: Listing, paint: Paint, gutter: int) -> Iterator[str]:
    yield f"{paint('help', 'green', bold=True)}: {printable(repair.message)} ({how_to_apply(repair)})\n"
    yield from preview(repair, listing.texts, paint, gutter)


def how_to_apply(repair: Repair) -> str:
    """Safe or unsafe, and the command that applies it."""
    if repair.safety.value == "safe":
        return "safe: `gradmend fix` applies it"
    return "unsafe, it may not be what you meant: `gradmend fix --unsafe` applies it"
