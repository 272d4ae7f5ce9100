"""What concerns several files at once.

Several programs can show one mistake in a file that they share, and a repair can change files beside the one that was
analysed. Here that becomes one finding, at home in the file that it is about, and one change of each file. A file that
the run was not asked to look at is never changed, and where a rule does not count in a file it counts from nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from .run import Job, Outcome, process_bytes, read_regular

if TYPE_CHECKING:
    from gradmend.codemods.finding import Edit, Finding, Repair

Key = tuple[object, ...]
"""What is one finding, whichever file's analysis shows it."""


class Across:
    """The files that a run may change, and the rules that count in each."""

    def __init__(self, given: Iterable[str], rules: Callable[[str], frozenset[str] | None]) -> None:
        """``rules`` gives the codes that count in a file, None for all."""
        self._given = given
        self._rules = rules
        self.outside: set[str] = set()
        """Files that a repair would change, which is not offered as the run was not asked about them."""

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Real path → path as the run names it."""
        return {os.path.realpath(path): path for path in self._given}

    def _named(self, path: str) -> str:
        return self._names.get(os.path.realpath(path), path)

    def _is_given(self, path: str) -> bool:
        return os.path.realpath(path) in self._names

    def counts(self, finding: Finding) -> bool:
        """Whether the rule counts in the file that ``finding`` is about."""
        rules = self._rules(self._named(finding.filename))
        return rules is None or finding.code in rules

    def permits(self, finding: Finding) -> bool:
        """Whether ``finding`` may be mended."""
        return self.counts(finding) and (finding.repair is None or self._is_inside(finding.repair))

    def _is_inside(self, repair: Repair) -> bool:
        return all(self._is_given(path) for path in {edit.filename for edit in repair.edits})

    # Mending ------------------------------------------------------------------------------------------------------

    def settled(self, outcomes: Sequence[Outcome], jobs: Mapping[str, Job]) -> list[Outcome]:
        """``outcomes`` of mending jobs with every change made on top of the ones before it.

        Each file was mended for itself. Where a repair changed a further one, those that it concerns are mended again,
        one after the other.
        """
        changed = {os.path.realpath(path) for outcome in outcomes for path, _, _ in outcome.others}
        now: dict[str, bytes] = {}
        settled = list(outcomes)
        for number, outcome in enumerate(outcomes):
            if (
                outcome.others
                or any(finding.filename != outcome.path for finding in outcome.applied)
                or (changed and os.path.realpath(outcome.path) in changed)
            ):
                settled[number] = self._mended_again(outcome, jobs[outcome.path], now)
        return settled

    def _mended_again(self, outcome: Outcome, job: Job, now: dict[str, bytes]) -> Outcome:
        from gradmend.codemods.analysis.project import Project, read_file

        def read(path: str) -> bytes | None:
            return now.get(os.path.realpath(path)) or read_file(path)

        real = os.path.realpath(outcome.path)
        try:
            raw = now.get(real) or outcome.raw or read_regular(outcome.path)
        except OSError as error:
            return Outcome(outcome.path, error=f"cannot be read: {(error.strerror or str(error)).lower()}")
        again = process_bytes(job, raw, Project(read), self.permits)
        others = tuple((self._named(path), old, new) for path, old, new in again.others)
        now |= {os.path.realpath(path): new for path, _, new in others}
        if again.mended is not None:
            now[real] = again.mended
        return again._replace(others=others)

    # Listing ------------------------------------------------------------------------------------------------------

    def gathered(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """``outcomes`` with each finding once, in the outcome of the file that it is about."""
        told = [(*outcome.findings, *outcome.known, *outcome.suppressed) for outcome in outcomes]
        if all(
            _is_local(finding, outcome.path) for outcome, all_ in zip(outcomes, told, strict=True) for finding in all_
        ):
            return list(outcomes)
        homes = {os.path.realpath(outcome.path): number for number, outcome in enumerate(outcomes)}
        findings = self._at_home([outcome.findings for outcome in outcomes], outcomes, homes)
        known = self._at_home([outcome.known for outcome in outcomes], outcomes, homes)
        suppressed = self._at_home([outcome.suppressed for outcome in outcomes], outcomes, homes)
        return [
            outcome._replace(
                findings=findings[number],
                known=known[number],
                suppressed=suppressed[number],
                raw=outcome.raw if outcome.raw is not None or not findings[number] else _content(outcome.path),
            )
            for number, outcome in enumerate(outcomes)
        ]

    def _at_home(
        self, told: Sequence[Sequence[Finding]], outcomes: Sequence[Outcome], homes: dict[str, int]
    ) -> list[tuple[Finding, ...]]:
        gathered: list[dict[Key, Finding]] = [{} for _ in outcomes]
        for number, findings in enumerate(told):
            for finding in findings:
                if finding.filename != outcomes[number].path and not self.counts(finding):
                    continue
                # A file that was not looked at itself: at home where it is told of first.
                here = gathered[homes.setdefault(os.path.realpath(finding.filename), number)]
                if not _is_local(finding, outcomes[number].path):
                    finding = self._offered(finding)
                key = (finding.code, os.path.realpath(finding.filename), finding.cell, finding.span, finding.message)
                here[key] = _as_one(here[key], finding) if key in here else finding
        return [tuple(findings.values()) for findings in gathered]

    def _offered(self, finding: Finding) -> Finding:
        """``finding`` with those of its repairs that may be applied."""
        from dataclasses import replace

        if finding.repair is None:
            return finding
        repairs = [repair for repair in (finding.repair, *finding.alternatives) if self._is_inside(repair)]
        if not repairs:
            self.outside |= {edit.filename for edit in finding.repair.edits if not self._is_given(edit.filename)}
        return replace(finding, repair=repairs[0] if repairs else None, alternatives=tuple(repairs[1:]))


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """Each mistake once: mended in several programs it is still one."""
    once = {(finding.code, finding.filename, finding.cell, finding.span): finding for finding in findings}
    return list(once.values())


def _is_local(finding: Finding, path: str) -> bool:
    repairs = (finding.repair, *finding.alternatives) if finding.repair is not None else ()
    return finding.filename == path and all(edit.filename == path for repair in repairs for edit in repair.edits)


def _as_one(first: Finding, second: Finding) -> Finding:
    """One finding for two that say the same: the places of both, and what repairs both."""
    from dataclasses import replace

    places = tuple(dict.fromkeys((*first.places, *second.places)))
    if first.repair is None or second.repair is None or first.repair.edits == second.repair.edits:
        return replace(first, places=places)
    edits = tuple(dict.fromkeys((*first.repair.edits, *second.repair.edits)))
    if _overlap(edits):
        return replace(first, places=places)
    # The unsafe one decides.
    repair = max(first.repair, second.repair, key=lambda repair: repair.safety.value == "unsafe")
    return replace(first, places=places, repair=replace(repair, edits=edits), alternatives=())


def _overlap(edits: Iterable[Edit]) -> bool:
    ordered = sorted(edits, key=lambda edit: (edit.filename, edit.cell or 0, edit.span))
    return any(
        (one.filename, one.cell) == (other.filename, other.cell)
        and (other.span.row, other.span.column) < (one.span.end_row, one.span.end_column)
        for one, other in pairwise(ordered)
    )


def _content(path: str) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None
