from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gradmend.cli import write as writing
from gradmend.cli.write import WriteError, write
from tests.benchmarks import kills
from tests.cli.conftest import Run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes, links and kill are POSIX's")
OLD, NEW = b"old text\n", b"the new text\n"


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "a.py"
    path.write_bytes(OLD)
    return path


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_replaces_and_leaves_nothing_else(folder: Path, file: Path) -> None:
    write("a.py", OLD, NEW, str(folder))
    assert file.read_bytes() == NEW
    assert names(folder) == ["a.py"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664, 0o4755])
def test_keeps_the_mode(folder: Path, file: Path, mode: int) -> None:
    file.chmod(mode)
    write("a.py", OLD, NEW, str(folder))
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_keeps_the_owner(folder: Path, file: Path) -> None:
    os.chown(file, 12345, 23456)
    write("a.py", OLD, NEW, str(folder))
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)


def test_owner_that_we_may_not_give_is_kept_by_writing_in_place(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.stat()
    monkeypatch.setattr(os, "geteuid", lambda: before.st_uid + 1)
    write("a.py", OLD, NEW, str(folder))
    assert file.read_bytes() == NEW
    assert file.stat().st_ino == before.st_ino
    assert names(folder) == ["a.py"]


def test_extended_attributes_stay(folder: Path, file: Path) -> None:
    try:
        os.setxattr(file, "user.note", b"mine")
    except (OSError, AttributeError):
        pytest.skip("this file system has none")
    write("a.py", OLD, NEW, str(folder))
    assert os.getxattr(file, "user.note") == b"mine"


def test_hard_links_stay_links(folder: Path, file: Path) -> None:
    os.link(file, folder / "b.py")
    write("a.py", OLD, NEW, str(folder))
    assert (folder / "b.py").read_bytes() == NEW
    assert file.stat().st_nlink == 2
    assert names(folder) == ["a.py", "b.py"]


@pytest.mark.parametrize("new", [NEW, b""])
def test_hard_linked_file_is_put_back_when_the_disk_is_full(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch, new: bytes
) -> None:
    os.link(file, folder / "b.py")
    real = os.ftruncate

    def full(handle: int, length: int) -> None:
        if length == len(new):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle, length)

    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(WriteError, match="no space left"):
        write("a.py", OLD, new, str(folder))
    assert file.read_bytes() == OLD


def test_link_inside_the_tree_stays_a_link(folder: Path, file: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "link.py").symlink_to("../a.py")
    write("sub/link.py", OLD, NEW, str(folder))
    assert (folder / "sub" / "link.py").is_symlink()
    assert file.read_bytes() == NEW


def test_link_out_of_the_tree_is_refused(folder: Path, file: Path) -> None:
    (folder / "tree").mkdir()
    (folder / "tree" / "link.py").symlink_to(file)
    (folder / "tree" / "way").symlink_to(folder)
    for path in ("tree/link.py", "tree/way/a.py"):
        with pytest.raises(WriteError, match="out of the tree"):
            write(path, OLD, NEW, str(folder / "tree"))
    assert file.read_bytes() == OLD


def test_tree_that_is_itself_reached_by_a_link_is_no_way_out(folder: Path, file: Path) -> None:
    (folder / "tree").mkdir()
    (folder / "tree" / "b.py").write_bytes(OLD)
    (folder / "link").symlink_to("tree")
    write(str(folder / "link" / "b.py"), OLD, NEW, str(folder / "link"))
    assert (folder / "tree" / "b.py").read_bytes() == NEW


def test_file_that_changed_since_it_was_read_is_refused(folder: Path, file: Path) -> None:
    file.write_bytes(b"somebody's work\n")
    with pytest.raises(WriteError, match="has changed"):
        write("a.py", OLD, NEW, str(folder))
    assert file.read_bytes() == b"somebody's work\n"


def test_file_that_is_gone_or_no_file_any_more_is_refused(folder: Path, file: Path) -> None:
    file.unlink()
    with pytest.raises(WriteError):
        write("a.py", OLD, NEW, str(folder))
    os.mkfifo(file)
    with pytest.raises(WriteError):
        write("a.py", OLD, NEW, str(folder))


