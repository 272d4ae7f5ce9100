"""Single keys from the terminal, as names: ``y``, ``tab``, ``enter``, ``down``.

The terminal gives keys one by one for as long as the review asks, so that keys typed ahead are not lost; for the editor
and for a line of text it is as it was before. Ctrl-C stays a signal.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x1b[Z": "backtab",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x04": "end",
    "": "end",
}
"""``end`` is Ctrl-D, and a terminal that is gone."""
ESCAPE_WAIT = 0.05
"""Seconds in which the rest of an escape sequence follows; alone, the key is Escape."""


class Keys:
    """The keyboard. Use as a context; ``lines`` reads whole lines instead, for screen readers and odd terminals."""

    def __init__(self, lines: bool = False) -> None:
        self._lines = lines
        self._before: Any = None
        self._on_continue: Any = None

    def __enter__(self) -> Keys:
        if not self._lines:
            self._single()
            if hasattr(signal, "SIGCONT"):
                # Whoever stopped us with Ctrl-Z has had the terminal in the meantime.
                self._on_continue = signal.signal(signal.SIGCONT, lambda *_: self._single_again())
        return self

    def __exit__(self, *_: object) -> None:
        self._cooked()
        if self._on_continue is not None:
            signal.signal(signal.SIGCONT, self._on_continue)

    def read(self) -> str:
        """The next key's name. Raises KeyboardInterrupt."""
        if self._lines:
            line = sys.stdin.readline()
            return (line.strip().lower() or "enter") if line else "end"
        if self._before is None:
            return self._read_elsewhere()
        key = self._byte()
        if key == "\x1b":
            while key in ("\x1b", "\x1b[", "\x1bO") and self._follows():
                key += self._byte()
        return NAMES.get(key, key)

    def line(self) -> str:
        """A line of text, edited as the terminal lets one."""
        with self.paused():
            return sys.stdin.readline().strip()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The terminal as it was before, for another program or a whole line."""
        self._cooked()
        try:
            yield
        finally:
            if not self._lines:
                self._single()

    def _single(self) -> None:
        try:
            import termios
            import tty
        except ImportError:  # Windows
            return
        handle = sys.stdin.fileno()
        with suppress(termios.error):
            self._before = termios.tcgetattr(handle)
            tty.setcbreak(handle, termios.TCSADRAIN)

    def _single_again(self) -> None:
        if self._before is not None:
            import termios
            import tty

            with suppress(termios.error):
                tty.setcbreak(sys.stdin.fileno(), termios.TCSADRAIN)

    def _cooked(self) -> None:
        if self._before is not None:
            import termios

            with suppress(termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
            self._before = None

    def _byte(self) -> str:
        try:
            raw = os.read(sys.stdin.fileno(), 1)
            while raw and raw[0] >= 0xC0 and len(raw) < 4:
                try:
                    return raw.decode()
                except UnicodeDecodeError:
                    raw += os.read(sys.stdin.fileno(), 1)
        except OSError:
            return ""
        return raw.decode(errors="replace")

    def _follows(self) -> bool:
        import select

        return bool(select.select([sys.stdin.fileno()], [], [], ESCAPE_WAIT)[0])

    def _read_elsewhere(self) -> str:
        import click

        try:
            key = click.getchar()
        except EOFError:
            return "end"
        return NAMES.get(key, key)
