"""What a training script really does under PyTorch: the judge of every repair."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WORKER = Path(__file__).with_name("torch_worker.py")


@dataclass(frozen=True)
class Outcome:
    """What happened when ``main()`` of a script ran."""

    error: str | None
    """``Type: message`` of the exception that ended it."""
    values: object
    """What it returned, with tensors as nested lists of numbers and modules as their state."""
    graph: int
    """Autograd nodes that the returned tensors keep alive."""
    saved: int
    """Most bytes that autograd held at once for backward passes to come; 0 unless asked for."""


@cache
def _worker(frameworks: tuple[str, ...]) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), *frameworks]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(script: Path, *, count_saved: bool = False, frameworks: tuple[str, ...] = ()) -> Outcome:
    """Run ``main()`` of a script under PyTorch, in a process of its own that has imported ``frameworks``.

    ``count_saved`` also measures the memory held for backward passes; in-place errors are not raised then.
    """
    worker = _worker(frameworks)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps({"script": str(script), "saved": count_saved}) + "\n")
    worker.stdin.flush()
    return Outcome(**json.loads(worker.stdout.readline()))


def run_source(source: bytes, *, count_saved: bool = False, frameworks: tuple[str, ...] = ()) -> Outcome:
    """As `run`, for a script that is in no file yet."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_bytes(source)
        return run(script, count_saved=count_saved, frameworks=frameworks)


def same(one: object, other: object) -> bool:
    """Whether two results are equal but for rounding: another order of the same sums may change the last digits."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and float in (type(one), type(other)):
        both_undefined = math.isnan(one) and math.isnan(other)
        return both_undefined or math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other
