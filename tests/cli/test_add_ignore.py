from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_comment_goes_alone_on_the_line_above(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("for x in y:\n    leak(x)\n\tmaybe(x)\n".replace("\t", "    "))
    result = gradmend("check", "--add-ignore")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Added suppressions for 2 findings in 1 file.\n"
    assert (folder / "a.py").read_text() == (
        "for x in y:\n    # gradmend: ignore[GM102]\n    leak(x)\n    # gradmend: ignore[GM101]\n    maybe(x)\n"
    )
    assert gradmend("check").exit_code == 0


def test_reason_and_path(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    (folder / "b.py").write_text("leak(x)\n")
    gradmend("check", "--add-ignore=later, see #12", "a.py")
    assert (folder / "a.py").read_text() == "# gradmend: ignore[GM102] later, see #12\nleak(x)\n"
    gradmend("check", "--add-ignore", "b.py")
    assert (folder / "b.py").read_text() == "# gradmend: ignore[GM102]\nleak(x)\n"


def test_present_comment_is_added_to(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("# gradmend: ignore[GM999] why\nleak(x)\n")
    gradmend("check", "--add-ignore")
    assert (folder / "a.py").read_text() == "# gradmend: ignore[GM102, GM999] why\nleak(x)\n"


def test_crlf_stays(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_bytes(b"x = 1\r\nleak(x)\r\n")
    gradmend("check", "--add-ignore")
    assert (folder / "a.py").read_bytes() == b"x = 1\r\n# gradmend: ignore[GM102]\r\nleak(x)\r\n"


def test_where_no_comment_helps_nothing_is_written(folder: Path, gradmend: Run) -> None:
    # The toy core sees a comment on the line above only; the statement begins two lines above.
    text = "f(\n    1,\n    leak(x))\n"
    (folder / "a.py").write_text(text)
    result = gradmend("check", "--add-ignore")
    assert result.exit_code == 2
    assert "no suppression could be placed" in result.stderr
    assert (folder / "a.py").read_text() == text


def test_notebook(folder: Path, gradmend: Run) -> None:
    cell: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": ["leak(x)\n", "y"],
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "a.ipynb").write_text(json.dumps(notebook, indent=1))
    assert gradmend("check", "--add-ignore").exit_code == 0
    source = json.loads((folder / "a.ipynb").read_text())["cells"][0]["source"]
    assert source == ["# gradmend: ignore[GM102]\n", "leak(x)\n", "y"]


@pytest.mark.parametrize("reason", ["two\nlines", "a\rb"])
def test_reason_of_two_lines_is_refused(folder: Path, gradmend: Run, reason: str) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    assert gradmend("check", f"--add-ignore={reason}").exit_code == 2
    assert (folder / "a.py").read_text() == "leak(x)\n"
