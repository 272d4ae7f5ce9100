from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def write(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\nmaybe(x)\n")
    result = gradmend("check", "--write-baseline", "known.json")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Wrote 2 findings to known.json.\n")


def left(gradmend: Run, *arguments: str) -> list[str]:
    result = gradmend("check", "--baseline", "known.json", "--output-format", "concise", *arguments)
    return [line.split(" ")[0] for line in result.stdout.splitlines()]


def test_findings_that_it_holds_are_left_out(folder: Path, gradmend: Run) -> None:
    write(folder, gradmend)
    result = gradmend("check", "--baseline", "known.json")
    assert (result.exit_code, result.stdout) == (0, "")


def test_new_ones_are_shown_even_if_lines_have_moved(folder: Path, gradmend: Run) -> None:
    write(folder, gradmend)
    (folder / "a.py").write_text("import x\n\nleak(x)\nmaybe(x)\nleak(x)\nleak(y)\n")
    assert left(gradmend) == ["a.py:5:1:", "a.py:6:1:"]


def test_fix_mends_only_the_new_ones(folder: Path, gradmend: Run) -> None:
    write(folder, gradmend)
    (folder / "a.py").write_text("import x\nleak(x)\nmaybe(x)\nleak(x)\nleak(y)\n")
    assert gradmend("fix", "--yes", "--baseline", "known.json").exit_code == 0
    assert (folder / "a.py").read_text() == "import x\nleak(x)\nmaybe(x)\nleak(x.item())\nleak(y.item())\n"


def test_entries_that_match_nothing_any_more_are_told(folder: Path, gradmend: Run) -> None:
    write(folder, gradmend)
    (folder / "a.py").write_text("leak(x)\n")
    assert (
        "warning: 1 entry of the baseline matches nothing any more"
        in gradmend("check", "--baseline", "known.json").stderr
    )
    (folder / "a.py").unlink()
    (folder / "b.py").write_text("")
    assert "2 entries of the baseline match nothing" in gradmend("check", "--baseline", "known.json").stderr


def test_names_are_relative_to_the_baseline(folder: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("leak(x)\n")
    gradmend("check", "--write-baseline", "known.json")
    assert json.loads((folder / "known.json").read_text())["findings"] == [
        {"filename": "src/a.py", "code": "GM102", "line": "leak(x)", "count": 1}
    ]
    monkeypatch.chdir(folder / "src")
    assert gradmend("check", "--baseline", "../known.json").exit_code == 0
    assert gradmend("check", "--baseline", "../known.json", str(folder)).exit_code == 0


def test_same_findings_give_the_same_bytes(folder: Path, gradmend: Run) -> None:
    write(folder, gradmend)
    before = (folder / "known.json").read_bytes()
    gradmend("check", "--write-baseline", "known.json")
    assert (folder / "known.json").read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"version": 99, "findings": []}',
        '{"version": 1}',
        '{"version": 1, "findings": [1]}',
        '{"version": 1, "findings": [{"filename": "a.py", "code": "GM102", "line": "", "count": 1000000000000}]}',
    ],
    ids=range(7),
)
def test_file_that_is_no_baseline_is_one_line(folder: Path, gradmend: Run, content: str) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    (folder / "known.json").write_text(content)
    result = gradmend("check", "--baseline", "known.json")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: known.json: ")


def test_missing_baseline_says_how_to_make_it(folder: Path, gradmend: Run) -> None:
    result = gradmend("check", "--baseline", "known.json")
    assert result.exit_code == 2
    assert "--write-baseline" in result.stderr
