"""Suppressions at work: which drafts and repairs they silence, and which of them have served at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from . import unused_suppression
from .analysis.importers import defines, is_imported, is_in_view
from .analysis.interpreter import Analysis
from .analysis.project import Project
from .analysis.source import Source
from .analysis.suppression import Suppression, Suppressions, read
from .draft import Draft, Edits
from .finding import Finding
from .registry import RULES, UnknownRule, resolve

UNUSED: Final = unused_suppression.RULE.code
_ALL: Final = frozenset(rule.code for rule in RULES)


class Silencing:
    """The suppressions in the files of one examination; remembers which have served."""

    def __init__(self, project: Project, sources: Callable[[str], Source | None]) -> None:
        """``sources`` gives the source of a file by its name."""
        self._project = project
        self._sources = sources
        self._files: dict[str, Suppressions | None] = {}

    def silences(self, draft: Draft) -> bool:
        """Whether a comment silences ``draft``."""
        suppressions = self._of(draft.filename)
        return suppressions is not None and suppressions.silence(draft.rule.code, getattr(draft.site, "lineno", 0))

    def keeps_out(self, draft: Draft, edits: Edits) -> bool:
        """Whether ``edits`` change a statement on which the rule of ``draft`` is silenced, while ``draft`` is not."""
        if self.silences(draft):
            return False
        kept_out = False
        for filename, parts in edits.items():
            suppressions = self._of(filename)
            if suppressions is None:
                continue
            for span in (part.span for part in parts):
                if span.column > 1 or span.row < span.end_row:
                    last = span.end_row - (span.end_column == 1 and span.row < span.end_row)
                    for row in range(span.row, last + 1):
                        # All are asked: each that objects has served.
                        kept_out |= suppressions.silence(draft.rule.code, row)
        return kept_out

    def unused(self, source: Source, analysis: Analysis, select: frozenset[str] | None) -> list[Finding]:
        """The findings about comments in ``source`` that have silenced nothing, once all drafts are known."""
        suppressions = self._of(source.filename)
        if suppressions is None or (select is not None and UNUSED not in select):
            return []

        def is_judged(one: Suppression) -> bool:
            if one.rows == (0, 0) and not one.whole_file:
                return True
            if analysis.cut or source.problems or not is_in_view(source, self._project):
                return False
            rows = None if one.whole_file else one.rows
            return not (defines(source, rows) and is_imported(source, self._project))

        # Asked for alone, the rule is about everything that a comment may silence.
        everything = select is None or select == {UNUSED} or select >= _ALL
        return unused_suppression.unused(source, suppressions, None if everything else select, _nearest, is_judged)

    def _of(self, filename: str) -> Suppressions | None:
        if filename not in self._files:
            source = self._sources(filename)
            found = read(source) if source is not None else ()
            self._files[filename] = Suppressions(found, _codes) if found else None
        return self._files[filename]


def _codes(name: str) -> frozenset[str]:
    try:
        return resolve(name)
    except UnknownRule:
        return frozenset()


def _nearest(name: str) -> str | None:
    try:
        resolve(name)
    except UnknownRule as unknown:
        return unknown.suggestion
    return None
