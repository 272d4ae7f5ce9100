from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run

LEAK = "for x in y:\n    z = 1\n    leak(x)\n"


def test_clean_file_is_0_and_says_so_on_stderr(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("x = 1\n")
    result = gradmend("check")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No findings in 1 file.\n")


def test_findings_are_1_with_data_on_stdout_and_talk_on_stderr(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    result = gradmend("check")
    assert result.exit_code == 1
    assert result.stdout.startswith("GM102 [*] accumulated-loss: `x` leaks\n --> a.py:3:5\n")
    assert result.stderr == "Found 1 finding.\n[*] 1 repairable with `gradmend fix`.\n"


def test_full_shows_places_reason_and_repair(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    assert gradmend("check").stdout == (
        "GM102 [*] accumulated-loss: `x` leaks\n"
        " --> a.py:3:5\n"
        "  |\n"
        "1 | for x in y:\n"
        "2 |     z = 1\n"
        "  | - freed here\n"
        "3 |     leak(x)\n"
        "  |     ^^^^^^^ recorded here\n"
        "  |\n"
        "help: item `x` (safe: `gradmend fix` applies it)\n"
        "  |\n"
        "2 |     z = 1\n"
        "  -     leak(x)\n"
        "3 +     leak(x.item())\n"
        "  |\n"
        "\n"
    )


def test_unsafe_repair_is_shown_with_the_flag_that_applies_it(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("maybe(x)\n")
    result = gradmend("check")
    assert "[*]" in result.stdout
    assert "`gradmend fix --unsafe` applies it" in result.stdout
    assert "[*] 1 repairable with `gradmend fix --unsafe`." in result.stderr


def test_finding_without_repair_has_no_mark(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("hopeless(x)\n")
    result = gradmend("check", "--output-format", "concise")
    assert result.stdout == "a.py:1:1: GM501 `x` leaks\n"
    assert result.stderr == "Found 1 finding.\n"


def test_json_has_exactly_the_documented_shape(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(LEAK)
    stretch = {"location": {"row": 3, "column": 5}, "end_location": {"row": 3, "column": 12}}
    assert json.loads(gradmend("check", "--output-format", "json").stdout) == [
        {
            "code": "GM102",
            "name": "accumulated-loss",
            "message": "`x` leaks",
            "filename": "a.py",
            "severity": "warning",
            "cell": None,
            **stretch,
            "places": [
                {"role": "recorded", "filename": "a.py", **stretch, "label": "recorded here"},
                {
                    "role": "freed",
                    "filename": "a.py",
                    "location": {"row": 2, "column": 1},
                    "end_location": {"row": 2, "column": 2},
                    "label": "freed here",
                },
            ],
            "fix": {
                "applicability": "safe",
                "message": "item `x`",
                "edits": [
                    {
                        "location": {"row": 3, "column": 11},
                        "end_location": {"row": 3, "column": 11},
                        "content": ".item()",
                    }
                ],
            },
        }
    ]


def test_json_of_nothing_is_an_empty_list(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("x = 1\n")
    assert gradmend("check", "--output-format", "json").stdout == "[]\n"


def test_files_come_in_sorted_order_whatever_the_order_typed(folder: Path, gradmend: Run) -> None:
    for name in ("b.py", "a.py", "c.py"):
        (folder / name).write_text("leak(x)\n")
    result = gradmend("check", "c.py", "a.py", "b.py", "--output-format", "concise")
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["a.py", "b.py", "c.py"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"leak(x)\nprint 'no'\n", "does not parse"),
        (b"leak('\xe9')\n", "not UTF-8"),
        (b"leak(x)\0\n", "NUL"),
        (b"\xe9 = 1\n", "not UTF-8"),
        (b"x = '\0'\n", "NUL"),
        (b"crash\n", "please report"),
    ],
)
def test_bad_file_is_one_line_and_2_and_the_others_are_done(
    folder: Path, gradmend: Run, content: bytes, words: str
) -> None:
    (folder / "bad.py").write_bytes(content)
    (folder / "good.py").write_text("leak(x)\n")
    result = gradmend("check", "--output-format", "concise")
    assert result.exit_code == 2
    assert result.stdout == "good.py:1:1: GM102 [*] `x` leaks\n"
    [line] = [line for line in result.stderr.splitlines() if line.startswith("error")]
    assert line.startswith("error: bad.py: ")
    assert words in line


def test_named_file_that_does_not_parse_is_an_error_even_if_nothing_in_it_matters(folder: Path, gradmend: Run) -> None:
    (folder / "old.py").write_text("print 'hello'\n")
    result = gradmend("check", "old.py")
    assert result.exit_code == 2
    assert "error: old.py: line 1 does not parse" in result.stderr
    assert "Python 2" in result.stderr


def test_missing_path_is_2_and_the_others_are_done(folder: Path, gradmend: Run) -> None:
    (folder / "good.py").write_text("leak(x)\n")
    result = gradmend("check", "good.py", "nope.py", "--output-format", "concise")
    assert result.exit_code == 2
    assert "good.py:1:1" in result.stdout
    assert "error: nope.py: no such file or folder\n" in result.stderr


def test_folder_without_python_files_is_a_warning_and_0(folder: Path, gradmend: Run) -> None:
    (folder / "notes.txt").write_text("x")
    result = gradmend("check")
    assert result.exit_code == 0
    assert result.stderr == "warning: no Python files or notebooks found here\n"


def test_empty_file_is_clean(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("")
    assert gradmend("check", "a.py").exit_code == 0


def test_function_that_was_cut_off_is_said(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("too_complex(1)\n")
    result = gradmend("check")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "warning: a.py: line 1: too complex\n" in result.stderr


def test_generated_file_is_left_alone(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("# @generated\nleak(x)\n")
    assert gradmend("check", "a.py").exit_code == 0


def test_statistics_count_by_rule(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\nhopeless(y)\nleak(z)\n")
    assert gradmend("check", "--statistics").stdout == "2\tGM102\t[*] accumulated-loss\n1\tGM501\t[ ] full-hessian\n"


def test_fail_on_gates_by_severity_and_shows_all(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("hopeless(x)\n")
    result = gradmend("check", "--fail-on", "warning")
    assert result.exit_code == 0
    assert "GM501" in result.stdout
    assert gradmend("check").exit_code == 1


def test_exit_zero(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    assert gradmend("check", "--exit-zero").exit_code == 0


def test_output_file_gets_what_stdout_would(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    plain = gradmend("check", "--output-format", "concise").stdout
    result = gradmend("check", "--output-format", "concise", "--output-file", "out.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert (folder / "out.txt").read_text() == plain


def test_output_file_that_cannot_be_written_is_one_line(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    result = gradmend("check", "--output-file", "no/such/folder")
    assert result.exit_code == 2
    assert "no/such/folder" in result.stderr


def test_quiet_leaves_only_what_went_wrong(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    result = gradmend("check", "--quiet", "a.py", "nope.py")
    assert result.stderr == "error: nope.py: no such file or folder\n"


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (["--select", "GM1"], {"GM101", "GM102"}),
        (["--select", "accumulated-loss"], {"GM102"}),
        (["--select", "GM1,GM5"], {"GM101", "GM102", "GM501"}),
        (["--ignore", "GM1"], {"GM501"}),
        (["--select", "GM101", "--ignore", "GM1"], {"GM101"}),
        (["--select", "GM1", "--ignore", "GM101"], {"GM102"}),
        (["--select", "GM101", "--extend-select", "full-hessian"], {"GM101", "GM501"}),
        (["--select", "ALL"], {"GM101", "GM102", "GM501"}),
        (["--per-file-ignores", "*.py:GM1"], {"GM501"}),
        (["--per-file-ignores", "!a.py:GM1"], {"GM101", "GM102", "GM501"}),
    ],
)
def test_rules_are_chosen_by_code_name_or_prefix(
    folder: Path, gradmend: Run, arguments: list[str], codes: set[str]
) -> None:
    (folder / "a.py").write_text("leak(x)\nmaybe(x)\nhopeless(x)\n")
    result = gradmend("check", "--output-format", "json", *arguments)
    assert {entry["code"] for entry in json.loads(result.stdout)} == codes


def test_unknown_rule_is_one_line_with_a_suggestion(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    result = gradmend("check", "--select", "acumulated-loss")
    assert result.exit_code == 2
    assert result.stderr == (
        'Error: no rule, prefix or name "acumulated-loss"; did you mean "accumulated-loss"? '
        "(`gradmend rules` lists all)\n"
    )


def test_standard_input(folder: Path, gradmend: Run) -> None:
    result = gradmend("check", "-", "--output-format", "concise", given="leak(x)\n")
    assert (result.exit_code, result.stdout) == (1, "-:1:1: GM102 [*] `x` leaks\n")
    result = gradmend("check", "-", "--stdin-filename", "src/a.py", "--output-format", "concise", given="leak(x)\n")
    assert result.stdout.startswith("src/a.py:1:1")


def test_empty_standard_input_is_clean(gradmend: Run) -> None:
    assert gradmend("check", "-", given="").exit_code == 0


def test_dash_among_paths_is_refused(gradmend: Run) -> None:
    assert gradmend("check", "-", "a.py").exit_code == 2


def test_escape_sequences_do_not_reach_the_terminal(folder: Path, gradmend: Run) -> None:
    name = "a\x1b[31m.py"
    (folder / name).write_text("# \x1b]0;owned\x07\nleak(x)  # \x1b[2J\u202e\n")
    for arguments in ([], ["--output-format", "concise"], ["--output-format", "github"], ["--show-fixes"]):
        result = gradmend("check", *arguments)
        assert not set(result.stdout + result.stderr) & {"\x1b", "\x07", "\u202e"}
    assert "a\\x1b[31m.py" in gradmend("check").stdout


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_name_that_is_not_utf8(folder: Path, gradmend: Run) -> None:
    Path(os.fsdecode(b"a\xff\n.py")).write_text("leak(x)\n")
    assert gradmend("check", "--output-format", "concise").stdout.startswith("a\\xff\\n.py:1:1")
    assert json.loads(gradmend("check", "--output-format", "json").stdout)[0]["filename"] == "a\udcff\n.py"


def test_color(folder: Path, gradmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    assert "\x1b" not in gradmend("check").stdout
    assert "\x1b[" in gradmend("check", "--color", "always").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in gradmend("check").stdout
    assert "\x1b" not in gradmend("check", "--color", "never").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in gradmend("check").stdout


def test_file_named_three_times_is_listed_once(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\n")
    assert gradmend("check", "a.py", "./a.py", str(folder / "a.py")).stdout.count("accumulated-loss") == 1
