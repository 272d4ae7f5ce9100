"""Runs training scripts under PyTorch for `tests.runtime`, one forked child a script.

Importing PyTorch costs a second and more, running a case a few hundredths. So this process imports it once, with the
modules that its arguments name, and forks for every script: each starts from the same fresh state in its own folder,
and none can leave anything behind for the next.

Reads one JSON request a line from standard input, answers with one JSON line on standard output:

- request: ``{"script": path, "saved": bool}``
- answer: ``{"error": null | "Type: message", "values": ..., "graph": nodes, "saved": bytes}`` (`tests.runtime.Outcome`)
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

SECONDS = 120
"""Longest a script may run; the cases take well under one."""


def count_nodes(tensors: Iterable[torch.Tensor]) -> int:
    """How many autograd nodes these tensors keep alive."""
    stack: list[Any] = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    seen = set()
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(following for following, _ in node.next_functions if following is not None)
    return len(seen)


def plain(value: object, tensors: list[torch.Tensor]) -> object:
    """What ``main()`` returned, as JSON; every tensor met on the way goes to ``tensors``."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return value.detach().double().tolist()
    if isinstance(value, torch.nn.Module):
        return {name: tensor.double().tolist() for name, tensor in value.state_dict().items()}
    if isinstance(value, dict):
        return {str(key): plain(part, tensors) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part, tensors) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"main() returned a {type(value).__name__}")


class SavedBytes:
    """Counts the bytes that autograd nodes hold for their backward, and the most there ever were at once."""

    def __init__(self) -> None:
        self.now = 0
        self.peak = 0

    def hooks(self) -> AbstractContextManager[object]:
        """The context in which everything that is saved is counted."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: torch.Tensor) -> _Held:
        held = _Held(tensor.detach())
        size = tensor.numel() * tensor.element_size()
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(held, self._release, size)
        return held

    def _unpack(self, held: _Held) -> torch.Tensor:
        return held.tensor

    def _release(self, size: int) -> None:
        self.now -= size


class _Held:
    """Stands for one saved tensor; it dies when the node lets go of it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def outcome(request: dict[str, Any]) -> dict[str, object]:
    """Run ``main()`` of a script and say what happened."""
    script, count_saved = request["script"], request["saved"]
    warnings.simplefilter("ignore")
    saved = SavedBytes()
    tensors: list[torch.Tensor] = []
    result: dict[str, object] = {"error": None, "values": None, "graph": 0, "saved": 0}
    try:
        # The hooks switch off PyTorch's check for in-place changes, so they are set only when their figure is wanted.
        with saved.hooks() if count_saved else nullcontext():
            returned = runpy.run_path(script, run_name="case")["main"]()
        result["values"] = plain(returned, tensors)
        result["graph"] = count_nodes(tensors)
        result["saved"] = saved.peak
    except Exception as error:
        # Whatever it is, it is what the caller wants to know.
        result["error"] = f"{type(error).__name__}: {error}"[:400]
    return result


def run_in_child(request: dict[str, Any], answered: Callable[[dict[str, Any]], dict[str, object]]) -> str:
    """Fork, have the request ``answered`` there, and return the answer as JSON."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.alarm(SECONDS)
        os.chdir(os.path.dirname(request["script"]))
        sys.path.insert(0, os.getcwd())
        answer = json.dumps(answered(request))
        with os.fdopen(sender, "w", encoding="utf-8") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, encoding="utf-8") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return answer or json.dumps({"error": f"died, status {status}", "values": None, "graph": 0, "saved": 0})


def serve(answered: Callable[[dict[str, Any]], dict[str, object]]) -> None:
    """Answer requests until standard input ends."""
    warnings.simplefilter("ignore")
    # Standard output is for answers, and frameworks greet their users on it.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for module in sys.argv[1:]:
        importlib.import_module(module)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(run_in_child(json.loads(line), answered), file=answers, flush=True)


if __name__ == "__main__":
    serve(outcome)
