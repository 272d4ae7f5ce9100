"""Which statements of a block may change places."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from gradmend.codemods.analysis.source import Source
from gradmend.codemods.rewrite.edits import EditRefused
from gradmend.codemods.rewrite.reordering import Order, block_around

MAY = {
    "unrelated": """
        a = f(x)
        b = g(y)
        """,
    "both read": """
        a = f(x)
        b = g(x)
        """,
    "an optimizer's step": """
        a = f(x)
        optimizer.step()
        """,
    "gradients are cleared": """
        a = f(x)
        x.zero_grad()
        """,
    "other attributes": """
        self.a = f(x)
        self.b = g(y)
        """,
}
MUST_NOT = {
    "what is read is set": """
        a = f(x)
        x = g(y)
        """,
    "what is set is read": """
        a = f(x)
        print(a)
        """,
    "both set": """
        a = f(x)
        a = g(y)
        """,
    "an attribute is read": """
        self.a = f(x)
        print(self.a)
        """,
    "an attribute is read in a method": """
        self.a = f(x)
        self.show()
        """,
    "an attribute is set in a method of a method": """
        b = f(self.count)
        self.advance()
        """,
    "changed in place": """
        a = f(x)
        x.add_(1)
        """,
    "an element is set": """
        a = f(x)
        x[0] = 1
        """,
    "a sum is updated": """
        a = f(total)
        total += 1
        """,
    "the mode is changed": """
        a = f(model)
        model.eval()
        """,
    "it may leave": """
        a = f(x)
        if done:
            return
        """,
}
CLASS = """
class Trainer:
    def show(self):
        print(self.a)

    def advance(self):
        self.really_advance()

    def really_advance(self):
        self.count += 1

    def run(self, x, y, optimizer, model, total, done):
"""


def _order(body: str) -> Order:
    text = CLASS + "".join(f"        {line}\n" for line in dedent(body).strip().splitlines())
    source = Source.from_text(text, "trainer.py")
    trainer = source.tree.body[0]
    assert isinstance(trainer, ast.ClassDef)
    run = trainer.body[-1]
    assert isinstance(run, ast.FunctionDef)
    return Order(source, run.body)


@pytest.mark.parametrize("name", MAY)
def test_may_change_places(name: str) -> None:
    _order(MAY[name]).check([0], 1)
    _order(MAY[name]).check([1], 0)


@pytest.mark.parametrize("name", MUST_NOT)
def test_must_not_change_places(name: str) -> None:
    with pytest.raises(EditRefused):
        _order(MUST_NOT[name]).check([0], 1)
    with pytest.raises(EditRefused):
        _order(MUST_NOT[name]).check([1], 0)


def test_readers_follow_from_one_another() -> None:
    order = _order(
        """
        a = f(x)
        b = g(y)
        c = a + 1
        d = c * b
        e = b
        """
    )
    assert order.readers([0], 4) == {0, 2, 3}
    assert order.readers([0], 2) == {0, 2}


def test_the_innermost_block_that_holds_all() -> None:
    source = Source.from_text(
        dedent(
            """
            def f():
                for x in y:
                    if x:
                        a = 1
                    b = 2
                c = 3
            """
        ),
        "f.py",
    )
    function = source.tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    loop = function.body[0]
    assert isinstance(loop, ast.For)
    branch, second = loop.body
    assert isinstance(branch, ast.If)
    block, members = block_around(source, [branch.body[0], second])
    assert block is loop.body
    assert members == [branch, second]
    block, members = block_around(source, [branch.body[0], function.body[1]])
    assert block is function.body
    assert members == [loop, function.body[1]]
