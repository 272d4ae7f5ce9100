"""GM401: in-place operations on what a traversal needs."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from gradmend import codemods
from gradmend.codemods import Finding, Safety, inplace_on_graph
from tests import runtime

from .mending import changed_lines, findings, mended

SCRIPT = """
import torch
from torch import nn
import torch.nn.functional as F

BACKWARD = True
torch.manual_seed(0)
layer, head = nn.Linear(3, 3), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
{definitions}
def forward(x):
{body}

def main():
    losses = []
    for x in torch.randn(3, 4, 3):
        loss = forward(x)
        if BACKWARD:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses
"""

MENDED = {
    "a shortcut added to what relu saved": (
        """
        h = layer(x).relu()
        h += x
        return head(h).mean()
        """,
        ["-h += x", "+h = h + x"],
    ),
    "a sum on the right": (
        """
        h = layer(x).exp()
        h *= x + 1
        return head(h).mean()
        """,
        ["-h *= x + 1", "+h = h * (x + 1)"],
    ),
    "a difference keeps its parentheses": (
        """
        h = layer(x).tanh()
        h -= (x - 1)
        return head(h).mean()
        """,
        ["-h -= (x - 1)", "+h = h - (x - 1)"],
    ),
    "a product needs none": (
        """
        h = layer(x).sigmoid()
        h += 2 * x
        return head(h).mean()
        """,
        ["-h += 2 * x", "+h = h + 2 * x"],
    ),
    "a method as a statement": (
        """
        p = layer(x).softmax(dim=1)
        p.masked_fill_(x > 0, 0.0)
        return head(p).mean()
        """,
        ["-p.masked_fill_(x > 0, 0.0)", "+p = p.masked_fill(x > 0, 0.0)"],
    ),
    "a chain of methods": (
        """
        h = layer(x).sigmoid()
        h.mul_(2).sub_(1)
        return head(h).mean()
        """,
        ["-h.mul_(2).sub_(1)", "+h = h.mul(2).sub(1)"],
    ),
    "a method whose result is used": (
        """
        h = layer(x).exp()
        return head(h.clamp_(max=1.5)).mean()
        """,
        ["-return head(h.clamp_(max=1.5)).mean()", "+return head(h.clamp(max=1.5)).mean()"],
    ),
    "the functional form": (
        """
        h = layer(x).tanh()
        h = F.relu(h, inplace=True)
        return head(h).mean()
        """,
        ["-h = F.relu(h, inplace=True)", "+h = F.relu(h)"],
    ),
    "the functional form by position": (
        """
        h = layer(x).tanh()
        h = F.leaky_relu(h, 0.2, True)
        return head(h).mean()
        """,
        ["-h = F.leaky_relu(h, 0.2, True)", "+h = F.leaky_relu(h, 0.2)"],
    ),
    "the functional form with an underscore": (
        """
        h = layer(x).tanh()
        torch.relu_(h)
        return head(h).mean()
        """,
        ["-torch.relu_(h)", "+h = torch.relu(h)"],
    ),
    "an input that pow saved": (
        """
        h = layer(x)
        energy = h.pow(2).sum()
        h += x
        return head(h).mean() + energy
        """,
        ["-h += x", "+h = h + x"],
    ),
    "a whole tensor overwritten": (
        """
        h = layer(x)
        energy = h.pow(2).sum()
        h.zero_()
        return head(h).mean() + energy
        """,
        ["-h.zero_()", "+h = torch.zeros_like(h)"],
    ),
    "an index of what the same line saved": (
        """
        h = layer(x)
        h[:, 1] = F.softplus(h[:, 1]) + 0.1
        return head(h).mean()
        """,
        ["-h[:, 1] = F.softplus(h[:, 1]) + 0.1", "+h[:, 1] = F.softplus(h[:, 1].clone()) + 0.1"],
    ),
    "an index of a saved result": (
        """
        p = layer(x).softmax(dim=1)
        p[:, 0] = 0
        return head(p).mean()
        """,
        ["-p = layer(x).softmax(dim=1)", "+p = layer(x).softmax(dim=1).clone()"],
    ),
    "a recurrence through a buffer": (
        """
        states = torch.zeros(4, 3)
        for t in range(1, 4):
            states[t] = layer(states[t - 1] + x[t]) * states[t - 1]
        return head(states).mean()
        """,
        [
            "-states[t] = layer(states[t - 1] + x[t]) * states[t - 1]",
            "+states[t] = layer(states[t - 1] + x[t]) * states[t - 1].clone()",
        ],
    ),
    "one of two changes is too late": (
        """
        h = layer(x)
        h += 1
        h = h.exp()
        h -= x
        h += x.mean()
        return head(h).mean()
        """,
        ["-h -= x", "+h = h - x"],
    ),
}

MODULES = {
    "inplace=True": (
        """
        act = nn.ReLU(inplace=True)
        """,
        """
        h = layer(x).tanh()
        h = act(h)
        return head(h).mean()
        """,
        ["-act = nn.ReLU(inplace=True)", "+act = nn.ReLU()"],
    ),
    "by position": (
        """
        act = nn.LeakyReLU(0.2, True)
        """,
        """
        h = layer(x).sigmoid() - 0.5
        h = h.tanh()
        h = act(h)
        return head(h).mean()
        """,
        ["-act = nn.LeakyReLU(0.2, True)", "+act = nn.LeakyReLU(0.2)"],
    ),
    "inside a class": (
        """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = nn.Dropout(p=0.5, inplace=True)

            def forward(self, h):
                return self.drop(h)

        block = Block()
        """,
        """
        h = layer(x).exp()
        return head(block(h)).mean()
        """,
        ["-self.drop = nn.Dropout(p=0.5, inplace=True)", "+self.drop = nn.Dropout(p=0.5)"],
    ),
}

UNSAFE = {
    "another name of the tensor is read": """
        h = layer(x).tanh()
        shortcut = h
        h += x
        return (head(h) + shortcut).mean()
        """,
    "a list holds the tensor": """
        h = layer(x).tanh()
        features = [h]
        h += x
        return head(h).mean() + sum(f.sum() for f in features)
        """,
}

LEFT_ALONE = {
    "the result of a layer": """
        h = layer(x)
        h += x
        return head(h).mean()
        """,
    "the result of a product with a number": """
        h = layer(x) * 2
        h *= 3
        return head(h).mean()
        """,
    "the result of a mean": """
        loss = head(layer(x)).mean()
        loss *= 0.5
        loss += 1
        return loss
        """,
    "the result of a power": """
        h = layer(x) ** 2
        h /= 3
        return head(h).mean()
        """,
    "slices of a fresh buffer": """
        out = torch.zeros(4, 3)
        for i in range(3):
            out[:, i] = layer(x)[:, i].exp()
        return head(out).mean()
        """,
    "stacked": """
        h = torch.stack([layer(x), layer(x)])
        h -= 1
        return head(h).mean()
        """,
    "the values of topk": """
        values, _ = layer(x).topk(3)
        values += 1
        return head(values).mean()
        """,
    "norm, relu, then a shortcut": """
        h = F.relu(layer(x), inplace=True)
        h = layer(h)
        h += x
        return head(F.relu(h, inplace=True)).mean()
        """,
    "data does not count": """
        h = layer(x).tanh()
        h.data.mul_(0.5)
        return head(h).mean()
        """,
    "a copy": """
        h = layer(x).tanh().clone()
        h += x
        return head(h).mean()
        """,
    "a copy by an index": """
        h = layer(x).tanh()
        rows = h[torch.tensor([0, 2])]
        rows += 1
        return head(rows).mean() + head(h).mean()
        """,
    "a copy by a list": """
        h = layer(x)
        square = h[:, [0, 2]].pow(2)
        h += 1
        return head(h).mean() + square.mean()
        """,
    "nothing needs the derivative": """
        with torch.no_grad():
            h = layer(x).tanh()
            h += x
        return head(h).mean()
        """,
    "the input of a frozen product": """
        h = layer(x)
        y = h * x
        h += 1
        return head(h).mean() + y.mean()
        """,
    "numbers": """
        count = 0
        count += 1
        h = layer(x).tanh()
        total = 0.0
        total += h.mean()
        return head(h).mean() + total
        """,
    "lists": """
        parts = []
        h = layer(x).tanh()
        parts += [h]
        return head(parts[0]).mean()
        """,
    "an attribute of a number": """
        h = layer(x).tanh()
        norm = h.norm().item()
        norm += 1
        return head(h).mean() / norm
        """,
    "in place on what clamp saved of something else": """
        h = layer(x)
        y = h.clone().clamp(min=0)
        h += 1
        return head(y).mean() + h.mean()
        """,
    "dropout in evaluation mode": """
        drop = nn.Dropout(0.5, inplace=True).eval()
        h = layer(x).tanh()
        return head(drop(h)).mean()
        """,
    "after it was used up": """
        h = layer(x)
        g = torch.autograd.grad(h.exp().sum(), layer.weight, retain_graph=True)[0]
        h += 1
        return head(h).mean() + g.sum().detach()
        """,
}

LEAVES = {
    "an update by hand": (
        """
        import torch
        weight = torch.randn(3, requires_grad=True)
        for x in torch.randn(4, 3):
            loss = (weight * x).sum()
            loss.backward()
            weight -= 0.1 * weight.grad
        """,
        7,
    ),
    "an index": (
        """
        import torch
        weight = torch.randn(3, requires_grad=True)
        weight[0] = 1.0
        (weight * 2).sum().backward()
        """,
        4,
    ),
}

GOOD_LEAVES = {
    "no_grad": """
        import torch
        weight = torch.randn(3, requires_grad=True)
        for x in torch.randn(4, 3):
            loss = (weight * x).sum()
            loss.backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
                weight.grad.zero_()
        """,
    "data": """
        import torch
        weight = torch.randn(3, requires_grad=True)
        for x in torch.randn(4, 3):
            loss = (weight * x).sum()
            loss.backward()
            weight.data -= 0.1 * weight.grad.data
            weight.grad.data.zero_()
        """,
    "before it requires a gradient": """
        import torch
        weight = torch.randn(3)
        weight *= 0.1
        weight.requires_grad_()
        (weight * 2).sum().backward()
        """,
    "a decorator": """
        import torch
        layer = torch.nn.Linear(3, 1)

        @torch.no_grad()
        def decay():
            for p in layer.parameters():
                p.mul_(0.9)

        for x in torch.randn(4, 3):
            layer(x).sum().backward()
            decay()
            layer.zero_grad()
        """,
    "a caller that may not record": """
        import torch

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.slow = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)

            def follow(self):
                self.slow.weight.mul_(0.9).add_(self.layer.weight, alpha=0.1)

            def training_loss(self, x):
                loss = self.layer(x).sum()
                loss.backward()
                return loss
        """,
    "frozen": """
        import torch
        layer, slow = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
        slow.requires_grad_(False)
        for x in torch.randn(4, 3):
            layer(x).sum().backward()
            slow.weight.copy_(layer.weight.detach())
            layer.zero_grad()
        """,
}


def _script(body: str, definitions: str = "") -> str:
    return SCRIPT.format(body=indent(dedent(body).strip("\n"), "    "), definitions=dedent(definitions))


def _values(script: str) -> object:
    """The losses of the forward passes alone."""
    outcome = runtime.run_source(script.replace("BACKWARD = True", "BACKWARD = False").encode())
    assert outcome.error is None
    return outcome.values


def _assert_mended(script: str, lines: list[str]) -> None:
    assert "inplace operation" in (runtime.run_source(script.encode()).error or "")
    assert changed_lines(script, "GM401") == lines
    after = mended(script, "GM401")
    assert runtime.run_source(after.encode()).error is None
    assert runtime.same(_values(after), _values(script))


@pytest.mark.parametrize("name", MENDED)
def test_mends_and_keeps_every_value(name: str) -> None:
    body, lines = MENDED[name]
    _assert_mended(_script(body), lines)


@pytest.mark.parametrize("name", MODULES)
def test_mends_where_the_module_is_made(name: str) -> None:
    definitions, body, lines = MODULES[name]
    _assert_mended(_script(body, definitions), lines)


@pytest.mark.parametrize("name", UNSAFE)
def test_is_unsafe_where_the_change_is_seen_elsewhere(name: str) -> None:
    (finding,) = findings(_script(UNSAFE[name]), "GM401")
    assert finding.repair is not None
    assert finding.repair.safety is Safety.UNSAFE
    assert all(repair.safety is Safety.SAFE for repair in finding.alternatives)


def test_a_write_through_a_view_stays_a_write() -> None:
    script = _script(
        """
        h = layer(x)
        square = h.pow(2)
        column = h[:, 0]
        column += 1
        return head(h).mean() + square.mean()
        """
    )
    (finding,) = findings(script, "GM401")
    assert finding.repair is not None
    assert finding.repair.safety is Safety.SAFE
    after = mended(script, "GM401")
    assert "column += 1" in after
    assert "h.clone().pow(2)" in after
    assert runtime.run_source(after.encode()).error is None
    assert runtime.same(_values(after), _values(script))


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_leaves_alone(name: str) -> None:
    script = _script(LEFT_ALONE[name])
    assert findings(script, "GM401") == []
    assert runtime.run_source(script.encode()).error is None


@pytest.mark.parametrize("name", LEAVES)
def test_reports_changed_leaves(name: str) -> None:
    source, row = LEAVES[name]
    (finding,) = findings(source, "GM401")
    assert (finding.span.row, finding.repair) == (row, None)
    main = "def main():\n" + indent(dedent(source), "    ")
    assert "leaf Variable that requires grad" in (runtime.run_source(main.encode()).error or "")


@pytest.mark.parametrize("name", GOOD_LEAVES)
def test_leaves_right_changes_of_leaves_alone(name: str) -> None:
    assert findings(GOOD_LEAVES[name], "GM401") == []


def test_places_tell_who_saved_changed_and_needs() -> None:
    (finding,) = findings(_script(MENDED["a shortcut added to what relu saved"][0]), "GM401")
    assert _rows(finding) == ["saved for backward() here", "changed in place here", "needed here"]


def test_the_page_shows_the_mistake_and_its_repair() -> None:
    page = (inplace_on_graph.__doc__ or "").split("```python\n")
    wrong, right = page[1].partition("```")[0], page[2].partition("```")[0]
    assert {finding.code for finding in codemods.scan(wrong)} == {"GM401"}
    assert codemods.scan(right) == []
    assert codemods.mend(wrong).source == right


def _rows(finding: Finding) -> list[str]:
    return [place.label for place in finding.places]
