"""How long `gradmend check` takes, as a multiple of the least that any tool of its kind must do.

The floor: walk the folders, read every file, `ast.parse` those that may hold a mistake (the prefilter keeps them). Both
sides are whole processes that look at the same files, one process each, in turns; the best of several turns counts.

    python -m tests.benchmarks.floor [PATH…] [--turns N] [--jobs N]

The default is the installed PyTorch and the samples. On a shared machine trust the ratio of processor time.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from gradmend.codemods.analysis.prefilter import may_matter

ROOT = Path(__file__).parents[2]
CHECK = [sys.executable, "-m", "gradmend.cli", "check", "--isolated"]


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    wall: float
    processor: float


def default_paths() -> list[str]:
    """The installed PyTorch, where there is one, and the samples."""
    torch = importlib.util.find_spec("torch")
    installed = [str(Path(torch.origin).parent)] if torch is not None and torch.origin else []
    return [*installed, str(ROOT / "samples")]


def files_of(paths: list[str]) -> list[str]:
    """The files that `gradmend check` looks at below the paths."""
    done = subprocess.run([*CHECK, "--show-files", *paths], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def code_of(raw: bytes, filename: str) -> str | bytes:
    """What is to be parsed: the file, or the code cells of a notebook without their magics."""
    if not filename.endswith(".ipynb"):
        return raw
    cells = json.loads(raw).get("cells", [])
    sources = ("".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code")
    lines = (line for source in sources for line in source.splitlines())
    return "\n".join("" if line.lstrip()[:1] in ("%", "!", "?") else line for line in lines)


def floor(paths: list[str], files: list[str]) -> tuple[int, int, int, int]:
    """Do the least; returns files, bytes, files parsed and bytes parsed."""
    wanted = {os.path.abspath(file) for file in files}
    counts = [0, 0, 0, 0]
    for path in paths:
        for folder, _, names in os.walk(path):
            for name in names:
                file = os.path.abspath(os.path.join(folder, name))
                if file not in wanted:
                    continue
                with open(file, "rb") as stream:
                    raw = stream.read()
                counts[0] += 1
                counts[1] += len(raw)
                if may_matter(raw, file):
                    counts[2] += 1
                    counts[3] += len(raw)
                    parse(raw, file)
    files_read, bytes_read, files_parsed, bytes_parsed = counts
    return files_read, bytes_read, files_parsed, bytes_parsed


def parse(raw: bytes, filename: str) -> None:
    """Parse and drop the tree at once; a file that does not parse costs what it costs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code_of(raw, filename))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass


def cost(command: list[str]) -> Cost:
    """Run a command to its end; findings, exit status 1, are no failure, nor are files it cannot parse."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def best(costs: list[Cost]) -> Cost:
    """The least of each figure."""
    return Cost(min(each.wall for each in costs), min(each.processor for each in costs))


def main() -> None:
    parser = argparse.ArgumentParser(description="gradmend check against the least that must be done")
    parser.add_argument("paths", nargs="*", default=default_paths())
    parser.add_argument("--turns", type=int, default=3, help="how often each side runs")
    parser.add_argument("--jobs", type=int, default=1, help="processes of gradmend; the floor has one")
    parser.add_argument("--listing", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.listing is not None:
        print(*floor(arguments.paths, arguments.listing.read_text(encoding="utf-8").splitlines()))
    else:
        compare(arguments.paths, arguments.turns, arguments.jobs)


def compare(paths: list[str], turns: int, jobs: int) -> None:
    """Run both sides in turns and print what each took."""
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder) / "files"
        listing.write_text("\n".join(files_of(paths)), encoding="utf-8")
        least = [sys.executable, "-m", "tests.benchmarks.floor", "--listing", str(listing), *paths]
        check = [*CHECK, "--jobs", str(jobs), "--output-format", "json", *paths]
        counts = subprocess.run(least, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        rounds = [(cost(least), cost(check)) for _ in range(turns)]
    bottom, top = best([one for one, _ in rounds]), best([other for _, other in rounds])
    files_read, bytes_read, files_parsed, bytes_parsed = map(int, counts)
    print(
        f"{files_read} files, {bytes_read / 1e6:.1f} MB; {files_parsed} pass the prefilter, {bytes_parsed / 1e6:.1f} MB"
    )
    print(f"floor                     wall {bottom.wall:7.2f} s   processor {bottom.processor:7.2f} s")
    print(f"gradmend check --jobs {jobs:<3} wall {top.wall:7.2f} s   processor {top.processor:7.2f} s")
    wall, processor = top.wall / bottom.wall, top.processor / bottom.processor
    print(f"ratio                     wall {wall:7.2f}     processor {processor:7.2f}")


if __name__ == "__main__":
    main()
