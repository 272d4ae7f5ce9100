"""The tape picture: what is recorded, freed and reached again, in the order in which it happens.

first pass    line 11  records  o--.  out, hidden = model(batch, hidden)
              line 14  frees    x  |  loss.backward()
next pass     line 14  reaches  !--'  loss.backward()
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .printable import printable
from .report.texts import Texts
from .terminal import Paint

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding, Place

ORDER = {"recorded": 0, "freed": 1, "reached": 2}
VERBS = {"recorded": "records", "freed": "frees", "reached": "reaches"}
COLOURS = {"recorded": "green", "freed": "yellow", "reached": "red"}


@dataclass(frozen=True, slots=True)
class Signs:
    """What the picture is drawn with."""

    recorded: str
    freed: str
    reached: str
    line: str
    turn: str
    down: str
    back: str
    cut: str


DRAWN = Signs("●", "○", "✗", "─", "┐", "│", "┘", "…")
TYPED = Signs("o", "x", "!", "-", ".", "|", "'", "...")


def picture(finding: Finding, texts: Texts, paint: Paint, width: int, drawn: bool = True) -> Iterator[str]:
    """The lines of the picture, each with its end; none where the finding has fewer than two places."""
    places = sorted(finding.places, key=lambda place: ORDER[place.role.value])
    if len(places) < 2:
        return
    signs = DRAWN if drawn else TYPED
    passes = _passes(places)
    lines = [f"line {place.span.row}" for place in places]
    head, number = max(map(len, passes)), max(map(len, lines))
    last = len(places) - 1
    for index, place in enumerate(places):
        role = place.role.value
        shown = passes[index] if index == 0 or passes[index] != passes[index - 1] else ""
        if index == 0:
            rail = signs.line * 2 + signs.turn
        elif index == last:
            rail = signs.line * 2 + signs.back
        else:
            rail = "  " + signs.down
        left = f"{shown:<{head}}  {lines[index]:<{number}}  "
        drawing = f"{VERBS[role]:<7}  {getattr(signs, role)}{rail}"
        room = width - len(left) - len(drawing) - 2
        source = printable(_source(place, texts)) if room >= 12 else ""
        if len(source) > room:
            source = source[: room - len(signs.cut)] + signs.cut
        yield f"{paint(left, dim=True)}{paint(drawing, COLOURS[role])}  {source}".rstrip() + "\n"


def in_words(finding: Finding) -> Iterator[str]:
    """The same for a reader who is read to: one sentence a place."""
    places = sorted(finding.places, key=lambda place: ORDER[place.role.value])
    for when, place in zip(_passes(places), places, strict=True):
        cell = f"cell {place.cell}, " if place.cell is not None else ""
        elsewhere = f" of {place.filename}" if place.filename != finding.filename else ""
        yield f"{when.capitalize()}: {cell}line {place.span.row}{elsewhere} {VERBS[place.role.value]}: {place.label}.\n"


def _passes(places: list[Place]) -> list[str]:
    """Which pass of the loop each place belongs to.

    What is reached at or above the line that frees can be so only on a later pass; below it, on the same.
    """
    freed = [place for place in places if place.role.value == "freed"]
    names = []
    for place in places:
        again = place.role.value == "reached" and any(
            (place.filename, place.cell) == (other.filename, other.cell) and place.span <= other.span for other in freed
        )
        names.append("next pass" if again else "first pass")
    return names if "next pass" in names else ["first", *["then"] * (len(names) - 1)]


def _source(place: Place, texts: Texts) -> str:
    lines = texts.lines(place.filename, place.cell)
    return lines[place.span.row - 1].strip() if place.span.row <= len(lines) else ""
