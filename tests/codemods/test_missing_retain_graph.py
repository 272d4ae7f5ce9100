"""GM305: two traversals of one graph in one iteration."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradmend import codemods
from gradmend.codemods import Safety, missing_retain_graph
from tests import runtime

from .mending import changed_lines, findings, mended

SETTING = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
trunk, head, tail = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters(), *tail.parameters()], lr=0.1)
batches = torch.randn(3, 5, 3)
"""

MENDED = {
    "two losses on one forward pass": (
        """
        for x in batches:
            h = trunk(x).tanh()
            optimizer.zero_grad()
            head(h).mean().backward()
            tail(h).mean().backward()
            optimizer.step()
        """,
        ["-head(h).mean().backward()", "+head(h).mean().backward(retain_graph=True)"],
    ),
    "all but the last of three": (
        """
        for x in batches:
            h = trunk(x).tanh()
            a, b, c = head(h).mean(), tail(h).mean(), h.mean()
            optimizer.zero_grad()
            a.backward()
            b.backward()
            c.backward()
            optimizer.step()
        """,
        ["-a.backward()", "-b.backward()", "+a.backward(retain_graph=True)", "+b.backward(retain_graph=True)"],
    ),
    "an explicit False": (
        """
        for x in batches:
            h = trunk(x).tanh()
            optimizer.zero_grad()
            head(h).mean().backward(retain_graph=False)
            tail(h).mean().backward()
            optimizer.step()
        """,
        ["-head(h).mean().backward(retain_graph=False)", "+head(h).mean().backward(retain_graph=True)"],
    ),
    "a positional False": (
        """
        for x in batches:
            h = trunk(x).tanh()
            optimizer.zero_grad()
            head(h).mean().backward(None, False)
            tail(h).mean().backward()
            optimizer.step()
        """,
        ["-head(h).mean().backward(None, False)", "+head(h).mean().backward(None, True)"],
    ),
    "the functional form": (
        """
        for x in batches:
            h = trunk(x).tanh()
            optimizer.zero_grad()
            torch.autograd.backward(head(h).mean())
            torch.autograd.backward(tail(h).mean())
            optimizer.step()
        """,
        [
            "-torch.autograd.backward(head(h).mean())",
            "+torch.autograd.backward(head(h).mean(), retain_graph=True)",
        ],
    ),
    "a gradient taken before the backward": (
        """
        for x in batches:
            h = trunk(x).tanh()
            loss = head(h).mean()
            (size,) = torch.autograd.grad(loss, trunk.weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        [
            "-(size,) = torch.autograd.grad(loss, trunk.weight)",
            "+(size,) = torch.autograd.grad(loss, trunk.weight, retain_graph=True)",
        ],
    ),
    "a list of losses": (
        """
        for x in batches:
            h = trunk(x).tanh()
            losses = [head(h).mean(), tail(h).mean(), h.pow(2).mean()]
            optimizer.zero_grad()
            for loss in losses:
                (loss / len(losses)).backward()
            optimizer.step()
        """,
        ["-(loss / len(losses)).backward()", "+(loss / len(losses)).backward(retain_graph=True)"],
    ),
    "a Jacobian row by row": (
        """
        x = batches[0, 0].clone().requires_grad_()
        y = trunk(x).tanh()
        rows = []
        for i in range(len(y)):
            rows.append(torch.autograd.grad(y[i], x)[0])
        """,
        [
            "-rows.append(torch.autograd.grad(y[i], x)[0])",
            "+rows.append(torch.autograd.grad(y[i], x, retain_graph=True)[0])",
        ],
    ),
    "losses made by methods": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 1)

            def forward(self, x):
                h = torch.sigmoid(self.body(x))
                return self.one(h), self.two(h)

        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in batches:
            one, two = net(x)
            optimizer.zero_grad()
            F.mse_loss(one, torch.zeros(5, 1)).backward()
            two.abs().mean().backward()
            optimizer.step()
        """,
        [
            "-F.mse_loss(one, torch.zeros(5, 1)).backward()",
            "+F.mse_loss(one, torch.zeros(5, 1)).backward(retain_graph=True)",
        ],
    ),
    "the second on a condition": (
        """
        import sys
        auxiliary = len(sys.argv) < 99
        for x in batches:
            h = trunk(x).tanh()
            optimizer.zero_grad()
            head(h).mean().backward()
            if auxiliary:
                tail(h).mean().backward()
            optimizer.step()
        """,
        ["-head(h).mean().backward()", "+head(h).mean().backward(retain_graph=True)"],
    ),
}

