from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.conftest import Run

LEAK = "for x in y:\n    z = 1\n    leak(x)\n"
PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n for x in y:\n     z = 1\n-    leak(x)\n+    leak(x.item())\n"


def test_prints_the_patch_writes_nothing_and_is_1(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    result = gradmend("diff")
    assert (result.exit_code, result.stdout) == (1, PATCH)
    assert result.stderr == "Would mend 1 finding in 1 file.\n"
    assert (folder / "a.py").read_text() == LEAK
    assert gradmend("check", "--diff").stdout == PATCH


def test_nothing_to_mend_is_0(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("x = 1\n")
    result = gradmend("diff")
    assert (result.exit_code, result.stdout) == (0, "")


def test_git_and_patch_take_it(folder: Path, gradmend: Run) -> None:
    (folder / "sub").mkdir()
    contents = {
        "a.py": LEAK.encode(),
        "no_end.py": b"leak(x)",
        "crlf.py": b"x = 1\r\nleak(x)\r\n",
        "latin.py": b"# coding: latin-1\nleak(x)  # \xe9\n",
        "sub/b c.py": b"leak(x)\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "all.patch").write_bytes(gradmend("diff").stdout_bytes)
    subprocess.run(["git", "apply", "--check", "all.patch"], check=True)
    subprocess.run(["patch", "-p1", "--binary", "-s", "-i", "all.patch"], check=True)
    for name, content in contents.items():
        assert (folder / name).read_bytes() == content.replace(b"leak(x)", b"leak(x.item())")


def test_output_file(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    assert gradmend("diff", "--output-file", "out.patch").stdout == ""
    assert (folder / "out.patch").read_text() == PATCH


def test_standard_input(gradmend: Run) -> None:
    assert gradmend("diff", "-", "--stdin-filename", "a.py", given=LEAK).stdout == PATCH


def test_colours_are_for_people_only(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("# \x1b[2J\n" + LEAK)
    shown = gradmend("diff", "--color", "always").stdout
    assert "\x1b[32m+    leak(x.item())" in shown
    assert "\x1b[2J" not in shown
