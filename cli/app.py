"""The ``gradmend`` command: a group whose sub-commands are imported only when they are called."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from .status import ERROR, INTERRUPTED

COMMANDS: Mapping[str, str] = {
    "check": "List the mistakes, with the reason and the repair.",
    "diff": "Print the repairs as one patch; write nothing.",
    "fix": "Show the patch, ask once, apply it.",
    "review": "Decide on each repair, one question at a time.",
    "explain": "Print a rule's page.",
    "rules": "List the rules.",
    "completion": "Print the shell's completion script.",
}


class LazyCommands(click.Group):
    """A group that knows its commands' names and one-liners without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f".{cmd_name}", __package__).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in COMMANDS and not word.startswith("-"):
            from difflib import get_close_matches

            if os.path.exists(word):
                ctx.fail(f"{word!r} is a path, not a command: gradmend check {word}")
            close = get_close_matches(word, COMMANDS, 1)
            ctx.fail(f"no command {word!r}." + (f" Did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run, and leave with the project's exit statuses instead of click's (its Ctrl-C is 1, ours 130)."""
        try:
            status = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort:
            click.echo("\nInterrupted.", err=True)
            status = INTERRUPTED
        except click.ClickException as error:
            error.show()
            status = ERROR
        except BrokenPipeError:
            # The reader, `head` say, has what it wanted.
            _give_up_on_stdout()
            status = 141
        except OSError as error:
            # Nothing but the output is left to be refused here: no room on the disk it goes to, say.
            _give_up_on_stdout()
            click.ClickException(f"the output cannot be written: {(error.strerror or str(error)).lower()}").show()
            status = ERROR
        sys.exit(status)


def _give_up_on_stdout() -> None:
    """Python must not try to flush what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


EPILOG = """\b
Start with:
  gradmend check .   what is wrong, and why
  gradmend fix .     mend it
Exit status: 0 nothing found (or all mended), 1 findings, 2 an error."""


@click.group(
    "gradmend",
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
    no_args_is_help=True,
    subcommand_metavar="COMMAND [PATHS]…",
)
@click.version_option(None, "-V", "--version", package_name="gradmend", message="%(prog)s %(version)s")
def app() -> None:
    """Find and repair autograd-graph mistakes in PyTorch training code.

    The ones behind "backward through the graph a second time" and behind memory that climbs. Your code is never run.
    """
