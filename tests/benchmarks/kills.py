"""What a ``fix`` leaves behind that is killed (``kill -9``) at a random moment.

    python -m tests.benchmarks.kills [--kills 200] [--files 500] [--seed 0]

Every other kill comes while files are being written, the rest at any moment of the run. Before each one all files are
as at the start; one in ten has a second name (a hard link) and is hence written in place. After each kill every file is
compared with what it was and with what it is to become, and at the end one run must bring all of them there and leave
nothing else behind.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from gradmend.cli.write import DRAFT, KEPT, PREFIX, beside

SOURCE = b"""\
import torch

net = torch.nn.Linear(3, 1)
total = 0.0
for x in torch.randn(100, 4, 3):
    loss = net(x).mean()
    loss.backward()
    total += loss
print(total)
"""
LINKED = 10
"""One in so many files has a second name."""


class Tree:
    """The files that are mended again and again."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.old = SOURCE
        self.paths = [folder / f"{number:04}.py" for number in range(count)]
        for number, path in enumerate(self.paths):
            path.write_bytes(self.old)
            if number % LINKED == 0:
                os.link(path, path.with_suffix(".txt"))
        self.duration, self.writing = self._measured()
        self.new = self.paths[0].read_bytes()
        assert all(path.read_bytes() == self.new != self.old for path in self.paths)

    def start(self) -> subprocess.Popen[bytes]:
        """``gradmend fix`` on the whole tree."""
        command = [sys.executable, "-m", "gradmend.cli", "fix", "--yes", "--quiet", "--isolated", str(self.folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def reset(self) -> None:
        for path in self.paths:
            path.write_bytes(self.old)

    def wait_for_writing(self, process: subprocess.Popen[bytes]) -> None:
        """Until the first file has been written."""
        first = self.paths[1].stat().st_ino
        while process.poll() is None and self.paths[1].stat().st_ino == first:
            time.sleep(0.001)

    def _measured(self) -> tuple[float, float]:
        begin = time.monotonic()
        process = self.start()
        self.wait_for_writing(process)
        first = time.monotonic()
        process.communicate()
        return time.monotonic() - begin, time.monotonic() - first

    def state(self) -> Counter[str]:
        """How many files are in which state."""
        return Counter(self._state_of(path) for path in self.paths)

    def _state_of(self, path: Path) -> str:
        content = path.read_bytes()
        if content in (self.old, self.new):
            return "old" if content == self.old else "new"
        kept = Path(beside(str(path), KEPT))
        return "torn, old bytes kept" if kept.exists() and kept.read_bytes() == self.old else "LOST"

    def leftovers(self) -> list[str]:
        return [name for name in os.listdir(self.folder) if name.startswith(PREFIX)]


def kill_often(tree: Tree, kills: int, seed: int) -> Mapping[str, int]:
    """Kill ``kills`` runs; counts of what was seen."""
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    for number in range(kills):
        tree.reset()
        process = tree.start()
        if number % 2:
            tree.wait_for_writing(process)
            time.sleep(chance.uniform(0, tree.writing))
        else:
            time.sleep(chance.uniform(0, tree.duration))
        process.send_signal(signal.SIGKILL)
        # The workers have the pipe too: it ends when the last of them is gone.
        process.communicate(timeout=30)
        state = tree.state()
        seen["killed"] += process.returncode == -signal.SIGKILL
        seen["killed among the writes"] += len(state) > 1
        seen += Counter({f"files {name}": count for name, count in state.items()})
        left = tree.leftovers()
        seen["drafts left"] += sum(name.endswith(DRAFT) for name in left)
        seen["copies of old bytes left"] += sum(name.endswith(KEPT) for name in left)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder), options.files)
        print(f"{options.files} files: {tree.duration:.1f} s, of which {tree.writing:.1f} s writing")
        for name, count in kill_often(tree, options.kills, options.seed).items():
            print(f"{count:>8}  {name}")
        tree.start().communicate()
        print(f"afterwards: {dict(tree.state())}, left beside them: {tree.leftovers()}")


if __name__ == "__main__":
    main()
