"""Whether a stretch of text is a given syntax node.

Python before 3.12 parses what stands inside an f-string apart from the rest, and gives it positions that can be wrong
(PEP 701 ended that); every edit asks here first.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence

Offsets = Callable[[ast.AST], tuple[int, int]]
"""Start and end offset in the text of what stands at a node's position."""


def parse(text: str) -> ast.Module:
    """As ``ast.parse``, without warnings: invalid escapes in other people's strings are not this tool's news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def all_in_place(fstring: ast.JoinedStr, text: str, offsets: Offsets) -> bool:
    """Whether the positions of all expressions in an f-string are right.

    They are if each one's text is the expression, stands behind a brace of its own, and the braces come in the order of
    the expressions: the string has just as many of them.
    """
    last_brace = -1
    for value in _formatted(fstring):
        if value is None:
            return False
        start, end = offsets(value)
        brace = start - 1
        while brace > last_brace and text[brace] in " \t\f\n(":
            brace -= 1
        if brace <= last_brace or text[brace] != "{" or text[brace - 1] == "{":
            return False
        if not parses_to(text[start:end], value, ""):
            return False
        last_brace = brace
    return True


def _formatted(fstring: ast.JoinedStr) -> Iterator[ast.expr | None]:
    """The expressions of an f-string in the order of their braces; None for one that holds an f-string itself."""
    for part in fstring.values:
        if isinstance(part, ast.FormattedValue):
            yield None if any(isinstance(inner, ast.JoinedStr) for inner in ast.walk(part.value)) else part.value
            if isinstance(part.format_spec, ast.JoinedStr):
                yield from _formatted(part.format_spec)


def parses_to(segment: str, node: ast.expr | ast.keyword | ast.stmt, indentation: str) -> bool:
    """Whether ``segment`` parses to ``node``; ``indentation`` is that of the further rows of a statement."""
    wrappings: Sequence[tuple[str, str]]
    if isinstance(node, ast.stmt):
        wrappings = ((f"if 1:\n{indentation}" if node.col_offset else "", "\n"),)
    elif isinstance(node, ast.keyword):
        wrappings = (("_(", "\n)"),)
    elif isinstance(node, ast.Starred):
        wrappings = (("[", "\n]"),)
    elif isinstance(node, ast.Slice):
        wrappings = (("_[", "\n]"),)
    elif isinstance(node, ast.Tuple):
        # A tuple of slices parses only in a subscript.
        wrappings = (("(", "\n)"), ("_[", "\n]"))
    else:
        wrappings = (("(", "\n)"),)
    for before, after in wrappings:
        try:
            parsed = parse(before + segment + after).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if len(parsed) == 1 and _same(_inner(parsed[0], node), node):
            return True
    return False


def _inner(statement: ast.stmt, like: ast.AST) -> ast.AST | None:
    if isinstance(like, ast.stmt):
        if like.col_offset == 0:
            return statement
        return statement.body[0] if isinstance(statement, ast.If) and len(statement.body) == 1 else None
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(like, ast.keyword):
        return value.keywords[0] if isinstance(value, ast.Call) and len(value.keywords) == 1 else None
    if isinstance(like, ast.Starred):
        return value.elts[0] if isinstance(value, ast.List) and len(value.elts) == 1 else None
    if (
        isinstance(value, ast.Subscript)
        and isinstance(value.value, ast.Name)
        and value.value.id == "_"
        and isinstance(like, ast.Slice | ast.Tuple)
    ):
        return value.slice
    return value


def _same(one: object, other: object) -> bool:
    """Whether two trees say the same, positions and load or store contexts aside."""
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, ast.expr_context) and isinstance(right, ast.expr_context):
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST) and isinstance(right, ast.AST):
            pairs.extend((getattr(left, name, None), getattr(right, name, None)) for name in left._fields)
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs.extend(zip(left, right, strict=True))
        elif left != right:
            return False
    return True
