"""The one seam between the command line and the analysis: a file goes in, an ``Outcome`` comes out.

Every file stands alone: whatever goes wrong with one is a line about that one. The analysis is imported only when a
file passes the prefilter, so a run over clean files pays for neither the interpreter nor libcst.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gradmend.codemods.analysis.project import Project
    from gradmend.codemods.finding import Edit, Finding

    from .wanted import Wanted

GENERATED_MARK = b"@generated"
ACCUMULATED = "GM102"
"""The rule that ``accumulate-with`` is about."""


class Job(NamedTuple):
    """What is wanted of one file."""

    path: str
    named: bool
    rules: frozenset[str] | None
    """The codes that count here; None for all."""
    mend: bool = False
    unsafe: bool = False
    accumulate_with: str | None = None
    wanted: Wanted | None = None
    """Which findings are asked for; None for all."""


class Outcome(NamedTuple):
    """What came of one file. Plain data: it crosses from a worker process to the command."""

    path: str
    findings: tuple[Finding, ...] = ()
    """In a mending job: those that are left."""
    suppressed: tuple[Finding, ...] = ()
    known: tuple[Finding, ...] = ()
    """Held by the baseline."""
    applied: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    """What the analysis could not look at: functions cut off, cells that do not parse."""
    error: str | None = None
    """Why the file could not be analysed at all, in words for people."""
    raw: bytes | None = None
    """The bytes that were read; only where there is something to show or to write."""
    mended: bytes | None = None
    """The new bytes; only where they differ from ``raw``."""
    others: tuple[tuple[str, bytes, bytes], ...] = ()
    """Further files of the same repairs: path, old bytes, new bytes."""


def read_regular(path: str) -> bytes:
    """The bytes of a regular file; OSError for anything else, without ever waiting on a FIFO or a device."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(None, "not a regular file")
        return file.read()


def process(job: Job) -> Outcome:
    """Do ``job``; never raises but for Ctrl-C."""
    try:
        raw = read_regular(job.path)
    except OSError as error:
        return Outcome(job.path, error=f"cannot be read: {(error.strerror or str(error)).lower()}")
    return process_bytes(job, raw)


def process_bytes(
    job: Job, raw: bytes, project: Project | None = None, permits: Callable[[Finding], bool] = bool
) -> Outcome:
    """Do ``job`` on bytes at hand, from standard input say; never raises but for Ctrl-C.

    ``project`` has the other files as they are to be seen; only what ``permits`` allows is mended.
    """
    if GENERATED_MARK in raw[:1024]:
        return Outcome(job.path)
    try:
        from gradmend.codemods.analysis.prefilter import may_matter

        if not may_matter(raw, job.path) and not _must_speak_of(job, raw):
            return Outcome(job.path)
        return _mend(job, raw, project or _project(), permits) if job.mend else _scan(job, raw)
    except Exception as error:
        return Outcome(job.path, error=_in_words(error))


def _must_speak_of(job: Job, raw: bytes) -> bool:
    """Whether a file that cannot hold a mistake is to be read all the same: it may be broken, which must be said.

    Damaged bytes are said of any file. Syntax is looked at only in a file that the command line names: a folder's other
    files are never parsed.
    """
    if b"\0" in raw:
        return True
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError:
            return True
    return job.named and not _compiles(raw, job.path)


