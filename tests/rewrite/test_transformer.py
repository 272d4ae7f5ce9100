"""The second way to a repaired text: it comes to the text of the first, or says why libcst cannot."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradmend.codemods.rewrite.edits import EditConflict, LineTable, TextEdit, splice
from gradmend.codemods.rewrite.transformer import RewriteError, rewrite
from tests.rewrite.python_sources import sources

TEXT = """\
import torch  # first

def train(model):
    total = 0
    for x in data:
        # one step
        loss = model(x, \
y=(1, 2))
        loss.backward(
            retain_graph=True,  # why
        )
        total += loss

    # the end
    return total
"""


def edit(text: str, old: str, new: str) -> TextEdit:
    start = text.index(old)
    return TextEdit(LineTable(text).span(start, start + len(old)), new)


@pytest.mark.parametrize(
    "changes",
    [
        [("loss\n", "loss.detach()\n")],
        [("            retain_graph=True,  # why\n", "")],
        [("(\n            retain_graph=True,  # why\n        )", "()")],
        [("total += loss", "total += (loss"), ("\n\n    # the end", ".x).item()\n\n    # the end")],
        [("        total += loss\n", "")],
        [("        total += loss\n", "        total += loss\n        new(\n  1)\n")],
        [("    # the end\n    return total\n", "")],
        [("import torch  # first", "import torch  # first\nimport os")],
        [("# one step", "# two steps"), ("x in data", "x, y in (a, b)"), ("def train", "async def train")],
        [("import torch  # first\n\n", "")],
        [("total\n", "total")],
        [(TEXT, "")],
        [("total = 0", "total = 0; count = 1"), ("(1, 2)", "(1,\n 2)")],
        [("        # one step\n", "        match x:\n          case 1:\n            f(\n)\n")],
    ],
)
def test_both_ways_come_to_one_text(changes: list[tuple[str, str]]) -> None:
    edits = [edit(TEXT, old, new) for old, new in changes]
    assert rewrite(TEXT, edits) == splice(TEXT, edits)


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(range(len(sources()))), st.data())
def test_any_edits_come_to_one_text_or_to_none(index: int, data: st.DataObject) -> None:
    text = sources()[index].text
    table = LineTable(text)
    edits = []
    position = 0
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(position, min(position + 400, len(text))))
        position = data.draw(st.integers(start, min(start + 3, len(text))))
        edits.append(
            TextEdit(table.span(start, position), data.draw(st.sampled_from(["", "x", ".x()", "\n", "(", "()"])))
        )
    try:
        expected = splice(text, edits)
        ast.parse(expected)
        result = rewrite(text, edits)
    except (EditConflict, RewriteError, SyntaxError):
        return
    assert result == expected


@pytest.mark.parametrize("content", ["f(\n)", "f(\n  )", "f(1,\n        2)\n    g(\n)"])
def test_rows_in_a_case_keep_their_indentation(content: str) -> None:
    text = "match x:\n  case 1:\n    y\n"
    edits = [edit(text, "y", content)]
    assert rewrite(text, edits) == splice(text, edits)


def test_no_edit_is_no_change() -> None:
    assert rewrite(TEXT, []) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n\x0cz = f(x)\n",
        "class C:\n    x = 1\n\x0c    def z(self):\n        pass\n",
        "try:\n    z = 1\nexcept (A, B) :\n    pass\n",
        "def f():\n    try: z = 1\n    except (A, B) : pass\n",
    ],
)
def test_what_libcst_does_not_write_back_is_kept(text: str) -> None:
    edits = [edit(text, "z", "zz")]
    assert rewrite(text, edits) == splice(text, edits)


def test_what_does_not_parse_is_said() -> None:
    with pytest.raises(RewriteError, match="line 2 does not parse: invalid syntax"):
        rewrite("x = 1\ny = = 2\n", [edit("x = 1\n", "x", "y")])
    with pytest.raises(RewriteError, match="line 1 does not parse"):
        rewrite("x = 1\n", [edit("x = 1\n", "x", "x +")])


@pytest.mark.parametrize("deep", ["+".join("a" * 1000), "a" + ".b" * 1000, "-" * 1000 + "a", "f" + "(b)" * 1000])
def test_what_libcst_cannot_walk_is_still_repaired(deep: str) -> None:
    text = f"x = {deep}\ny = 1\n"
    edits = [edit(text, "1\n", "2\n")]
    assert rewrite(text, edits) == splice(text, edits)


def test_what_would_overflow_the_stack_is_an_error_and_no_crash() -> None:
    text = "y = 1\nx = " + "a if b else " * 2900 + "c\n"
    with pytest.raises(RewriteError, match=r"nested too deeply|does not parse"):
        rewrite(text, [edit(text, "x", "z")])