LEFT_ALONE = {
    "retained": """
        for x in batches:
            h = trunk(x).tanh()
            optimizer.zero_grad()
            head(h).mean().backward(retain_graph=True)
            tail(h).mean().backward()
            optimizer.step()
        """,
    "create_graph retains": """
        for x in batches:
            h = trunk(x).tanh()
            loss = head(h).mean()
            (g,) = torch.autograd.grad(loss, trunk.weight, create_graph=True)
            optimizer.zero_grad()
            (loss + g.pow(2).sum()).backward()
            optimizer.step()
        """,
    "rows of a graph that is retained": """
        x = batches[0, 0].clone().requires_grad_()
        y = trunk(x).tanh()
        rows = [torch.autograd.grad(part, x, retain_graph=True)[0] for part in y]
        """,
    "a list of losses without a common graph": """
        for x in batches:
            losses = [head(trunk(x).tanh()).mean() for _ in range(2)]
            optimizer.zero_grad()
            for loss in losses:
                loss.backward()
            optimizer.step()
        """,
    "two forward passes": """
        for x in batches:
            optimizer.zero_grad()
            head(trunk(x).tanh()).mean().backward()
            tail(trunk(x).tanh()).mean().backward()
            optimizer.step()
        """,
    "the shared part saves nothing": """
        for x in batches:
            h = trunk.bias + trunk.weight.sum(1)
            optimizer.zero_grad()
            (h + 1).sum().backward()
            (h - x.sum()).sum().backward()
            optimizer.step()
        """,
    "the shared part is detached": """
        for x in batches:
            h = trunk(x).tanh()
            optimizer.zero_grad()
            head(h).mean().backward()
            tail(h.detach()).mean().backward()
            optimizer.step()
        """,
    "different sides of a branch": """
        for i, x in enumerate(batches):
            h = trunk(x).tanh()
            optimizer.zero_grad()
            if i % 2 == 0:
                head(h).mean().backward()
            else:
                tail(h).mean().backward()
            optimizer.step()
        """,
    "the sum": """
        for x in batches:
            h = trunk(x).tanh()
            optimizer.zero_grad()
            (head(h).mean() + tail(h).mean()).backward()
            optimizer.step()
        """,
    "a leaf is all they share": """
        offset = torch.zeros(1, requires_grad=True)
        for x in batches:
            (x.sum() * offset).sum().backward()
            (x.mean() * offset).sum().backward()
            offset.grad = None
        """,
    "no_grad": """
        for x in batches:
            with torch.no_grad():
                h = trunk(x).tanh()
            optimizer.zero_grad()
            head(h).mean().backward()
            tail(h).mean().backward()
            optimizer.step()
        """,
    "meant to fail": """
        import pytest
        for x in batches:
            loss = head(trunk(x).tanh()).mean()
            optimizer.zero_grad()
            loss.backward()
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()
        """,
    "a flag that depends": """
        def update(loss, keep):
            loss.backward(retain_graph=keep)

        def train(last):
            for x in batches:
                h = trunk(x).tanh()
                optimizer.zero_grad()
                update(head(h).mean(), not last)
                update(tail(h).mean(), last)
                optimizer.step()

        def main(last):
            train(last)
        """,
}

