"""Notebooks: one program out of the cells, and edits that change nothing but the source they mean."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gradmend.codemods.analysis.json_text import find_texts
from gradmend.codemods.analysis.source import Source, SourceError
from gradmend.codemods.finding import Span
from gradmend.codemods.rewrite.builders import append_call, insert_after, insert_before, remove_statement
from gradmend.codemods.rewrite.edits import EditRefused, LineTable, TextEdit, splice

JsonSource = str | list[str]


def cell(source: JsonSource, kind: str = "code") -> dict[str, object]:
    return {"cell_type": kind, "metadata": {}, "outputs": [{"text": ['}]"\\u00e9']}], "source": source}


def notebook(*cells: dict[str, object], **more: object) -> dict[str, object]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


def source_of(document: object, indent: int | None = 1, ascii_only: bool = False) -> Source:
    return Source.from_bytes(json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode(), "n.ipynb")


def sources_in(raw: bytes) -> list[str]:
    return ["".join(member["source"]) for member in json.loads(raw)["cells"]]


def test_cells_are_one_program() -> None:
    source = source_of(
        notebook(cell("# Title", "markdown"), cell(["a = 1\n", "b = 2"]), cell("x", "raw"), cell("c = é\n"))
    )
    assert source.text == "a = 1\nb = 2\nc = é\n"
    assert source.is_notebook
    assert source.cells == ((2, "a = 1\nb = 2"), (4, "c = é\n"))
    assert source.locate(Span(2, 1, 2, 2)) == (2, Span(2, 1, 2, 2))
    assert source.locate(Span(3, 5, 3, 6)) == (4, Span(1, 5, 1, 6))
    assert source.unlocate(4, Span(1, 5, 1, 6)) == Span(3, 5, 3, 6)
    with pytest.raises(KeyError):
        source.unlocate(1, Span(1, 1, 1, 1))


def test_format_3() -> None:
    cells = [
        {"cell_type": "heading", "level": 1, "source": ["x"]},
        {"cell_type": "code", "language": "python", "input": ["h = f(h)\n", "g(h)"], "outputs": []},
        {"cell_type": "code", "language": "R", "input": "x <- 1"},
    ]
    document = {"metadata": {"name": ""}, "nbformat": 3, "worksheets": [{"cells": []}, {"cells": cells}]}
    source = source_of(document)
    assert source.text == "h = f(h)\ng(h)\n"
    assert source.locate(Span(2, 1, 2, 2))[0] == 2
    changed = json.loads(source.apply([TextEdit(Span(1, 9, 1, 9), ".detach()")]))
    assert changed["worksheets"][1]["cells"][1]["input"] == ["h = f(h).detach()\n", "g(h)"]


@pytest.mark.parametrize(
    ("written", "python"),
    [
        ("%matplotlib inline\nx = 1", "\nx = 1\n"),
        ("!pip install \\\n  torch\nx", "\n\nx\n"),
        ('if a:\n    !ls "\n    %cd ..\nx', "if a:\n    pass\n    pass\nx\n"),
        ("x?\n?x.y\nx.*y??\nz", "\n\n\nz\n"),
        ("%time x = f(y)\nz", "x = f(y)\nz\n"),
        ("files = !ls 'a\nx = %sql select (\nz", "files = get_ipython()\nx = get_ipython()\nz\n"),
        ("%%time\n%cd x\ny = 1", "\n\ny = 1\n"),
        ("%%capture out\nx = 1", "\nx = 1\n"),
        ("\n%%bash\nls | grep x\n", "\n\n\n"),
        ("%%html\n<p>", "\n\n"),
        ("x = (a\n% b)", "x = (a\n% b)\n"),
        ("%cd x\ny = '''\n%s\n!a\n''' % (\n%b)", None),
        (
            "%cd x\ny = '''\n%s\n!a\n'''\n%ls (\nz = f(\n'(', # (\n)\n!ls",
            "\ny = '''\n%s\n!a\n'''\n\nz = f(\n'(', # (\n)\n\n",
        ),
        ("await f()", "await f()\n"),
        ("", "\n"),
        ("a\r\n!b\rc", "a\n\nc\n"),
    ],
)
def test_what_only_ipython_understands_is_blanked_row_by_row(written: str, python: str | None) -> None:
    source = source_of(notebook(cell(written)))
    if python is None:
        # What does not parse however it is read is left out.
        assert source.text == "\n" * 6
        assert source.problems
        return
    assert source.text == python
    assert source.problems == ()
    ast.parse(source.text)


def test_a_cell_that_does_not_parse_is_left_out_and_said() -> None:
    cells = [cell("a = 1"), cell(["def f(:\n", "  pass"]), cell("print 'x'"), cell("x = '\ud800'"), cell("b = a")]
    source = source_of(notebook(*cells), ascii_only=True)
    assert source.text == "a = 1\n\n\n\n\nb = a\n"
    assert [problem.split(" (")[0] for problem in source.problems] == [
        f"cell {number} does not parse and is left out" for number in (2, 3, 4)
    ]
    edits = append_call(source, source.tree.body[1].value, ".x()")  # type: ignore[attr-defined]
    assert json.loads(source.apply(edits))["cells"][4]["source"] == "b = a.x()"


@pytest.mark.parametrize(
    ("first", "second"), [("x = (1,", "2)"), ("if x:", "    y"), ("x = 1 \\", "+ 2"), ("'''", "'''")]
)
def test_an_open_cell_does_not_swallow_the_next(first: str, second: str) -> None:
    source = source_of(notebook(cell(first), cell(second), cell("z")))
    assert source.text.rstrip("\n").split("\n")[-1] == "z"
    assert "cell 1" in source.problems[0]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "JSON is broken"),
        (b"[]", "not an object"),
        (b"{}", "neither cells nor worksheets"),
        (b'{"cells": [{"cell_type": "code", "source": 1}]}', "source of cell 1 is not text"),
        (b"[" * 100_000, "nested too deeply|JSON is broken"),
        (b'{"cells": "\xff"}', "not UTF-8"),
        (b"\0", "NUL"),
    ],
)
def test_what_is_no_notebook_is_said(raw: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        Source.from_bytes(raw, "n.ipynb")


@pytest.mark.parametrize("metadata", [{"kernelspec": {"language": "R"}}, {"language_info": {"name": "julia"}}])
def test_a_notebook_in_another_language_has_no_python(metadata: dict[str, object]) -> None:
    document = notebook(cell("x <- (1"), metadata=metadata)
    source = source_of(document)
    assert (source.text, source.problems, source.tree.body) == ("", (), [])


@pytest.mark.parametrize("indent", [None, 1, 4, 0])
def test_only_the_edited_lines_change(indent: int | None) -> None:
    document = notebook(cell(["%cd x\n", "h = f(h)\n", "# é\n", "g(h)"]), cell("k(h)\nm(h)"), name="ü")
    source = source_of(document, indent)
    before = json.dumps(document, indent=indent, ensure_ascii=False)
    loss, _, last = source.tree.body[0], source.tree.body[1], source.tree.body[2]
    edits = [*append_call(source, loss.value, ".detach()"), *insert_after(source, last, ["ä = '\"\\\\'"])]  # type: ignore[attr-defined]
    after = source.apply(edits).decode()
    assert after == before.replace("h = f(h)", "h = f(h).detach()").replace("k(h)", "k(h)\\nä = '\\\"\\\\\\\\'")


def test_each_new_line_is_a_string_of_its_own() -> None:
    source = source_of(notebook(cell(["a\n", "b\n", "c"])))
    first, second, third = source.tree.body

    def lines(edits: tuple[TextEdit, ...]) -> object:
        return json.loads(source.apply(edits))["cells"][0]["source"]

    assert lines(insert_before(source, first, ["x", "y"])) == ["x\n", "y\n", "a\n", "b\n", "c"]
    assert lines(insert_after(source, first, ["x"])) == ["a\n", "x\n", "b\n", "c"]
    assert lines(insert_after(source, third, ["x", "y"])) == ["a\n", "b\n", "c\n", "x\n", "y"]
    assert lines(remove_statement(source, first)) == ["b\n", "c"]
    assert lines(remove_statement(source, second)) == ["a\n", "c"]
    assert lines(remove_statement(source, third)) == ["a\n", "b\n"]
    everything = (*remove_statement(source, first), *remove_statement(source, second), *remove_statement(source, third))
    assert lines(everything) == []


def test_escapes_outside_the_edit_stay_as_they_were_written() -> None:
    raw = rb'{"cells":[{"cell_type":"code","source":["x = \"\/\u0041\ud83d\ude00\"; y = f(x)\n",   "z"]}]}'
    source = Source.from_bytes(raw, "n.ipynb")
    edits = append_call(source, source.tree.body[1].value, ".é()")  # type: ignore[attr-defined]
    assert source.apply(edits) == raw.replace(b"f(x)", rb"f(x).\u00e9()")


def test_of_two_equal_keys_the_last_counts() -> None:
    last = b'"cells": [{"cell_type": "code", "source": "x", "source": "b"}]'
    raw = b'{"cells": [{"cell_type": "code", "source": "a"}], ' + last + b"}"
    source = Source.from_bytes(raw, "n.ipynb")
    assert source.apply([TextEdit(Span(1, 2, 1, 2), "c")]) == raw.replace(b'"b"', b'"bc"')


@pytest.mark.parametrize(
    "span", [Span(2, 3, 2, 3), Span(1, 1, 3, 1), Span(2, 1, 3, 1), Span(2, 1, 2, 2), Span(1, 3, 4, 1), Span(3, 1, 4, 2)]
)
def test_lines_of_ipython_and_other_cells_are_not_touched(span: Span) -> None:
    source = source_of(notebook(cell("abc\n%time x\ndef"), cell("ghi"))) if span.row < 3 else None
    source = source or source_of(notebook(cell("abc\n%time x\nd"), cell("ghi")))
    with pytest.raises(EditRefused, match=r"only IPython|another cell"):
        source.apply([TextEdit(span, "")])


def test_insertions_around_a_line_of_ipython() -> None:
    source = source_of(notebook(cell("abc\n%time x\nghi")))
    edits = [
        TextEdit(Span(1, 4, 1, 4), "\nnew"),
        TextEdit(Span(2, 1, 2, 1), "row\n"),
        TextEdit(Span(3, 1, 4, 1), "z\n"),
    ]
    assert sources_in(source.apply(edits)) == ["abc\nnew\nrow\n%time x\nz"]


CODE = st.lists(
    st.sampled_from(["a = 1", "b = f('é\"', a)", "# c", "", "%cd \\\\x", "x = '\\t😀'", "!ls"]), min_size=1, max_size=5
).map("\n".join)


@settings(deadline=None)
@given(st.lists(st.tuples(CODE, st.booleans(), st.booleans()), min_size=1, max_size=4), st.booleans(), st.data())
def test_round_trip(cells: list[tuple[str, bool, bool]], ascii_only: bool, data: st.DataObject) -> None:
    written: list[dict[str, object]] = []
    for code, as_list, last in cells:
        text = code + ("\n" if last else "")
        written.append(cell(text.splitlines(keepends=True) if as_list else text))
    document = notebook(*written)
    source = source_of(document, data.draw(st.sampled_from([None, 1])), ascii_only)
    before = source.apply([])
    assert json.loads(before) == document
    table = LineTable(source.text)
    expected = dict(source.cells)
    number, text = data.draw(st.sampled_from(source.cells))
    local = LineTable(text)
    borders = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=4)))
    spans = [local.span(*pair) for pair in zip(borders[::2], borders[1::2], strict=False)]
    # Behind its last line end a cell has no row: that place is the next cell's first.
    assume(all(span.row <= text.count("\n") + (not text.endswith("\n")) for span in spans))
    contents = data.draw(st.lists(st.sampled_from(["", "ü", "\n", "p\nq", '"\\']), min_size=2, max_size=2))
    edits = [TextEdit(span, content) for span, content in zip(spans, contents, strict=False)]
    try:
        expected[number] = splice(text, edits)
        changed = source.apply([TextEdit(source.unlocate(number, edit.span), edit.content) for edit in edits])
    except ValueError:
        return
    assert table.offsets(source.unlocate(number, spans[0])) is not None
    assert sources_in(changed) == list(expected.values())
    for other, unchanged in zip(json.loads(changed)["cells"], document["cells"], strict=True):  # type: ignore[call-overload]
        assert {**other, "source": ""} == {**unchanged, "source": ""}
        if isinstance(other["source"], list):
            assert all(line and "\n" not in line[:-1] for line in other["source"])
    # What does not belong to the cell is the same text.
    places = find_texts(before.decode(), {("cells", number - 1, "source")})
    start = places["cells", number - 1, "source"].start
    assert changed.decode()[:start] == before.decode()[:start]


def test_insertions_at_one_place_keep_their_order() -> None:
    source = source_of(notebook(cell("a = 1")))
    here = Span(1, 1, 1, 1)
    changed = source.apply([TextEdit(here, "p\nq"), TextEdit(here, "ü")])
    assert sources_in(changed) == ["p\nqüa = 1"]
