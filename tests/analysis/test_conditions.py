"""Conditions that are tested more than once: what goes with one outcome does not meet what goes with the other."""

from __future__ import annotations

import pytest

from gradmend import codemods

PROGRAM = """
import torch
from torch import nn
from settings import options

critic, generator = nn.Linear(3, 2), nn.Linear(2, 3)
optimizer = torch.optim.Adam(critic.parameters())
optimizer_g = torch.optim.Adam(generator.parameters())
for real in torch.randn(5, 4, 3):
    fake = generator(torch.randn(4, 2))
    score = critic(fake.detach())
    optimizer.zero_grad()
    score.mean().backward()
    optimizer.step()
    if options.kind == "pair":
        score = critic(fake)
    elif options.kind == "class":
        score = critic(fake).exp()
    loss = -critic(fake).mean()
    if {test}:
        loss = loss + {then}
    else:
        loss = loss + {otherwise}
    optimizer_g.zero_grad()
    loss.backward()
    optimizer_g.step()
"""
RIGHT = {
    "or": ("options.kind == 'pair' or options.kind == 'class'", "score.mean()", "0.0"),
    "not or": ("not (options.kind == 'pair' or options.kind == 'class')", "0.0", "score.mean()"),
    "and": ("options.kind != 'pair' and options.kind != 'class'", "0.0", "score.mean()"),
    "in": ("options.kind in ('pair', 'class')", "score.mean()", "0.0"),
    "one of them": ("options.kind == 'class'", "score.mean()", "0.0"),
}
WRONG = {
    "or": ("options.kind == 'pair' or options.kind == 'other'", "score.mean()", "0.0"),
    "and": ("options.kind != 'pair' and options.kind != 'class'", "score.mean()", "0.0"),
    "something else": ("options.scored", "score.mean()", "0.0"),
}


@pytest.mark.parametrize("case", RIGHT.values(), ids=RIGHT.keys())
def test_outcomes_that_exclude_each_other(case: tuple[str, str, str]) -> None:
    test, then, otherwise = case
    assert codemods.scan(PROGRAM.format(test=test, then=then, otherwise=otherwise)) == []


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_outcomes_that_go_together(case: tuple[str, str, str]) -> None:
    test, then, otherwise = case
    assert codemods.scan(PROGRAM.format(test=test, then=then, otherwise=otherwise)) != []
