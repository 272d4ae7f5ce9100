"""``gradmend fix``: show the patch, ask once, write."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from .listing import counted, exit_status, listing, sorted_findings
from .options import Command, Options, shared
from .patch import Change, changes_of
from .printable import printable_name
from .status import ERROR, FINDINGS
from .survey import Survey, survey

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

    from .terminal import Talk


@click.command("fix", cls=Command)
@shared
@click.option("-y", "--yes", is_flag=True, help="Apply without showing the patch or asking.")
@click.option("--allow-dirty", is_flag=True, help="Change files that have unstaged changes, too.")
def command(options: Options, yes: bool, allow_dirty: bool) -> int:
    """Mend the mistakes in PATHS (default: the working folder).

    Shows the patch and asks once. Safe repairs only, unless --unsafe. Without a terminal it needs --yes. With - the
    mended source goes to standard output.
    """
    if options.show_files or options.show_settings:
        from .check import show

        return show(options)
    return fix_all(options, yes, allow_dirty)


def fix_all(options: Options, yes: bool, allow_dirty: bool) -> int:
    """Mend as the options say, and give the exit status."""
    talk = options.talk()
    if options.is_stdin:
        return _fix_stdin(options, talk)
    if not yes and not _can_ask():
        talk.error("no terminal to ask on, so nothing is written: `gradmend fix --yes` applies, `gradmend diff` shows")
        return ERROR
    result = survey(options, talk, mend=True)
    changes = changes_of(result.outcomes)
    if changes and not allow_dirty and is_dirty([(change.path, change.old) for change in changes], talk):
        return ERROR
    if changes and not yes and not _agreed(changes, result, options, talk):
        talk.say("Nothing is written.")
        return FINDINGS
    applied = _write(result, talk)
    _report(result, applied, options, talk)
    return exit_status(sorted_findings(result), result, options)


def _can_ask() -> bool:
    from .terminal import is_terminal

    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def is_dirty(files: Iterable[tuple[str, bytes]], talk: Talk) -> bool:
    """Whether a file to be written has changes that git does not hold yet; says which."""
    from .git import dirty

    changed = dirty(dict(files))
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
    applied = [finding for outcome in result.outcomes for finding in outcome.applied]
    _table(applied, talk)
    files = counted(len(changes), "file")
    return click.confirm(f"Apply {counted(len(applied), 'repair')} to {files}?", default=False, err=True)


def _write(result: Survey, talk: Talk) -> list[Finding]:
    """Write each outcome's files; gives the findings whose repairs are on disk now, the others count as failed."""
    from .write import WriteError, write

    applied: list[Finding] = []
    for outcome in result.outcomes:
        tree = result.files[outcome.path].tree
        for change in changes_of([outcome]):
            try:
                write(change.path, change.old, change.new, tree)
            except WriteError as refusal:
                talk.error(f"{printable_name(change.path)}: {refusal}")
                result.failed[outcome.path] = str(refusal)
                break
        else:
            applied += outcome.applied
    return applied


def _table(applied: Sequence[Finding], talk: Talk) -> None:
    from .summary import table

    for line in table(applied):
        talk.say(line)


def _report(result: Survey, applied: Sequence[Finding], options: Options, talk: Talk) -> None:
    left = sorted_findings(result)
    if left:
        from .output import output
        from .report import render

        output(render(options.output_format or "concise", listing(result, left, options)), options)
    if applied:
        files = len({finding.filename for finding in applied})
        talk.say(f"Mended {counted(len(applied), 'finding')} in {counted(files, 'file')}.")
        _table(applied, talk)
    elif not left and not result.failed:
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
