"""``gradmend fix``: show the patch, ask once, write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from .listing import counted, exit_status, listing, sorted_findings
from .options import Command, Fixing, Options, fixing, listed, shared
from .patch import Change, changes_of
from .printable import printable_name
from .status import ERROR, FINDINGS
from .survey import Survey, survey

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

    from .terminal import Talk


@click.command("fix", cls=Command)
@shared
@listed
@click.option("-y", "--yes", is_flag=True, help="Apply without showing the patch or asking.")
@fixing
def command(options: Options, yes: bool, how: Fixing) -> int:
    """Mend the mistakes in PATHS (default: the working folder).

    Shows the patch and asks once. Safe repairs only, unless --unsafe. Without a terminal it needs --yes. With - the
    mended source goes to standard output.
    """
    if options.show_files or options.show_settings:
        from .check import show

        return show(options)
    return fix_all(options, how, yes)


def fix_all(options: Options, how: Fixing, yes: bool) -> int:
    """Mend as the options say, and give the exit status."""
    talk = options.talk()
    if options.is_stdin:
        return _fix_stdin(options, talk)
    if not yes and not _can_ask():
        talk.error("no terminal to ask on, so nothing is written: `gradmend fix --yes` applies, `gradmend diff` shows")
        return ERROR
    result = survey(options, talk, mend=True)
    changes = changes_of(result.outcomes)
    if changes and not how.allow_dirty and is_dirty(changes, talk):
        return ERROR
    if changes and not yes and not _agreed(changes, result, options, talk):
        talk.say("Nothing is written.")
        return FINDINGS
    written: list[Change] = []
    try:
        for change in changes:
            written += write_changes([change], result, talk)
    except KeyboardInterrupt:
        applied = _applied(result, written)
        talk.say(
            f"Mended {counted(len(applied), 'finding')} before the interruption; the other files are as they were."
        )
        raise
    applied = _applied(result, written)
    if how.show_fixes:
        from .report.concise import where

        for finding in applied:
            talk.say(f"mended {where(finding)}: {finding.code} {finding.message}")
    _report(result, applied, len(written), options, how, talk)
    if applied and how.exit_non_zero_on_fix and not result.failed:
        return FINDINGS
    return exit_status(() if how.fix_only else sorted_findings(result), result, options)


def _applied(result: Survey, written: Iterable[Change] | None = None) -> list[Finding]:
    """The findings that are mended, each once; with ``written``, those of which every change is on disk."""
    from .across import distinct

    applied = distinct(finding for outcome in result.outcomes for finding in outcome.applied)
    if written is None:
        return applied
    paths = {change.path for change in written}
    return [
        finding
        for finding in applied
        if finding.repair is not None and all(edit.filename in paths for edit in finding.repair.edits)
    ]


def _can_ask() -> bool:
    from .terminal import is_terminal

    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def is_dirty(changes: Iterable[Change], talk: Talk) -> bool:
    """Whether a file to be written has changes that git does not hold yet; says which."""
    from .git import dirty

    changed = dirty({change.path: change.old for change in changes})
    if changed:
        shown = ", ".join(printable_name(path) for path in changed[:5])
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        talk.error(f"unstaged changes in {shown}{more}, so nothing is written: commit or stage them, or --allow-dirty")
    return bool(changed)


def _agreed(changes: Sequence[Change], result: Survey, options: Options, talk: Talk) -> bool:
    """Show the patch, ask."""
    from .patch import shown_patch
    from .terminal import is_terminal, page, wants_color

    color = wants_color(options.color)
    if is_terminal(sys.stdout):
        page(shown_patch(changes, color), color)
    else:
        click.echo(shown_patch(changes, color), nl=False, color=color)
    applied = _applied(result)
    _table(applied, talk)
    files = counted(len(changes), "file")
    return click.confirm(f"Apply {counted(len(applied), 'repair')} to {files}?", default=False, err=True)


def write_changes(changes: Iterable[Change], result: Survey, talk: Talk) -> list[Change]:
    """Write; gives what is on disk now. What could not be written is said and counts as failed."""
    from .write import WriteError, write

    written = []
    for change in changes:
        file = result.files.get(change.path)
        try:
            write(change.path, change.old, change.new, file.tree if file else os.getcwd())
            written.append(change)
        except WriteError as refusal:
            talk.error(f"{printable_name(change.path)}: {refusal}")
            result.failed[change.path] = str(refusal)
    return written


def _table(applied: Sequence[Finding], talk: Talk) -> None:
    from .summary import table

    for line in table(applied):
        talk.say(line)


def _report(result: Survey, applied: Sequence[Finding], files: int, options: Options, how: Fixing, talk: Talk) -> None:
    left = () if how.fix_only else sorted_findings(result)
    if left:
        from .output import output
        from .report import render

        output(render(options.output_format or "concise", listing(result, left, options)), options)
    if applied:
        talk.say(f"Mended {counted(len(applied), 'finding')} in {counted(files, 'file')}.")
        _table(applied, talk)
    elif not left and not result.failed and result.looked_at:
        talk.say(f"Nothing to mend in {counted(result.looked_at, 'file')}.")
    if left:
        talk.say(f"{counted(len(left), 'finding')} left.")
        if not result.settings.unsafe and any(finding.repair is not None for finding in left):
            talk.say("Some have an unsafe repair: `gradmend diff --unsafe` shows it, `gradmend review` asks for each.")


def _fix_stdin(options: Options, talk: Talk) -> int:
    """The mended source on stdout, whatever could be mended of it, so that an editor can use this as a formatter."""
    from .output import output_bytes

    result = survey(options, talk, mend=True)
    for outcome in result.outcomes:
        if outcome.error is None and outcome.raw is not None:
            output_bytes(outcome.raw if outcome.mended is None else outcome.mended, options)
    left = sorted_findings(result)
    if left:
        from .report import render

        click.echo("".join(render("concise", listing(result, left, options))), nl=False, err=True)
    return exit_status(left, result, options)
