from __future__ import annotations

from gradmend.cli.report.frame import Mark, frame
from gradmend.cli.terminal import Paint
from gradmend.codemods.finding import Span


def draw(text: str, *marks: tuple[int, int, int, int, str, bool], width: int = 160) -> str:
    made = [Mark(Span(row, column, end_row, end), label, main) for row, column, end_row, end, label, main in marks]
    return "".join(frame(text.split("\n"), made, Paint(False), 2, width))


def test_two_marks_on_one_line_have_a_line_each() -> None:
    assert draw("f(a, b)\n", (1, 3, 1, 4, "first", True), (1, 6, 1, 7, "second", False)) == (
        "   |\n 1 | f(a, b)\n   |   ^ first\n   |      - second\n   |\n"
    )


def test_far_apart_lines_are_parted_and_a_gap_of_one_is_shown() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 21))
    drawn = draw(text, (2, 1, 2, 5, "a", False), (6, 1, 6, 5, "b", True), (15, 1, 15, 5, "c", False))
    numbers = [line.split("|")[0].strip() for line in drawn.splitlines()]
    assert [number for number in numbers if number] == [*map(str, range(1, 8)), "...", "14", "15", "16"]


def test_stretch_over_lines_is_marked_on_its_first() -> None:
    assert "   | ^^ here (to line 3)\n" in draw("f(\n  a,\n)\n", (1, 1, 3, 2, "here", True))


def test_tabs_and_wide_characters_do_not_shift_the_mark() -> None:
    assert " 1 |     x = a\n   |         ^ here\n" in draw("\tx = a\n", (1, 6, 1, 7, "here", True))
    assert " 1 | '日本' + a\n   |          ^ here\n" in draw("'日本' + a\n", (1, 8, 1, 9, "here", True))


def test_long_line_is_cut() -> None:
    drawn = draw("x" * 500, (1, 1, 1, 501, "here", True), width=40)
    assert max(len(line) for line in drawn.splitlines()) <= 41 + len(" here")
    drawn = draw("x" * 500, (1, 400, 1, 410, "far", True), width=40)
    assert drawn.endswith("^\n   |            far\n   |\n")


def test_escape_sequences_are_spelled_and_counted() -> None:
    assert " 1 | '\\x1b[2J' + a\n   |             ^ here\n" in draw("'\x1b[2J' + a\n", (1, 10, 1, 11, "here", True))


def test_rows_that_are_not_there_do_no_harm() -> None:
    assert draw("", (5, 1, 5, 2, "gone", True)) == "   |\n   |\n"
