"""What a repair would change, as a few lines of diff beside their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from gradmend.cli.printable import printable, printable_name
from gradmend.cli.run import spliced
from gradmend.cli.terminal import Paint

from .texts import Texts

if TYPE_CHECKING:
    from gradmend.codemods.finding import Repair

CONTEXT = 1


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the difference."""

    sign: str
    """Space for a line that stays, ``-`` and ``+``; ``.`` for a stretch left out."""
    row: int
    """In the new text; in the old one for ``-``."""
    text: str


def difference(repair: Repair, texts: Texts, context: int) -> Iterator[tuple[str, int | None, list[Line]]]:
    """File, cell and lines for each text that ``repair`` changes."""
    for filename, cell in sorted(
        {(edit.filename, edit.cell) for edit in repair.edits}, key=lambda key: (key[0], key[1] or 0)
    ):
        before = texts.lines(filename, cell)
        edits = [edit for edit in repair.edits if (edit.filename, edit.cell) == (filename, cell)]
        after = spliced("\n".join(before), edits).split("\n")
        if before[-1] == after[-1] == "":
            # After the last line end there is no line.
            before, after = before[:-1], after[:-1]
        lines: list[Line] = []
        for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
            if lines:
                lines.append(Line(".", 0, ""))
            for tag, start, stop, new_start, new_stop in group:
                if tag == "equal":
                    lines += [Line(" ", row + 1, after[row]) for row in range(new_start, new_stop)]
                else:
                    lines += [Line("-", row + 1, before[row]) for row in range(start, stop)]
                    lines += [Line("+", row + 1, after[row]) for row in range(new_start, new_stop)]
        yield filename, cell, lines


def preview(repair: Repair, texts: Texts, paint: Paint, gutter: int, context: int = CONTEXT) -> Iterator[str]:
    """The lines that ``repair`` changes with ``context`` lines around; each piece is one line with its end."""
    bar = paint(" " * gutter + " |", "blue", bold=True) + "\n"
    changed = list(difference(repair, texts, context))
    for filename, cell, lines in changed:
        if len(changed) > 1:
            place = printable_name(filename) + (f" cell {cell}" if cell is not None else "")
            yield f"{paint(' ' * gutter + '-->', 'blue', bold=True)} {place}\n"
        yield bar
        for line in lines:
            text = printable(line.text.replace("\t", "    "))
            if line.sign == ".":
                yield paint("...", "blue", bold=True) + "\n"
            elif line.sign == " ":
                yield f"{paint(f'{line.row:>{gutter}} |', 'blue', bold=True)} {text}".rstrip() + "\n"
            else:
                number = "" if line.sign == "-" else str(line.row)
                colour = "red" if line.sign == "-" else "green"
                yield paint(f"{number:>{gutter}} {line.sign} {text}".rstrip(), colour) + "\n"
        yield bar
