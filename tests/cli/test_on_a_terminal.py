"""Everything but the review that is different on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pexpect = pytest.importorskip("pexpect")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no pseudo-terminal there")

ROOT = Path(__file__).parents[2]
# As for a user who has set nothing; the size is the terminal's own.
THEIRS = {"NO_COLOR", "FORCE_COLOR", "PAGER", "LESS", "COLUMNS", "LINES"}
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in THEIRS} | {"PYTHONPATH": str(ROOT)}
Terminal = Callable[..., Any]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """Start ``gradmend`` on the toy core in a terminal of its own."""
    children = []

    def start(*arguments: str, **environment: str) -> Any:
        child = pexpect.spawn(
            sys.executable,
            ["-m", "tests.cli.fake_core", *arguments],
            cwd=str(tmp_path),
            env={**ENVIRONMENT, "TERM": "xterm", **environment},
            dimensions=(24, 80),
            encoding="utf-8",
            timeout=20,
        )
        child.delaybeforesend = None
        children.append(child)
        return child

    yield start
    for child in children:
        child.close(force=True)


def end(child: Any) -> tuple[str, int]:
    child.expect(pexpect.EOF)
    child.close()
    return child.before, child.exitstatus


def test_fix_shows_the_patch_and_asks_once(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "a.py").write_text("leak(x)\n")
    (tmp_path / "b.py").write_text("leak(x)\n")
    child = terminal("fix")
    child.expect_exact("Apply 2 repairs to 2 files? [y/N]: ")
    assert "\x1b[32m+leak(x.item())" in child.before
    assert (tmp_path / "a.py").read_text() == "leak(x)\n"
    child.sendline("y")
    shown, status = end(child)
    assert "Mended 2 findings in 2 files." in shown
    assert status == 0
    assert (tmp_path / "b.py").read_text() == "leak(x.item())\n"


@pytest.mark.parametrize(("answer", "status"), [("n", 1), ("", 1)])
def test_no_writes_nothing(tmp_path: Path, terminal: Terminal, answer: str, status: int) -> None:
    (tmp_path / "a.py").write_text("leak(x)\n")
    child = terminal("fix")
    child.expect_exact("[y/N]: ")
    child.sendline(answer)
    shown, left_with = end(child)
    assert "Nothing is written." in shown
    assert left_with == status
    assert (tmp_path / "a.py").read_text() == "leak(x)\n"


def test_ctrl_c_at_the_question_writes_nothing(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "a.py").write_text("leak(x)\n")
    child = terminal("fix")
    child.expect_exact("[y/N]: ")
    child.send("\x03")
    assert end(child)[1] == 130
    assert (tmp_path / "a.py").read_text() == "leak(x)\n"


def test_nothing_to_mend_asks_nothing(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    shown, status = end(terminal("fix"))
    assert "Nothing to mend in 1 file." in shown
    assert status == 0


def test_long_patch_goes_through_the_pager(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "a.py").write_text("leak(x)\n" * 100)
    pager = tmp_path / "pager.sh"
    pager.write_text("#!/bin/sh\nwc -l > seen\n")
    pager.chmod(0o755)
    assert end(terminal("diff", PAGER=str(pager)))[1] == 1
    assert int((tmp_path / "seen").read_text()) > 200
    (tmp_path / "seen").unlink()
    (tmp_path / "a.py").write_text("leak(x)\n")
    assert "+leak(x.item())" in end(terminal("diff", PAGER=str(pager)))[0]
    assert not (tmp_path / "seen").exists()


def test_check_is_coloured_unless_told_not_to(tmp_path: Path, terminal: Terminal) -> None:
    (tmp_path / "a.py").write_text("leak(x)\n")
    assert "\x1b[33m\x1b[1mGM102" in end(terminal("check"))[0]
    assert "\x1b" not in end(terminal("check", NO_COLOR="1"))[0]
    assert "\x1b" not in end(terminal("check", TERM="dumb"))[0]


def test_bar_after_a_second_of_work(tmp_path: Path, terminal: Terminal) -> None:
    for number in range(6):
        (tmp_path / f"{number}.py").write_text("slow(1)\n")
    shown, _ = end(terminal("check", "--jobs", "1"))
    assert "Reading" in shown
    assert "6/6" in shown
    shown, _ = end(terminal("check", "--quiet", "--jobs", "1"))
    assert "Reading" not in shown


def test_no_bar_for_quick_work(tmp_path: Path, terminal: Terminal) -> None:
    for number in range(6):
        (tmp_path / f"{number}.py").write_text("leak(x)\n")
    assert "Reading" not in end(terminal("check"))[0]


@pytest.mark.parametrize(
    "arguments", [["check"], ["check", "--show-files"], ["diff"], ["fix"], ["review"]], ids=" ".join
)
def test_names_and_sources_cannot_drive_the_terminal(tmp_path: Path, terminal: Terminal, arguments: list[str]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    (tmp_path / f"a{evil}\n.py").write_text(f"# {evil}\nleak(x)  # {evil}\n")
    child = terminal(*arguments, NO_COLOR="1")
    if arguments[0] in ("fix", "review"):
        child.expect_exact("[y/N]: " if arguments == ["fix"] else "]? ")
        shown = child.before
        child.send("n\n" if arguments == ["fix"] else "q")
        shown += end(child)[0]
    else:
        shown, _ = end(child)
    assert "a\\x1b]0;owned\\x07\\x1b[2J\\u202e\\n.py" in shown or arguments in (["diff"], ["fix"])
    assert not set(shown) & set(evil[:1] + evil[-1:] + "\x07")
