"""Which findings of a file are asked for, where ``--since`` or ``--baseline`` asks for some only.

A baseline knows a finding by its rule and the text of its line, not by the line's number, so that edits elsewhere in
the file do not bring old findings back. Of several alike, the first ones in the file are the known ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

Fingerprint = tuple[str, str]
"""Code, and the text of the finding's line without the spaces around it."""
Lines = Callable[[str, int | None], Sequence[str]]
"""Filename and cell → lines."""
Rows = tuple[tuple[int, int], ...]
"""First and last rows of stretches."""


def rows_of(raw: bytes) -> list[bytes]:
    """The lines of a file, whatever its line ends."""
    return [line.rstrip(b"\r") for line in raw.split(b"\n")]


def fingerprint(finding: Finding, lines: Lines) -> Fingerprint:
    """What a baseline knows a finding by."""
    text = lines(finding.filename, finding.cell)
    row = finding.span.row
    return finding.code, text[row - 1].strip() if row <= len(text) else ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for in one file."""

    changed: Rows | None = None
    """Only findings that touch these rows; None for all."""
    known: tuple[Fingerprint, ...] = ()
    """Not these, each once."""
    baseline: str | None = None
    """The file that knows which findings about other files are not asked for either."""

    def split(self, findings: Iterable[Finding], lines: Lines, path: str) -> tuple[list[Finding], list[Finding]]:
        """Those of the findings about the file ``path``, and about others, that are asked for; and the known ones."""
        left = {path: Counter(self.known)}
        asked: list[Finding] = []
        known: list[Finding] = []
        for finding in findings:
            if finding.filename not in left:
                left[finding.filename] = Counter(self._known_elsewhere(finding.filename))
            here = left[finding.filename]
            mark = fingerprint(finding, lines) if here else None
            if mark is not None and here[mark]:
                here[mark] -= 1
                known.append(finding)
            elif self.changed is None or _touches(finding, path, self.changed):
                asked.append(finding)
        return asked, known

    def _known_elsewhere(self, path: str) -> tuple[Fingerprint, ...]:
        if self.baseline is None:
            return ()
        from .baseline import Baseline

        return Baseline.read(self.baseline).known(path)

    def moved(self, before: bytes, after: bytes) -> Wanted:
        """The same for a file that was ``before`` and is ``after`` now; what is new in it counts as changed."""
        if self.changed is None:
            return self
        from difflib import SequenceMatcher

        opcodes = SequenceMatcher(None, rows_of(before), rows_of(after), autojunk=False).get_opcodes()
        rows = {row for first, last in self.changed for row in range(first, last + 1)}
        kept: set[int] = set()
        for tag, start, stop, new_start, new_stop in opcodes:
            if tag == "equal":
                kept |= {row - start + new_start for row in rows if start < row <= stop}
            else:
                kept |= set(range(new_start + 1, new_stop + 1))
        return replace(self, changed=tuple((row, row) for row in sorted(kept)))


def _touches(finding: Finding, path: str, changed: Rows) -> bool:
    spans = [place.span for place in finding.places if place.filename == path]
    if finding.filename == path:
        spans.append(finding.span)
    if finding.repair is not None:
        spans += [edit.span for edit in finding.repair.edits if edit.filename == path]
    return any(first <= span.end_row and span.row <= last for span in spans for first, last in changed)
