"""What a repair would change, as a few lines of diff beside their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from gradmend.cli.printable import printable, printable_name
from gradmend.cli.run import spliced
from gradmend.cli.terminal import Paint

from .texts import Texts

if TYPE_CHECKING:
    from gradmend.codemods.finding import Repair

CONTEXT = 1


def preview(repair: Repair, texts: Texts, paint: Paint, gutter: int, context: int = CONTEXT) -> Iterator[str]:
    """The lines that ``repair`` changes with ``context`` lines around; each piece is one line with its end."""
    cells = sorted({(edit.filename, edit.cell) for edit in repair.edits}, key=lambda key: (key[0], key[1] or 0))
    bar = paint(" " * gutter + " |", "blue", bold=True) + "\n"
    for filename, cell in cells:
        before = texts.lines(filename, cell)
        edits = [edit for edit in repair.edits if (edit.filename, edit.cell) == (filename, cell)]
        after = spliced("\n".join(before), edits).split("\n")
        if before[-1] == after[-1] == "":
            # After the last line end there is no line.
            before, after = before[:-1], after[:-1]
        if len(cells) > 1:
            place = printable_name(filename) + (f" cell {cell}" if cell is not None else "")
            yield f"{paint(' ' * gutter + '-->', 'blue', bold=True)} {place}\n"
        yield bar
        for index, group in enumerate(SequenceMatcher(None, before, after, False).get_grouped_opcodes(context)):
            if index:
                yield paint("...", "blue", bold=True) + "\n"
            yield from _group(group, before, after, paint, gutter)
        yield bar


def _group(
    group: list[tuple[str, int, int, int, int]], before: list[str], after: list[str], paint: Paint, gutter: int
) -> Iterator[str]:
    for tag, old_start, old_stop, new_start, new_stop in group:
        if tag == "equal":
            for row in range(new_start, new_stop):
                number = paint(f"{row + 1:>{gutter}} |", "blue", bold=True)
                yield f"{number} {_show(after[row])}".rstrip() + "\n"
            continue
        for row in range(old_start, old_stop):
            yield paint(f"{'':>{gutter}} - {_show(before[row])}".rstrip(), "red") + "\n"
        for row in range(new_start, new_stop):
            yield paint(f"{row + 1:>{gutter}} + {_show(after[row])}".rstrip(), "green") + "\n"


def _show(line: str) -> str:
    return printable(line.replace("\t", "    "))
