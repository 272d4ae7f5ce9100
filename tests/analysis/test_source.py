"""A file as text and back: encodings, line ends, spans, and not one byte touched outside an edit."""

from __future__ import annotations

import ast
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradmend.codemods.analysis.source import Source, SourceError
from gradmend.codemods.finding import Span
from gradmend.codemods.rewrite.builders import append_call
from gradmend.codemods.rewrite.edits import EditConflict, EditRefused, LineTable, TextEdit

LINE_ENDS = [b"\n", b"\r\n", b"\r"]


def first_name(source: Source, name: str) -> ast.Name:
    return next(node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == name)


@pytest.mark.parametrize("end", LINE_ENDS)
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_byte_order_mark_stay(end: bytes, bom: bytes, last: bool) -> None:
    raw = bom + end.join([b"x = '\xc3\xa9'", b"", b"def f():", b"\treturn x"]) + (end if last else b"")
    source = Source.from_bytes(raw, "a.py")
    assert source.text == "x = 'é'\n\ndef f():\n\treturn x" + ("\n" if last else "")
    assert source.apply([]) == raw
    value = source.tree.body[1].body[0].value  # type: ignore[attr-defined]
    edits = [*append_call(source, value, ".detach()"), TextEdit(Span(1, 8, 1, 8), "\ny = 1")]
    changed = raw.replace(b"return x", b"return x.detach()").replace(b"\xc3\xa9'", b"\xc3\xa9'" + end + b"y = 1")
    assert source.apply(edits) == changed


def test_mixed_line_ends_stay_and_a_new_line_ends_like_its_neighbour() -> None:
    raw = b"a\r\nb\nc\rd"
    edits = [TextEdit(Span(row, 2, row, 2), "\nnew") for row in (1, 2, 3, 4)]
    assert Source.from_bytes(raw, "a.py").apply(edits) == b"a\r\nnew\r\nb\nnew\nc\rnew\rd\r\nnew"


