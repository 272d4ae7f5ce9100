"""What each builder makes of the layouts that people write."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable

import pytest

from gradmend.codemods.analysis.source import Source
from gradmend.codemods.rewrite import builders
from gradmend.codemods.rewrite.edits import EditRefused, TextEdit, splice

Build = Callable[[Source], tuple[TextEdit, ...]]


def changed(code: str, build: Build) -> str:
    source = Source.from_text(code)
    result = splice(source.text, build(source))
    ast.parse(result)
    return result


def call(source: Source, index: int = 0) -> ast.Call:
    return [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)][index]


def statement(source: Source, name: str) -> ast.stmt:
    """The innermost statement that has ``name`` in its text first."""
    found = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.stmt) and source.segment(node).lstrip("(").startswith(name)
    ]
    return found[-1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(h)", "f(h.detach())"),
        ("f((h))", "f((h.detach()))"),
        ("f(h[0].x(1))", "f(h[0].x(1).detach())"),
        ("f(a + b)", "f((a + b).detach())"),
        ("f((a + b))", "f((a + b).detach())"),
        ("f(x, (a + b))", "f(x, (a + b).detach())"),
        ("f(x,  # (\n  a + b)", "f(x,  # (\n  (a + b).detach())"),
        ("f(a if b else c)", "f((a if b else c).detach())"),
        ("f(lambda: a)", "f((lambda: a).detach())"),
        ("f(-a)", "f((-a).detach())"),
        ("f(await a)", "f((await a).detach())"),
        ("f(1)", "f((1).detach())"),
        ("f(n := a)", "f((n := a).detach())"),
        ("f(a for a in b)", "f((a for a in b).detach())"),
        ("f((a, b))", "f((a, b).detach())"),
        ("f(a +\n  b)", "f((a +\n  b).detach())"),
        ("f((  # why\n  a + b\n))", "f((  # why\n  (a + b).detach()\n))"),
        ("f('é', é)", "f('é', é.detach())"),
    ],
)
def test_append_call_to_the_last_argument(before: str, after: str) -> None:
    assert changed(before, lambda source: builders.append_call(source, call(source).args[-1], ".detach()")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a, b", "x = (a, b).detach()"),
        ("x = (a), (b)", "x = ((a), (b)).detach()"),
        ("x = a + \\\n  b", "x = (a + \\\n  b).detach()"),
        ("x = (a\n     + b)  # sum", "x = (a\n     + b).detach()  # sum"),
        ("x = not(a)", "x = (not(a)).detach()"),
    ],
)
def test_append_call_to_an_assigned_value(before: str, after: str) -> None:
    def build(source: Source) -> tuple[TextEdit, ...]:
        assign = source.tree.body[0]
        assert isinstance(assign, ast.Assign)
        return builders.append_call(source, assign.value, ".detach()")

    assert changed(before, build) == after


def test_append_call_goes_to_the_value_of_a_keyword_or_starred_argument() -> None:
    assert changed("f(k=a*b)", lambda s: builders.append_call(s, call(s).keywords[0], ".x()")) == "f(k=(a*b).x())"
    assert changed("f(*a)", lambda s: builders.append_call(s, call(s).args[0], ".x()")) == "f(*a.x())"


@pytest.mark.parametrize(
    ("before", "code", "after"),
    [
        ("f(a)", "b + c", "f(b + c)"),
        ("f(a)", "b, c", "f((b, c))"),
        ("f(a.b)", "b + c", "f((b + c))"),
        ("f(any(x for x in y))", "z", "f(z)"),
        ("f(x for x in y)", "z", "f(z)"),
        ("f(x for x in y)", "a, b", "f((a, b))"),
        ("f(x for x in y)", "(a, b)", "f((a, b))"),
    ],
)
def test_replace_node(before: str, code: str, after: str) -> None:
    if ".b" in before:
        source = Source.from_text(before)
        attribute = call(source).args[0]
        assert isinstance(attribute, ast.Attribute)
        edits = builders.replace_node(source, attribute.value, code)
        assert splice(before, edits) == "f((b + c).b)"
        return
    assert changed(before, lambda source: builders.replace_node(source, call(source).args[0], code)) == after


def test_replace_node_takes_only_expressions() -> None:
    source = Source.from_text("f(a)")
    with pytest.raises(EditRefused, match="no expression"):
        builders.replace_node(source, call(source).args[0], "b = 1")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(k=1)", "f()"),
        ("f( k=1, )", "f()"),
        ("f(a, k=1)", "f(a)"),
        ("f(a, k=1,)", "f(a,)"),
        ("f(k=1, b=2)", "f(b=2)"),
        ("f(a, k=1, b=2)", "f(a, b=2)"),
        ("f((a), k=(1), **b)", "f((a), **b)"),
        ("f(a, k=1,\n  b=2)", "f(a,\n  b=2)"),
        ("f(a,\n  k=1, b=2)", "f(a,\n  b=2)"),
        ("f(a,\n  k=1)", "f(a)"),
        ("f(a,  # first\n  k=1)", "f(a  # first\n  )"),
        ("f(\n    k=1,  # its own\n)", "f()"),
        ("f(\n    # why\n    k=1,\n)", "f(\n    # why\n)"),
        ("f(\n    a,\n    k=1,  # its own\n)", "f(\n    a,\n)"),
        ("f(\n    a,  # first\n    k=1  # its own\n)", "f(\n    a  # first\n)"),
        ("f(\n    k=g(\n        1),\n    b=2\n)", "f(\n    b=2\n)"),
        ("f(a, \\\n  k=1)", "f(a)"),
        ("(f)(k=1)", "(f)()"),
        ("é(ü='ä', k=1)", "é(ü='ä')"),
    ],
)
def test_remove_keyword(before: str, after: str) -> None:
    assert changed(before, lambda source: builders.remove_keyword(source, call(source), "k")) == after


def test_remove_positional() -> None:
    code = "f(a, (b), *c, k=1)"
    assert changed(code, lambda source: builders.remove_positional(source, call(source), 1)) == "f(a, *c, k=1)"
    assert changed(code, lambda source: builders.remove_positional(source, call(source), 2)) == "f(a, (b), k=1)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(k=True)"),
        ("f(k=1)", "f(k=True)"),
        ("f(k=(1))", "f(k=(True))"),
        ("f(a)", "f(a, k=True)"),
        ("f((a))", "f((a), k=True)"),
        ("f(a,)", "f(a, k=True,)"),
        ("f(*a, **b)", "f(*a, **b, k=True)"),
        ("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    k=True\n)"),
        ("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    k=True,\n)"),
        ("f(\n    a,\n    b,  # second\n)", "f(\n    a,\n    b,  # second\n    k=True,\n)"),
        ("f(\n    a,\n    b  # second\n)", "f(\n    a,\n    b,  # second\n    k=True\n)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  k=True)"),
        ("f(a, b,\n  c)", "f(a, b,\n  c, k=True)"),
        ("f(a,\n\tb,)", "f(a,\n\tb,\n\tk=True,)"),
    ],
)
def test_set_keyword(before: str, after: str) -> None:
    assert changed(before, lambda source: builders.set_keyword(source, call(source), "k", "True")) == after


def test_rename_keyword() -> None:
    def rename(code: str, value: str | None) -> str:
        return changed(code, lambda source: builders.rename_keyword(source, call(source), "k", "new", value))

    assert rename("f(a, k = (1), b=2)", "True") == "f(a, new = (True), b=2)"
    assert rename("f(a, k = (1), b=2)", None) == "f(a, new = (1), b=2)"
    assert rename("f(new=False, k=1)", "True") == "f(new=True)"


@pytest.mark.parametrize("build", [builders.remove_keyword, lambda s, c, n: builders.rename_keyword(s, c, n, "x")])
def test_a_keyword_that_is_not_there_is_refused(build: Callable[[Source, ast.Call, str], object]) -> None:
    source = Source.from_text("f(a)")
    with pytest.raises(EditRefused, match="no argument k"):
        build(source, call(source), "k")


def test_a_generator_without_parentheses_gets_no_neighbour() -> None:
    source = Source.from_text("f(a for a in b)")
    with pytest.raises(EditRefused, match="generator"):
        builders.set_keyword(source, call(source), "k", "1")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s", "new\ns"),
        ("def f():\n\ts", "def f():\n\tnew\n\ts"),
        ("if x: s; t  # c\nu", "if x:\n    new\n    s; t  # c\nu"),
        ("if x: t; s", "if x:\n    t\n    new\n    s"),
        ("def f():\n  for x in y: s", "def f():\n  for x in y:\n    new\n    s"),
        ("a; s; b", "a\nnew\ns; b"),
        ("@d\n@e\ndef s(): pass", "new\n@d\n@e\ndef s(): pass"),
        ("if x: \\\n  s", "if x:\n    new\n    s"),
    ],
)
def test_insert_before(before: str, after: str) -> None:
    name = "def s" if "def s" in before else "s"
    assert changed(before, lambda source: builders.insert_before(source, statement(source, name), ["new"])) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s", "s\nnew"),
        ("s  # c\nt", "s  # c\nnew\nt"),
        ("s ;  # c\nt", "s ;  # c\nnew\nt"),
        ("s(\n  1)\nt", "s(\n  1)\nnew\nt"),
        ("s; t", "s\nnew\nt"),
        ("if x: s  # c\nelse: t", "if x:\n    s  # c\n    new\nelse: t"),
        ("if x: a; s; b", "if x:\n    a; s\n    new\n    b"),
        ("try: pass\nexcept E: s\n", "try: pass\nexcept E:\n    s\n    new\n"),
        ("match x:\n  case (1 |\n    2): s\n", "match x:\n  case (1 |\n    2):\n      s\n      new\n"),
        ("s \\\n\nt", "s \\\n\nnew\nt"),
    ],
)
def test_insert_after(before: str, after: str) -> None:
    assert changed(before, lambda source: builders.insert_after(source, statement(source, "s"), ["new"])) == after


def test_insert_after_a_loop_leaves_the_loop_its_last_comments() -> None:
    code = "for x in y:\n    s\n\n    # end of the loop\n\n# next\nt\n"
    after = "for x in y:\n    s\n\n    # end of the loop\nnew\n\n# next\nt\n"
    assert changed(code, lambda source: builders.insert_after(source, source.tree.body[0], ["new"])) == after


def test_lines_keep_their_own_indentation() -> None:
    code = "def f():\n    s"
    after = "def f():\n    s\n    if h is not None:\n        h = h.detach()\n\n    t"
    lines = ["if h is not None:", "    h = h.detach()", "", "t"]
    assert changed(code, lambda source: builders.insert_after(source, statement(source, "s"), lines)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s", ""),
        ("a\ns  # c\nb", "a\nb"),
        ("a\n# why\ns", "a\n# why\n"),
        ("if x:\n    s  # c\ny", "if x:\n    pass\ny"),
        ("if x: s\ny", "if x: pass\ny"),
        ("if x: s; t", "if x: t"),
        ("if x: t; s;  # c", "if x: t;  # c"),
        ("a; s; b", "a; b"),
        ("if x:\n    a\nelse:\n    s(\n        1)\n", "if x:\n    a\nelse:\n    pass\n"),
        ("def f():\n    '''doc'''\n    s", "def f():\n    '''doc'''\n"),
        ("@d\ndef s():\n    pass\n\nx", "\nx"),
    ],
)
def test_remove_statement(before: str, after: str) -> None:
    name = "def s" if "def s" in before else "s"
    assert changed(before, lambda source: builders.remove_statement(source, statement(source, name))) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\n\ns\n\nb\n", "a\n\nb\n"),
        ("a\n\ns\n\n\nb\n", "a\n\n\nb\n"),
        ("a\n\n\ns\n\nb\n", "a\n\n\nb\n"),
        ("a\n\ns\nb\n", "a\n\nb\n"),
        ("a\ns\n\nb\n", "a\n\nb\n"),
        ("if x:\n    a\n    \n    s\n\nb\n", "if x:\n    a\n    \nb\n"),
        ("a\n\ns\n", "a\n\n"),
    ],
)
def test_gap_around_a_statement_that_goes_stays_one_gap(before: str, after: str) -> None:
    assert changed(before, lambda source: builders.remove_statement(source, statement(source, "s"))) == after


def test_gap_is_not_looked_for_in_the_next_cell() -> None:
    cells = [{"cell_type": "code", "source": text} for text in ("a\n\ns", "\nb")]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    source = Source.from_bytes(notebook.encode(), "n.ipynb")
    edits = builders.remove_statement(source, statement(source, "s"))
    after = json.loads(source.apply(edits))["cells"]
    assert [cell["source"] for cell in after] == ["a\n\n", "\nb"]


def test_remove_all_statements_of_a_block_together() -> None:
    code = "if x:\n    a\n    b; c\n    d\n"

    def removed(first: int, behind: int) -> str:
        def build(source: Source) -> tuple[TextEdit, ...]:
            outer = source.tree.body[0]
            assert isinstance(outer, ast.If)
            return builders.remove_statements(source, outer.body[first:behind])

        return changed(code, build)

    assert removed(0, 4) == "if x:\n    pass\n"
    assert removed(1, 4) == "if x:\n    a\n"
    assert removed(0, 2) == "if x:\n    c\n    d\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s = f(\n  1,\n)\nfor x in y:\n    t\n", "for x in y:\n    s = f(\n      1,\n    )\n    t\n"),
        ("s = '''a\n b'''  # c\nfor x in y: t", "for x in y:\n    s = '''a\n b'''  # c\n    t"),
        ("a\n\n# why\ns = 1\n\nfor x in y:\n\tt\n", "a\n\nfor x in y:\n\t# why\n\ts = 1\n\tt\n"),
        ("a\n\n# all\ns = 1\nb\n\nfor x in y:\n\tt\n", "a\n\n# all\nb\n\nfor x in y:\n\ts = 1\n\tt\n"),
        ("a; s = 1; b\nt", "a; b\ns = 1\nt"),
        ("if x:\n    s = 1\nt", "if x:\n    pass\ns = 1\nt"),
        (
            "def f():\n    if x:\n        a\n        s = [\n    1]\n    t",
            "def f():\n    if x:\n        a\n    s = [\n    1]\n    t",
        ),
    ],
)
def test_move_before(before: str, after: str) -> None:
    def build(source: Source) -> tuple[TextEdit, ...]:
        return builders.move_statements(source, [statement(source, "s")], before=statement(source, "t"))

    if before.startswith("def f()"):
        # What a row lacks of its block's indentation it keeps lacking.
        assert "s = [\n    1]" in changed(before, build)
        return
    assert changed(before, build) == after


def test_move_the_last_statement_out_of_its_loop() -> None:
    def build(source: Source) -> tuple[TextEdit, ...]:
        return builders.move_statements(source, [statement(source, "s")], after=source.tree.body[0])

    assert changed("for x in y:\n    a\n    s\nb", build) == "for x in y:\n    a\ns\nb"
    assert changed("for x in y:\n    a\n    s", build) == "for x in y:\n    a\ns"


def test_statements_of_one_line_do_not_change_places() -> None:
    source = Source.from_text("if x: s; t\n")
    with pytest.raises(EditRefused, match="of one line"):
        builders.move_statements(source, [statement(source, "t")], before=statement(source, "s"))


def test_statements_do_not_move_into_themselves() -> None:
    source = Source.from_text("for x in y:\n    s\n")
    with pytest.raises(EditRefused, match="into themselves"):
        builders.move_statements(source, [source.tree.body[0]], before=statement(source, "s"))


@pytest.mark.parametrize("build", [builders.insert_before, lambda s, n, _: builders.remove_statement(s, n)])
def test_an_elif_stays_where_it_is(build: Callable[[Source, ast.stmt, list[str]], object]) -> None:
    source = Source.from_text("if a: b\nelif c: d\n")
    first = source.tree.body[0]
    assert isinstance(first, ast.If)
    with pytest.raises(EditRefused, match="elif"):
        build(source, first.orelse[0], ["new"])


def test_a_statement_behind_a_lone_backslash_is_refused() -> None:
    source = Source.from_text("\\\nx = 1\n")
    with pytest.raises(EditRefused, match="goes on with the line above"):
        builders.insert_before(source, source.tree.body[0], ["new"])
