"""A bar on the terminal when the work takes longer than a second; nothing in pipes."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .terminal import Talk, is_terminal

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

PATIENCE = 1.0
"""Seconds before a bar is worth the flicker."""


class Progress:
    """Counts files; shows a bar once ``PATIENCE`` is over."""

    def __init__(self, length: int, talk: Talk) -> None:
        self._length = length
        self._wanted = length > 1 and not talk.quiet and is_terminal(sys.stderr)
        self._start = time.monotonic()
        self._done = 0
        self._bar: ProgressBar[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)
            # The bar has done its work; the screen belongs to the findings.
            sys.stderr.write("\x1b[1A\x1b[2K")
            sys.stderr.flush()

    def advance(self, count: int) -> None:
        """``count`` more files are done."""
        self._done += count
        if not self._wanted or time.monotonic() - self._start < PATIENCE:
            return
        if self._bar is None:
            import click

            self._bar = click.progressbar(length=self._length, label="Reading", show_pos=True, file=sys.stderr)
            self._bar.__enter__()
            count = self._done
        self._bar.update(count)