@pytest.mark.parametrize("separator", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028"])
def test_only_what_ends_a_line_for_python_ends_a_line(separator: str) -> None:
    source = Source.from_text(f"s = '{separator}'; x = 1\ny = x\n")
    assert source.span(first_name(source, "y")) == Span(2, 1, 2, 2)
    assert source.segment(first_name(source, "x")) == "x"


@pytest.mark.parametrize("line", [b"# -*- coding: latin-1 -*-", b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :"])
def test_a_coding_line_is_obeyed_both_ways(line: bytes) -> None:
    raw = line + b"\nx = '\xe9'  # \xdf\ny = x\n"
    source = Source.from_bytes(raw, "a.py")
    assert "x = 'é'  # ß" in source.text
    row = source.text.count("\n")
    assert source.apply([TextEdit(Span(row, 6, row, 6), ".x()")]) == raw.replace(b"y = x", b"y = x.x()")
    with pytest.raises(SourceError, match="cannot be written in"):
        source.apply([TextEdit(Span(row, 6, row, 6), "  # \u4f60")])


def test_an_encoding_that_does_not_come_back_is_not_written() -> None:
    raw = b"# coding: utf-7\nx = '+AGE-'\ny = 1\n"
    source = Source.from_bytes(raw, "a.py")
    with pytest.raises(SourceError, match="without changing other bytes"):
        source.apply([TextEdit(Span(3, 5, 3, 6), "2")])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"x = 1\ny = '\xe9'\n", "line 2 is not UTF-8"),
        (b"x = \0\n", "NUL"),
        ("x = 1\n".encode("utf-16"), "UTF-16"),
        (b"# coding: utf-8\nx = '\xe9'\n", "line 2 is not UTF-8"),
        (b"# coding: ascii\nx = '\xe9'\n", "line 2 is not ascii, which the file says it is"),
        (b"# coding: nonsense\n", "unknown encoding: nonsense"),
        (b"# coding: rot13\n", "no text encoding"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "byte order mark"),
    ],
)
def test_what_is_no_text_is_said_in_one_line(raw: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        Source.from_bytes(raw, "a.py")
    assert caught.value.filename == "a.py"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\nif x\n", "line 2 does not parse: expected ':'"),
        ("print 'a'\n", "line 1 .*looks like Python 2"),
        ("try: pass\nexcept A, b: pass\n", "line 2 .*looks like Python 2"),
        ("x = " + "(" * 1000 + ")" * 1000, "too many nested parentheses"),
        ("x = " + "-" * 100_000 + "1", "nested too deeply"),
        ("x = '\ud800'", "does not parse"),
    ],
)
def test_what_does_not_parse_is_said_in_one_line(code: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        _ = Source.from_text(code).tree
    assert "\n" not in str(caught.value)


def test_syntax_warnings_are_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    _ = Source.from_text("x = '\\d'\nassert (x, 1)\n").tree
    assert not recwarn.list


def test_an_empty_file_is_an_empty_module() -> None:
    source = Source.from_bytes(b"", "a.py")
    assert source.tree.body == []
    assert source.apply([]) == b""


def test_text_comes_back_as_text() -> None:
    source = Source.from_text("\ufeffx = 1\r\n")
    assert source.text == "x = 1\n"
    assert source.apply_text([TextEdit(Span(1, 5, 1, 6), "2")]) == "\ufeffx = 2\r\n"


def test_spans_count_characters() -> None:
    source = Source.from_text("é = '𝒙ß'; y = f(é,\n  'ä', z)\n")
    assert source.span(first_name(source, "y")) == Span(1, 11, 1, 12)
    assert source.segment(first_name(source, "z")) == "z"
    assert source.span(source.tree.body[1]) == Span(1, 11, 2, 10)


def test_spans_behind_a_form_feed_and_a_continued_line() -> None:
    source = Source.from_text("if a:\n    b\n\x0c    c = d + \\\n  e\n")
    assert source.segment(first_name(source, "c")) == "c"
    assert source.segment(first_name(source, "e")) == "e"
    assert source.indentation(3) == "    "


def test_outside_notebooks_there_are_no_cells() -> None:
    source = Source.from_text("x = 1\n")
    span = Span(1, 1, 1, 2)
    assert source.locate(span) == (None, span)
    assert source.unlocate(None, span) == span
    assert source.cells == ()


def test_parents() -> None:
    source = Source.from_text("x = f(y)\n")
    call = source.parent(first_name(source, "y"))
    assert isinstance(call, ast.Call)
    assert source.parent(call) is source.tree.body[0]
    assert source.parent(source.tree) is None


FSTRINGS = [
    'f"{y} {y}"',
    'f"é {y!r:>{w}} {y}"',
    'f"""\n{y}\n {y}"""',
    '("a" f"{y}"\n f"{y.z}")',
    "f\"{f'{y}'} {y}\"",
    'f"{{y}} {y}"',
]


@pytest.mark.parametrize("code", FSTRINGS)
def test_an_edit_in_an_fstring_is_right_or_refused(code: str) -> None:
    source = Source.from_text(f"print({code})\n")
    for index, node in enumerate(ast.walk(source.tree)):
        if not isinstance(node, ast.Name) or node.id != "y":
            continue
        try:
            edits = append_call(source, node, "[0]")
        except EditRefused:
            assert sys.version_info < (3, 12)
            continue
        expected = ast.parse(source.text)
        twin = list(ast.walk(expected))[index]
        assert isinstance(twin, ast.Name)
        # The name itself becomes the new value, so that the tree need not be taken apart.
        twin.id = "y[0]"
        assert ast.unparse(ast.parse(source.apply(edits))) == ast.unparse(expected)


LINES = st.lists(st.text("ab =\t\x0c'é#", max_size=6), min_size=1, max_size=6)


@given(LINES, st.lists(st.sampled_from(LINE_ENDS), min_size=6, max_size=6), st.booleans(), st.data())
def test_outside_an_edit_every_byte_stays(lines: list[str], ends: list[bytes], bom: bool, data: st.DataObject) -> None:
    body = b"".join(line.encode() + end for line, end in zip(lines, ends, strict=False))
    raw = (b"\xef\xbb\xbf" if bom else b"") + body
    if data.draw(st.booleans()):
        raw = raw.rstrip(b"\r\n")
    source = Source.from_bytes(raw, "a.py")
    table = LineTable(source.text)
    borders = sorted(data.draw(st.lists(st.integers(0, len(source.text)), min_size=2, max_size=6)))
    edits = [TextEdit(table.span(*pair), "<new>") for pair in zip(borders[::2], borders[1::2], strict=False)]
    try:
        changed = source.apply(edits)
    except EditConflict:
        return
    place = 0
    untouched = source.text.split("\n")
    for row, line in enumerate(untouched, start=1):
        if all(row < edit.span.row or row > edit.span.end_row for edit in edits):
            place = changed.index(line.encode(), place) + len(line.encode())
    again = Source.from_bytes(changed, "a.py")
    expected = source.text
    for start, end in reversed([table.offsets(edit.span) for edit in dict.fromkeys(edits)]):
        expected = expected[:start] + "<new>" + expected[end:]
    assert again.text == expected
