"""Builders on real code: the new text parses to the old tree with just this change, and libcst agrees."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gradmend.codemods.analysis.source import Source
from gradmend.codemods.rewrite import builders
from gradmend.codemods.rewrite.edits import EditRefused, LineTable, TextEdit, ordered, splice
from gradmend.codemods.rewrite.transformer import rewrite
from tests.rewrite.python_sources import nodes, sources

SOURCES = st.sampled_from(range(len(sources())))
NEW = "new(1)"

property_test = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.filter_too_much])


class Twin:
    """A source and a second tree of it, to change by hand into what the edits are to give."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.expected = ast.parse(source.text)
        # Walked before any change, so that both trees give their nodes in the same order.
        self._twins = dict(zip(map(id, ast.walk(source.tree)), ast.walk(self.expected), strict=True))

    def of(self, node: ast.AST) -> ast.AST:
        """The node of the second tree."""
        return self._twins[id(node)]

    def block_of(self, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
        """The list in the second tree that holds a statement, and its index there."""
        owner = self.of(self.source.parent(statement) or self.source.tree)
        twin = self.of(statement)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(owner, field, None)
            if isinstance(block, list):
                for index, member in enumerate(block):
                    if member is twin:
                        return block, index
        raise AssertionError("the statement stands in no block")

    def replace(self, node: ast.expr, new: ast.expr) -> None:
        """Put ``new`` in the place of a node."""
        twin = self.of(node)
        owner = self.of(self.source.parent(node) or self.source.tree)
        for field, value in ast.iter_fields(owner):
            if value is twin:
                setattr(owner, field, new)
            elif isinstance(value, list):
                value[:] = [new if member is twin else member for member in value]

    def check(self, edits: tuple[TextEdit, ...]) -> None:
        """The edits give the second tree, by either way, and nothing else changes."""
        text = self.source.text
        result = splice(text, edits)
        assert ast.dump(ast.parse(result)) == ast.dump(self.expected)
        assert rewrite(text, edits) == result
        table = LineTable(text)
        position, kept = 0, []
        for edit in ordered(edits):
            start, end = table.offsets(edit.span)
            kept.append(text[position:start])
            position = end
        kept.append(text[position:])
        place = 0
        for piece in kept:
            place = result.index(piece, place) + len(piece)


def pick(data: st.DataObject, source: Source, kind: type[ast.AST]) -> ast.AST:
    found = nodes(source, kind)
    assume(found)
    return found[data.draw(st.integers(0, len(found) - 1))]


def attempt(build: Callable[[], tuple[TextEdit, ...]]) -> tuple[TextEdit, ...]:
    try:
        return build()
    except EditRefused:
        assume(False)
        raise


@property_test
@given(SOURCES, st.data(), st.booleans())
def test_insert(index: int, data: st.DataObject, after: bool) -> None:
    twin = Twin(sources()[index])
    statement = pick(data, twin.source, ast.stmt)
    assert isinstance(statement, ast.stmt)
    block, place = twin.block_of(statement)
    build = builders.insert_after if after else builders.insert_before
    edits = attempt(lambda: build(twin.source, statement, [NEW]))
    block.insert(place + after, ast.parse(NEW).body[0])
    twin.check(edits)


@property_test
@given(SOURCES, st.data())
def test_remove(index: int, data: st.DataObject) -> None:
    twin = Twin(sources()[index])
    statement = pick(data, twin.source, ast.stmt)
    assert isinstance(statement, ast.stmt)
    block, place = twin.block_of(statement)
    owner = twin.source.parent(statement)
    originals = next(
        value
        for _, value in ast.iter_fields(owner or twin.source.tree)
        if isinstance(value, list) and statement in value
    )
    count = data.draw(st.integers(1, 3))
    edits = attempt(lambda: builders.remove_statements(twin.source, originals[place : place + count]))
    del block[place : place + count]
    if not block and not isinstance(owner, ast.Module):
        block.append(ast.Pass())
    twin.check(edits)


@property_test
@given(SOURCES, st.data(), st.booleans())
def test_move(index: int, data: st.DataObject, after: bool) -> None:
    twin = Twin(sources()[index])
    statement, target = pick(data, twin.source, ast.stmt), pick(data, twin.source, ast.stmt)
    assert isinstance(statement, ast.stmt)
    assert isinstance(target, ast.stmt)
    places = {"after": target} if after else {"before": target}
    edits = attempt(lambda: builders.move_statements(twin.source, [statement], **places))
    block, place = twin.block_of(statement)
    moved = block.pop(place)
    new_block, new_place = twin.block_of(target)
    if not block and new_block is not block and not isinstance(twin.source.parent(statement), ast.Module):
        block.append(ast.Pass())
    new_block.insert(new_place + after, moved)
    twin.check(edits)


@property_test
@given(SOURCES, st.data())
def test_append_call(index: int, data: st.DataObject) -> None:
    twin = Twin(sources()[index])
    node = pick(data, twin.source, ast.expr)
    assert isinstance(node, ast.expr)
    assume(isinstance(getattr(node, "ctx", ast.Load()), ast.Load))
    assume(not isinstance(node, ast.Starred | ast.Slice))
    edits = attempt(lambda: builders.append_call(twin.source, node, ".detach()"))
    inner = twin.of(node)
    assert isinstance(inner, ast.expr)
    twin.replace(node, ast.Call(ast.Attribute(inner, "detach", ast.Load()), [], []))
    if "=}" in twin.source.segment(node) + twin.source.text[twin.source.offsets(node)[1] :][:2]:
        return  # A string that prints its own expression changes along.
    twin.check(edits)


@property_test
@given(SOURCES, st.data(), st.sampled_from(["a + b", "a", "lambda: a", "a, b", "(n := a)", "not a", "a if b else c"]))
def test_replace_node(index: int, data: st.DataObject, code: str) -> None:
    twin = Twin(sources()[index])
    node = pick(data, twin.source, ast.expr)
    assert isinstance(node, ast.expr)
    assume(isinstance(getattr(node, "ctx", ast.Load()), ast.Load))
    assume(not isinstance(node, ast.Starred | ast.Slice))
    edits = attempt(lambda: builders.replace_node(twin.source, node, code))
    twin.replace(node, ast.parse(f"({code})", mode="eval").body)
    twin.check(edits)


@property_test
@given(SOURCES, st.data(), st.sampled_from(["set", "remove", "rename", "positional"]))
def test_arguments(index: int, data: st.DataObject, what: str) -> None:
    twin = Twin(sources()[index])
    call = pick(data, twin.source, ast.Call)
    assert isinstance(call, ast.Call)
    other = twin.of(call)
    assert isinstance(other, ast.Call)
    names = [keyword.arg for keyword in call.keywords if keyword.arg]
    if what == "positional":
        assume(call.args)
        place = data.draw(st.integers(0, len(call.args) - 1))
        edits = attempt(lambda: builders.remove_positional(twin.source, call, place))
        del other.args[place]
    elif what == "set":
        name = data.draw(st.sampled_from([*names, "fresh"]))
        edits = attempt(lambda: builders.set_keyword(twin.source, call, name, "True"))
        found = [keyword for keyword in other.keywords if keyword.arg == name]
        if not found:
            other.keywords.append(ast.keyword(name, ast.Constant(True)))
        for keyword in found:
            keyword.value = ast.Constant(True)
    else:
        assume(names)
        name = data.draw(st.sampled_from(names))
        keyword = next(keyword for keyword in other.keywords if keyword.arg == name)
        if what == "remove":
            edits = attempt(lambda: builders.remove_keyword(twin.source, call, name))
            other.keywords.remove(keyword)
        else:
            edits = attempt(lambda: builders.rename_keyword(twin.source, call, name, "fresh", "True"))
            keyword.arg, keyword.value = "fresh", ast.Constant(True)
    twin.check(edits)


@property_test
@given(SOURCES, st.data())
def test_setting_and_removing_a_keyword_twice_is_doing_it_once(index: int, data: st.DataObject) -> None:
    source = sources()[index]
    call = pick(data, source, ast.Call)
    assert isinstance(call, ast.Call)
    edits = attempt(lambda: builders.set_keyword(source, call, "fresh", "True"))
    once = Source.from_text(splice(source.text, edits))
    again = nodes(once, ast.Call)[nodes(source, ast.Call).index(call)]
    assert isinstance(again, ast.Call)
    assert splice(once.text, builders.set_keyword(once, again, "fresh", "True")) == once.text
    removed = Source.from_text(splice(once.text, builders.remove_keyword(once, again, "fresh")))
    assert ast.dump(removed.tree) == ast.dump(source.tree)


@pytest.mark.parametrize("index", range(len(sources())))
def test_every_expression_is_found_where_its_span_says(index: int) -> None:
    source = sources()[index]
    for node in nodes(source, ast.expr):
        assert isinstance(node, ast.expr)
        inside_string = False
        outer = source.parent(node)
        while outer is not None:
            inside_string |= isinstance(outer, ast.JoinedStr)
            outer = source.parent(outer)
        if not inside_string and not isinstance(node, ast.FormattedValue):
            assert source.segment_matches(node), ast.dump(copy.copy(node))
