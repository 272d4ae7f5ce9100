"""Whatever bytes a file holds: an outcome, never a traceback. On the real analysis."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
