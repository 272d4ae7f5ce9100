"""The questions about one file: what each key does."""

from __future__ import annotations

import os
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import click

from gradmend.codemods.finding import Edit, Span

from .add_ignore import suppressed
from .editor import EditorError, edited
from .listing import counted
from .printable import printable
from .review_file import FileReview, RefusedError
from .review_screen import HELP, prompt, question, repairs_of
from .run import apply_edits

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

    from .keys import Keys
    from .review_screen import Look

MOVES = {"j": 1, "down": 1, "k": -1, "up": -1}
LEAVE = "d"
QUIT = "q"


class Questions:
    """Asks about one file until all is decided or the user leaves."""

    def __init__(self, review: FileReview, keys: Keys, look: Look, position: Callable[[FileReview], str]) -> None:
        """``position`` says which finding of how many this is."""
        self._review = review
        self._keys = keys
        self._look = look
        self._position = position
        self._choice = 0
        self._draft: bytes | None = None

    def ask(self) -> bool:
        """Ask; False where the user quits. Raises KeyboardInterrupt."""
        shown: Finding | None = None
        while (finding := self._review.current) is not None:
            if finding is not shown:
                self._choice, self._draft, shown = 0, None, finding
                self._show()
            key = self._read(finding)
            if key in (LEAVE, QUIT):
                return key == LEAVE
            self._answer(key, finding)
        return True

    def _show(self) -> None:
        for line in question(self._review, self._position(self._review), self._choice, self._look):
            click.echo(line, nl=False, color=self._look.paint.color)

    def _read(self, finding: Finding) -> str:
        click.echo(prompt(finding, self._choice, self._look), nl=False, color=self._look.paint.color)
        key = self._keys.read()
        repairs = repairs_of(finding)
        if key == "enter":
            key = "y" if repairs and repairs[self._choice].safety.value == "safe" else "n"
        elif key == "end":
            key = QUIT
        if not self._look.plain:
            click.echo(key if key.isprintable() and len(key) == 1 else "")
        return key

    def _answer(self, key: str, finding: Finding) -> None:
        repairs = repairs_of(finding)
        if key in ("y", "a"):
            if not repairs:
                self._tell("There is no repair to apply here; n leaves it, e edits, s suppresses.")
            else:
                self._apply(finding, every=key == "a")
        elif key == "n":
            self._review.skip()
        elif key == "e":
            self._edit(finding)
        elif key == "s":
            try:
                self._suppress(finding)
            except RefusedError as refusal:
                self._tell(f"Not suppressed: {refusal}")
        elif key == "u":
            if not self._review.undo():
                self._tell("Nothing to undo in this file.")
        elif key in MOVES:
            if not self._review.move(MOVES[key]):
                self._tell("That was the last finding of this file." if MOVES[key] > 0 else "This is the first one.")
        elif key in ("tab", "backtab", "t") and len(repairs) > 1:
            self._choice = (self._choice + (-1 if key == "backtab" else 1)) % len(repairs)
            self._show()
        else:
            self._tell(HELP)

    def _apply(self, finding: Finding, every: bool) -> None:
        unsafe = repairs_of(finding)[self._choice].safety.value == "unsafe"
        count = 0
        try:
            while self._review.current is not None:
                repairs = repairs_of(self._review.current)
                self._review.apply(repairs[min(self._choice, len(repairs) - 1)])
                count += 1
                if not every or not self._review.go_to(lambda later: _is_alike(later, finding.code, unsafe)):
                    break
        except RefusedError as refusal:
            self._tell(f"Not applied: {refusal}")
        if every and count:
            self._tell(f"Applied {counted(count, 'repair')}.")

    def _suppress(self, finding: Finding) -> None:
        click.echo("Reason (Enter for none): ", nl=False)
        reason = self._keys.line()
        text = suppressed(self._review.path, self._review.state.text, [finding, *self._review.together()], reason)
        if text is None:
            self._tell("No suppression can be placed here.")
            return
        self._review.replace(text, "suppressed")

    def _edit(self, finding: Finding) -> None:
        before = len(self._review.state.findings)
        try:
            with self._keys.paused():
                text = self._edited(finding)
            if text == self._review.state.text:
                self._tell("Nothing was changed.")
                return
            self._draft = text
            self._review.replace(text, "edited")
        except EditorError as error:
            self._tell(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        except RefusedError as refusal:
            self._tell(f"Your text {refusal}. e opens it again, any other answer drops it.")
        else:
            self._tell(f"Analysed again: {counted(before, 'finding')} before, {len(self._review.state.findings)} now.")

    def _edited(self, finding: Finding) -> bytes:
        path, text = self._review.path, self._review.state.text
        if finding.cell is None:
            return edited(self._draft or text, path, finding.span.row)
        # The cell alone: nobody wants to edit a notebook's JSON.
        lines = self._review.texts.lines(path, finding.cell)
        name = f"{os.path.basename(path).removesuffix('.ipynb')}-cell-{finding.cell}.py"
        new = edited("\n".join(lines).encode(), name, finding.span.row).decode(errors="replace").split("\n")
        edits = [
            _lines_replaced(path, finding.cell, lines, start, stop, new[new_start:new_stop])
            for tag, start, stop, new_start, new_stop in SequenceMatcher(None, lines, new, autojunk=False).get_opcodes()
            if tag != "equal"
        ]
        try:
            return apply_edits(text, path, edits)
        except Exception as error:
            raise RefusedError(f"cannot be put back into the cell: {error}") from None

    def _tell(self, text: str) -> None:
        click.echo(printable(text))


def _is_alike(finding: Finding, code: str, unsafe: bool) -> bool:
    """Whether ``a`` means this one too: never an unsafe repair that was not asked about."""
    repair = finding.repair
    return finding.code == code and repair is not None and (unsafe or repair.safety.value == "safe")


def _lines_replaced(path: str, cell: int, lines: list[str], start: int, stop: int, new: list[str]) -> Edit:
    """The edit that puts ``new`` in the place of the lines from ``start`` (from 0) to before ``stop``."""
    if stop < len(lines):
        span, content = Span(start + 1, 1, stop + 1, 1), "".join(f"{line}\n" for line in new)
    elif start == 0 or (start < stop and new):
        span, content = Span(start + 1, 1, stop, len(lines[stop - 1]) + 1), "\n".join(new)
    else:
        # Nothing follows whose line end could serve: from the end of the line before.
        span = Span(start, len(lines[start - 1]) + 1, stop, len(lines[stop - 1]) + 1)
        content = "".join(f"\n{line}" for line in new)
    return Edit(path, span, content, cell)
