"""A mistake in a file that two programs share, on the real analysis: one finding, one change of each file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

Real = Callable[..., Result]
SHARED = """\
class Base:
    def __init__(self, net):
        self.net = net
        self.losses = 0.0

    def compute(self, x):
        loss = self.net(x).pow(2).mean()
        self.losses += loss
        return loss
"""
MENDED = SHARED.replace("+= loss", "+= loss.item()")
METER = """\
class Meter:
    def __init__(self):
        self.total = 0.0

    def update(self, value):
        self.total += value
"""
PROGRAM = """\
import torch
from {module} import {name}

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
shared = {call}
for x in torch.randn(100, 4, 3):
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
"""
TRAIN = PROGRAM.format(
    module="base", name="Base", call="Base(net)", loss="shared.compute(x)", after="print(shared.losses)"
)
WITH_METER = PROGRAM.format(
    module="meter", name="Meter", call="Meter()", loss="net(x).mean()", after="shared.update(loss)"
)


@pytest.fixture
def real(folder: Path) -> Real:
    """``gradmend`` with nothing in the place of its analysis, in a folder with two programs and what they share."""
    from gradmend.cli.app import app
    from gradmend.cli.run import forget_project

    (folder / "pyproject.toml").write_text("")
    for name, text in {"base": SHARED, "one": TRAIN, "two": TRAIN}.items():
        (folder / f"{name}.py").write_text(text)

    def run(*arguments: str, given: str | None = None) -> Result:
        forget_project()
        return CliRunner().invoke(app, list(arguments), input=given, catch_exceptions=False)

    return run


def listed(result: Result) -> list[str]:
    return [line.partition(" ")[0] for line in result.stdout.splitlines()]


def test_is_listed_once(real: Real) -> None:
    result = real("check", "--output-format", "concise")
    assert listed(result) == ["base.py:8:9:"]
    assert "Found 1 finding." in result.stderr


def test_diff_holds_the_change_once_and_git_applies_it(folder: Path, real: Real) -> None:
    result = real("diff")
    assert result.stdout.count("+        self.losses += loss.item()") == 1
    assert "Would mend 1 finding in 1 file." in result.stderr
    subprocess.run(["git", "apply"], input=result.stdout, text=True, check=True)
    assert (folder / "base.py").read_text() == MENDED


def test_is_mended_in_one_go(folder: Path, real: Real) -> None:
    result = real("fix", "--yes")
    assert (result.exit_code, result.stderr) == (0, "Mended 1 finding in 1 file.\n     1  GM102 accumulated-loss\n")
    assert (folder / "base.py").read_text() == MENDED
    assert real("check").exit_code == 0


def test_own_mistakes_of_the_shared_file_and_of_the_programs_are_mended_with_it(folder: Path, real: Real) -> None:
    own = "\n\n" + PROGRAM.format(
        module="math", name="pi", call="[]", loss="net(x).pow(pi).mean()", after="shared.append(loss)"
    ) + "print(sum(shared))\n"  # fmt: skip
    (folder / "base.py").write_text(SHARED + own)
    (folder / "two.py").write_text(TRAIN + own)
    result = real("fix", "--yes", "--jobs", "2")
    assert (result.exit_code, result.stdout) == (0, "")
    text = (folder / "base.py").read_text()
    assert "self.losses += loss.item()" in text
    for mended in (text, (folder / "two.py").read_text()):
        assert "shared.append(loss.detach())" in mended
    assert real("check").exit_code == 0


def test_repairs_in_several_programs_are_one_finding_with_all_their_places(folder: Path, real: Real) -> None:
    (folder / "meter.py").write_text(METER)
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(WITH_METER)
    assert listed(real("check", "--output-format", "concise")) == ["meter.py:6:9:"]
    [finding] = json.loads(real("check", "--output-format", "json").stdout)
    assert {edit["filename"] for edit in finding["fix"]["edits"]} == {"one.py", "two.py"}
    assert {place["filename"] for place in finding["places"]} == {"meter.py", "one.py", "two.py"}
    assert real("fix", "--yes").stderr.startswith("Mended 1 finding in 2 files.\n")
    for name in ("one", "two"):
        assert "shared.update(loss.detach())" in (folder / f"{name}.py").read_text()


@pytest.mark.parametrize(
    "arguments",
    [["one.py"], ["one.py", "two.py"], ["--exclude", "base.py"], ["--per-file-ignores", "base.py:GM102"]],
)
def test_file_that_is_not_asked_about_is_not_changed(folder: Path, real: Real, arguments: list[str]) -> None:
    real("fix", "--yes", *arguments)
    assert (folder / "base.py").read_text() == SHARED
    assert real("diff", *arguments).stdout == ""


def test_named_program_tells_of_it_without_a_repair(real: Real) -> None:
    result = real("check", "one.py", "--output-format", "concise")
    assert result.exit_code == 1
    assert result.stdout.startswith("base.py:8:9: GM102 `losses`")
    assert "a repair would change base.py, which is not among the files given" in result.stderr


def test_rule_does_not_count_where_it_is_ignored_or_left_out(folder: Path, real: Real) -> None:
    assert real("check", "--exclude", "base.py").exit_code == 0
    assert real("check", "--per-file-ignores", "base.py:GM102").exit_code == 0
    (folder / ".gitignore").write_text("base.py\n")
    assert real("fix", "--yes").exit_code < 2
    assert (folder / "base.py").read_text() == SHARED


def test_standard_input_changes_no_file(folder: Path, real: Real) -> None:
    result = real("fix", "-", "--stdin-filename", "one.py", given=TRAIN)
    assert result.stdout == TRAIN
    assert (folder / "base.py").read_text() == SHARED


def test_baseline_knows_it_once(folder: Path, real: Real) -> None:
    assert "Wrote 1 finding to known.json." in real("check", "--write-baseline", "known.json").stderr
    result = real("check", "--baseline", "known.json")
    assert (result.exit_code, result.stderr) == (0, "No findings in 3 files.\n")
    assert real("fix", "--yes", "--baseline", "known.json").exit_code == 0
    assert (folder / "base.py").read_text() == SHARED


def test_suppression_is_written_where_it_is(folder: Path, real: Real) -> None:
    assert real("check", "--add-ignore").exit_code == 0
    assert "        # gradmend: ignore[GM102]\n        self.losses" in (folder / "base.py").read_text()
    assert (folder / "one.py").read_text() == TRAIN
    assert real("check").exit_code == 0


def test_read_only_program_keeps_nothing_else_from_being_written(folder: Path, real: Real) -> None:
    (folder / "meter.py").write_text(METER)
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text(WITH_METER)
    (folder / "one.py").chmod(0o444)
    result = real("fix", "--yes")
    assert result.exit_code == 2
    assert "error: one.py: is read-only" in result.stderr
    assert "shared.update(loss.detach())" in (folder / "two.py").read_text()
