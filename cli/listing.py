"""What a survey comes to: the findings in order, the words about them, the exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .config import SEVERITIES
from .options import Options
from .status import CLEAN, ERROR, FINDINGS
from .survey import Survey

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

    from .report import Listing
    from .terminal import Talk


def counted(count: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def sorted_findings(result: Survey) -> tuple[Finding, ...]:
    """All findings of a survey, by file and place."""
    found = (finding for outcome in result.outcomes for finding in outcome.findings)
    return tuple(sorted(found, key=lambda finding: (finding.filename, finding.cell or 0, finding.span, finding.code)))


def listing(result: Survey, findings: tuple[Finding, ...], options: Options) -> Listing:
    """What the output formats get."""
    from .report import Listing
    from .report.texts import Texts
    from .terminal import wants_color

    texts = Texts()
    for outcome in result.outcomes:
        if outcome.raw is not None:
            texts.add(outcome.path, outcome.raw if outcome.mended is None else outcome.mended)
    return Listing(
        findings,
        texts,
        color=wants_color(options.color) and options.output_file is None,
        ignored=tuple(finding for outcome in result.outcomes for finding in outcome.suppressed),
        known=tuple(finding for outcome in result.outcomes for finding in outcome.known),
        failed=result.failed,
    )


def sum_up(findings: tuple[Finding, ...], result: Survey, options: Options, talk: Talk) -> None:
    """The last lines: how many, and which command mends how many of them."""
    if not findings:
        if not result.failed and result.looked_at:
            talk.say(f"No findings in {counted(result.looked_at, 'file')}.")
        return
    talk.say(f"Found {counted(len(findings), 'finding')}.")
    safe = sum(finding.repair is not None and finding.repair.safety.value == "safe" for finding in findings)
    unsafe = sum(finding.repair is not None for finding in findings) - safe
    if result.settings.unsafe:
        flag = " --unsafe" if options.unsafe else ""
        if safe + unsafe:
            talk.say(f"[*] {safe + unsafe} repairable with `gradmend fix{flag}` ({unsafe} unsafe).")
    elif safe:
        more = f" ({unsafe} more with `--unsafe`)" if unsafe else ""
        talk.say(f"[*] {safe} repairable with `gradmend fix`{more}.")
    elif unsafe:
        talk.say(f"[*] {unsafe} repairable with `gradmend fix --unsafe`.")


def exit_status(findings: tuple[Finding, ...], result: Survey, options: Options) -> int:
    """An error counts more than findings; ``--fail-on`` and ``--exit-zero`` are about findings only."""
    if result.failed:
        return ERROR
    gate = SEVERITIES.index(result.settings.fail_on)
    grave = any(SEVERITIES.index(finding.severity.value) >= gate for finding in findings)
    return FINDINGS if grave and not options.exit_zero else CLEAN