def test_read_only_file_is_refused_even_for_root(folder: Path, file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(WriteError, match="read-only"):
        write("a.py", OLD, NEW, str(folder))
    assert file.read_bytes() == OLD


def test_folder_that_takes_no_files_is_refused(folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WriteError, match="permission denied"):
        write("a.py", OLD, NEW, str(folder))
    assert file.read_bytes() == OLD


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_disk_full_leaves_the_old_file_and_no_draft(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, where, full)
    with pytest.raises(WriteError, match="no space left on device"):
        write("a.py", OLD, NEW, str(folder))
    assert file.read_bytes() == OLD
    assert names(folder) == ["a.py"]


def test_ctrl_c_in_the_middle_leaves_the_old_file_and_no_draft(
    folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write("a.py", OLD, NEW, str(folder))
    assert file.read_bytes() == OLD
    assert names(folder) == ["a.py"]


def test_draft_of_a_killed_run_is_cleared_away(folder: Path, file: Path) -> None:
    Path(writing.beside(str(file), writing.DRAFT)).write_bytes(b"half")
    write("a.py", OLD, NEW, str(folder))
    assert names(folder) == ["a.py"]


def test_longest_name_that_a_folder_takes(folder: Path) -> None:
    name = "x" * 252 + ".py"
    (folder / name).write_bytes(OLD)
    write(name, OLD, NEW, str(folder))
    assert (folder / name).read_bytes() == NEW


def test_two_at_once_never_lose_the_work_of_the_first(folder: Path, file: Path) -> None:
    outcomes = []

    def work(new: bytes) -> None:
        try:
            write("a.py", OLD, new, str(folder))
            outcomes.append(new)
        except WriteError:
            pass

    threads = [threading.Thread(target=work, args=(f"text {number}\n".encode(),)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [file.read_bytes()] == outcomes


KILLED = """
import sys
from gradmend.cli.write import write
for number in range(10_000):
    for path in sys.argv[1:]:
        old = open(path, "rb").read()
        new = (str(number) * 20_000 + "\\n").encode()
        write(path, old, new, ".")
        print(flush=True)
"""


def test_killed_at_any_moment_every_file_is_whole(folder: Path) -> None:
    paths = [folder / f"{number}.py" for number in range(3)]
    for path in paths:
        path.write_text("0" * 20_000 + "\n")
    for attempt in range(12):
        process = subprocess.Popen([sys.executable, "-c", KILLED, *map(str, paths)], stdout=subprocess.PIPE, cwd=folder)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * attempt)
        process.kill()
        process.wait()
        process.stdout.close()
        for path in paths:
            text = path.read_text()
            assert text.endswith("\n")
            assert text == text[: len(text) // 20_000] * 20_000 + "\n"
    for path in paths:
        old = path.read_bytes()
        write(str(path), old, OLD, str(folder))
    assert names(folder) == sorted(path.name for path in paths)


def test_file_that_was_torn_by_a_kill_is_told_with_the_place_of_its_old_bytes(
    folder: Path, file: Path, gradmend: Run
) -> None:
    kept = os.path.basename(writing.beside(str(file), writing.KEPT))
    (folder / kept).write_bytes(OLD)
    file.write_bytes(b"x = 1\n")
    assert (
        f"warning: a.py: a run was killed while writing it; its old bytes are in {kept}\n" in gradmend("check").stderr
    )


def test_killed_fix_leaves_every_file_old_or_new_and_the_next_one_ends_the_work(folder: Path) -> None:
    tree = kills.Tree(folder, 60)
    seen = kills.kill_often(tree, 6, seed=1)
    assert set(seen) <= {
        "killed", "killed among the writes", "files old", "files new", "drafts left",
        "files torn, old bytes kept", "copies of old bytes left",
    }  # fmt: skip
    assert seen["killed"]
    process = tree.start()
    process.communicate()
    assert tree.state() == {"new": 60}
    assert tree.leftovers() == []