UNKNOWN = {
    "an encoder that cannot be seen": """
        import torch
        from somewhere import build, measure

        def train(loader):
            model = build()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x in loader:
                h = model(x)
                optimizer.zero_grad()
                h.one.mean().backward()
                h.two.mean().backward()
                optimizer.step()
        """,
    "a number that an unknown function made": """
        import torch
        from somewhere import Net, options

        def train(loader):
            width = options.dim * 2
            one, two = Net(width), Net(width)
            for x in loader:
                one(x).backward()
                two(x).backward()
        """,
}


@pytest.mark.parametrize("name", MENDED)
def test_mends(name: str) -> None:
    source, lines = MENDED[name]
    assert changed_lines(_whole(source), "GM305") == lines


@pytest.mark.parametrize("name", MENDED)
def test_runs_after_it(name: str) -> None:
    script = _script(MENDED[name][0])
    assert "second time" in (runtime.run_source(script.encode()).error or "")
    assert runtime.run_source(mended(script, "GM305").encode()).error is None


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_leaves_alone(name: str) -> None:
    assert findings(_whole(LEFT_ALONE[name]), "GM305") == []


@pytest.mark.parametrize("name", [name for name in LEFT_ALONE if name != "a flag that depends"])
def test_what_is_left_alone_runs(name: str) -> None:
    assert runtime.run_source(_script(LEFT_ALONE[name]).encode()).error is None


@pytest.mark.parametrize("name", UNKNOWN)
def test_claims_nothing_about_what_it_cannot_see(name: str) -> None:
    assert findings(UNKNOWN[name], "GM305") == []


def test_retaining_gives_the_gradients_of_the_sum() -> None:
    separate = _script(MENDED["two losses on one forward pass"][0])
    one_sum = _script(LEFT_ALONE["the sum"])
    (finding,) = findings(separate, "GM305")
    assert "the sum of both losses" in finding.message
    after = runtime.run_source(mended(separate, "GM305").encode())
    assert runtime.same(after.values, runtime.run_source(one_sum.encode()).values)


def test_is_unsafe_where_both_start_from_the_same_loss() -> None:
    source = _whole(
        """
        for x in batches:
            loss = head(trunk(x).tanh()).mean()
            optimizer.zero_grad()
            loss.backward()
            loss.backward()
            optimizer.step()
        """
    )
    (finding,) = findings(source, "GM305")
    assert "same loss" in finding.message
    assert finding.repair is not None
    assert finding.repair.safety is Safety.UNSAFE


def test_leaves_the_generators_graph_to_its_own_rule() -> None:
    source = """
        import torch
        from torch import nn

        G, D = nn.Linear(2, 3), nn.Linear(3, 1)
        g_optimizer = torch.optim.SGD(G.parameters(), lr=0.1)
        d_optimizer = torch.optim.SGD(D.parameters(), lr=0.1)
        for real in torch.randn(4, 5, 3):
            fake = G(torch.randn(5, 2)).tanh()
            d_optimizer.zero_grad()
            (D(fake).mean() - D(real).mean()).backward()
            d_optimizer.step()
            g_optimizer.zero_grad()
            (-D(fake).mean()).backward()
            g_optimizer.step()
        """
    assert findings(source, "GM305") == []
    assert findings(source, "GM201") != []


def test_the_page_shows_the_mistake_and_its_repair() -> None:
    page = (missing_retain_graph.__doc__ or "").split("```python\n")
    wrong, right = page[1].partition("```")[0], page[2].partition("```")[0]
    assert {finding.code for finding in codemods.scan(wrong)} == {"GM305"}
    assert codemods.scan(right) == []
    assert codemods.mend(wrong).source == right


def _whole(source: str) -> str:
    return SETTING + dedent(source)


def _script(source: str) -> str:
    """A script whose ``main()`` does what the source does and returns the trained weight."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in _whole(source).splitlines())
    return f"def main():\n{lines}    return trunk.weight\n"
