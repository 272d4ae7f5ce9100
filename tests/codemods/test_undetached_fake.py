"""GM201: what becomes of the gradients of the network that is not stepped."""

from __future__ import annotations

import pytest

from .mending import findings

PROGRAM = """
import torch
from torch import nn
from elsewhere import loader

generator, critic = nn.Linear(6, 4), nn.Linear(8, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(critic.parameters())
for real, label in loader():
    noise = torch.randn(len(real), 2)
    target = {target}
    fake = generator(torch.cat([noise, target], 1))
    loss_d = critic(torch.cat([fake, target], 1)).mean() - critic(torch.cat([real, target], 1)).mean()
    optimizer_d.zero_grad()
    loss_d.backward()
    optimizer_d.step()
    {again}
    loss_g = -critic(torch.cat([fake, target], 1)).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
"""
TARGETS = (
    "label",
    "torch.zeros(len(real), 4).scatter_(1, label.type(torch.LongTensor).unsqueeze(1), 1)",
    "label.view(-1, 1).repeat(1, 4)",
)


@pytest.mark.parametrize("target", TARGETS)
def test_gradients_of_a_graph_that_is_made_anew_are_thrown_away(target: str) -> None:
    again = "fake = generator(torch.cat([noise, target], 1))"
    (found,) = findings(PROGRAM.format(target=target, again=again), "GM201")
    assert "thrown away" in found.message


@pytest.mark.parametrize("target", TARGETS)
def test_a_graph_that_is_walked_again_is_freed(target: str) -> None:
    (found,) = findings(PROGRAM.format(target=target, again="pass"), "GM201")
    assert "frees the graph" in found.message
