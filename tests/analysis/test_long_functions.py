"""Functions that are too long to be followed: what calls them, and what they call, is followed all the same."""

from __future__ import annotations

import pytest

from gradmend import codemods

HELPERS = "\n".join(
    ["def tabulate_0(count): print(count)"]
    + [f"def tabulate_{n}(count): {'; '.join([f'tabulate_{n - 1}(count)'] * 8)}" for n in range(1, 7)]
)
"""Each calls the one before eight times: the last takes more than a call may take."""

TRAINING = """
import torch
from torch import nn

class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def sample(self, count):
        {before_sampling}
        return self.layer(torch.randn(count, 2))

class Training:
    def __init__(self, count):
        self.prepare(count)
        self.generator, self.critic = Generator(), nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.critic.parameters())
        self.generator_optimizer = torch.optim.Adam(self.generator.parameters())

    def prepare(self, count):
        {preparing}

    def train(self, reals):
        {before_training}
        for real in reals:
            fake = self.generator.sample(4){cut}
            loss = self.critic(fake).mean() - self.critic(real).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.generator_optimizer.zero_grad()
            (-self.critic(self.generator.sample(4)).mean()).backward()
            self.generator_optimizer.step()

    def show(self, count):
        tabulate_6(count)
        print(self.generator.sample(count))
"""
PLACES = {
    "what a constructor calls": {"preparing": "tabulate_6(count)"},
    "what a method of the training calls": {"before_training": "tabulate_6(len(reals))"},
    "what comes before another's use of the network": {"before_training": "self.show(len(reals))"},
    "what a network calls": {"before_sampling": "tabulate_6(count)"},
    "what leaves too little for the network at first": {
        "before_sampling": "; ".join(["print(count)"] * 400),
        "before_training": "self.show(len(reals))",
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_the_rest_is_followed(place: str) -> None:
    def found(cut: str) -> set[str]:
        parts = {"before_sampling": "pass", "preparing": "pass", "before_training": "pass", **PLACES[place]}
        text = HELPERS + TRAINING.format(cut=cut, **parts)
        return {finding.code for finding in codemods.scan(text)}

    assert found("") == {"GM201"}
    assert found(".detach()") == set()
