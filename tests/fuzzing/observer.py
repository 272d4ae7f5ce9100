"""Watches training scripts under PyTorch for `tests.fuzzing.agreement`: what `observe` answers about one source.

Run as ``python -m tests.fuzzing.observer`` it serves requests as `tests.torch_worker` does: ``{"script": path}``, and
the fields of `Observation` for an answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
LENGTHS: Final = (4, 10)
"""How many iterations a script runs to show what grows; of the same remainder by 2 and 3."""


@dataclass(frozen=True)
class Observation:
    """What a script did under PyTorch."""

    error: str | None
    """``Type: message`` of the exception that ended it."""
    line: int
    """Where in the script that was, 0 without an error."""
    steps: list[tuple[int, list[Any]]]
    """For every optimizer step, which optimizer made it (in the order of their making) and with which gradients."""
    values: dict[str, Any]
    """What stood in its variables at the end, as numbers, lists and dicts."""
    growing: list[str]
    """The variables that keep more autograd nodes alive after more iterations."""


@cache
def _worker() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.fuzzing.observer"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def observe(source: str) -> Observation:
    """Run a script under PyTorch, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(source, encoding="utf-8")
        worker = _worker()
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps({"script": str(script)}) + "\n")
        worker.stdin.flush()
        return Observation(**json.loads(worker.stdout.readline()))


# -- in the worker -------------------------------------------------------------------------------------------------


class _Run:
    """One run of a script: its steps and its variables at the end."""

    def __init__(self) -> None:
        self.optimizers: list[object] = []
        self.steps: list[tuple[int, list[Any]]] = []
        self.variables: dict[str, Any] = {}

    def stepping(self, optimizer: Any, *_: object) -> None:
        owned = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        gradients = [None if p.grad is None else p.grad.detach().double().tolist() for p in owned]
        self.steps.append((self.optimizers.index(optimizer), gradients))

    def go(self, script: str, source: str) -> None:
        """Run ``source`` as the main program."""
        code = compile(source, script, "exec")

        def returning(frame: FrameType, event: str, _: object) -> None:
            if event == "return" and frame.f_code.co_filename == script and frame.f_code.co_name in ("main", "fit"):
                self.variables.update(frame.f_locals)

        space: dict[str, Any] = {"__name__": "__main__"}
        sys.setprofile(returning)
        try:
            exec(code, space)
        finally:
            sys.setprofile(None)
            self.variables.update(space)


def _inside(value: object, seen: set[int]) -> Iterator[Any]:
    """All tensors that ``value`` holds."""
    import torch

    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in list(value.values()):
            yield from _inside(part, seen)
    elif isinstance(value, (list, tuple, set)):
        for part in value:
            yield from _inside(part, seen)
    elif isinstance(value, torch.nn.Module) or type(value).__module__ == "__main__":
        yield from _inside(vars(value), seen)


def _plain(value: object) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().double().tolist()
    if isinstance(value, torch.nn.Module):
        return {name: tensor.double().tolist() for name, tensor in value.state_dict().items()}
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value if isinstance(value, (bool, int, float)) else None


def _watched(request: dict[str, Any]) -> dict[str, object]:
    import torch
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    from tests.torch_worker import count_nodes

    warnings.simplefilter("ignore")
    script = request["script"]
    source = Path(script).read_text(encoding="utf-8")
    answer: dict[str, object] = {"error": None, "line": 0, "steps": [], "values": {}, "growing": []}
    counts: list[dict[str, int]] = []
    made = torch.optim.Optimizer.__init__

    def making(optimizer: Any, *args: Any, **options: Any) -> None:
        run.optimizers.append(optimizer)
        made(optimizer, *args, **options)

    torch.optim.Optimizer.__init__ = making  # type: ignore[method-assign, assignment]
    for length in LENGTHS:
        run = _Run()
        hook = register_optimizer_step_pre_hook(run.stepping)
        try:
            run.go(script, source.replace("STEPS = 4\n", f"STEPS = {length}\n"))
        except Exception as error:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == script]
            answer["error"] = f"{type(error).__name__}: {error}"[:300]
            answer["line"] = frames[-1].lineno if frames else 0
        hook.remove()
        plain = {name: value for name, value in run.variables.items() if not name.startswith("__")}
        if length == LENGTHS[0]:
            answer["steps"] = run.steps
            answer["values"] = {name: _plain(value) for name, value in plain.items()}
        if answer["error"] is not None:
            return answer
        counts.append({name: count_nodes(_inside(value, set())) for name, value in plain.items()})
        torch.manual_seed(0)
    first, last = counts
    answer["growing"] = sorted(name for name in first if last.get(name, 0) > first[name])
    return answer


if __name__ == "__main__":
    from tests.torch_worker import serve

    serve(_watched)
