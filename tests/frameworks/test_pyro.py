"""Pyro: SVI's step gives a float, its loss functions tensors with a graph."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

FRAMEWORKS = ("pyro", "pyro.infer", "pyro.optim", "pyro.nn", "pyro.distributions")

MODEL = """
import pyro
import pyro.distributions as dist

def model(x):
    loc = pyro.sample("loc", dist.Normal(torch.zeros(()), 1.0))
    with pyro.plate("data", len(x)):
        pyro.sample("x", dist.Normal(loc, 1.0), obs=x)

def guide(x):
    mean = pyro.param("mean", torch.zeros(()))
    pyro.sample("loc", dist.Normal(mean, 1.0))
"""

MISTAKES = {
    "a loss of one's own loop": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        MODEL
        + """
from pyro.infer import Trace_ELBO

def main():
    pyro.clear_param_store()
    elbo = Trace_ELBO()
    elbo.differentiable_loss(model, guide, torch.randn(5))
    optimizer = torch.optim.SGD([pyro.param("mean").unconstrained()], lr=0.01)
    total = 0.0
    for step in range(4):
        loss = elbo.differentiable_loss(model, guide, torch.randn(5))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total + @@
    print(total / 4)
    return total
""",
    ),
}

RIGHT = {
    "a float": MODEL
    + """
from pyro.infer import SVI, Trace_ELBO

def main():
    pyro.clear_param_store()
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), loss=Trace_ELBO())
    total, losses = 0.0, []
    for step in range(5):
        loss = svi.step(torch.randn(5))
        total += loss
        losses.append(loss)
    assert isinstance(total, float)
    return total, losses, svi.evaluate_loss(torch.randn(5))
""",
    "losses of several terms before one backward": MODEL
    + """
def main():
    pyro.clear_param_store()
    elbo = pyro.infer.Trace_ELBO()
    elbo.differentiable_loss(model, guide, torch.randn(5))
    optimizer = torch.optim.SGD([param for _, param in pyro.get_param_store().named_parameters()], lr=0.01)
    for step in range(4):
        total = 0.0
        for part in torch.randn(2, 5):
            total = total + elbo.differentiable_loss(model, guide, part)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return pyro.param("mean").detach()
""",
    "a Pyro module": """
import pyro
import pyro.distributions as dist
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from pyro.nn import PyroModule, PyroSample

class Regression(PyroModule):
    def __init__(self):
        super().__init__()
        self.linear = PyroModule[nn.Linear](3, 1)
        self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 3]).to_event(2))

    def forward(self, x, y=None):
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("data", len(x)):
            pyro.sample("y", dist.Normal(mean, 0.1), obs=y)
        return mean

def main():
    pyro.clear_param_store()
    model = Regression()
    svi = SVI(model, AutoNormal(model), pyro.optim.Adam({"lr": 0.01}), Trace_ELBO())
    history = []
    for epoch in range(3):
        history.append(svi.step(torch.randn(4, 3), torch.randn(4)) / 4)
    return history
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
