"""The library: scan a source, mend a source. Nothing is printed, read or written but through ``Project``."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from . import unused_suppression
from .analysis.project import Project
from .analysis.source import Source
from .analysis.suppression import MARK
from .engine import Engine
from .finding import Edit, Finding, Safety
from .rewrite.edits import TextEdit, splice

MOST_ROUNDS: Final = 50
"""Rounds of repairs; every round applies at least one."""
MOST_LEFT_OVER: Final = 1_000_000
"""Objects that wait for the garbage collector where it is off; about 100 MB."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the garbage collector from walking the tape again and again while it grows; what is left over goes at once
    afterwards, or, in a process that has the collector off, when there is enough of it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting or gc.get_count()[0] > MOST_LEFT_OVER:
            gc.collect(0 if collecting else 2)
        if collecting:
            gc.enable()


Text = TypeVar("Text", str, bytes)


@dataclass(frozen=True, slots=True)
class Mended(Generic[Text]):
    """What :func:`mend` made of a source."""

    source: Text
    """The mended source, of the type that was given; equal to it where nothing was applied."""
    applied: tuple[Finding, ...]
    left: tuple[Finding, ...]
    others: dict[str, bytes] = field(default_factory=dict)
    """New contents of further files that repairs touch."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What :func:`scan_file` found in a file."""

    filename: str
    findings: tuple[Finding, ...]
    cut: tuple[str, ...] = ()
    """Messages about entry points that were too complex to follow to the end."""
    problems: tuple[str, ...] = ()
    """Parts of the file that could not be read: cells that do not parse."""
    suppressed: tuple[Finding, ...] = ()
    """What would be found but for a comment that silences it."""


def scan(
    source: str | bytes,
    filename: str = "<string>",
    *,
    select: frozenset[str] | None = None,
    project: Project | None = None,
) -> list[Finding]:
    """All findings in a source, in the order of their places, each with its proved repair where there is one.

    ``select`` is a set of rule codes, all by default. Without ``project`` no other file is looked at. What a comment
    silences is left out. Raises ``SourceError`` for what is no Python source or notebook.
    """
    text = _source(source, filename)
    with undisturbed():
        return sorted(Engine(project or Project(None), select).findings(text).findings, key=_order)


def scan_file(
    filename: str, raw: bytes, project: Project | None = None, select: frozenset[str] | None = None
) -> FileReport:
    """As :func:`scan`, with what is silenced and what could not be looked at. Raises ``SourceError``."""
    source = Source.from_bytes(raw, filename)
    with undisturbed():
        found = Engine(project or Project(None), select).findings(source)
    cut = tuple(
        f"{name} is too complex to be followed to its end; the rest was analysed" for name in found.analysis.cut
    )
    return FileReport(
        filename,
        tuple(sorted(found.findings, key=_order)),
        cut,
        tuple(source.problems),
        tuple(sorted(found.suppressed, key=_order)),
    )


def mend(
    source: Text,
    filename: str = "<string>",
    *,
    unsafe: bool = False,
    select: frozenset[str] | None = None,
    project: Project | None = None,
    permits: Callable[[Finding], bool] = bool,
) -> Mended[Text]:
    """Apply all proved safe repairs (with ``unsafe``, all proved repairs) until none is left.

    Every repair is made twice, as edits of the text and as a pass over libcst's tree; one on which the two do not agree
    to the letter is left undone, and so is one of a finding that ``permits`` does not allow. What a comment silences
    stays as it is; comments that silence nothing go last. The result is of the type of ``source``. Mending the result
    again changes nothing. Raises ``SourceError``.
    """
    with undisturbed():
        return _mend(source, filename, unsafe, select, project or Project(None), permits)


def _mend(
    source: Text,
    filename: str,
    unsafe: bool,
    select: frozenset[str] | None,
    project: Project,
    permits: Callable[[Finding], bool],
) -> Mended[Text]:
    current = source
    refused: set[tuple[object, ...]] = set()
    applied: list[Finding] = []
    others: dict[str, bytes] = {}
    for _ in range(MOST_ROUNDS):
        engine = Engine(project, select)
        finding = engine.first_repair(_source(current, filename), unsafe, refused)
        if finding is None or finding.repair is None:
            unused = _unused_suppressions(current, filename, unsafe, select, project)
            if not unused:
                break
            removals = [edit for found in unused if found.repair is not None for edit in found.repair.edits]
            current = _applied(current, filename, removals)
            applied += unused
            continue
        edits = finding.repair.edits
        if not permits(finding) or not all(_agreed(engine, name, edits) for name in {edit.filename for edit in edits}):
            refused.add((finding.code, finding.filename, finding.cell, finding.span))
            continue
        current = _applied(current, filename, [edit for edit in edits if edit.filename == filename])
        for name in sorted({edit.filename for edit in edits} - {filename}):
            other = engine.source_of(name)
            if other is not None:
                others[name] = other.apply(_text_edits(other, [e for e in edits if e.filename == name]))
                project = project.overlaid({name: Source.from_bytes(others[name], name)})
        applied.append(finding)
    findings = sorted(Engine(project, select).findings(_source(current, filename)).findings, key=_order)
    return Mended(current, tuple(applied), tuple(findings), others)


def mend_file(
    filename: str,
    raw: bytes,
    project: Project | None = None,
    *,
    unsafe: bool = False,
    select: frozenset[str] | None = None,
    permits: Callable[[Finding], bool] = bool,
) -> Mended[bytes]:
    """As :func:`mend`, for the bytes of a file of a project."""
    return mend(raw, filename, unsafe=unsafe, select=select, project=project, permits=permits)


def _agreed(engine: Engine, filename: str, edits: Iterable[Edit]) -> bool:
    """Whether both ways of rewriting make the same of the edits in ``filename``."""
    from .rewrite.transformer import RewriteError, rewrite

    source = engine.source_of(filename)
    if source is None:
        return False
    parts = _text_edits(source, [edit for edit in edits if edit.filename == filename])
    try:
        return rewrite(source.text, parts) == splice(source.text, parts)
    except RewriteError:
        return False


def _unused_suppressions(
    current: str | bytes, filename: str, unsafe: bool, select: frozenset[str] | None, project: Project
) -> list[Finding]:
    """Findings about comments that silence nothing, with a repair to apply; one of each line, so that none overlap."""
    source = _source(current, filename)
    if MARK not in source.text:
        return []
    chosen: dict[tuple[int | None, int], Finding] = {}
    for finding in Engine(project, select).findings(source).findings:
        if finding.code != unused_suppression.RULE.code or finding.repair is None:
            continue
        if unsafe or finding.repair.safety is Safety.SAFE:
            chosen.setdefault((finding.cell, finding.span.row), finding)
    return list(chosen.values())


def _source(source: str | bytes, filename: str) -> Source:
    return Source.from_bytes(source, filename) if isinstance(source, bytes) else Source.from_text(source, filename)


def _order(finding: Finding) -> tuple[object, ...]:
    return (finding.filename, finding.cell or 0, finding.span, finding.code)


def _text_edits(source: Source, edits: Iterable[Edit]) -> list[TextEdit]:
    return [TextEdit(source.unlocate(edit.cell, edit.span), edit.content) for edit in edits]


def _applied(current: Text, filename: str, edits: list[Edit]) -> Text:
    source = _source(current, filename)
    parts = _text_edits(source, edits)
    return source.apply(parts) if isinstance(current, bytes) else source.apply_text(parts)
