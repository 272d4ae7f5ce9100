"""Scripts of the project that run what a file defines: they give its functions their real arguments.

Only scripts that are not examined for themselves, because nothing in them traverses. They are looked for in the file's
own folder, the one above and the top folder of the project, by a regular expression on bytes; only a script that
imports the file is parsed.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from .prefilter import may_go_wrong

if TYPE_CHECKING:
    from .project import Project

MOST_FILES: Final = 80
"""Python files of one folder that are looked at, in the order of their names."""
MOST_SCRIPTS: Final = 3
"""Scripts that are run for one file."""
MOST_BETWEEN: Final = 8
"""Modules between a file and the scripts that are looked at."""
MOST_PARENTS: Final = 6
"""How far up the top folder of the project is looked for."""
TOPS: Final = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
"""What the top folder of a project holds."""
IMPORT: Final = re.compile(rb"^[ \t]*(?:from\b[^\n]*?\bimport[ \t]*\([^)]*\)|(?:from|import)\b[^\n]*)", re.MULTILINE)
STARTS: Final = re.compile(rb"__main__|^def main\b|^[A-Za-z_][\w.]*\(|^(?:for|while)\b", re.MULTILINE)
"""What a script has and a module of definitions has not: statements at its top level that do something."""
NO_SCRIPT: Final = re.compile(r"test_|setup\.py|conftest\.py")
WORD: Final = re.compile(rb"\w+")

Imports = dict[str, tuple[frozenset[bytes], bool]]
"""For each file of a folder, the words of its import statements and whether it is a script to run."""


def scripts_importing(project: Project, filename: str) -> tuple[str, ...]:
    """The scripts that import ``filename``, directly or through a module of theirs."""
    if project.reader is None or filename.startswith("<") or not filename.endswith(".py"):
        return ()
    known = project.scripts.get(filename)
    if known is None:
        known = project.scripts[filename] = tuple(_scripts(project, filename))
    return known


def _scripts(project: Project, filename: str) -> Iterator[str]:
    folders = [_imports(project, folder) for folder in _folders(project, filename)]
    seen = {os.path.abspath(filename)}
    found = 0
    # The modules that import the file are gone through after it.
    targets = [filename]
    for target in targets:
        for path, is_script in _importers(folders, target):
            if os.path.abspath(path) in seen:
                continue
            if not is_script:
                if target is filename and len(targets) <= MOST_BETWEEN:
                    targets.append(path)
            elif _imports_really(project, path, target):
                seen.add(os.path.abspath(path))
                yield path
                found += 1
                if found == MOST_SCRIPTS:
                    return


def _folders(project: Project, filename: str) -> list[str]:
    own = os.path.dirname(filename)
    parent = os.path.dirname(own) if own else os.path.dirname(os.path.abspath(own))
    found = [own]
    # Outside of a project whatever lies in the folder above is somebody else's.
    top = _top(os.path.abspath(own))
    if top is not None:
        if os.path.abspath(own) != top:
            found.append(parent)
        if top not in {os.path.abspath(folder) for folder in found}:
            found.append(top)
    elif os.path.exists(os.path.join(own, "__init__.py")):
        found.append(parent)
    return found


def _top(folder: str) -> str | None:
    for _ in range(MOST_PARENTS):
        if any(os.path.exists(os.path.join(folder, sign)) for sign in TOPS):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return None


def _imports(project: Project, folder: str) -> Imports:
    known = project.folders.get(folder)
    if known is not None:
        return known
    found: Imports = {}
    try:
        names = sorted(name for name in os.listdir(folder or ".") if name.endswith(".py") and not NO_SCRIPT.match(name))
    except OSError:
        names = []
    for name in names[:MOST_FILES]:
        path = os.path.join(folder, name)
        raw = project.reader(path) if project.reader is not None else None
        if raw is not None:
            words = frozenset(word for statement in IMPORT.findall(raw) for word in WORD.findall(statement))
            # What may go wrong in a script of its own is found with it, in whatever file it is.
            found[path] = (words, STARTS.search(raw) is not None and not may_go_wrong(raw))
    project.folders[folder] = found
    return found


def _importers(folders: list[Imports], filename: str) -> list[tuple[str, bool]]:
    """The files that seem to import ``filename`` and whether they are scripts; those called like a start first."""
    stem = os.path.splitext(os.path.basename(filename))[0]
    package = os.path.basename(os.path.dirname(os.path.abspath(filename)))
    words = {package.encode()} if stem == "__init__" else {stem.encode(), package.encode()}
    paths = [
        (path, is_script)
        for imports in folders
        for path, (mentioned, is_script) in imports.items()
        if mentioned & words and path != filename
    ]
    return sorted(paths, key=lambda found: not re.match(r"main|train|run", os.path.basename(found[0])))


def _imports_really(project: Project, path: str, filename: str) -> bool:
    """Whether an import of ``path`` names ``filename``, or a package that it is in and that re-exports it."""
    source = project.source(path)
    if source is None:
        return False
    target = os.path.abspath(filename)
    packages = {os.path.join(os.path.dirname(target), "__init__.py")}
    for node in ast.walk(source.tree):
        for found in _named(project, node, path):
            absolute = os.path.abspath(found)
            if absolute == target:
                return True
            if absolute in packages and isinstance(node, ast.ImportFrom) and absolute != os.path.abspath(path):
                return True
    return False


def _named(project: Project, node: ast.AST, importer: str) -> Iterator[str]:
    """The files that an import statement names."""
    names: list[tuple[int, str]] = []
    if isinstance(node, ast.Import):
        names = [(0, alias.name) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        names = [(node.level, module)] if module or node.level else []
        names += [(node.level, f"{module}.{alias.name}".strip(".")) for alias in node.names]
    for level, name in names:
        path = project.relative(level, name, importer) if level else project.find(name, importer)
        if path is not None:
            yield path


__all__ = ["scripts_importing"]
