"""How the time of `gradmend.codemods.scan` grows with what it looks at.

Each row doubles one thing three times: the lines of a loop, its nesting, its branches, the depth of its calls, and the
files of a folder (there it is `gradmend check` that runs). Printed are the processor times and the exponent: 1.0 means
that twice as much takes twice as long.

    python -m tests.benchmarks.growth [--turns N]
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gradmend.codemods import scan

FACTORS = (1, 2, 4, 8)
PROLOGUE = """\
import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def indented(lines: list[str], depth: int) -> str:
    """The lines at a depth of indentation."""
    return "".join(f"{'    ' * depth}{line}\n" for line in lines)


def long_body(factor: int) -> str:
    """A loop of 100 statements for each factor, each of which records."""
    body = ["value = torch.tanh(value) + model(value)"] * (100 * factor)
    return f"{PROLOGUE}for batch in batches:\n" + indented(["value = model(batch)", *body, "value.sum().backward()"], 1)


def nested_loops(factor: int) -> str:
    """Loops in loops, two for each factor."""
    depth = 2 * factor
    loops = "".join(indented([f"for step{level} in range(3):"], level) for level in range(depth))
    return f"{PROLOGUE}{loops}" + indented(["loss = model(batch).sum()", "loss.backward()", "optimizer.step()"], depth)


def branches(factor: int) -> str:
    """A loop with three independent decisions for each factor."""
    decisions = [
        line
        for number in range(3 * factor)
        for line in (f"if flags[{number}]:", "    value = model(value)", "else:", "    value = value.detach()")
    ]
    body = ["value = model(batch)", *decisions, "loss = value.sum()", "loss.backward()", "optimizer.step()"]
    return f"{PROLOGUE}for batch in batches:\n" + indented(body, 1)


def call_depth(factor: int) -> str:
    """Five functions for each factor, each of which calls the one before."""
    count = 5 * factor
    functions = "".join(
        f"def layer{number}(value):\n    return torch.relu(layer{number - 1}(value))\n" for number in range(1, count)
    )
    body = [f"loss = layer{count - 1}(batch).sum()", "loss.backward()", "optimizer.step()"]
    base = "def layer0(value):\n    return model(value)\n"
    return f"{PROLOGUE}{base}{functions}for batch in batches:\n" + indented(body, 1)


def wide_calls(factor: int) -> str:
    """Two functions for each factor, each calls the one before twice: 2 to the power of the depth, unrolled."""
    count = 2 * factor
    functions = "".join(
        f"def layer{number}(value):\n    return layer{number - 1}(value) + layer{number - 1}(2 * value)\n"
        for number in range(1, count)
    )
    body = [f"loss = layer{count - 1}(batch).sum()", "loss.backward()", "optimizer.step()"]
    base = "def layer0(value):\n    return model(value)\n"
    return f"{PROLOGUE}{base}{functions}for batch in batches:\n" + indented(body, 1)


def scan_time(source: str) -> float:
    """Processor seconds of one scan."""
    start = time.process_time()
    scan(source, "growth.py")
    return time.process_time() - start


def files_time(factor: int) -> float:
    """Processor seconds of `gradmend check` with one process on 100 files for each factor."""
    source = branches(1)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(100 * factor):
            (Path(folder) / f"train{number}.py").write_text(source, encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "gradmend.cli", "check", "--isolated", "--jobs", "1", folder]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def exponent(times: list[float]) -> float:
    """The slope of the least-squares line through the logarithms of factor and time."""
    factors, seconds = [math.log(factor) for factor in FACTORS], [math.log(each) for each in times]
    middle, mean = sum(factors) / len(factors), sum(seconds) / len(seconds)
    covariance = sum((x - middle) * (y - mean) for x, y in zip(factors, seconds, strict=True))
    return covariance / sum((x - middle) ** 2 for x in factors)


def main() -> None:
    parser = argparse.ArgumentParser(description="how the time grows")
    parser.add_argument("--turns", type=int, default=3, help="how often each is measured; the least counts")
    turns = range(parser.parse_args().turns)
    programs: dict[str, Callable[[int], str]] = {
        "lines of a loop": long_body,
        "nesting": nested_loops,
        "branches": branches,
        "call depth": call_depth,
        "calls, two in each": wide_calls,
    }
    print(f"{'':20}" + "".join(f"{f'x{factor}':>10}" for factor in FACTORS) + "   exponent")
    scan(branches(1), "warm.py")  # the first scan imports the rules
    for name, program in programs.items():
        times = [min(scan_time(program(factor)) for _ in turns) for factor in FACTORS]
        show(name, times)
    show("files", [min(files_time(factor) for _ in turns) for factor in FACTORS])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest `gradmend check`: {peak:.0f} MB resident")


def show(name: str, times: list[float]) -> None:
    """Print one row."""
    print(f"{name:20}" + "".join(f"{each:9.3f}s" for each in times) + f"   {exponent(times):8.2f}")


if __name__ == "__main__":
    main()
