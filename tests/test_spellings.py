"""The same mistakes in the many ways that Python has to say a thing; each is run, and so is its repair."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

SECOND_TIME = "second time"
NETS = """
cell, head, body = nn.GRUCell(3, 4), nn.Linear(4, 1), nn.Sequential(nn.Linear(3, 4), nn.Tanh())
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters(), *body.parameters()], lr=0.1)
"""


def state(loop: str, wrong: str = "h", right: str = "h.detach()") -> Mistake:
    """A hidden state that is carried from one iteration into the next."""
    return Mistake(("GM101",), wrong, right, NETS + loop, SECOND_TIME)


def total(loop: str, wrong: str = "loss", right: str = "loss.detach()") -> Mistake:
    """A total that keeps the graphs of all iterations."""
    return Mistake(("GM102",), wrong, right, NETS + loop)


def twice(loop: str, wrong: str, right: str, repaired: bool = True) -> Mistake:
    """One graph, traversed twice in an iteration."""
    return Mistake(("GM305",), wrong, right, NETS + loop, SECOND_TIME, repaired=repaired)


MISTAKES = {
    "a flag in a variable": twice(
        """
def main():
    for x in torch.randn(3, 2, 3):
        keep = @@
        features = body(x)
        optimizer.zero_grad()
        head(features).pow(2).mean().backward(retain_graph=keep)
        head(features).abs().mean().backward()
        optimizer.step()
    return body
""",
        "False",
        "True",
        repaired=False,
    ),
    "a flag as a parameter": twice(
        """
def back(loss, keep=False):
    loss.backward(retain_graph=keep)

def main():
    for x in torch.randn(3, 2, 3):
        features = body(x)
        optimizer.zero_grad()
        back(head(features).pow(2).mean()@@)
        back(head(features).abs().mean())
        optimizer.step()
    return body
""",
        "",
        ", keep=True",
        repaired=False,
    ),
    "keyword arguments handed on": twice(
        """
def back(loss, *arguments, **options):
    loss.backward(*arguments, **options)

def main():
    for x in torch.randn(3, 2, 3):
        features = body(x)
        optimizer.zero_grad()
        back(head(features).pow(2).mean()@@)
        back(head(features).abs().mean())
        optimizer.step()
    return body
""",
        "",
        ", retain_graph=True",
        repaired=False,
    ),
    "a dict of options": twice(
        """
def main():
    options = dict(@@)
    for x in torch.randn(3, 2, 3):
        features = body(x)
        optimizer.zero_grad()
        head(features).pow(2).mean().backward(**options)
        head(features).abs().mean().backward()
        optimizer.step()
    return body
""",
        "",
        "retain_graph=True",
    ),
    "a partial": twice(
        """
from functools import partial

def main():
    back = partial(torch.autograd.backward@@)
    for x in torch.randn(3, 2, 3):
        features = body(x)
        optimizer.zero_grad()
        back(head(features).pow(2).mean())
        torch.autograd.backward(head(features).abs().mean())
        optimizer.step()
    return body
""",
        "",
        ", retain_graph=True",
    ),
    "several roots at once": twice(
        """
from torch.autograd import backward as back

def main():
    for x in torch.randn(3, 2, 3):
        features = body(x)
        optimizer.zero_grad()
        back([head(features).pow(2).mean(), features.sum()]@@)
        back((head(features).abs().mean(),))
        optimizer.step()
    return body
""",
        "",
        ", retain_graph=True",
    ),
    "other names of torch's modules": state(
        """
import torch as th
from torch import autograd as ag
from torch.nn import functional as fn

def main():
    h = th.zeros(2, 4)
    for x in th.randn(3, 2, 3):
        h = cell(x, @@)
        loss = fn.mse_loss(head(h), th.zeros(2, 1))
        optimizer.zero_grad()
        ag.backward([loss])
        optimizer.step()
    return cell
"""
    ),
    "a method of the class": state(
        """
def main():
    h = torch.zeros(2, 4)
    for x in torch.randn(3, 2, 3):
        h = cell(x, @@)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        torch.Tensor.backward(loss)
        optimizer.step()
    return cell
"""
    ),
    "a chain of calls": state(
        """
def main():
    h = torch.zeros(2, 4)
    for x in torch.randn(3, 2, 3):
        h = cell(x, @@)
        optimizer.zero_grad()
        head(h).pow(2).sum().div(2).backward()
        optimizer.step()
    return cell
"""
    ),
    "a walrus": state(
        """
def main():
    h = torch.zeros(2, 4)
    for x in torch.randn(3, 2, 3):
        if (loss := head(h := cell(x, @@)).pow(2).mean()) > 0:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return cell
"""
    ),
    "a match": state(
        """
def main():
    h = torch.zeros(2, 4)
    for i, x in enumerate(torch.randn(4, 2, 3)):
        match ("even", h) if i % 2 == 0 else ("odd", h):
            case ("even", before):
                h = cell(x, before)
            case (_, before):
                h = cell(2 * x, before)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        h = @@
    return cell
"""
    ),
    "coroutines": state(
        """
import asyncio

async def advance(x, h):
    await asyncio.sleep(0)
    return cell(x, h)

async def batches():
    for x in torch.randn(3, 2, 3):
        yield x

async def train():
    h = torch.zeros(2, 4)
    async for x in batches():
        h = await advance(x, @@)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def main():
    asyncio.run(train())
    return cell
"""
    ),
    "an annotated assignment": state(
        """
def main() -> nn.Module:
    h: torch.Tensor = torch.zeros(2, 4)
    for x in torch.randn(3, 2, 3):
        h: torch.Tensor = cell(x, @@)
        loss: torch.Tensor = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return cell
"""
    ),
    "starred unpacking": state(
        """
