"""New bytes into a file, so that it is at every moment whole: the old text or the new one.

The ordinary way is a draft in the same folder, flushed to disk, given the old file's mode and owner, and renamed over
it. Two kinds of file would lose something by a rename, the link to their other names (hard links) or an owner that we
may not give away. These are written in place, as vim does, with the old bytes kept beside them until that is done.

Refused, with the reason: a file whose bytes are no longer those that were analysed, a read-only file, one that the way
through a link puts outside the tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from .run import read_regular

PREFIX = ".gradmend-"
DRAFT = "draft"
KEPT = "old"


class WriteError(Exception):
    """The file is as it was; the text says why."""


def write(path: str, old: bytes, new: bytes, tree: str) -> None:
    """Replace ``old``, what ``path`` held when it was analysed, by ``new``. Raises WriteError.

    ``tree`` is the folder that the file's real place must lie in.
    """
    real = os.path.realpath(path)
    if os.path.commonpath([real, os.path.realpath(tree)]) != os.path.realpath(tree):
        raise WriteError(f"leads out of the tree by a link; name {real} to have it changed")
    try:
        with _locked(real):
            _replace(real, old, new)
    except OSError as error:
        raise WriteError(f"not written: {(error.strerror or str(error)).lower()}") from None


def _replace(path: str, old: bytes, new: bytes) -> None:
    before = os.lstat(path)
    if not before.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise WriteError("is read-only, left as it is")
    if read_regular(path) != old:
        raise WriteError("has changed since it was read, left as it is; run again")
    if before.st_nlink > 1 or not _may_give(before):
        _write_in_place(path, old, new)
    else:
        _write_and_rename(path, new, before)


def _may_give(before: os.stat_result) -> bool:
    """Whether a new file of ours can have the owner and group of the old one."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return True
    return before.st_uid == os.geteuid() and before.st_gid in {os.getegid(), *os.getgroups()}


def _write_and_rename(path: str, new: bytes, before: os.stat_result) -> None:
    draft = beside(path, DRAFT)
    try:
        with _created(draft) as handle:
            _copy_metadata(path, handle, before)
            _write_all(handle, new)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _sync_folder(path)


def _write_in_place(path: str, old: bytes, new: bytes) -> None:
    kept = beside(path, KEPT)
    with _created(kept) as handle:
        _write_all(handle, old)
    _sync_folder(path)
    handle = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    try:
        try:
            _write_all(handle, new)
            os.ftruncate(handle, len(new))
        except BaseException:
            os.lseek(handle, 0, os.SEEK_SET)
            _write_all(handle, old)
            os.ftruncate(handle, len(old))
            raise
        os.fsync(handle)
    finally:
        os.close(handle)
    os.unlink(kept)


def beside(path: str, purpose: str) -> str:
    """The name of our own file for ``path``, in its folder: always the same, so that a killed run leaves no heap."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f"{PREFIX}{sha256(os.fsencode(name)).hexdigest()[:16]}.{purpose}")


def kept_for(entry: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` whose old bytes ``entry``, a name in the same folder, holds since a run was killed."""
    if not (entry.startswith(PREFIX) and entry.endswith(f".{KEPT}")):
        return None
    return next((name for name in names if beside(name, KEPT) == entry), None)


@contextmanager
def _created(path: str) -> Iterator[int]:
    """A new file open for writing, on disk when left. One that is there already a killed run left."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        yield handle
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _copy_metadata(path: str, handle: int, before: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        os.fchown(handle, before.st_uid, before.st_gid)
        os.fchmod(handle, stat.S_IMODE(before.st_mode))
    if hasattr(os, "listxattr"):
        # What a file system or our rights do not allow to copy, an editor would lose too.
        with suppress(OSError):
            for name in os.listxattr(path):
                with suppress(OSError):
                    os.setxattr(handle, name, os.getxattr(path, name))


def _sync_folder(path: str) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        handle = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Keep other gradmends off ``path`` between the last look at it and the rename.

    The lock is on the file that the name meant when it was opened; the look that follows is by name, so whoever waited
    for a lock on a file that was replaced in the meantime sees the new bytes and refuses.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        # A file system without locks (some network ones) is no reason not to write.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
