"""Whether a file can be judged alone: who else runs what it defines, and whether all that it runs is in view.

Asked only about files with a suppression that seems to serve nothing. Text, not syntax, is looked at, and an import of
any module of the same name counts: a file is taken for imported rather than not.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import TYPE_CHECKING, Final

from .project import LIBRARIES

if TYPE_CHECKING:
    from .project import Project
    from .source import Source

MOST_FILES: Final = 5_000
"""Python files that are searched for imports; in a larger project every file counts as imported."""
TOPS: Final = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What the top folder of a project holds, the surest sign first."""
FOREIGN_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})

_IMPORT: Final = re.compile(rb"^[ \t\"]*(?:from\b[^\n]*?\bimport[ \t]*\([^)]*\)|(?:from|import)\b[^\n]*)", re.MULTILINE)
_WORD: Final = re.compile(rb"\w+")


def is_imported(source: Source, project: Project) -> bool:
    """Whether another file of the project may import this one."""
    filename = source.filename
    if project.reader is None or source.is_notebook or filename.startswith("<"):
        return False
    path = os.path.abspath(filename)
    stem, _ = os.path.splitext(os.path.basename(path))
    name = os.path.basename(os.path.dirname(path)) if stem == "__init__" else stem
    importers = _importers(_top(os.path.dirname(path)), project)
    return importers is None or not importers.get(name, frozenset()) <= {path}


def is_in_view(source: Source, project: Project) -> bool:
    """Whether what the file imports of its own project can be read at all."""
    if project.reader is not None:
        return True
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["" if node.level else node.module or ""]
        else:
            continue
        if not all((top := name.partition(".")[0]) in LIBRARIES or top in sys.stdlib_module_names for name in names):
            return False
    return True


def defines(source: Source, rows: tuple[int, int] | None) -> bool:
    """Whether ``rows`` (None for all) lie in a function or class, so that other files can run them."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if rows is None or first <= rows[0] <= (node.end_lineno or first):
                return True
    return False


def _importers(top: str, project: Project) -> dict[str, frozenset[str]] | None:
    """Every word of an import statement below ``top``, with the files that have it; None where that is too much."""
    if top not in project.importers:
        project.importers[top] = _searched(top, project)
    return project.importers[top]


def _searched(top: str, project: Project) -> dict[str, frozenset[str]] | None:
    assert project.reader is not None
    found: dict[str, set[str]] = {}
    left = MOST_FILES
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in FOREIGN_FOLDERS]
        for name in files:
            if not name.endswith((".py", ".ipynb")):
                continue
            left -= 1
            if left < 0:
                return None
            path = os.path.join(folder, name)
            for statement in _IMPORT.findall(project.reader(path) or b""):
                for word in _WORD.findall(statement):
                    found.setdefault(word.decode(errors="replace"), set()).add(path)
    return {word: frozenset(paths) for word, paths in found.items()}


def _top(folder: str) -> str:
    for sign in TOPS:
        above = folder
        while True:
            if os.path.lexists(os.path.join(above, sign)):
                return above
            parent = os.path.dirname(above)
            if parent == above:
                break
            above = parent
    here = os.getcwd()
    return here if f"{folder}{os.sep}".startswith(f"{here}{os.sep}") else folder
