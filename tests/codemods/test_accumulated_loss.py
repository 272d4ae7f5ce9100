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
total, count = 0, 0
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
    "at a place that is counted": (KNOWN, "best[count % 8] = loss; count += 1"),
}
NOT_KEPT = {
    "a metric that cannot be seen": (KNOWN, "kept.append(accuracy(output, y))"),
    "its total": (KNOWN, "total += accuracy(output, y)"),
    "the other of two results": ("loss, count = other(x, y)", "kept.append(count)"),
    "its first element": ("loss, texts = criterion_and_accuracy(model(x), y)", "kept.append(texts[0])"),
    "a total of the other": ("loss, count = other(x, y)", "total += count"),
    "an attribute of a result": ("output = other(x, y); loss = output.loss", "kept.append(output.count)"),
    "two places that change": (KNOWN, "best[0] = loss; best[0], best[1] = best[1], best[0]"),
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


CALCULATION = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())


def {signature}:
    rows = []
    for i in range(x.shape[-1]):
        {row}
        rows.append(row)
    return torch.stack(rows)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def scores(self, x):
        rows = []
        for i in range(4):
            rows.append(self.layer(x + i).pow(2))
        return torch.cat(rows)


x = torch.randn(5, 3, requires_grad=True)
for _ in range(3):
    print({call})
"""
CALCULATIONS = {
    "rows of a Jacobian": (
        "rows_of(y, x)",
        "row = torch.autograd.grad(y[:, i].sum(), x, create_graph=True)[0]",
        "rows_of(model(x), x).norm()",
    ),
    "parts of a score": ("parts(weight, x)", "row = torch.tanh(x @ weight[i])", "parts(model[0].weight, x).mean()"),
    "a module's own method": ("unused(x)", "row = x", "Head().scores(torch.randn(5, 3)).mean()"),
}


@pytest.mark.parametrize("case", CALCULATIONS.values(), ids=CALCULATIONS.keys())
def test_a_calculation_in_parts_is_no_bookkeeping(case: tuple[str, str, str]) -> None:
    signature, row, call = case
    assert findings(CALCULATION.format(signature=signature, row=row, call=call), "GM102") == []


def test_a_loop_over_batches_that_is_given_no_graph_is_bookkeeping() -> None:
    source = """
        import torch
        from torch import nn

        def evaluate(model, batches):
            outputs = []
            for batch in batches:
                outputs.append(model(batch).tanh())
            return outputs

        print(evaluate(nn.Linear(3, 1), torch.randn(50, 4, 3)))
    """
    assert len(findings(source, "GM102")) == 1
