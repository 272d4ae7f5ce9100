"""What a function's text says by itself, before anything is run: the names it uses, whether it traverses, whether it
yields. Asked of the same functions in every run, so each answer is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

TRIGGERS: Final = frozenset({"backward", "manual_backward", "retain_graph", "create_graph", "retain_variables", "grad"})
"""Attributes, names and keywords that make a function worth running."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Syntax:
    """Remembers what was found out about functions; holds on to their trees until ``clear``."""

    _mentions: dict[ast.AST, tuple[frozenset[str], bool]] = field(default_factory=dict)
    _yields: dict[ast.AST, bool] = field(default_factory=dict)

    def mentions(self, function: ast.AST) -> tuple[frozenset[str], bool]:
        """The names that a function uses, and whether one of them is a trigger."""
        known = self._mentions.get(function)
        if known is None:
            known = self._mentions[function] = _mentions(function)
        return known

    def yields(self, function: FunctionNode) -> bool:
        """Whether a function is a generator."""
        known = self._yields.get(function)
        if known is None:
            known = self._yields[function] = _yields(function)
        return known

    def clear(self) -> None:
        """Forget everything."""
        self._mentions.clear()
        self._yields.clear()


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes right below a node, as ``ast.iter_child_nodes`` gives them, in half the time."""
    for name in node._fields:
        value = getattr(node, name, None)
        if type(value) is list:
            for item in value:
                if isinstance(item, ast.AST):
                    yield item
        elif isinstance(value, ast.AST):
            yield value


def _mentions(function: ast.AST) -> tuple[frozenset[str], bool]:
    names: set[str] = set()
    triggered = False
    stack = [function]
    while stack:
        node = stack.pop()
        stack.extend(children(node))
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.keyword):
            triggered = triggered or node.arg in TRIGGERS
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute):
                triggered = triggered or called.attr in TRIGGERS
            elif isinstance(called, ast.Name):
                triggered = triggered or called.id in TRIGGERS
    return frozenset(names), triggered


def _yields(function: FunctionNode) -> bool:
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(children(node))
    return False
