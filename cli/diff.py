"""``gradmend diff``: all repairs as one patch, nothing written."""

from __future__ import annotations

import sys

import click

from .listing import counted
from .options import Command, Options, shared
from .status import CLEAN, ERROR, FINDINGS
from .survey import survey


@click.command("diff", cls=Command)
@shared
def command(options: Options) -> int:
    """Print the repairs of PATHS as one patch and write nothing.

    `git apply` and `patch -p1` take it. Exit status 0 if there is none, 1 if there is.
    """
    if options.show_files or options.show_settings:
        from .check import show

        return show(options)
    return print_diff(options)


def print_diff(options: Options) -> int:
    """Print the patch and give the exit status."""
    from .across import distinct
    from .output import output, output_bytes
    from .patch import changes_of, patch, shown_patch
    from .terminal import is_terminal, page, wants_color

    talk = options.talk()
    result = survey(options, talk, mend=True)
    changes = changes_of(result.outcomes)
    color = wants_color(options.color)
    if options.output_file is None and is_terminal(sys.stdout):
        page(shown_patch(changes, color), color)
    elif options.output_file is None and color:
        output([shown_patch(changes, color)], options)
    else:
        output_bytes(patch(changes), options)
    applied = len(distinct(finding for outcome in result.outcomes for finding in outcome.applied))
    left = sum(len(outcome.findings) for outcome in result.outcomes)
    if changes:
        talk.say(f"Would mend {counted(applied, 'finding')} in {counted(len(changes), 'file')}.")
    if left:
        talk.say(f"Would leave {counted(left, 'finding')}; `gradmend check` shows them.")
    if result.failed:
        return ERROR
    return FINDINGS if changes and not options.exit_zero else CLEAN
