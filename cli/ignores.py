"""What a walk leaves out: the folders nobody means, the configuration's ``exclude``, and what git ignores.

All globs are gitignore's own, through pathspec, so that one language serves ``.gitignore``, ``exclude`` and
``per-file-ignores``. pathspec is imported when the first glob is met; a hook on a few files meets none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from .config import Settings

USUAL_EXCLUDES = frozenset(
    # Ruff's list, and the caches of package managers: a tool that writes must not reach what other tools own.
    (
        "__pycache__",
        "__pypackages__",
        "_build",
        ".bzr",
        ".cache",
        ".conda",
        ".direnv",
        ".eggs",
        ".git",
        ".git-rewrite",
        ".hg",
        ".hypothesis",
        ".ipynb_checkpoints",
        ".local",
        ".mypy_cache",
        ".nox",
        ".pants.d",
        ".pyenv",
        ".pytest_cache",
        ".pytype",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        ".vscode",
        "buck-out",
        "dist",
        "node_modules",
        "site-packages",
        "venv",
    )
)


@lru_cache(maxsize=4096)
def compiled(lines: tuple[str, ...]) -> GitIgnoreSpec:
    """A matcher for gitignore ``lines``; a line that git could not read either is left out."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_valid(line)])


def _is_valid(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def verdict(lines: tuple[str, ...], base: str, path: str, is_folder: bool) -> bool | None:
    """Whether ``lines``, written for ``base``, leave ``path`` out: yes, no (``!``), or nothing said. Absolute paths."""
    if not lines:
        return None
    relative = os.path.relpath(path, base).replace(os.sep, "/")
    if relative.startswith("../"):
        return None
    return compiled(lines).check_file(f"{relative}/" if is_folder else relative).include


def is_excluded(path: str, is_folder: bool, settings: Settings) -> bool:
    """Whether the configuration or the command line leaves ``path`` (absolute) itself out."""
    if os.path.basename(path) in USUAL_EXCLUDES:
        return True
    return any(
        verdict(lines, os.path.abspath(base), path, is_folder)
        for lines, base in (
            (settings.exclude or (), settings.folder),
            (settings.extend_exclude, settings.folder),
            (settings.line_excludes, os.curdir),
        )
    )


def is_excluded_anywhere(path: str, settings: Settings) -> bool:
    """Whether ``path`` or a folder on the way to it is excluded: for a named file under ``--force-exclude``."""
    path = os.path.abspath(path)
    if is_excluded(path, False, settings):
        return True
    stop = os.path.abspath(settings.folder if settings.source else os.curdir)
    folder = os.path.dirname(path)
    while folder.startswith(stop) and folder != stop:
        if is_excluded(folder, True, settings):
            return True
        folder = os.path.dirname(folder)
    return False


def _lines(path: str) -> tuple[str, ...]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return tuple(line for line in file.read().splitlines() if line.strip() and not line.startswith("#"))
    except OSError:
        return ()


class GitIgnores:
    """The ignore files that hold for a walk, from the repository's root (or the walk's) down to each folder."""

    def __init__(self, folder: str) -> None:
        """``folder`` (absolute) is where the walk begins; ignore files above it count up to the repository's root."""
        self._layers: list[tuple[str, tuple[str, ...]]] = []
        above = folder
        while not os.path.lexists(os.path.join(above, ".git")):
            parent = os.path.dirname(above)
            if parent == above:
                above = folder
                break
            above = parent
        self._enter_repository(above)
        if above != folder:
            steps = os.path.relpath(folder, above).split(os.sep)
            for index in range(len(steps)):
                self._add(os.path.join(above, *steps[:index]))

    def _enter_repository(self, top: str) -> None:
        everyone = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        for path in (os.path.join(everyone, "git", "ignore"), os.path.join(top, ".git", "info", "exclude")):
            lines = _lines(path)
            if lines:
                self._layers.append((top, lines))

    def _add(self, folder: str) -> None:
        lines = _lines(os.path.join(folder, ".gitignore"))
        if lines:
            self._layers.append((folder, lines))

    def enter(self, folder: str, names: Iterable[str]) -> int:
        """Read what ``folder`` (absolute, holding ``names``) adds; gives the mark to ``leave`` by."""
        mark = len(self._layers)
        if ".gitignore" in names:
            self._add(folder)
        return mark

    def leave(self, mark: int) -> None:
        """Forget what was read since ``mark``."""
        del self._layers[mark:]

    def leaves_out(self, path: str, is_folder: bool) -> bool:
        """Whether git would ignore ``path`` (absolute); the nearest ignore file that says anything decides."""
        for base, lines in reversed(self._layers):
            said = verdict(lines, base, path, is_folder)
            if said is not None:
                return said
        return False
