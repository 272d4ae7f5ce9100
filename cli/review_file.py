"""The review of one file: its text as decided so far, the findings that stand in it, and the way back.

Nothing here talks or writes. After every change the text is analysed again, so that the next question is about what is
there now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .report.texts import Texts
from .run import Job, apply_edits, process_bytes, read_regular
from .wanted import Fingerprint, fingerprint

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding, Repair

Identity = tuple[Fingerprint, int]
"""What a finding is known by while the text around it changes: its fingerprint, and which of several alike it is."""


class RefusedError(Exception):
    """A change that cannot be made; the text says why, and nothing is changed."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything that a decision changes."""

    text: bytes
    others: tuple[tuple[str, bytes, bytes], ...]
    findings: tuple[Finding, ...]
    job: Job
    position: int = 0
    skipped: frozenset[Identity] = frozenset()
    tally: tuple[str, ...] = ()
    """What was decided: ``applied``, ``skipped`` …, one word for each finding."""


class FileReview:
    """One file under review."""

    def __init__(self, job: Job, raw: bytes) -> None:
        """Raises RefusedError where the file cannot be analysed."""
        self.path = job.path
        self.original = raw
        self._before: list[State] = []
        self.state = State(raw, (), self._scanned(job, raw), job)
        self._go_on(0)

    # What is there ------------------------------------------------------------------------------------------------

    @property
    def texts(self) -> Texts:
        """The text as decided so far."""
        texts = Texts()
        texts.add(self.path, self.state.text)
        for path, _, new in self.state.others:
            texts.add(path, new)
        return texts

    @property
    def current(self) -> Finding | None:
        """The finding in question; None where all are decided."""
        if self.state.position >= len(self.state.findings):
            return None
        return self.state.findings[self.state.position]

    def together(self) -> list[Finding]:
        """The other findings that the same edits mend, so that they are offered as one."""
        current = self.current
        if current is None or current.repair is None:
            return []
        edits = current.repair.edits
        return [
            finding
            for finding in self.state.findings
            if finding is not current and finding.repair is not None and finding.repair.edits == edits
        ]

    def is_skipped(self) -> bool:
        """Whether the finding in question was skipped before."""
        return self.current is not None and self._identities()[self.state.position] in self.state.skipped

    # What is decided ----------------------------------------------------------------------------------------------

    def apply(self, repair: Repair) -> None:
        """Make the edits of ``repair``. Raises RefusedError."""
        mended = 1 + len(self.together())
        others = {path: (old, new) for path, old, new in self.state.others}
        try:
            text = apply_edits(self.state.text, self.path, repair.edits)
            for path in sorted({edit.filename for edit in repair.edits} - {self.path}):
                old, new = others.get(path) or (read_regular(path),) * 2
                others[path] = (old, apply_edits(new, path, repair.edits))
        except Exception as error:
            raise RefusedError(f"this repair cannot be applied here: {error}") from None
        self._change(text, ("applied",) * mended, tuple((path, *pair) for path, pair in sorted(others.items())))

    def replace(self, text: bytes, word: str) -> None:
        """Take ``text`` for the file's; ``word`` is what was done. Raises RefusedError where it cannot be analysed."""
        self._change(text, (word,), self.state.others)

    def skip(self) -> None:
        """Leave the finding in question as it is."""
        names = self._identities()
        skipped = {names[self.state.position]}
        skipped |= {names[self.state.findings.index(finding)] for finding in self.together()}
        self._remember()
        self.state = replace(
            self.state,
            skipped=self.state.skipped | skipped,
            tally=(*self.state.tally, *["skipped"] * len(skipped)),
        )
        self._go_on(self.state.position)

    def move(self, step: int) -> bool:
        """Go to the next or previous finding without deciding; False at the end."""
        position = self.state.position + step
        if not 0 <= position < len(self.state.findings):
            return False
        self.state = replace(self.state, position=position)
        return True

    def go_to(self, wanted: Callable[[Finding], bool]) -> bool:
        """Go to the next undecided finding that is ``wanted``; False, and no move, where there is none."""
        names = self._identities()
        for index in range(self.state.position, len(names)):
            if names[index] not in self.state.skipped and wanted(self.state.findings[index]):
                self.state = replace(self.state, position=index)
                return True
        return False

    def undo(self) -> bool:
        """Take the last decision back; False where there is none."""
        if not self._before:
            return False
        self.state = self._before.pop()
        return True

    # How ----------------------------------------------------------------------------------------------------------

    def _change(self, text: bytes, words: tuple[str, ...], others: tuple[tuple[str, bytes, bytes], ...]) -> None:
        state = self.state
        job = state.job
        if job.wanted is not None:
            job = job._replace(wanted=job.wanted.moved(state.text, text))
        findings = self._scanned(job, text)
        here = self.current
        skipped = self._skipped_without_current()
        self._remember()
        self.state = replace(
            state,
            text=text,
            others=others,
            findings=findings,
            job=job,
            skipped=skipped,
            tally=(*state.tally, *words),
        )
        later = (
            index
            for index, finding in enumerate(findings)
            if here is None or (finding.cell or 0, finding.span) >= (here.cell or 0, here.span)
        )
        self._go_on(next(later, len(findings)))

    def _scanned(self, job: Job, text: bytes) -> tuple[Finding, ...]:
        outcome = process_bytes(job._replace(mend=False), text)
        if outcome.error is not None:
            raise RefusedError(outcome.error)
        return outcome.findings

    def _remember(self) -> None:
        self._before.append(self.state)

    def _identities(self) -> list[Identity]:
        texts = self.texts
        seen: Counter[Fingerprint] = Counter()
        names = []
        for finding in self.state.findings:
            mark = fingerprint(finding, texts.lines)
            names.append((mark, seen[mark]))
            seen[mark] += 1
        return names

    def _skipped_without_current(self) -> frozenset[Identity]:
        """What is skipped once the finding in question is gone: of several alike, those behind it move up."""
        gone = [self.state.position, *(self.state.findings.index(finding) for finding in self.together())]
        seen: Counter[Fingerprint] = Counter()
        skipped = set()
        for index, (mark, number) in enumerate(self._identities()):
            if index in gone:
                continue
            if (mark, number) in self.state.skipped:
                skipped.add((mark, seen[mark]))
            seen[mark] += 1
        return frozenset(skipped)

    def _go_on(self, start: int) -> None:
        """To the next finding not decided yet, from ``start`` on and then from the top."""
        names = self._identities()
        order = [*range(start, len(names)), *range(min(start, len(names)))]
        position = next((index for index in order if names[index] not in self.state.skipped), len(names))
        self.state = replace(self.state, position=position)