rnn = nn.LSTM(3, 4)
optimizer.add_param_group({"params": rnn.parameters()})

def main():
    state = None
    for x in torch.randn(3, 5, 3):
        out, *rest = rnn(x, *([] if state is None else [state]))
        (state,) = rest
        loss = head(out).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state = @@
    return rnn
""",
        "state",
        "tuple(part.detach() for part in state)",
    ),
    "assigned to two at once": state(
        """
class Memory:
    h = torch.zeros(2, 4)

def main():
    memory = Memory()
    for x in torch.randn(3, 2, 3):
        memory.h = h = cell(x, memory.h)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        memory.h = @@
    return cell
""",
        "memory.h",
        "memory.h.detach()",
    ),
    "swapped": state(
        """
def main():
    old, new = torch.zeros(2, 4), None
    for x in torch.randn(3, 2, 3):
        new = cell(x, old)
        loss = head(new).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        old, new = @@, old
    return cell
""",
        "new",
        "new.detach()",
    ),
    "a while loop over an iterator": state(
        """
def main():
    batches, h = iter(torch.randn(3, 2, 3)), torch.zeros(2, 4)
    while True:
        try:
            x = next(batches)
        except StopIteration:
            break
        h = cell(x, @@)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return cell
"""
    ),
    "zipped and counted": total(
        """
def main():
    total = 0.0
    for i, (x, y) in enumerate(zip(torch.randn(4, 2, 3), torch.randn(4, 2, 1), strict=True), start=1):
        loss = F.mse_loss(head(body(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = (total * (i - 1) + @@) / i
    print(f"{total:.3f}")
    return total
"""
    ),
    "appended in a comprehension's list": total(
        """
def step(x):
    loss = head(body(x)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

def main():
    losses = []
    for epoch in range(2):
        losses += [@@ for x in torch.randn(3, 2, 3)]
    print(sum(losses) / len(losses))
    return losses
""",
        "step(x)",
        "step(x).detach()",
    ),
    "a dict of totals": total(
        """
from collections import defaultdict

def main():
    totals = defaultdict(float)
    for x in torch.randn(3, 2, 3):
        out = head(body(x))
        losses = {"square": out.pow(2).mean(), "absolute": out.abs().mean()}
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
        for name, loss in losses.items():
            totals[name] += @@
    print(dict(totals))
    return dict(totals)
"""
    ),
    "a nonlocal total": total(
        """
def main():
    total = 0.0

    def step(x):
        nonlocal total
        loss = head(body(x)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total + @@

    for x in torch.randn(3, 2, 3):
        step(x)
    print(total)
    return total
"""
    ),
    "a global total": total(
        """
total = 0.0

def step(x):
    global total
    loss = head(body(x)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = total + @@

def main():
    for x in torch.randn(3, 2, 3):
        step(x)
    print(total)
    return total
"""
    ),
    "a dataclass": total(
        """
from dataclasses import dataclass, field

@dataclass
class Progress:
    losses: list = field(default_factory=list)
    best: float = float("inf")

def main():
    progress = Progress()
    for x in torch.randn(3, 2, 3):
        loss = head(body(x)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.losses.append(@@)
        progress.best = min(progress.best, loss.item())
    print(torch.stack(progress.losses).mean())
    return progress.losses
"""
    ),
    "a lambda": state(
        """
advance = lambda x, h: cell(x, h)

def main():
    h = torch.zeros(2, 4)
    for x in torch.randn(3, 2, 3):
        h = advance(x, @@)
        loss = head(h).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return cell
"""
    ),
}

RIGHT = {
    "retained by a variable, a parameter, a dict and a partial": NETS
    + """
from functools import partial

def back(loss, keep=False, **options):
    loss.backward(retain_graph=keep, **options)

def main():
    for x in torch.randn(3, 2, 3):
        features = body(x)
        optimizer.zero_grad()
        keep = True
        head(features).pow(2).mean().backward(retain_graph=keep)
        back(head(features).pow(2).mean(), True)
        back(head(features).pow(2).mean(), keep=keep, inputs=list(head.parameters()))
        partial(torch.autograd.backward, retain_graph=True)(head(features).mean())
        options = {"retain_graph": True}
        head(features).pow(4).mean().backward(**options)
        head(features).abs().mean().backward()
        optimizer.step()
""",
    "a loss of many terms, added up in many ways": NETS
    + """
from functools import reduce
import operator

def main():
    for x in torch.randn(3, 4, 3):
        parts = [head(body(part)).pow(2).mean() for part in x.split(1)]
        first, *others = parts
        total = first
        for part in others:
            total = total + part
        total = total + sum(parts) + reduce(operator.add, parts) + torch.stack(parts).mean()
        match len(parts):
            case 4:
                total = total / 4
            case _:
                total = total * 0
        optimizer.zero_grad()
        (mean := total / len(parts)).backward()
        optimizer.step()
        print(float(mean))
""",
    "a state cut in many ways": NETS
    + """
def cut(state):
    if isinstance(state, torch.Tensor):
        return state.detach()
    return tuple(cut(part) for part in state)

def main():
    h, g, k, m = (torch.zeros(2, 4) for _ in range(4))
    for x in torch.randn(3, 2, 3):
        h = cell(x, h.detach())
        g = cell(x, cut((g,))[0])
        k = cell(x, k.data)
        with torch.no_grad():
            m = m.clone()
        m = cell(x, m)
        loss = sum(head(s).pow(2).mean() for s in (h, g, k, m))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        m.detach_()
""",
    "coroutines that carry nothing": NETS
    + """
import asyncio

async def step(x):
    loss = head(body(x)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()

async def train():
    return sum([await step(x) for x in torch.randn(3, 2, 3)])

def main():
    return asyncio.run(train())
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name])


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name])
