"""Giving a ``detach()`` whose result is thrown away the effect that it was written for."""

from __future__ import annotations

import ast

from ..analysis.source import Source
from ..analysis.tape import Discarded
from .edits import EditRefused, TextEdit
from .sinking import scope_of


def assigned(source: Source | None, event: Discarded) -> dict[str, tuple[TextEdit, ...]] | None:
    """Edits that make ``x.detach()`` an assignment to ``x``; None where ``x`` is no variable of that function and no
    attribute.

    Raises ``EditRefused`` where the place in the text is in doubt.
    """
    if source is None:
        return None
    receiver = event.receiver
    if isinstance(receiver, ast.Name):
        if not _is_own(source, event.statement, receiver.id):
            return None
    elif not isinstance(receiver, ast.Attribute):
        return None
    if not source.segment_matches(event.statement):
        raise EditRefused(f"line {event.statement.lineno}: the place of this statement in the text is not certain")
    start, _ = source.offsets(event.statement)
    span = source.table.span(start, start)
    return {source.filename: (TextEdit(span, f"{source.segment(receiver)} = "),)}


def _is_own(source: Source, statement: ast.stmt, name: str) -> bool:
    """Whether an assignment to ``name`` beside ``statement`` sets the variable that is read there."""
    scope = scope_of(source, statement)
    if isinstance(scope, ast.Module):
        return True
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = scope.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        if any(argument is not None and argument.arg == name for argument in every):
            return True
    for node in ast.walk(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        stores = isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        if stores and scope_of(source, node) is scope:
            return True
    return False
