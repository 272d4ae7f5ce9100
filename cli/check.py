"""``gradmend check``: list the findings."""

from __future__ import annotations

import os
import sys

import click

from .listing import counted, exit_status, listing, sorted_findings, sum_up
from .options import Command, Fixing, Options, fixing, listed, rare, shared
from .printable import printable, printable_name
from .status import CLEAN, ERROR
from .survey import Survey, find, survey


@click.command("check", cls=Command)
@shared
@listed
@click.option("--fix", is_flag=True, help="Mend without asking: gradmend fix --yes.")
@click.option("--diff", is_flag=True, help="Print a patch instead: gradmend diff.")
@click.option("--statistics", is_flag=True, help="Only count, by rule.")
@rare("--add-ignore", metavar="[=REASON]", help="Write a suppression for every finding.")
@rare("--write-baseline", metavar="FILE", help="Write the present findings to FILE, for --baseline.")
@fixing
def command(
    options: Options,
    fix: bool,
    diff: bool,
    statistics: bool,
    add_ignore: str | None,
    write_baseline: str | None,
    how: Fixing,
) -> int:
    """List the mistakes in PATHS (default: the working folder).

    Each with the places that explain it, the reason, and the repair: [*] marks one that can be applied. - reads
    standard input.
    """
    if options.show_files or options.show_settings:
        return show(options)
    if diff:
        from .diff import print_diff

        return print_diff(options)
    if fix:
        from .fix import fix_all

        return fix_all(options, how, yes=True)
    result = survey(options, options.talk())
    if add_ignore is not None:
        from .add_ignore import add_ignores

        return add_ignores(result, options, add_ignore, how.allow_dirty)
    if write_baseline is not None:
        return _write_baseline(write_baseline, result, options)
    return _report(result, options, statistics)


def show(options: Options) -> int:
    """Print what ``--show-files`` and ``--show-settings`` ask for."""
    from .terminal import is_terminal

    found, settings = find(options, options.talk())
    if options.show_settings:
        from .config import as_toml

        click.echo(printable(as_toml(settings)))
    else:
        # As ls does: names for programs as they are, for a terminal without what it would obey.
        shown = is_terminal(sys.stdout)
        for file in found.files:
            click.echo(printable_name(file.path) if shown else os.fsencode(file.path))
    return ERROR if found.errors else CLEAN


def _write_baseline(path: str, result: Survey, options: Options) -> int:
    from .baseline import as_text
    from .output import output

    output([as_text(result, path)], options._replace(output_file=path))
    options.talk().say(f"Wrote {counted(len(sorted_findings(result)), 'finding')} to {path}.")
    return ERROR if result.failed else CLEAN


def _report(result: Survey, options: Options, statistics: bool) -> int:
    from .output import output

    findings = sorted_findings(result)
    name = options.output_format or result.settings.output_format
    if statistics:
        from .summary import statistics_lines

        output(statistics_lines(findings, name), options)
    elif findings or name not in ("full", "concise"):
        from .report import render

        output(render(name, listing(result, findings, options)), options)
    sum_up(findings, result, options, options.talk())
    return exit_status(findings, result, options)
