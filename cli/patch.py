"""The changes of a run as one patch: as bytes for programs, and as text that is fit for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .printable import printable
from .run import Outcome
from .terminal import Paint


@dataclass(frozen=True, slots=True)
class Change:
    """New bytes for one file."""

    path: str
    old: bytes
    new: bytes


def changes_of(outcomes: Iterable[Outcome]) -> list[Change]:
    """Every file that changes, each once: a change on top of another is one with it."""
    changes: dict[tuple[str, bytes], Change] = {}
    for outcome in outcomes:
        steps = list(outcome.others)
        if outcome.mended is not None and outcome.raw is not None:
            steps.insert(0, (outcome.path, outcome.raw, outcome.mended))
        for path, old, new in steps:
            before = changes.pop((path, old), None)
            changes[path, new] = Change(path, old if before is None else before.old, new)
    return list(changes.values())


def patch(changes: Sequence[Change]) -> bytes:
    """The patch as programs take it: the files' own bytes."""
    from gradmend.codemods.rewrite.diff import unified_diff

    pieces = (unified_diff(change.old, change.new, change.path) for change in changes)
    return "".join(pieces).encode("utf-8", "surrogateescape")


def shown_patch(changes: Sequence[Change], color: bool) -> str:
    """The patch as people read it: nothing in it that a terminal would obey but our own colours."""
    from gradmend.codemods.rewrite.diff import notebook_diff, unified_diff

    pieces = (
        # What a notebook's file holds is hard to read; no program reads this.
        (notebook_diff if change.path.endswith(".ipynb") else unified_diff)(change.old, change.new, change.path)
        for change in changes
    )
    return Paint(color).diff(printable("".join(pieces).replace("\r\n", "\n")))
