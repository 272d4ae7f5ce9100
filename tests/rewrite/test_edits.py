"""The order and the overlap of edits, and where positions go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradmend.codemods.finding import Span
from gradmend.codemods.rewrite.edits import EditConflict, LineTable, PositionMap, TextEdit, splice

TEXTS = st.text("ab\n é", max_size=40)


def edit(text: str, start: int, end: int, content: str) -> TextEdit:
    return TextEdit(LineTable(text).span(start, end), content)


@st.composite
def texts_with_edits(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]]]:
    text = draw(TEXTS)
    borders = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pairs = list(zip(borders[::2], borders[1::2], strict=False))
    return text, [(start, end, draw(st.text("x\n", max_size=4))) for start, end in dict(pairs).items()]


@given(texts_with_edits(), st.randoms())
def test_splice_does_what_slicing_from_the_end_does(
    case: tuple[str, list[tuple[int, int, str]]], random: object
) -> None:
    text, changes = case
    expected = text
    for start, end, content in sorted(changes, reverse=True):
        expected = expected[:start] + content + expected[end:]
    edits = [edit(text, *change) for change in changes]
    random.shuffle(edits)  # type: ignore[attr-defined]
    assert splice(text, edits) == expected
    assert splice(text, [*edits, *edits]) == expected


@given(texts_with_edits())
def test_what_stays_is_found_where_the_map_says(case: tuple[str, list[tuple[int, int, str]]]) -> None:
    text, changes = case
    edits = [edit(text, *change) for change in changes]
    result = splice(text, edits)
    before, after = LineTable(text), LineTable(result)
    positions = PositionMap(edits)
    for offset in range(len(text) + 1):
        new = after.offset(*positions.map(*before.position(offset)))
        covering = [change for change in changes if change[0] <= offset < change[1]]
        shift = sum(len(content) - (end - start) for start, end, content in changes if end <= offset)
        if covering:
            start = covering[0][0]
            inserted = sum(len(content) - (end - low) for low, end, content in changes if end <= start)
            assert new == start + inserted
        else:
            assert new == offset + shift


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, 3), (1, 2)), ((0, 3), (2, 4)), ((0, 3), (0, 3)), ((0, 3), (1, 1)), ((0, 3), (0, 2))],
)
def test_overlap_is_a_conflict(first: tuple[int, int], second: tuple[int, int]) -> None:
    edits = [edit("abcdef", *first, "x"), edit("abcdef", *second, "y")]
    with pytest.raises(EditConflict, match="two different edits"):
        splice("abcdef", edits)
    with pytest.raises(EditConflict):
        PositionMap(edits)


def test_insertions_at_the_borders_of_a_replacement_stay_outside() -> None:
    edits = [edit("abc", 2, 2, ">"), edit("abc", 1, 2, "B"), edit("abc", 1, 1, "<")]
    assert splice("abc", edits) == "a<B>c"


def test_insertions_at_one_place_keep_the_order_given() -> None:
    assert splice("ab", [edit("ab", 1, 1, "2"), edit("ab", 1, 1, "1"), edit("ab", 1, 1, "2")]) == "a21b"


def test_an_edit_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(EditConflict, match="ends before it starts"):
        splice("ab\n", [TextEdit(Span(1, 3, 1, 1), "")])


@pytest.mark.parametrize("span", [Span(0, 1, 1, 1), Span(1, 1, 4, 1), Span(1, 1, 1, 4), Span(1, 0, 1, 1)])
def test_a_span_outside_the_text_is_an_error(span: Span) -> None:
    with pytest.raises((IndexError, EditConflict)):
        splice("ab\ncd\n", [TextEdit(span, "")])
