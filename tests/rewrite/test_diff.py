"""The patch: git and patch have the last word on it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradmend.codemods.rewrite.diff import notebook_diff, unified_diff
from gradmend.codemods.rewrite.shortest import differences

NAMES = ["a.py", "with space.py", 'quo"te.py', "folder/é.py", "tab\t.py", "new\nline.py", "back\\slash.py"]


def run(folder: Path, command: list[str], patch: bytes) -> None:
    done = subprocess.run(command, cwd=folder, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr, patch)


@pytest.mark.parametrize("name", [*NAMES, os.fsdecode(b"bytes\xff.py")])
@pytest.mark.parametrize("tool", ["git", "patch"])
def test_git_and_patch_take_it(tmp_path: Path, name: str, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    if tool == "git":
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "apply", "--whitespace=nowarn"] if tool == "git" else ["patch", "-p1", "-s", "--binary"]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    choose = random.Random(len(name))
    for _ in range(12):
        end = choose.choice([b"\n", b"\r\n", b"\r"])
        lines = [choose.choice([b"a", b"b", b"\xe9", b"", b"\x0cc"]) + choose.choice([end, b"\n"]) for _ in range(30)]
        before = b"".join(lines)
        for _ in range(choose.randrange(1, 4)):
            place = choose.randrange(len(lines))
            lines[place : place + choose.randrange(3)] = [b"new" + end] * choose.randrange(1, 3)
        after = b"".join(lines)
        if choose.random() < 0.5:
            after = after.rstrip(b"\r\n") + b"x"
        if choose.random() < 0.5:
            before = before.rstrip(b"\r\n") + b"y"
        path.write_bytes(before)
        run(tmp_path, command, unified_diff(before, after, name).encode("utf-8", "surrogateescape"))
        assert path.read_bytes() == after


def test_the_format_to_the_letter() -> None:
    before = "".join(f"{number}\n" for number in range(1, 21))
    after = before.replace("5\n", "five\n", 1).replace("20\n", "20")
    assert unified_diff(before, after, "./a.py") == (
        "--- a/a.py\n+++ b/a.py\n"
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "@@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n"
    )


def test_no_change_is_no_patch() -> None:
    assert unified_diff(b"a\n", b"a\n", "a.py") == ""


def test_an_emptied_and_a_filled_file_have_ranges_of_zero_lines() -> None:
    assert "@@ -1 +0,0 @@" in unified_diff("a\n", "", "a.py")
    assert "@@ -0,0 +1,2 @@" in unified_diff("", "a\nb\n", "a.py")


def test_three_changed_lines_of_a_repetitive_file_are_three() -> None:
    lines = [f"    x{number % 50} = {number % 7}\n" for number in range(5000)]
    changed = list(lines)
    for place in (3, 2000, 4990):
        changed[place] = "new\n"
    patch = unified_diff("".join(lines), "".join(changed), "a.py")
    assert [line for line in patch.split("\n")[2:] if line.startswith("+")] == ["+new"] * 3


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_differences_are_right_and_apart(old: list[str], new: list[str]) -> None:
    found = differences(old, new)
    rebuilt: list[str] = []
    position = new_position = 0
    for low, high, new_low, new_high in found:
        assert old[position:low] == new[new_position:new_low]
        assert low > position or not rebuilt
        rebuilt += old[position:low] + new[new_low:new_high]
        position, new_position = high, new_high
    assert rebuilt + old[position:] == new


def test_two_long_texts_without_a_common_line_end_soon() -> None:
    assert differences(["a\n"] * 20_000, ["b\n"] * 20_000) == [(0, 20_000, 0, 20_000)]


def test_notebooks_by_cell() -> None:
    def notebook(*sources: str) -> bytes:
        return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources]}).encode()

    before, after = notebook("a = 1", "b = 2\nc = 3"), notebook("a = 1", "b = 2\nc = 4")
    patch = notebook_diff(before, after, "n.ipynb")
    assert patch == "--- n.ipynb:cell 2\n+++ n.ipynb:cell 2\n@@ -1,2 +1,2 @@\n b = 2\n-c = 3\n+c = 4\n"
