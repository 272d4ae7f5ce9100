"""Programs that are run for real: some with a mistake and its place done right, and look-alikes that are right already.

Each defines ``main()``, which returns the numbers that count and whatever tensors the program has kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

from gradmend import codemods
from gradmend.codemods.analysis.prefilter import may_go_wrong
from tests import runtime

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
"""


@dataclass(frozen=True)
class Mistake:
    """A program with a place, ``@@``, that holds a mistake or what is right there."""

    codes: tuple[str, ...]
    """The rules that find the mistake."""
    wrong: str
    right: str
    program: str
    error: str = ""
    """What PyTorch says to the mistake, as a regular expression; "" where it runs."""
    unsafe: bool = False
    """Whether the repair is unsafe."""
    repaired: bool = True
    """Whether a repair is offered: not where it would lie in code that others use too."""

    def source(self, part: str) -> str:
        return source(self.program.replace("@@", part))


def source(program: str) -> str:
    return HEAD + dedent(program)


def prove(mistake: Mistake, *frameworks: str) -> None:
    """The mistake is found and mended, what is right is not touched, and the framework itself says so too."""
    wrong, right = mistake.source(mistake.wrong), mistake.source(mistake.right)
    assert may_go_wrong(wrong.encode())
    assert {finding.code for finding in codemods.scan(wrong)} == set(mistake.codes)
    assert codemods.scan(right) == []
    mended = codemods.mend(wrong, unsafe=mistake.unsafe)
    assert bool(mended.applied) == mistake.repaired == (not mended.left)
    assert codemods.mend(mended.source, unsafe=True).source == mended.source

    before, want, got = (
        runtime.run_source(text.encode(), frameworks=frameworks) for text in (wrong, right, mended.source)
    )
    assert want.error is None, want.error
    assert re.search(mistake.error, before.error) if mistake.error and before.error else before.error is None
    assert before.error or before.graph > want.graph or not runtime.same(before.values, want.values)
    if not mistake.repaired:
        return
    assert got.error is None, got.error
    assert runtime.same(got.values, want.values), f"{got.values}\nis not\n{want.values}"
    assert got.graph <= want.graph


def prove_right(program: str, *frameworks: str) -> None:
    """Nothing is found in a program that runs."""
    text = source(program)
    assert codemods.scan(text) == []
    error = runtime.run_source(text.encode(), frameworks=frameworks).error
    assert error is None, error
