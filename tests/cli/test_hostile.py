"""Whatever bytes a file or its name holds: an outcome, never a traceback, and nothing that a terminal would obey.

On the real analysis.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradmend.cli.config import FORMATS
from gradmend.cli.run import Job, process_bytes

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.py"))
PATIENT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def outcome_is_sound(name: str, raw: bytes) -> None:
    for mend in (False, True):
        outcome = process_bytes(Job(name, True, None, mend, unsafe=True), raw)
        assert "please report" not in (outcome.error or "")
        assert outcome.mended is None or outcome.error is None


@PATIENT
@given(name=st.sampled_from(["a.py", "a.ipynb"]), raw=st.binary(max_size=200))
def test_any_bytes(name: str, raw: bytes) -> None:
    outcome_is_sound(name, raw + b"\n.backward()")


@PATIENT
@given(data=st.data(), sample=st.sampled_from(SAMPLES))
def test_damaged_training_scripts(data: st.DataObject, sample: Path) -> None:
    lines = sample.read_bytes().split(b"\n")
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.integers(0, len(lines) - 1))
        kind = data.draw(st.sampled_from(["delete", "double", "swap", "bytes"]))
        if kind == "delete" and len(lines) > 1:
            del lines[row]
        elif kind == "double":
            lines.insert(row, lines[row])
        elif kind == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[row], lines[other] = lines[other], lines[row]
        else:
            lines[row] = data.draw(st.binary(max_size=6)) + lines[row]
    outcome_is_sound("a.py", b"\n".join(lines))


OBEYED = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]")
"""What a terminal obeys; our own colours are left out by asking for none."""
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
SOURCE = f"""\
import torch  # {EVIL}

net = torch.nn.Linear(3, 1)
totals = {{"{EVIL}": 0.0}}
losses = []  # gradmend: ignore[{EVIL}]
for x in torch.randn(100, 4, 3):  # {EVIL}
    loss = net(x).mean()  # {EVIL}
    loss.backward()  # {EVIL}
    totals["{EVIL}"] += loss  # {EVIL}
    losses.append(loss)  # gradmend: ignore[{EVIL}, GM102] {EVIL}
print(totals, sum(losses))
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository whose every name and line is hostile."""
    folder = tmp_path / f"folder{EVIL}"
    folder.mkdir()
    for name in (f"a{EVIL}.py", "new\nline.py", "b.py"):
        (folder / name).write_text(SOURCE)
    (folder / f"broken{EVIL}.py").write_text(f"loss.backward(  # {EVIL}\n'{EVIL}'")
    (folder / os.fsdecode(b"\xff\x1b.py")).write_text(SOURCE)
    (folder / f"link{EVIL}.py").symlink_to("/etc/passwd")
    return tmp_path


def run(folder: Path, *arguments: str) -> bytes:
    """Everything that ``gradmend`` says, to both streams."""
    environment = {**os.environ, "PYTHONPATH": str(SAMPLES[0].parents[1]), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "gradmend.cli", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    assert done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="such names are not to be had there")
@pytest.mark.parametrize(
    "arguments",
    [
        *(["check", "--output-format", name] for name in FORMATS),
        ["check", "--statistics"],
        ["check", "--show-settings"],
        ["check", "--add-ignore"],
        ["check", "--write-baseline", "known.json"],
        ["fix", "--yes", "--show-fixes"],
        ["fix", "--yes", "--unsafe", "--output-format", "full"],
        ["check", "--since", "HEAD"],
    ],
    ids=" ".join,
)
def test_nothing_that_a_terminal_obeys_gets_through(hostile: Path, arguments: list[str]) -> None:
    assert OBEYED.findall(run(hostile, *arguments, "--color", "never")) == []


@pytest.mark.skipif(os.name == "nt", reason="such names are not to be had there")
@pytest.mark.parametrize(
    "text", ['"{}" = 1', 'select = ["{}"]', 'output-format = "{}"', 'per-file-ignores = {{"*" = ["{}"]}}', "{}"]
)
def test_configuration_is_not_obeyed_either(hostile: Path, text: str) -> None:
    folder = next(hostile.iterdir())
    escaped = EVIL.encode("unicode_escape").decode().replace("\\x", "\\u00") if text != "{}" else EVIL
    (folder / "gradmend.toml").write_text(text.format(escaped))
    assert OBEYED.findall(run(hostile, "check", "--color", "never")) == []
