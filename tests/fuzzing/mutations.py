"""Damaged sources: whatever a file holds, gradmend says what it finds or that it cannot read it, and nothing worse.

``python -m tests.fuzzing.mutations ROUNDS PATH...`` damages the Python files below the paths and tries each.
"""

from __future__ import annotations

import ast
import random
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Final

from gradmend.codemods import Project, SourceError, mend_file, scan_file

TOKENS: Final = re.compile(rb"\w+|\s+|.", re.DOTALL)
WORDS: Final = (
    b"loss", b".backward()", b".detach()", b"retain_graph=True", b"for x in y:", b"if", b"else:", b"(", b")", b"[",
    b"]",
    b"yield", b"lambda:", b"*", b"**", b"=", b":=", b"'", b'"""', b"\\\n", b"\t", b";", b"#", b"\x0c", b"\r", b"\x00",
    b"\xff", b"\xef\xbb\xbf", b"f'{", b"}", b"@", b"async ", b"await ", b"return", b"break", b"continue", b"self.",
    b"global loss", b"nonlocal loss", b"del loss", b"import torch", b"with torch.no_grad():", b"try:", b"except:",
    b"class A(A):", b"match loss:", b"\xe2\x80\xa8", "é".encode(),
)  # fmt: skip


def mutated(raw: bytes, choose: random.Random) -> bytes:
    """``raw`` with a few lines or tokens deleted, doubled, swapped, moved in, or cut off."""
    for _ in range(choose.choice((1, 1, 2, 3, 6))):
        by_line = choose.random() < 0.6
        parts = raw.splitlines(keepends=True) if by_line else TOKENS.findall(raw)
        if not parts:
            return choose.choice(WORDS)
        here, there = choose.randrange(len(parts)), choose.randrange(len(parts))
        match choose.randrange(8):
            case 0:
                del parts[here]
            case 1:
                parts.insert(here, parts[here])
            case 2:
                parts[here], parts[there] = parts[there], parts[here]
            case 3:
                parts.insert(here, parts[there])
            case 4:
                parts.insert(here, choose.choice(WORDS))
            case 5 if by_line:
                parts[here] = b"    " + parts[here]
            case 6 if by_line:
                parts[here] = parts[here].removeprefix(b"    ")
            case _:
                del parts[here : here + choose.randint(1, 5)]
        raw = b"".join(parts)
    return raw if choose.random() < 0.95 else raw[: choose.randrange(len(raw) + 1)]


def complaint(raw: bytes) -> str | None:
    """What is wrong with what gradmend does with a file; None where nothing is."""
    try:
        scan_file("damaged.py", raw, Project())
        once = mend_file("damaged.py", raw, Project(), unsafe=True)
        again = mend_file("damaged.py", once.source, Project(), unsafe=True)
    except SourceError:
        return None
    except Exception:
        return traceback.format_exc()
    if again.source != once.source:
        return "mending it again changes it"
    if once.source != raw:
        try:
            ast.parse(once.source)
        except SyntaxError as error:
            return f"the mended source does not parse: {error}"
    return None


def main(rounds: int, paths: list[Path]) -> None:
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    choose = random.Random(0)
    tried, slowest = 0, (0.0, "")
    for number in range(rounds):
        file = choose.choice(files)
        raw = mutated(file.read_bytes(), choose)
        started = time.perf_counter()
        wrong = complaint(raw)
        slowest = max(slowest, (time.perf_counter() - started, f"{file} in round {number}"))
        tried += 1
        if wrong is not None:
            print(f"##### {file}, round {number}\n{wrong}")
            Path(f"damaged-{number}.py").write_bytes(raw)
    print(f"{tried} tried of {len(files)} files, slowest {slowest}")


if __name__ == "__main__":
    main(int(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]])
