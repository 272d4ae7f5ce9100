"""Ignite: an Engine calls its process function for every batch and keeps the result until the next."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

FRAMEWORKS = ("ignite.engine", "ignite.metrics", "ignite.handlers")
SECOND_TIME = "second time"

MISTAKES = {
    "a handler keeps the output": Mistake(
        ("GM102",),
        "engine.state.output",
        "engine.state.output.detach()",
        """
from ignite.engine import Engine, Events

def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    history = []

    def step(engine, batch):
        net.train()
        optimizer.zero_grad()
        loss = net(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    trainer = Engine(step)

    @trainer.on(Events.ITERATION_COMPLETED)
    def remember(engine):
        history.append(@@)

    trainer.run(list(torch.randn(4, 2, 3)), max_epochs=1)
    print(sum(history) / len(history))
    return history
""",
    ),
    "the process function adds up": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
from ignite.engine import Engine

class Run:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.total = 0.0

    def update(self, engine, batch):
        loss = self.net(batch).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.total = self.total + @@
        return {"loss": loss.item()}

def main():
    run = Run()
    trainer = Engine(run.update)
    trainer.run(list(torch.randn(4, 2, 3)), max_epochs=1)
    print(run.total / 4)
    return run.total
""",
    ),
    "a discriminator's step": Mistake(
        ("GM201",),
        "fake",
        "fake.detach()",
        """
from ignite.engine import Engine

def make(G, D):
    g_opt, d_opt = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)

    def step(engine, batch):
        fake = G(torch.randn(len(batch), 3))
        d_opt.zero_grad()
        (F.softplus(-D(batch)).mean() + F.softplus(D(@@)).mean()).backward()
        d_opt.step()
        g_opt.zero_grad()
        F.softplus(-D(fake)).mean().backward()
        g_opt.step()

    return Engine(step)

def main():
    G, D = nn.Linear(3, 4), nn.Linear(4, 1)
    trainer = make(G, D)
    trainer.run(list(torch.randn(3, 2, 4)))
    return G, D
""",
        SECOND_TIME,
    ),
    "state on the engine": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        """
from ignite.engine import Engine, Events

def main():
    cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)

    def step(engine, batch):
        h = cell(batch, engine.state.hidden)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        engine.state.hidden = @@
        return loss.item()

    trainer = Engine(step)

    @trainer.on(Events.EPOCH_STARTED)
    def fresh(engine):
        engine.state.hidden = torch.zeros(2, 4)

    trainer.run(list(torch.randn(3, 2, 3)), max_epochs=2)
    return cell
""",
        SECOND_TIME,
    ),
}

RIGHT = {
    "metrics and running averages": """
from ignite.engine import Engine, Events
from ignite.metrics import Average, RunningAverage

def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(engine, batch):
        optimizer.zero_grad()
        loss = net(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "kept": loss}

    trainer = Engine(step)
    RunningAverage(output_transform=lambda output: output["loss"]).attach(trainer, "running")
    Average(output_transform=lambda output: output["loss"]).attach(trainer, "mean")
    means, lasts = [], []

    @trainer.on(Events.EPOCH_COMPLETED)
    def show(engine):
        means.append(engine.state.metrics["mean"])
        lasts.append(engine.state.output["loss"])

    trainer.run(list(torch.randn(4, 2, 3)), max_epochs=3)
    return means, lasts
""",
    "accumulated gradients": """
from ignite.engine import Engine

def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(engine, batch):
        loss = net(batch).pow(2).mean() / 2
        loss.backward()
        if engine.state.iteration % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss.item()

    Engine(step).run(list(torch.randn(4, 2, 3)), max_epochs=2)
    return net
""",
    "the supervised trainer": """
from ignite.engine import create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Loss

def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    trainer = create_supervised_trainer(net, optimizer, F.mse_loss)
    evaluator = create_supervised_evaluator(net, metrics={"loss": Loss(F.mse_loss)})
    data = [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(3)]
    trainer.run(data, max_epochs=2)
    return evaluator.run(data).metrics["loss"]
""",
    "state cut at each batch": """
from ignite.engine import Engine

def main():
    cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    kept = {"h": torch.zeros(2, 4)}

    def step(engine, batch):
        kept["h"] = h = cell(batch, kept["h"].detach())
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    Engine(step).run(list(torch.randn(3, 2, 3)))
    return kept["h"]
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
