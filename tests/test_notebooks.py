"""Notebooks: the cells are one program, which is run before and after; the file changes in the mended cells alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gradmend.codemods import Project, mend_file, scan_file
from tests import runtime

IMPORTS = "import torch\nfrom torch import nn"
NETS = (
    "cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)\n"
    "optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)"
)
STEP = (
    "def step(x, h):\n"
    "    h = cell(x, h)\n"
    "    loss = head(h).pow(2).mean()\n"
    "    optimizer.zero_grad()\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
    "    return h, loss"
)
LOOP = (
    "h, losses = torch.zeros(2, 4), []\n"
    "for x in torch.randn(4, 2, 3):\n"
    "    h, loss = step(x, h)\n"
    "    losses.append(loss)"
)
SHOW = "print(sum(losses) / len(losses))"
OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["0.3 \u00e9 loss.backward()\n"]}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def code(text: str) -> dict[str, object]:
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [OUTPUT], "source": lines(text)}


def words(kind: str, text: str) -> dict[str, object]:
    return {"cell_type": kind, "metadata": {}, "source": lines(text)}


def format_4(*cells: dict[str, object]) -> dict[str, object]:
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": list(cells), "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def plain() -> dict[str, object]:
    return format_4(*map(code, (IMPORTS, NETS, STEP, LOOP, SHOW)))


def without_outputs() -> dict[str, object]:
    return format_4(
        *({**code(text), "outputs": [], "execution_count": None} for text in (IMPORTS, NETS, STEP, LOOP, SHOW))
    )


def with_words() -> dict[str, object]:
    return format_4(
        words("markdown", "# Train\n\n`loss.backward(` ```"),
        code(IMPORTS),
        words("raw", "def f(:\n"),
        code(NETS),
        words("markdown", "Each step:"),
        code(STEP),
        code(LOOP),
        code(SHOW),
    )


def with_magics() -> dict[str, object]:
    return format_4(
        code("%matplotlib inline\n!pip install torch\n" + IMPORTS),
        code("%%capture out\n" + NETS),
        code("%%bash\nls | grep x\n"),
        code(STEP + "\n\n?step"),
        code("%%time\n%cd .\n" + LOOP),
        code("files = !ls\n" + SHOW),
    )


def with_a_broken_cell() -> dict[str, object]:
    return format_4(*map(code, (IMPORTS, "def broken(:\n    pass", NETS, STEP, "print 'done'", LOOP, SHOW)))


def format_3() -> dict[str, object]:
    def cell(text: str) -> dict[str, object]:
        made = {"cell_type": "code", "collapsed": False, "input": lines(text), "language": "python", "metadata": {}}
        return {**made, "outputs": [], "prompt_number": 1}

    heading = {"cell_type": "heading", "level": 1, "metadata": {}, "source": ["Train"]}
    cells = [heading, *map(cell, (IMPORTS, NETS, STEP, LOOP, SHOW))]
    return {"metadata": {"name": "train"}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]}


def whole_texts() -> dict[str, object]:
    return format_4(*({**code(text), "source": text} for text in (IMPORTS, NETS, STEP, LOOP, SHOW)))


NOTEBOOKS: dict[str, tuple[Callable[[], dict[str, object]], int]] = {
    # With the number of the cell that holds the loop.
    "plain": (plain, 4),
    "without outputs": (without_outputs, 4),
    "markdown and raw cells": (with_words, 7),
    "magics": (with_magics, 5),
    "cells that do not parse": (with_a_broken_cell, 6),
    "format 3": (format_3, 5),
    "sources that are one text": (whole_texts, 4),
}


def cells_of(raw: bytes) -> list[tuple[str, str]]:
    """The kind and the source of every cell."""
    document = json.loads(raw)
    cells = document["cells"] if "cells" in document else document["worksheets"][0]["cells"]
    return [(cell["cell_type"], "".join(cell.get("source", cell.get("input", "")))) for cell in cells]


def program(raw: bytes) -> bytes:
    """What IPython would run of the code cells, as the ``main()`` of a script."""
    kept: list[str] = []
    for kind, text in cells_of(raw):
        if kind != "code" or text.startswith("%%bash"):
            continue
        python = re.sub(r"^\s*[%!?].*$", "", text, flags=re.MULTILINE).replace("files = !ls", "files = []")
        try:
            compile(python, "cell", "exec")
        except SyntaxError:
            continue
        kept += python.splitlines()
    body = "\n".join(f"    {line}" for line in ["import torch", "torch.manual_seed(0)", *kept, "return cell, losses"])
    return f"def main():\n{body}\n".encode()


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize("indent", [None, 1])
def test_mended_cell_by_cell(name: str, indent: int | None) -> None:
    make, number = NOTEBOOKS[name]
    raw = json.dumps(make(), indent=indent).encode() + b"\n"
    report = scan_file("train.ipynb", raw, Project(None))
    assert {(finding.code, finding.cell) for finding in report.findings} == {("GM101", number), ("GM102", number)}
    assert bool(report.problems) == (name == "cells that do not parse")

    mended = mend_file("train.ipynb", raw, Project(None))
    assert mended.left == ()
    assert mend_file("train.ipynb", mended.source, Project(None)).source == mended.source
    before, after = cells_of(raw), cells_of(mended.source)
    assert [n for n, (old, new) in enumerate(zip(before, after, strict=True), start=1) if old != new] == [number]
    # All that differs, to the byte, lies between the loop's first and last line.
    first, last = b"for x in torch.randn", json.dumps(SHOW.splitlines()[0]).encode()[1:-1]
    assert raw.partition(first)[0] == mended.source.partition(first)[0]
    assert raw.rpartition(last)[2] == mended.source.rpartition(last)[2]

    wrong, right = runtime.run_source(program(raw)), runtime.run_source(program(mended.source))
    assert "second time" in (wrong.error or "")
    assert right.error is None
    assert right.graph == 0


def test_what_is_right_in_cells_is_left_alone() -> None:
    loop = LOOP.replace("step(x, h)", "step(x, h.detach())").replace("append(loss)", "append(loss.item())")
    raw = json.dumps(format_4(*map(code, (IMPORTS, NETS, STEP, loop, SHOW)))).encode()
    assert scan_file("train.ipynb", raw, Project(None)).findings == ()
    assert mend_file("train.ipynb", raw, Project(None), unsafe=True).source == raw
    assert runtime.run_source(program(raw)).error is None


def test_a_notebook_beside_a_module(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(IMPORTS + "\n\ndef advance(cell, x, h):\n    return cell(x, h)\n")
    step = STEP.replace("cell(x, h)", "advance(cell, x, h)")
    texts = ("from tools import *\nimport torch\nfrom torch import nn", NETS, step, LOOP, SHOW)
    raw = json.dumps(format_4(*map(code, texts))).encode()
    path = tmp_path / "train.ipynb"
    path.write_bytes(raw)
    report = scan_file(str(path), raw, Project())
    assert {(finding.code, finding.cell) for finding in report.findings} == {("GM101", 4), ("GM102", 4)}
