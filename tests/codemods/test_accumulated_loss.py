"""GM102: what is kept of every iteration, and what only looks like it."""

from __future__ import annotations

import pytest

from .mending import findings

PROGRAM = """
import torch
from torch import nn
from elsewhere import Model, accuracy, criterion_and_accuracy

model, other = nn.Linear(3, 2), Model()
optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
kept = []
total = 0
best = [None] * 8
for step in range(100):
    x, y = torch.randn(8, 3), torch.randn(8, 2)
    {forward}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {keep}
"""
KNOWN = "output = model(x); loss = (output - y).pow(2).mean()"
KEPT = {
    "a loss": (KNOWN, "kept.append(loss)"),
    "an output": (KNOWN, "kept.append(output)"),
    "a total": (KNOWN, "total += loss"),
    "the output of a model that is trained": ("output = other(x); loss = (output - y).mean()", "kept.append(output)"),
    "one of two results, back-propagated": ("loss, count = other(x, y)", "kept.append(loss)"),
    "one of two results, in what is back-propagated": (
        "output, count = other(x, y); loss = output.pow(2).mean()",
        "kept.append(output)",
    ),
    "at a place for each iteration": (KNOWN, "best[step] = loss"),
}
NOT_KEPT = {
    "a metric that cannot be seen": (KNOWN, "kept.append(accuracy(output, y))"),
    "its total": (KNOWN, "total += accuracy(output, y)"),
    "the other of two results": ("loss, count = other(x, y)", "kept.append(count)"),
    "its first element": ("loss, texts = criterion_and_accuracy(model(x), y)", "kept.append(texts[0])"),
    "a total of the other": ("loss, count = other(x, y)", "total += count"),
    "an attribute of a result": ("output = other(x, y); loss = output.loss", "kept.append(output.count)"),
    "a place that each iteration fills anew": (
        KNOWN,
        "\n    for i in range(len(x)):\n        if output[i].mean() > 0:\n            best[i] = output[i]",
    ),
}


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT.keys())
def test_a_graph_that_is_kept_is_found(case: tuple[str, str]) -> None:
    forward, keep = case
    assert len(findings(PROGRAM.format(forward=forward, keep=keep), "GM102")) == 1


@pytest.mark.parametrize("case", NOT_KEPT.values(), ids=NOT_KEPT.keys())
def test_what_may_be_a_number_is_left_alone(case: tuple[str, str]) -> None:
    forward, keep = case
    assert findings(PROGRAM.format(forward=forward, keep=keep), "GM102") == []
