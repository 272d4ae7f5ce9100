from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradmend.cli.app import COMMANDS
from tests.cli.conftest import Run


def test_no_arguments_show_the_help(gradmend: Run) -> None:
    assert "Usage: gradmend" in gradmend().output
    assert gradmend("--help").exit_code == 0


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_a_screen(gradmend: Run, command: str | None) -> None:
    lines = gradmend(*filter(None, [command]), "--help").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_help_all_shows_what_help_leaves_out(gradmend: Run) -> None:
    assert "--force-exclude" not in gradmend("check", "--help").stdout
    assert "--force-exclude" in gradmend("check", "--help-all").stdout


def test_help_of_the_group_says_what_each_command_says_of_itself(gradmend: Run) -> None:
    shown = gradmend("--help").stdout
    for command, summary in COMMANDS.items():
        assert command in shown
        assert summary in shown


def test_misspelt_command_and_path_in_its_place(folder: Path, gradmend: Run) -> None:
    result = gradmend("chekc")
    assert (result.exit_code, "Did you mean 'check'?" in result.stderr) == (2, True)
    (folder / "train.py").write_text("")
    assert "gradmend check train.py" in gradmend("train.py").stderr


def test_version(gradmend: Run) -> None:
    assert gradmend("--version").stdout.startswith("gradmend ")


def test_rules(gradmend: Run) -> None:
    assert gradmend("rules").stdout.splitlines()[0] == "GM101  carried-hidden-state  what carried-hidden-state is"
    assert json.loads(gradmend("rules", "--output-format", "json").stdout)[1]["name"] == "accumulated-loss"


def test_explain_prints_the_page_as_it_is(gradmend: Run) -> None:
    assert gradmend("explain", "GM102").stdout == "Page of GM102.\n"
    assert gradmend("explain", "accumulated-loss").stdout == "Page of GM102.\n"
    assert gradmend("explain", "GM1").stdout == "Page of GM101.\n\nPage of GM102.\n"
    assert [page["code"] for page in json.loads(gradmend("explain", "--all", "--output-format", "json").stdout)] == [
        "GM101",
        "GM102",
        "GM501",
    ]


def test_explain_of_what_is_no_rule(gradmend: Run) -> None:
    result = gradmend("explain", "acumulated-loss")
    assert result.exit_code == 2
    assert result.stderr.startswith('Error: no rule "acumulated-loss"; did you mean "accumulated-loss"?')
    assert gradmend("explain").exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(gradmend: Run, shell: str) -> None:
    assert "_GRADMEND_COMPLETE" in gradmend("completion", shell).stdout


def test_completion_of_rules(gradmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "gradmend explain GM10")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_GRADMEND_COMPLETE", "bash_complete")
    assert gradmend().stdout.split() == ["plain,GM101", "plain,GM102"]


def loaded_by(tmp_path: Path, source: str, *arguments: str) -> set[str]:
    """The modules that the real tool has loaded when it ends."""
    (tmp_path / "a.py").write_text(source)
    script = (
        "import sys, atexit\n"
        f"sys.argv = ['gradmend', *{list(arguments)!r}, 'a.py']\n"
        "atexit.register(lambda: print(*sys.modules, sep='\\n'))\n"
        "from gradmend.cli.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_clean_file_loads_next_to_nothing(tmp_path: Path) -> None:
    loaded = loaded_by(tmp_path, "import torch\n\nx = torch.zeros(3)\n", "check")
    heavy = {
        "libcst",
        "multiprocessing",
        "concurrent.futures",
        "pathspec",
        "subprocess",
        "tomllib",
        "json",
        "dataclasses",
    }
    assert not loaded & heavy
    assert not {name for name in loaded if name.startswith("gradmend.codemods.analysis.interp")}


def test_hook_on_a_clean_file_loads_next_to_nothing(tmp_path: Path) -> None:
    loaded = loaded_by(tmp_path, "x = 1\n", "fix", "--yes", "--force-exclude")
    assert not loaded & {"libcst", "multiprocessing", "concurrent.futures", "subprocess"}


def test_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}.py").write_text("leak(x)\n" * 400)
    script = f"{sys.executable} -m tests.cli.fake_core check --output-format concise --exit-zero | head -1"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("command", ["check", "diff", "rules", "check --output-format json", "check --show-files"])
def test_output_that_cannot_be_written_is_one_line_and_2(tmp_path: Path, command: str) -> None:
    (tmp_path / "a.py").write_text("leak(x)\n")
    script = f"{sys.executable} -m tests.cli.fake_core {command}"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for redirection in (">/dev/full", ">&-", "2>&-", "</dev/null >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{script} {redirection}"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        if redirection == ">/dev/full":
            assert "Error: the output cannot be written: no space left on device\n" in done.stderr
            assert done.returncode == 2
        else:
            assert done.returncode == (0 if command in ("rules", "check --show-files") else 1)


def test_diff_and_review_take_no_format_that_they_would_not_heed(gradmend: Run) -> None:
    for command in ("diff", "review"):
        assert gradmend(command, "--output-format", "json").exit_code == 2
