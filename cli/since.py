"""``--since REV``: which lines are not as they were at a git revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from .config import ConfigError
from .git import GitError, by_tree, content, is_object, stored_at
from .printable import printable_name
from .run import read_regular
from .wanted import Rows, rows_of


def changed_rows(paths: Sequence[str], revision: str) -> Mapping[str, Rows | None]:
    """Path → its changed rows, for the files that changed at all; None where all of it counts as changed.

    That is so for a file that the revision does not hold, and for a notebook: its findings count rows by cell. Raises
    ConfigError where git cannot tell.
    """
    found: dict[str, Rows | None] = {}
    trees = by_tree(paths)
    outside = set(paths) - {path for names in trees.values() for path in names.values()}
    if outside:
        raise ConfigError(f"--since {revision}: {printable_name(min(outside))} is in no git working tree")
    for top, names in trees.items():
        try:
            stored = stored_at(top, revision)
            for name, path in names.items():
                try:
                    raw = read_regular(path)
                except OSError:
                    found[path] = None  # read again later, and reported
                    continue
                if name not in stored:
                    found[path] = None
                elif not is_object(stored[name], raw):
                    found[path] = None if path.endswith(".ipynb") else _rows(content(top, stored[name]), raw)
        except GitError as error:
            raise ConfigError(f"--since {revision}: {error or 'no such revision'}") from None
    return found


def _rows(old: bytes, new: bytes) -> Rows:
    rows = []
    for tag, _, _, start, stop in SequenceMatcher(None, rows_of(old), rows_of(new), autojunk=False).get_opcodes():
        if tag == "delete":
            # What was deleted may be what is missing now: the lines around the gap count.
            rows.append((start, start + 1))
        elif tag != "equal":
            rows.append((start + 1, stop))
    return tuple(rows)
