"""What git knows about the files, asked so that nothing of the repository's own is run.

A repository's configuration can name programs (filters, fsmonitor, external diff, hooks, transports). So git is asked
only for what it has stored, and the comparing is done here: an object's name is the hash of its bytes.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping

MOST_NAMES = 500
"""More of them do not go on a command line; git lists all it has then."""
THEIR_OWN = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX"})
"""Set in a hook, about the repository that is committed to; the files may lie in another."""

NO_FETCH = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""An object that is missing in a partial clone is not fetched: the repository says by which program."""


class GitError(Exception):
    """Git could not answer; the text says why."""


def _git(folder: str, *words: str, given: bytes = b"") -> bytes:
    settings = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.devnull, "-c", "core.quotePath=false")
    environment = {key: value for key, value in os.environ.items() if key not in THEIR_OWN}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"} | NO_FETCH
    try:
        done = subprocess.run(
            ["git", "-C", folder, *settings, *words],
            input=given,
            capture_output=True,
            env=environment,
            check=False,
        )
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror}") from None
    if done.returncode:
        raise GitError((done.stderr.decode(errors="replace").strip() or "git failed").removeprefix("fatal: "))
    return done.stdout


def top_of(folder: str) -> str | None:
    """The root (real path) of the working tree that holds ``folder``, None where there is none."""
    above = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(above, ".git")):
        parent = os.path.dirname(above)
        if parent == above:
            return None
        above = parent
    return above


def by_tree(paths: Iterable[str]) -> Mapping[str, dict[str, str]]:
    """Paths by working tree: root → name in it → path as given. Those in no working tree are left out."""
    tops: dict[str, str | None] = {}
    trees: dict[str, dict[str, str]] = defaultdict(dict)
    for path in paths:
        folder = os.path.dirname(path) or os.curdir
        if folder not in tops:
            tops[folder] = top_of(folder)
        top = tops[folder]
        if top is not None:
            real = os.path.join(os.path.realpath(folder), os.path.basename(path))
            trees[top][os.path.relpath(real, top).replace(os.sep, "/")] = path
    return trees


def dirty(contents: Mapping[str, bytes]) -> list[str]:
    """Those of the files (path → bytes on disk) that git tracks and whose bytes are not what its index holds.

    These changes would be mixed with ours and could not be had back. Untracked files do not count: git has nothing to
    compare them with. Where git cannot be asked nothing is dirty.
    """
    found = []
    for top, names in by_tree(contents).items():
        try:
            few = [f":(literal){name}" for name in names] if len(names) <= MOST_NAMES else []
            listed = _git(top, "ls-files", "-s", "-z", "--", *few)
        except GitError:
            continue
        for entry in listed.split(b"\0"):
            head, _, name = entry.partition(b"\t")
            path = names.get(os.fsdecode(name))
            if path is not None and not is_object(head.split()[1].decode(), contents[path]):
                found.append(path)
    return sorted(set(found))


def is_object(name: str, raw: bytes) -> bool:
    """Whether git would store ``raw`` under ``name``, as it is or with its line ends made LF."""
    return any(_object_name(text, len(name)) == name for text in (raw, raw.replace(b"\r\n", b"\n")))


def _object_name(raw: bytes, length: int) -> str:
    make = hashlib.sha1 if length == 40 else hashlib.sha256
    return make(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def stored_at(top: str, revision: str) -> Mapping[str, str]:
    """Name in the tree → object name, as of ``revision`` (``REV...``: where HEAD forked off it). Raises GitError."""
    wanted = revision.removesuffix("...")
    commit = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{wanted}^{{commit}}").decode().strip()
    if revision.endswith("..."):
        commit = _git(top, "merge-base", commit, "HEAD").decode().strip()
    listed = _git(top, "ls-tree", "-r", "-z", "--full-tree", commit)
    entries = (entry.partition(b"\t") for entry in listed.split(b"\0") if entry)
    return {os.fsdecode(name): head.split()[2].decode() for head, _, name in entries}


def content(top: str, name: str) -> bytes:
    """The bytes of the object ``name``. Raises GitError."""
    return _git(top, "cat-file", "blob", name)
