"""Everything that asks what kind of terminal this is: colour, width, the pager, the talk on stderr."""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click

from .printable import printable

COLORS = ("auto", "always", "never")


def wants_color(choice: str, stream: TextIO | None = None) -> bool:
    """Whether to colour what goes to ``stream`` (stdout): the option, NO_COLOR, FORCE_COLOR, then the terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") != "0":
        return True
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal; False for one that is closed or was replaced."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def width() -> int:
    """The columns of the terminal, 80 where there is none."""
    import shutil

    return shutil.get_terminal_size().columns


class Paint:
    """Colours for text; without colour it gives the text back."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, fg: str | None = None, bold: bool = False, dim: bool = False) -> str:
        if not self.color or not text:
            return text
        return click.style(text, fg=fg, bold=bold or None, dim=dim or None)

    def diff(self, text: str) -> str:
        """A unified diff, its lines coloured by what they do."""
        if not self.color:
            return text
        from pygments import highlight
        from pygments.formatters import TerminalFormatter
        from pygments.lexers import DiffLexer

        coloured: str = highlight(text, DiffLexer(stripnl=False, ensurenl=False), TerminalFormatter())
        return coloured


class Talk:
    """What is said to people, on stderr: stdout carries data only."""

    def __init__(self, quiet: bool = False, color: str = "auto") -> None:
        self.quiet = quiet
        self.paint = Paint(wants_color(color, sys.stderr))

    def say(self, text: str = "") -> None:
        """News; left out when quiet."""
        if not self.quiet:
            self._write(printable(text))

    def warn(self, text: str) -> None:
        """What the user should know and can live with; left out when quiet."""
        if not self.quiet:
            self._write(f"{self.paint('warning', 'yellow', bold=True)}: {printable(text)}")

    def error(self, text: str) -> None:
        """What could not be done; never left out."""
        self._write(f"{self.paint('error', 'red', bold=True)}: {printable(text)}")

    def _write(self, text: str) -> None:
        click.echo(text, err=True, color=self.paint.color)


def page(text: str, color: bool) -> None:
    """Print ``text`` on the terminal, through the user's pager where it is longer than the screen."""
    import shutil

    if text.count("\n") < shutil.get_terminal_size().lines - 1:
        click.echo(text, nl=False, color=color)
        return
    # As git does: leave at once what fits, pass colours through, leave the text on the screen.
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(text, color=color)
