"""The builders of edits in one place: each takes a ``Source`` and nodes of its tree, and gives ``TextEdit`` tuples."""

from __future__ import annotations

from .arguments import remove_keyword, remove_positional, rename_keyword, set_keyword
from .expressions import append_call, replace_node
from .statements import insert_after, insert_before, move_statements, remove_statement, remove_statements

__all__ = [
    "append_call",
    "insert_after",
    "insert_before",
    "move_statements",
    "remove_keyword",
    "remove_positional",
    "remove_statement",
    "remove_statements",
    "rename_keyword",
    "replace_node",
    "set_keyword",
]
