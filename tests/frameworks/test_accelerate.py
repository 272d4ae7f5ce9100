"""Accelerate: the accelerator back-propagates, what it gathers has no graph."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

FRAMEWORKS = ("accelerate",)
SECOND_TIME = "second time"

MISTAKES = {
    "state": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        """
from accelerate import Accelerator

def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
    loader = torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2)
    cell, head, optimizer, loader = accelerator.prepare(cell, head, optimizer, loader)
    h = torch.zeros(2, 4)
    for x in loader:
        with accelerator.accumulate(cell):
            h = cell(x, @@)
            loss = head(h).pow(2).mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(cell.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return accelerator.unwrap_model(cell)
""",
        SECOND_TIME,
    ),
    "a total": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
from accelerate import Accelerator

def main():
    accelerator = Accelerator(cpu=True)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    loader = torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2)
    net, optimizer, loader, scheduler = accelerator.prepare(net, optimizer, loader, scheduler)
    total = 0.0
    for x in loader:
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        total += @@
        accelerator.log({"loss": loss}, step=1)
    accelerator.print(total / len(loader))
    return total
""",
    ),
    "a discriminator's step": Mistake(
        ("GM201",),
        "fake",
        "fake.detach()",
        """
from accelerate import Accelerator

class Trainer:
    def __init__(self):
        self.accelerator = Accelerator(cpu=True)
        self.G, self.D = nn.Linear(3, 4), nn.Linear(4, 1)
        self.g_opt = torch.optim.SGD(self.G.parameters(), 0.1)
        self.d_opt = torch.optim.SGD(self.D.parameters(), 0.1)
        self.G, self.D, self.g_opt, self.d_opt = self.accelerator.prepare(self.G, self.D, self.g_opt, self.d_opt)

    def step(self, real):
        fake = self.G(torch.randn(2, 3))
        d_loss = F.softplus(-self.D(real)).mean() + F.softplus(self.D(@@)).mean()
        self.d_opt.zero_grad()
        self.accelerator.backward(d_loss)
        self.d_opt.step()
        g_loss = F.softplus(-self.D(fake)).mean()
        self.g_opt.zero_grad()
        self.accelerator.backward(g_loss)
        self.g_opt.step()

def main():
    trainer = Trainer()
    for real in torch.randn(3, 2, 4):
        trainer.step(real)
    return trainer.G, trainer.D
""",
        SECOND_TIME,
    ),
    "one graph twice": Mistake(
        ("GM305",),
        "first",
        "first, retain_graph=True",
        """
from accelerate import Accelerator

def main():
    accelerator = Accelerator(cpu=True)
    body, one, two = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.1)
    body, one, two, optimizer = accelerator.prepare(body, one, two, optimizer)
    for x in torch.randn(3, 2, 3):
        features = body(x)
        first, second = one(features).pow(2).mean(), two(features).abs().mean()
        optimizer.zero_grad()
        accelerator.backward(@@)
        accelerator.backward(second)
        optimizer.step()
    return body
""",
        SECOND_TIME,
    ),
    "gathered losses of every batch, with the loss": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
from accelerate import Accelerator

def main():
    accelerator = Accelerator(cpu=True)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = accelerator.prepare(net, optimizer)
    losses, gathered = [], []
    for x in torch.randn(4, 2, 3):
        loss = net(x).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(@@)
        gathered.append(accelerator.gather(loss.detach().repeat(2)).mean())
    print(torch.stack(losses).mean())
    return losses, gathered
""",
    ),
}

RIGHT = {
    "accumulated": """
from accelerate import Accelerator

def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.randn(8, 3), batch_size=2)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    total, seen = 0.0, []
    for epoch in range(2):
        net.train()
        for x in loader:
            with accelerator.accumulate(net), accelerator.autocast():
                loss = net(x).pow(2).mean()
                total += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                seen.append(accelerator.gather_for_metrics(loss.detach()))
        net.eval()
        for x in loader:
            with torch.no_grad():
                seen.append(accelerator.gather_for_metrics(net(x)).mean())
    return total, seen
""",
    "losses added before one backward": """
from accelerate import Accelerator

def main():
    accelerator = Accelerator(cpu=True)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = accelerator.prepare(net, optimizer)
    for epoch in range(2):
        total = 0.0
        for x in torch.randn(4, 2, 3):
            total += net(x).pow(2).mean()
        accelerator.backward(total)
        optimizer.step()
        optimizer.zero_grad()
    return net
""",
    "one graph twice, retained": """
from accelerate import Accelerator

def main():
    accelerator = Accelerator(cpu=True)
    body, one, two = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*body.parameters(), *one.parameters(), *two.parameters()], lr=0.1)
    body, one, two, optimizer = accelerator.prepare(body, one, two, optimizer)
    for x in torch.randn(3, 2, 3):
        features = body(x)
        first, second = one(features).pow(2).mean(), two(features).abs().mean()
        accelerator.backward(first, retain_graph=True)
        accelerator.backward(second)
        optimizer.step()
        optimizer.zero_grad()
    return body
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
