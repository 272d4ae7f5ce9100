"""higher: an inner loop whose steps are differentiable, so that nothing is freed by them."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

FRAMEWORKS = ("higher",)

MISTAKES = {
    "query losses kept as they are": Mistake(
        ("GM102",),
        "query",
        "query.detach()",
        """
import higher

def main():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    outer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for episode in range(3):
        outer.zero_grad()
        for task in torch.randn(2, 4, 3):
            with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fmodel, diffopt):
                for _ in range(2):
                    diffopt.step(fmodel(task).pow(2).mean())
                query = fmodel(task).abs().mean()
                losses.append(@@)
                query.backward()
        outer.step()
    print(sum(losses) / len(losses))
    return losses
""",
    ),
}

RIGHT = {
    "an inner loop, one backward for each task": """
import higher

def main():
    model = nn.Linear(3, 1)
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    outer = torch.optim.SGD(model.parameters(), lr=0.1)
    for episode in range(3):
        outer.zero_grad()
        for task in torch.randn(2, 4, 3):
            with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fmodel, diffopt):
                for _ in range(2):
                    diffopt.step(fmodel(task).pow(2).mean())
                fmodel(task).pow(2).mean().backward()
        outer.step()
    return model
""",
    "query losses added, one backward": """
import higher

def main():
    model = nn.Linear(3, 1)
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    outer = torch.optim.SGD(model.parameters(), lr=0.1)
    for episode in range(3):
        total = 0.0
        for task in torch.randn(2, 4, 3):
            with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fmodel, diffopt):
                for _ in range(2):
                    loss = fmodel(task).pow(2).mean()
                    diffopt.step(loss)
                total = total + fmodel(task).pow(2).mean()
        outer.zero_grad()
        total.backward()
        outer.step()
    return model
""",
    "evaluated without higher gradients": """
import higher

def main():
    model = nn.Linear(3, 1)
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    scores = []
    for task in torch.randn(3, 4, 3):
        with higher.innerloop_ctx(model, inner, track_higher_grads=False) as (fmodel, diffopt):
            for _ in range(2):
                diffopt.step(fmodel(task).pow(2).mean())
            scores.append(fmodel(task).pow(2).mean().detach())
    return scores
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
