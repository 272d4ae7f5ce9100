"""State that modules keep from one call to the next, and the many ways in which it is reset."""

from __future__ import annotations

import pytest

from gradmend import codemods

PROGRAM = """
import torch
from torch import nn
from spiking import functional, {base} as Base


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.membrane = None

    def reset(self):
        self.membrane = None

    def forward(self, current):
        if self.membrane is None:
            self.membrane = torch.zeros_like(current)
        self.membrane = self.membrane * 0.9 + current
        return torch.sigmoid(self.membrane - 1)


class Net(Base):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), Leaky(), nn.Linear(8, 8))
        self.head = nn.Sequential(Leaky(), nn.Linear(8, 2))

    def forward(self, x):
        return self.head(self.features(x))

    def reset_elsewhere(self):
        functional.reset_net(self)


def resettable(net):
    return tuple(m for m in net.modules() if callable(getattr(m, "reset", None)))


def reset_all(modules):
    for module in modules:
        module.reset()


CACHE = {{}}


def reset_cached(net):
    cached = CACHE.get(net)
    if cached is not None:
        reset_all(cached)
        return
    CACHE[net] = resettable(net)
    reset_all(CACHE[net])


def reset_one(module):
    if hasattr(module, "reset"):
        module.reset()


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in zip(torch.randn(10, 3, 4), torch.randint(2, (10, 3))):
    optimizer.zero_grad()
    for _ in range(4):
        out = net(x)
    loss = nn.functional.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    {reset}
"""

RESETS = {
    "a function that cannot be seen": "functional.reset_net(net)",
    "one in a method": "net.reset_elsewhere()",
    "one that gets a container": "functional.reset_nets([net])",
    "one in a callback": "functional.after_batch({'net': net})",
    "all that have the method": "reset_all(resettable(net))",
    "the same, remembered": "reset_cached(net)",
    "apply": "net.apply(reset_one)",
    "apply of a lambda": "net.apply(lambda m: m.reset() if isinstance(m, Leaky) else None)",
    "a loop over the modules": "[m.reset() for m in net.modules() if isinstance(m, Leaky)]",
    "a loop over their names": "[m.reset() for name, m in net.named_modules() if name in ('features.4', 'head.0')]",
    "a loop over a container": "reset_one(net.head[0]); [reset_one(m) for m in net.features]",
    "setattr": "[setattr(m, 'membrane', None) for m in net.modules() if hasattr(m, 'membrane')]",
    "the table of modules": "[reset_one(m) for part in net._modules.values() for m in part]",
}
KEPT = {
    "nothing": "pass",
    "a function that only counts": "print(net)",
    "what torch does with a module": "torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
    "one of two layers": "net.head[0].reset()",
    "another class": "[m.reset() for m in net.modules() if isinstance(m, nn.Dropout)]",
    "a method that they have not": "[m.reset() for m in net.modules() if hasattr(m, 'reset_state')]",
}


def carried(reset: str, base: str = "Module") -> list[str]:
    program = PROGRAM.format(reset=reset, base=base)
    if base == "Module":
        program = program.replace("from spiking import functional, Module as Base", "from spiking import functional")
        program = program.replace("(Base)", "(nn.Module)")
    return [finding.code for finding in codemods.scan(program)]


@pytest.mark.parametrize("reset", RESETS.values(), ids=RESETS.keys())
def test_state_that_was_reset_is_not_carried(reset: str) -> None:
    assert carried(reset) == []


@pytest.mark.parametrize("reset", KEPT.values(), ids=KEPT.keys())
def test_state_that_was_not_reset_is_carried(reset: str) -> None:
    assert carried(reset) == ["GM101"]


def test_a_loop_over_more_modules_than_are_run_may_reset_the_others() -> None:
    deep = "self.head = nn.Sequential(*[nn.Linear(8, 8) for _ in range(6)], " + "nn.Tanh(), " * 30 + "Leaky(), "
    program = PROGRAM.format(reset="[m.reset() for m in net.modules() if isinstance(m, Leaky)]", base="x")
    program = program.replace("(Base)", "(nn.Module)").replace("self.head = nn.Sequential(Leaky(), ", deep)
    loop = "for m in net.modules():\n        reset_one(m)"
    listed = "[m.reset() for m in net.modules() if isinstance(m, Leaky)]"
    assert codemods.scan(program) == []
    assert codemods.scan(program.replace(listed, loop)) == []
    assert codemods.scan(program.replace(listed, "net.apply(reset_one)")) == []
    assert [finding.code for finding in codemods.scan(program.replace(listed, "pass"))] == ["GM101"]


def test_an_inherited_method_that_cannot_be_seen_may_reset() -> None:
    assert carried("net.start_sequence()", base="SpikingModule") == []


def test_an_attribute_that_goes_through_setattr_may_be_kept_anywhere() -> None:
    program = PROGRAM.format(reset="memory_of(net.head[0]).clear()", base="x").replace("(Base)", "(nn.Module)")
    program = program.replace(
        "    def reset(self):",
        "    def __setattr__(self, name, value):\n        MEMORY.keep(self, name, value)\n\n    def reset(self):",
    )
    assert codemods.scan(program) == []


LEARNED = """
import torch
from torch import nn

model, cell = nn.Linear(3, 1), nn.GRUCell(3, 3)
optimizer = torch.optim.Adam(cell.parameters())
for step in range(20):
    states = [torch.zeros(1, 3)]
    for x in torch.randn(5, 8, 3):
        loss = model(x).pow(2).mean()
        (gradient,) = torch.autograd.grad(loss, [model.weight])
        states.append(cell(gradient.detach(), states[-1]))
    {put}
    optimizer.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    optimizer.step()
    model = nn.Linear(3, 1)
"""


@pytest.mark.parametrize(
    "put",
    [
        "model._parameters['weight'] = states[-1]",
        "for name, part in model._parameters.items():\n        model._parameters[name] = part + states[-1].mean()",
    ],
)
def test_what_is_put_among_the_parameters_is_used(put: str) -> None:
    assert codemods.scan(LEARNED.format(put=put)) == []


def test_what_is_not_put_there_is_kept_for_nothing() -> None:
    assert [finding.code for finding in codemods.scan(LEARNED.format(put="pass"))] == ["GM102"]
