"""fastai: its Learner back-propagates, and gives its callbacks predictions and losses that still have their graphs."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

pytest.importorskip("fastai")

FRAMEWORKS = ("fastai.learner", "fastai.callback.progress", "fastai.data.core")
SECOND_TIME = "second time"

FIT = """
def fit(net, loss_func, *callbacks):
    data = [(x, x.sum(dim=0, keepdim=True)) for x in torch.randn(8, 3)]
    loaders = DataLoaders(DataLoader(data, bs=2), DataLoader(data, bs=2))
    learner = Learner(loaders, net, loss_func=loss_func, cbs=list(callbacks))
    with learner.no_bar(), learner.no_logging():
        learner.fit(1, lr=0.1)
    return learner
"""
IMPORTS = """
from fastai.callback.core import Callback
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner
from fastai.torch_core import to_detach
import fastai.callback.progress
"""

MISTAKES = {
    "losses kept by a callback": Mistake(
        ("GM102",),
        "self.loss",
        "to_detach(self.loss)",
        IMPORTS
        + FIT
        + """
class Track(Callback):
    def before_fit(self):
        self.losses = []

    def after_batch(self):
        if self.training:
            self.losses.append(@@)

    def after_fit(self):
        print(sum(self.losses) / len(self.losses))

def main():
    track = Track()
    fit(nn.Linear(3, 1), F.mse_loss, track)
    return list(track.losses)
""",
    ),
    "predictions kept by a callback": Mistake(
        ("GM102",),
        "self.learn.pred",
        "self.learn.pred.detach()",
        IMPORTS
        + FIT
        + """
class Track(Callback):
    def before_epoch(self):
        self.mean = 0.0

    def after_pred(self):
        if self.training:
            self.mean = self.mean + @@.mean()

    def after_epoch(self):
        print(self.mean)

def main():
    track = Track()
    fit(nn.Linear(3, 1), F.mse_loss, track)
    return track.mean
""",
    ),
}

RIGHT = {
    "detached, as numbers, or changed for the step": IMPORTS
    + FIT
    + """
class Track(Callback):
    def before_fit(self):
        self.losses, self.numbers, self.total = [], [], 0.0

    def after_loss(self):
        self.learn.loss_grad = self.learn.loss_grad + 0.01 * self.learn.pred.pow(2).mean()

    def after_batch(self):
        self.losses.append(to_detach(self.loss))
        self.numbers.append(self.loss.item())
        self.total += self.loss.detach()

def main():
    track = Track()
    fit(nn.Linear(3, 1), F.mse_loss, track)
    assert not any(loss.requires_grad for loss in track.losses)
    return track.losses, track.numbers
""",
    "a recurrent model that cuts its state": IMPORTS
    + FIT
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(3, 4), nn.Linear(4, 1)
        self.h = torch.zeros(2, 4)

    def forward(self, x):
        self.h = to_detach(self.h, cpu=False)
        self.h = self.cell(x, self.h)
        return self.head(self.h)

def main():
    fit(Net(), F.mse_loss)
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
