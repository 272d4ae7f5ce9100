"""Every codemod as a command of ``libcst.tool``: the same repairs, and nothing else in the file."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import libcst
import pytest
from libcst.codemod import CodemodContext, TransformSkip, transform_module

from gradmend.codemods import SourceError, libcst_commands, mend, registry

SAMPLES = pathlib.Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize("rule", registry.RULES, ids=lambda rule: rule.code)
def test_each_rule_has_its_command(rule: registry.RuleInfo) -> None:
    name = rule.name.title().replace("-", "")
    command = getattr(libcst_commands, name)
    assert rule.code == command.CODE
    assert rule.summary in command.DESCRIPTION
    path = SAMPLES / f"{rule.name.replace('-', '_')}.py"
    if path.exists():
        code = path.read_text()
        result = transform_module(command(CodemodContext(filename=str(path))), code)
        assert getattr(result, "code", result) == mend(code, str(path), select=frozenset({rule.code})).source


def test_what_is_not_mended_is_a_warning() -> None:
    code = (SAMPLES / "accumulated_loss.py").read_text()
    command = libcst_commands.COMMANDS["GM102"](CodemodContext())
    mended = mend(code, select=frozenset({"GM102"}))
    command.transform_module(libcst.parse_module(code))
    assert len(command.context.warnings) == len(mended.left)


def test_what_gradmend_cannot_read_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SourceError("a.py", "is too deep")

    monkeypatch.setattr(libcst_commands, "mend", refuse)
    result = transform_module(libcst_commands.COMMANDS["GM101"](CodemodContext()), "x = 1\n")
    assert isinstance(result, TransformSkip)
    assert "is too deep" in result.skip_description


def test_under_libcst_tool(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"
    code = (SAMPLES / "carried_hidden_state.py").read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(code)
    command = "gradmend.codemods.libcst_commands.CarriedHiddenState"
    arguments = ["codemod", "-x", command, "--no-format", "--hide-progress", "-j", "1", str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "libcst.tool", *arguments],
        capture_output=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == mend(code, str(path), select=frozenset({"GM101"})).source
