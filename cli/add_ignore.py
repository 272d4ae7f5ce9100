"""``check --add-ignore``: a suppression for every present finding, so that an old code base starts clean.

The comment goes alone on the line above the statement: a formatter may move a comment at a line's end, not that one.
It is proved like a repair: the text with it is analysed, and the findings must be gone and no other have come.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from gradmend.codemods.finding import Edit, Span

from .config import ConfigError
from .listing import counted
from .patch import Change
from .printable import printable_name
from .report.texts import Texts
from .run import Outcome, apply_edits, rescan
from .status import CLEAN, ERROR
from .wanted import Fingerprint, fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gradmend.codemods.finding import Finding

    from .options import Options
    from .survey import Survey

UNUSED = "GM001"
"""The rule about suppressions that serve nothing."""
MARK = re.compile(r"^(\s*#\s*gradmend:\s*ignore\[)([^\]]*)(\].*)$")


def add_ignores(result: Survey, options: Options, reason: str, allow_dirty: bool) -> int:
    """Write the suppressions and give the exit status."""
    from .fix import is_dirty, write_changes

    if "\n" in reason or "\r" in reason:
        raise ConfigError("--add-ignore: the reason must be one line")
    if options.is_stdin:
        raise ConfigError("--add-ignore changes files, and standard input is none")
    talk = options.talk()
    changes: list[Change] = []
    count = 0
    for outcome in result.outcomes:
        # A comment that serves nothing is not helped by another one.
        findings = [finding for finding in outcome.findings if finding.code != UNUSED]
        if findings and outcome.raw is not None:
            new = suppressed(outcome.path, outcome.raw, findings, reason)
            if new is None:
                talk.error(f"{printable_name(outcome.path)}: no suppression could be placed here; nothing is written")
                result.failed[outcome.path] = "no suppression could be placed"
                continue
            changes.append(Change(outcome.path, outcome.raw, new))
            count += len(findings)
    if changes and not allow_dirty and is_dirty(changes, talk):
        return ERROR
    written = write_changes(changes, result, talk)
    if not result.failed:
        talk.say(f"Added suppressions for {counted(count, 'finding')} in {counted(len(written), 'file')}.")
    return ERROR if result.failed else CLEAN


def suppressed(path: str, raw: bytes, findings: Sequence[Finding], reason: str) -> bytes | None:
    """``raw`` with comments that suppress ``findings``; None where they would not, or would change more."""
    texts = Texts()
    texts.add(path, raw)
    codes: defaultdict[tuple[int | None, int], set[str]] = defaultdict(set)
    for finding in findings:
        row = _statement(texts.lines(path, finding.cell), finding.span.row)
        codes[finding.cell, row].add(finding.code)
    edits = [_edit(path, cell, row, texts.lines(path, cell), codes[cell, row], reason) for cell, row in codes]
    try:
        new = apply_edits(raw, path, edits)
    except Exception:
        # Whatever the reason: where no comment can go, none goes.
        return None
    return new if _serves(path, raw, new, findings) else None


def _serves(path: str, raw: bytes, new: bytes, findings: Sequence[Finding]) -> bool:
    """Whether exactly ``findings`` are gone."""
    before, after = rescan(path, raw, None), rescan(path, new, None)
    if after.error is not None:
        return False
    expected = _counted(before.findings, path, raw)
    expected.subtract(_counted(findings, path, raw))
    return +expected == _counted(after.findings, path, new) and _unused(after) <= _unused(before)


def _counted(findings: Iterable[Finding], path: str, raw: bytes) -> Counter[Fingerprint]:
    """Findings by what they are known by; those about comments have their lines changed here."""
    texts = Texts()
    texts.add(path, raw)
    return Counter(fingerprint(finding, texts.lines) for finding in findings if finding.code != UNUSED)


def _unused(outcome: Outcome) -> int:
    return sum(finding.code == UNUSED for finding in outcome.findings)


def _statement(lines: Sequence[str], row: int) -> int:
    """The row on which the logical line begins that ``row`` is part of."""
    first = row
    fresh = True
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            if token.start[0] > row:
                break
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                continue
            if fresh:
                first = token.start[0]
            fresh = token.type == tokenize.NEWLINE
    except (tokenize.TokenError, SyntaxError):
        return row
    return first


def _edit(path: str, cell: int | None, row: int, lines: Sequence[str], codes: set[str], reason: str) -> Edit:
    line = lines[row - 1]
    present = MARK.match(lines[row - 2]) if row > 1 else None
    if present is not None:
        # One comment, not two: the upper of two would stand above a comment, not above the statement.
        together = ", ".join(sorted(codes | set(present[2].replace(",", " ").split())))
        span = Span(row - 1, 1, row - 1, len(lines[row - 2]) + 1)
        return Edit(path, span, f"{present[1]}{together}{present[3]}", cell)
    indentation = line[: len(line) - len(line.lstrip())]
    comment = f"# gradmend: ignore[{', '.join(sorted(codes))}] {reason}".rstrip()
    return Edit(path, Span(row, 1, row, 1), f"{indentation}{comment}\n", cell)
