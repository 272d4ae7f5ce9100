"""DeepSpeed: the engine that initialize() makes of a model back-propagates, steps and clears."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

pytest.importorskip("deepspeed")

FRAMEWORKS = ("deepspeed",)
SECOND_TIME = "second time"

INITIALIZE = """
import os
import sys
import deepspeed

def initialize(model):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    # One process shares no memory with others, and compiling what does would take a minute. The attribute of that name
    # is the torch package.
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
"""
ENGINE = """
    engine, optimizer, _, _ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), 0.1), config={"train_micro_batch_size_per_gpu": 2}
    )
"""

MISTAKES = {
    "state": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        INITIALIZE
        + """
def main():
    model = nn.GRUCell(3, 4)
    initialize(model)
"""
        + ENGINE
        + """
    h = torch.zeros(2, 4)
    for x in torch.randn(4, 2, 3):
        h = engine(x, @@)
        engine.backward(h.pow(2).mean())
        engine.step()
    return model
""",
        SECOND_TIME,
    ),
    "a total": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        INITIALIZE
        + """
def main():
    model = nn.Linear(3, 1)
    initialize(model)
"""
        + ENGINE
        + """
    total = 0.0
    for x in torch.randn(4, 2, 3):
        loss = engine(x).pow(2).mean()
        engine.backward(loss)
        engine.step()
        total = total + @@
    print(total / 4)
    return total
""",
    ),
}

RIGHT = {
    "a plain loop": INITIALIZE
    + """
def main():
    model = nn.Linear(3, 1)
    initialize(model)
"""
    + ENGINE
    + """
    total, losses = 0.0, []
    for epoch in range(2):
        for x in torch.randn(4, 2, 3):
            loss = engine(x).pow(2).mean()
            engine.backward(loss)
            engine.step()
            total += loss.item()
            losses.append(loss.detach())
    return total, losses
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
