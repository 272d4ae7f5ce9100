"""The tape picture: what is recorded, freed and reached again, in the order in which it happens.

    iteration 1  line 11  records  o--.  out, hidden = model(batch, hidden)
                 line 14  frees    x  |  loss.backward()
    iteration 2  line 14  reaches  !--'  loss.backward()

The line at the right is the graph that lives from its first row to its last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .printable import printable, printable_name
from .report.texts import Texts
from .terminal import Paint

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding, Place

ORDER = {"recorded": 0, "freed": 1, "reached": 2}
VERBS = {"recorded": "records", "freed": "frees", "reached": "reaches"}
COLOURS = {"records": "green", "frees": "yellow", "reaches": "red", "keeps": "red"}
ACROSS_ITERATIONS = "GM1"
"""The rules about what goes from one iteration into the next."""
BEFORE_THE_LOOP = "GM103"
LEAST_SOURCE = 12
"""Columns; where there is less room for it the source is left out."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What the picture is drawn with: a node of the tape, one that is freed, a walk into it, and the lines."""

    records: str
    frees: str
    reaches: str
    keeps: str
    start: str
    along: str
    joins: str
    end: str
    cut: str


DRAWN = Signs("●", "○", "✗", "●", "──┐", "  │", "──┤", "──┘", "…")
TYPED = Signs("o", "x", "!", "o", "--.", "  |", "--|", "--'", "...")


@dataclass(frozen=True, slots=True)
class Event:
    """One row."""

    when: str
    verb: str
    place: Place


def picture(finding: Finding, texts: Texts, paint: Paint, width: int, drawn: bool = True) -> Iterator[str]:
    """The lines of the picture, each with its end; none where the finding has fewer than two places."""
    events = _events(finding)
    if len(events) < 2:
        return
    signs = DRAWN if drawn else TYPED
    whens = [event.when for event in events]
    heads = ["" if index and when == whens[index - 1] else when for index, when in enumerate(whens)]
    numbers = [f"line {event.place.span.row}" for event in events]
    head, number = max(map(len, heads)), max(map(len, numbers))
    for index, event in enumerate(events):
        left = f"{heads[index]:<{head}}  {numbers[index]:<{number}}  "
        drawing = f"{event.verb:<7}  {getattr(signs, event.verb)}{_rail(events, index, signs)}"
        room = width - len(left) - len(drawing) - 2
        source = _source(event.place, texts) if room >= LEAST_SOURCE else ""
        if source and len(source) > room:
            source = source[: room - len(signs.cut)] + signs.cut
        yield f"{paint(left, dim=True)}{paint(drawing, COLOURS[event.verb])}  {source}".rstrip() + "\n"


def in_words(finding: Finding) -> Iterator[str]:
    """The same for a reader who is read to: one sentence a place."""
    for event in _events(finding):
        place = event.place
        cell = f"cell {place.cell}, " if place.cell is not None else ""
        elsewhere = f" of {printable_name(place.filename)}" if place.filename != finding.filename else ""
        where = f"{cell}line {place.span.row}{elsewhere}"
        yield f"{event.when.capitalize()}: {where} {event.verb}: {printable(place.label)}.\n"


def _events(finding: Finding) -> list[Event]:
    places = sorted(finding.places, key=lambda place: ORDER[place.role.value])
    roles = {place.role.value for place in places}
    if not finding.code.startswith(ACROSS_ITERATIONS):
        whens = ["first", *["then"] * (len(places) - 1)]
        return [Event(when, VERBS[place.role.value], place) for when, place in zip(whens, places, strict=False)]
    if roles == {"recorded", "reached"}:
        # Nothing is freed: each iteration adds its graph to those that are kept.
        verbs = {"recorded": "records", "reached": "keeps"}
        return [Event(f"iteration {turn}", verbs[place.role.value], place) for turn in (1, 2) for place in places]
    first = "before" if finding.code == BEFORE_THE_LOOP else "iteration 1"
    whens_of = {"recorded": first, "freed": "iteration 1", "reached": "iteration 2"}
    return [Event(whens_of[place.role.value], VERBS[place.role.value], place) for place in places]


def _rail(events: list[Event], index: int, signs: Signs) -> str:
    if index == 0:
        return signs.start
    if index == len(events) - 1:
        return signs.end
    return signs.joins if events[index].verb == "records" else signs.along


def _source(place: Place, texts: Texts) -> str:
    lines = texts.lines(place.filename, place.cell)
    return printable(lines[place.span.row - 1].strip()) if place.span.row <= len(lines) else ""