def _compiles(raw: bytes, path: str) -> bool:
    if path.endswith(".ipynb"):
        return False
    import warnings

    only_tree = 0x400  # ast.PyCF_ONLY_AST, without the import of ast
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(raw, "<file>", "exec", only_tree, True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _in_words(error: Exception) -> str:
    from gradmend.codemods.analysis.errors import SourceError

    if isinstance(error, SourceError):
        return str(error.args[-1])
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" at {os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}" if frame else ""
    return f"gradmend itself failed here ({type(error).__name__}{where}: {error}); please report it"


@lru_cache(maxsize=1)
def _project() -> Project:
    """The project's other files; each is parsed once in a process, whoever imports it."""
    from gradmend.codemods.analysis.project import Project

    return Project()


def forget_project() -> None:
    """Files have been written: read the project's anew from here on."""
    _project.cache_clear()


def _scan(job: Job, raw: bytes) -> Outcome:
    from gradmend.codemods import scan_file

    report = scan_file(job.path, raw, _project(), job.rules)
    found = report.findings
    if job.accumulate_with is not None:
        found = tuple(_preferred(finding, job.accumulate_with) for finding in found)
    findings, known = _asked_for(found, job, raw)
    suppressed = tuple(getattr(report, "suppressed", ()))
    return Outcome(
        job.path,
        findings=findings,
        suppressed=suppressed,
        known=known,
        notes=(*report.cut, *report.problems),
        raw=raw if findings or suppressed or known else None,
    )


def _asked_for(findings: Iterable[Finding], job: Job, raw: bytes) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings that are asked for, and those that the baseline knows."""
    if job.wanted is None:
        return tuple(findings), ()
    from .report.texts import Texts

    texts = Texts()
    texts.add(job.path, raw)
    asked, known = job.wanted.split(findings, texts.lines, job.path)
    return tuple(asked), tuple(known)


def _preferred(finding: Finding, word: str) -> Finding:
    """``finding`` with the alternative as its repair that uses ``word``, where one is as safe as the usual repair."""
    if finding.code != ACCUMULATED or finding.repair is None:
        return finding
    repairs = (finding.repair, *finding.alternatives)
    for repair in repairs:
        if repair.safety == finding.repair.safety and any(f".{word}(" in edit.content for edit in repair.edits):
            others = tuple(other for other in repairs if other is not repair)
            from dataclasses import replace

            return replace(finding, repair=repair, alternatives=others)
    return finding


def _mend(job: Job, raw: bytes, project: Project, permits: Callable[[Finding], bool]) -> Outcome:
    if job.wanted is not None or job.accumulate_with is not None:
        return _mend_one_by_one(job, raw)
    from gradmend.codemods import mend_file

    mended = mend_file(job.path, raw, project, unsafe=job.unsafe, select=job.rules, permits=permits)
    new = mended.source
    assert isinstance(new, bytes)
    return Outcome(
        job.path,
        findings=tuple(mended.left),
        applied=tuple(mended.applied),
        raw=raw,
        mended=new if new != raw else None,
        others=tuple((path, _read(project, path), text) for path, text in mended.others.items()),
    )


def _read(project: Project, path: str) -> bytes:
    raw = project.reader(path) if project.reader is not None else None
    if raw is None:
        raise OSError(None, f"{path} is gone")
    return raw


def _mend_one_by_one(job: Job, raw: bytes) -> Outcome:
    """Mend only what is asked for, or as it is asked for: repair by repair, and after each a look at the new text."""
    applied: list[Finding] = []
    text = raw
    while True:
        outcome = _scan(job, text)
        finding = next((finding for finding in outcome.findings if _may_apply(finding, job)), None)
        if finding is None or finding.repair is None:
            break
        mended = apply_edits(text, job.path, finding.repair.edits)
        applied.append(finding)
        if job.wanted is not None:
            job = job._replace(wanted=job.wanted.moved(text, mended))
        text = mended
    return outcome._replace(applied=tuple(applied), raw=raw, mended=text if applied else None)


def _may_apply(finding: Finding, job: Job) -> bool:
    repair = finding.repair
    if repair is None or {finding.filename, *(edit.filename for edit in repair.edits)} != {job.path}:
        return False
    return job.unsafe or repair.safety.value == "safe"


def rescan(path: str, raw: bytes, rules: frozenset[str] | None) -> Outcome:
    """The findings in a text that is not on disk yet; an error is in the outcome."""
    return process_bytes(Job(path, True, rules), raw)._replace(raw=raw)


def spliced(text: str, edits: Iterable[Edit]) -> str:
    """``text`` (of one cell or file) with ``edits`` made; EditConflict where they contradict each other."""
    from gradmend.codemods.analysis.lines import WrittenText
    from gradmend.codemods.rewrite.edits import TextEdit

    # The last line of a cell has no line end, and an edit may take the whole line.
    return WrittenText(text).apply(TextEdit(edit.span, edit.content) for edit in edits)


def apply_edits(raw: bytes, path: str, edits: Iterable[Edit]) -> bytes:
    """``raw`` with those of ``edits`` made that lie in ``path``; SourceError or EditConflict if that cannot be."""
    from gradmend.codemods.analysis.source import Source
    from gradmend.codemods.rewrite.edits import TextEdit

    source = Source.from_bytes(raw, path)
    return source.apply(
        TextEdit(source.unlocate(edit.cell, edit.span), edit.content) for edit in edits if edit.filename == path
    )
