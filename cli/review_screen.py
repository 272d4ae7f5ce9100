"""What the review shows: the finding, the tape picture, the repair, the question. No keys are read here."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .printable import printable, printable_name
from .report.full import annotated, gutter_of
from .report.preview import difference, preview
from .tape_picture import in_words, picture
from .terminal import Paint

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding, Repair

    from .report.texts import Texts
    from .review_file import FileReview

VERBS = {"-": "Remove", "+": "Add"}
HELP = """\
y      apply this repair
n      leave this one as it is
a      apply this repair and all later ones of this rule in this file
d      leave this file, keep what was applied
e      edit the file by hand; what you leave is checked again
s      write a suppression with a reason
u      undo the last decision in this file
j k    go to the next or previous finding without deciding
Tab    show the next way to repair this one
q      quit, keep what was applied
?      this help
Enter takes the answer in capitals. It never applies an unsafe repair.
"""


@dataclass(frozen=True, slots=True)
class Look:
    """How to show things here."""

    width: int
    paint: Paint
    plain: bool
    """For screen readers: sentences instead of drawings."""
    drawn: bool
    """Whether the terminal's encoding has lines and dots."""


def question(review: FileReview, position: str, choice: int, look: Look) -> Iterator[str]:
    """Everything above the prompt."""
    finding = review.current
    assert finding is not None
    texts = review.texts
    repairs = repairs_of(finding)
    yield "\n"
    yield from _head(finding, position, review.is_skipped(), repairs, choice, look)
    if look.plain:
        yield from _wrapped(f"{printable(finding.message)}", look)
        yield from in_words(finding)
    else:
        yield from annotated(finding, texts, look.paint, look.width)
        if len(finding.places) > 1:
            yield from picture(finding, texts, look.paint, look.width, look.drawn)
            yield "\n"
    if not repairs:
        yield from _wrapped("No repair is offered here: what is meant cannot be known. e edits, s suppresses.", look)
        return
    yield from _repair(repairs[choice], finding, texts, look)
    for other in review.together():
        row = f"line {other.span.row}: {other.code} {other.name}"
        yield from _wrapped(f"The same edits mend {row}", look)


def repairs_of(finding: Finding) -> list[Repair]:
    """The ways to repair, the usual one first."""
    return [] if finding.repair is None else [finding.repair, *finding.alternatives]


def prompt(finding: Finding, choice: int, look: Look) -> str:
    """The question itself, the default in capitals."""
    repairs = repairs_of(finding)
    answers = {"": "N", "safe": "Y,n,a", "unsafe": "y,N,a"}[repairs[choice].safety.value if repairs else ""]
    answers += ",d,e,s,u,j,k" + (",Tab" if len(repairs) > 1 else "") + ",q,?"
    words = "Apply this repair" if repairs else "Leave it"
    return look.paint(f"{words} [{answers}]? ", "blue", bold=True)


def _head(
    finding: Finding, position: str, skipped: bool, repairs: list[Repair], choice: int, look: Look
) -> Iterator[str]:
    safety = f"{repairs[choice].safety.value} repair" if repairs else "no repair"
    if len(repairs) > 1:
        safety += f" {choice + 1} of {len(repairs)}"
    colour = {"safe": "green", "unsafe": "yellow"}.get(safety.split()[0])
    name = printable_name(finding.filename)
    parts = [look.paint(position, bold=True), look.paint(name, bold=True), look.paint(safety, colour, bold=True)]
    if skipped:
        parts.append(look.paint("skipped before", dim=True))
    if look.plain:
        yield f"Finding {position}, {finding.code} {finding.name}, {safety}.\n"
        cell = f"cell {finding.cell}, " if finding.cell is not None else ""
        yield f"File {name}, {cell}line {finding.span.row}.\n"
        return
    yield "  ".join(parts) + "\n"


def _repair(repair: Repair, finding: Finding, texts: Texts, look: Look) -> Iterator[str]:
    why = "" if repair.safety.value == "safe" else ". Unsafe: you may have meant it as it is"
    yield from _wrapped(f"{repair.safety.value} repair: {printable(repair.message)}{why}", look)
    if not look.plain:
        yield from preview(repair, texts, look.paint, gutter_of(finding), context=3)
        return
    for filename, cell, lines in difference(repair, texts, context=0):
        place = f" of {printable_name(filename)}" if filename != finding.filename else ""
        place = f" of cell {cell}{place}" if cell is not None else place
        for line in lines:
            if line.sign in VERBS:
                yield f"{VERBS[line.sign]} line {line.row}{place}: {printable(line.text.strip())}\n"


def _wrapped(text: str, look: Look) -> Iterator[str]:
    for line in textwrap.wrap(text, max(look.width, 20)):
        yield line + "\n"
