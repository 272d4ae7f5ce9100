"""torchmetrics: what a metric is updated with and what it computes has no graph; its value of one batch may have."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

FRAMEWORKS = ("torchmetrics",)

MISTAKES = {
    "a metric beside a total that keeps its graphs": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
import torchmetrics

def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    mean = torchmetrics.MeanMetric()
    total = 0.0
    for x in torch.randn(4, 2, 3):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean.update(loss)
        total = total + @@
    print(mean.compute(), total / 4)
    return total, mean.compute()
""",
    ),
    "values of single batches": Mistake(
        ("GM102",),
        "batch",
        "batch.detach()",
        """
from torchmetrics import MeanSquaredError

def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    error = MeanSquaredError()
    seen = []
    for x in torch.randn(4, 2, 3):
        out = net(x)
        batch = error(out, torch.zeros_like(out))
        loss = out.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(@@)
    print(sum(seen) / len(seen), error.compute())
    return seen
""",
    ),
}

RIGHT = {
    "updated and computed": """
import torchmetrics
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import BinaryAccuracy

def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    mean, accuracy = MeanMetric(), BinaryAccuracy()
    several = MetricCollection([torchmetrics.MeanSquaredError(), torchmetrics.MeanAbsoluteError()])
    results = []
    for epoch in range(2):
        for x in torch.randn(4, 2, 3):
            out = net(x).squeeze(1)
            loss = F.binary_cross_entropy_with_logits(out, torch.ones(2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean.update(loss)
            accuracy.update(out, torch.ones(2, dtype=torch.long))
            several.update(out, torch.ones(2))
        results.append((mean.compute(), accuracy.compute(), several.compute()))
        mean.reset()
        accuracy.reset()
        several.reset()
    assert not results[0][0].requires_grad
    return results
""",
    "a metric as a loss": """
from torchmetrics.functional import mean_squared_error

def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 2, 3):
        out = net(x)
        loss = mean_squared_error(out, torch.ones_like(out)) + 0.1 * out.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net
""",
    "a metric of one's own": """
import torchmetrics

class Mean(torchmetrics.Metric):
    def __init__(self):
        super().__init__()
        self.add_state("total", default=torch.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("count", default=torch.tensor(0), dist_reduce_fx="sum")

    def update(self, loss):
        self.total += loss
        self.count += 1

    def compute(self):
        return self.total / self.count

def main():
    net, mean = nn.Linear(3, 1), Mean()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 2, 3):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean.update(loss)
    assert not mean.total.requires_grad
    return mean.compute()
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
