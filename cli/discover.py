"""From the paths on the command line to the files to look at.

A path that is named is looked at whatever the excludes say (unless ``--force-exclude``); a folder is walked. Links are
never followed in a walk: what they lead to inside the tree is met under its own name, and what lies outside was not
asked for. Nothing but regular files is opened, so a FIFO or a device cannot hang the run.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from .config import Configuration, Settings
from .ignores import GitIgnores, is_excluded, is_excluded_anywhere

SUFFIXES = (".py", ".ipynb")


class File(NamedTuple):
    """A file to look at."""

    path: str
    """As typed, or as typed plus the way down from the folder typed."""
    named: bool
    """Whether the command line names it, rather than a folder above it."""
    tree: str
    """The folder (absolute) that writing must not leave."""
    settings: Settings


class Discovery:
    """What was found, sorted, and what must be said about the rest."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self.errors: dict[str, str] = {}
        """Paths that could not be looked at, and why."""
        self.links_out: list[str] = []
        """Links in the walked folders that lead out of them, not followed."""
        self.torn: dict[str, str] = {}
        """Files whose writing was killed, and where their old bytes are."""


def discover(paths: tuple[str, ...], configuration: Configuration) -> Discovery:
    """The files under ``paths`` (``.`` if there are none), each once, sorted by path. Raises ConfigError."""
    found = Discovery()
    for path in paths or (os.curdir,):
        path = _tidy(path)
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            found.errors[path] = _why(path, error)
            continue
        except ValueError:
            found.errors[path] = "not a path"
            continue
        if stat.S_ISDIR(mode):
            _Walk(path, configuration, found).run()
        elif stat.S_ISREG(mode):
            settings = configuration.of(os.path.dirname(path) or os.curdir)
            if not (settings.force_exclude and is_excluded_anywhere(path, settings)):
                found.files.append(File(path, True, tree_of(path, os.path.dirname(path)), settings))
        else:
            found.errors[path] = "not a regular file"
    if len(paths) > 1:
        found.files = _each_once(found.files)
    found.files.sort(key=lambda file: file.path)
    return found


def tree_of(path: str, otherwise: str) -> str:
    """The folder that writing to ``path`` must not leave: the working folder if it lies in it, else ``otherwise``."""
    here = os.getcwd()
    inside = os.path.abspath(path)
    return here if inside == here or inside.startswith(os.path.join(here, "")) else os.path.abspath(otherwise)


def _tidy(path: str) -> str:
    # ``link/..`` is not the folder that holds ``link``, so a path with ``..`` stays as typed.
    return path if ".." in path.split(os.sep) else os.path.normpath(path)


def _why(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "a link that leads nowhere" if os.path.islink(path) else "no such file or folder"
    return (error.strerror or str(error)).lower()


def _each_once(files: list[File]) -> list[File]:
    once: dict[str, File] = {}
    for file in files:
        real = os.path.realpath(file.path)
        if real not in once or (file.named and not once[real].named):
            once[real] = file
    return list(once.values())


class _Walk:
    """One walk down from a folder on the command line."""

    def __init__(self, top: str, configuration: Configuration, found: Discovery) -> None:
        self._top = top
        self._tree = tree_of(top, top)
        self._real_top = os.path.join(os.path.realpath(top), "")
        self._configuration = configuration
        self._found = found
        self._ignores: GitIgnores | None = None

    def run(self) -> None:
        if self._configuration.of(self._top).respect_gitignore:
            self._ignores = GitIgnores(os.path.abspath(self._top))
        self._folder("" if self._top == os.curdir else self._top, os.path.abspath(self._top))

    def _folder(self, path: str, absolute: str) -> None:
        try:
            with os.scandir(path or os.curdir) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._found.errors[path] = _why(path, error)
            return
        names = {entry.name for entry in entries}
        if "pyvenv.cfg" in names and path != self._top:
            return  # a virtual environment, whatever it is called
        settings = self._configuration.of(path or os.curdir)
        mark = self._ignores.enter(absolute, names) if self._ignores else 0
        for entry in entries:
            wanted = entry.name.endswith(SUFFIXES)
            if entry.is_symlink():
                self._link(entry, wanted)
                continue
            if entry.name.startswith(".gradmend-"):
                self._leftover(path, entry.name, names)
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not (wanted and entry.is_file(follow_symlinks=False)):
                continue
            below = os.path.join(absolute, entry.name)
            if is_excluded(below, is_folder, settings) or (
                self._ignores is not None and self._ignores.leaves_out(below, is_folder)
            ):
                continue
            shown = os.path.join(path, entry.name)
            if is_folder:
                self._folder(shown, below)
            else:
                self._found.files.append(File(shown, False, self._tree, settings))
        if self._ignores:
            self._ignores.leave(mark)

    def _leftover(self, path: str, name: str, names: set[str]) -> None:
        from .write import kept_for

        torn = kept_for(name, names)
        if torn is not None:
            self._found.torn[os.path.join(path, torn)] = os.path.join(path, name)

    def _link(self, entry: os.DirEntry[str], wanted: bool) -> None:
        if (wanted or entry.is_dir()) and not os.path.realpath(entry.path).startswith(self._real_top):
            self._found.links_out.append(os.path.normpath(entry.path))
