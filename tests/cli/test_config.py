from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

ALL = "leak(x)\nmaybe(x)\nhopeless(x)\n"


def codes(gradmend: Run, *arguments: str) -> list[str]:
    result = gradmend("check", "--output-format", "concise", *arguments)
    return [f"{line.split(':')[0]} {line.split(' ')[1]}" for line in result.stdout.splitlines()]


def pyproject(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.gradmend]\n{text}\n")


def test_select_and_ignore(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(ALL)
    pyproject(folder, 'select = ["GM1"]\nignore = ["GM101"]')
    assert codes(gradmend) == ["a.py GM102"]


def test_command_line_wins(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(ALL)
    pyproject(folder, 'select = ["GM102"]\nignore = ["GM101"]')
    assert codes(gradmend, "--select", "GM101") == ["a.py GM101"]
    assert codes(gradmend, "--isolated") == ["a.py GM102", "a.py GM101", "a.py GM501"]
    assert codes(gradmend, "--config", "select = ['GM501']") == ["a.py GM501"]


def test_nearest_configuration_counts_for_each_file(folder: Path, gradmend: Run) -> None:
    (folder / "sub" / "deep").mkdir(parents=True)
    pyproject(folder, 'select = ["GM102"]')
    (folder / "sub" / "gradmend.toml").write_text('select = ["GM101"]\n')
    (folder / "sub" / "deep" / "pyproject.toml").write_text("[tool.other]\n")
    for name in ("a.py", "sub/b.py", "sub/deep/c.py"):
        (folder / name).write_text(ALL)
    assert codes(gradmend) == ["a.py GM102", "sub/b.py GM101", "sub/deep/c.py GM101"]


def test_config_names_a_file(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(ALL)
    (folder / "other.toml").write_text('select = ["GM501"]\n')
    pyproject(folder, 'select = ["GM102"]')
    assert codes(gradmend, "--config", "other.toml") == ["a.py GM501"]


def test_per_file_ignores(folder: Path, gradmend: Run) -> None:
    (folder / "tests").mkdir()
    (folder / "a.py").write_text(ALL)
    (folder / "tests" / "b.py").write_text(ALL)
    pyproject(folder, '[tool.gradmend.per-file-ignores]\n"tests/*" = ["GM1"]')
    assert codes(gradmend) == ["a.py GM102", "a.py GM101", "a.py GM501", "tests/b.py GM501"]


def test_unsafe_in_the_configuration(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("maybe(x)\n")
    pyproject(folder, "unsafe = true")
    assert gradmend("fix", "--yes", "--no-unsafe").exit_code == 1
    assert gradmend("fix", "--yes").exit_code == 0


def test_output_format_and_fail_on(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("hopeless(x)\n")
    pyproject(folder, 'output-format = "concise"\nfail-on = "error"')
    result = gradmend("check")
    assert (result.exit_code, result.stdout) == (0, "a.py:1:1: GM501 `x` leaks\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('selct = ["GM1"]', 'there is no key "selct"; did you mean "select"?'),
        ('select = "GM1"\nunsafe = "yes"', '"unsafe" must be true or false'),
        ("select = 3", '"select" must be a list of texts, as in ["GM101"]'),
        ('accumulate-with = "both"', '"accumulate-with" must be "item" or "detach"'),
        ('per-file-ignores = ["x"]', '"per-file-ignores" must be a table of globs'),
        ("select = [", "not valid TOML"),
        (f"select = {'[' * 10_000}", "not valid TOML: it is nested too deeply"),
        (f"select = {'9' * 10_000}", "not valid TOML"),
        ('"\\u001b[31m" = 1', r'there is no key "\x1b[31m"'),
        ('select = ["GM999"]', 'no rule, prefix or name "GM999" (in pyproject.toml)'),
    ],
)
def test_mistake_in_the_configuration_is_one_line_that_says_what_to_do(
    folder: Path, gradmend: Run, text: str, message: str
) -> None:
    (folder / "a.py").write_text(ALL)
    pyproject(folder, text)
    result = gradmend("check")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "pyproject.toml" in result.stderr
    assert result.stderr.count("\n") == 1


def test_tool_that_is_no_table_is_not_about_gradmend(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(ALL)
    (folder / "pyproject.toml").write_text("tool = 3 # gradmend\n")
    assert len(codes(gradmend)) == 3


def test_pyproject_of_others_need_not_even_be_toml(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(ALL)
    (folder / "pyproject.toml").write_text("{{ cookiecutter }}\n")
    assert len(codes(gradmend)) == 3


def test_show_settings_prints_what_sets_them(folder: Path, gradmend: Run) -> None:
    pyproject(folder, 'select = ["GM1"]\nexclude = ["old"]\n[tool.gradmend.per-file-ignores]\n"x.py" = ["GM1"]')
    shown = gradmend("check", "--show-settings").stdout
    assert shown.startswith("# from pyproject.toml\n")
    (folder / "again.toml").write_text(shown)
    again = gradmend("check", "--show-settings", "--config", "again.toml").stdout
    assert again.splitlines()[1:] == shown.splitlines()[1:]


def test_configuration_cannot_name_a_file_to_write(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text(ALL)
    for key in ("output-file", "baseline", "pager", "editor", "config"):
        pyproject(folder, f'{key} = "x"')
        assert gradmend("check").exit_code == 2


def test_accumulate_with_chooses_between_repairs(folder: Path, gradmend: Run) -> None:
    (folder / "a.py").write_text("leak(x)\nleak(y)\nmaybe(z)\n")
    pyproject(folder, 'accumulate-with = "detach"')
    assert "1 + leak(x.detach())" in gradmend("check").stdout
    assert gradmend("fix", "--yes").exit_code == 1
    assert (folder / "a.py").read_text() == "leak(x.detach())\nleak(y.detach())\nmaybe(z)\n"
    (folder / "a.py").write_text("leak(x)\n")
    assert gradmend("fix", "--yes", "--accumulate-with", "item").exit_code == 0
    assert (folder / "a.py").read_text() == "leak(x.item())\n"
