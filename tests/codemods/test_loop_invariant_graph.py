"""GM103: a graph from before the loop that every iteration walks."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradmend import codemods
from gradmend.codemods import Safety, Severity, loop_invariant_graph
from tests import runtime

from .mending import changed_lines, findings, mended

SETTING = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
encoder, head, other = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(3, 4)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
head_optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
x, y = torch.randn(5, 3), torch.randn(5, 1)
"""

MOVED = {
    "features of a trained encoder": (
        """
        features = encoder(x).tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        ["features = encoder(x).tanh()"],
    ),
    "the whole loss": (
        """
        loss = (head(encoder(x).tanh()) - y).pow(2).mean()
        for _ in range(3):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        ["loss = (head(encoder(x).tanh()) - y).pow(2).mean()"],
    ),
    "several statements": (
        """
        hidden = encoder(x)
        features = hidden.tanh()
        scale = 2.0
        for _ in range(3):
            loss = scale * (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        ["hidden = encoder(x)", "features = hidden.tanh()"],
    ),
    "into the inner of two loops": (
        """
        features = encoder(x).tanh()
        for epoch in range(2):
            for part in range(5):
                loss = (head(features[part]) - y[part]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
        ["features = encoder(x).tanh()"],
    ),
    "a while loop": (
        """
        features = encoder(x).tanh()
        left = 3
        while left > 0:
            left -= 1
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        ["features = encoder(x).tanh()"],
    ),
    "weights updated by hand": (
        """
        features = encoder(x).tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            encoder.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in encoder.parameters():
                    p -= 0.1 * p.grad
        """,
        ["features = encoder(x).tanh()"],
    ),
    "a leaf that is trained": (
        """
        shift = torch.zeros(4, requires_grad=True)
        shift_optimizer = torch.optim.SGD([shift], lr=0.1)
        moved = torch.sin(shift) * 2
        for _ in range(3):
            loss = (moved - 1).pow(2).mean()
            shift_optimizer.zero_grad()
            loss.backward()
            shift_optimizer.step()
        """,
        ["moved = torch.sin(shift) * 2"],
    ),
    "a closure that calls back once": (
        """
        features = encoder(x).tanh()
        for _ in range(3):
            def closure():
                optimizer.zero_grad()
                loss = (head(features) - y).pow(2).mean()
                loss.backward()
                return loss

            optimizer.step(closure)
        """,
        ["features = encoder(x).tanh()"],
    ),
}

DETACHED = {
    "features of an encoder that nothing trains": (
        """
        features = other(x).tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            head_optimizer.zero_grad()
            loss.backward()
            head_optimizer.step()
        """,
        ["-features = other(x).tanh()", "+features = other(x).tanh().detach()"],
    ),
    "held up by retain_graph": (
        """
        features = other(x).tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            head_optimizer.zero_grad()
            loss.backward(retain_graph=True)
            head_optimizer.step()
        """,
        [
            "-features = other(x).tanh()",
            "-loss.backward(retain_graph=True)",
            "+features = other(x).tanh().detach()",
            "+loss.backward()",
        ],
    ),
    "a sum": (
        """
        target = other(x).tanh().mean(1, keepdim=True) + y
        for _ in range(3):
            loss = (head(encoder(x)) - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        [
            "-target = other(x).tanh().mean(1, keepdim=True) + y",
            "+target = (other(x).tanh().mean(1, keepdim=True) + y).detach()",
        ],
    ),
    "a tuple": (
        """
        def encode(data):
            return other(data).tanh(), other(data).sigmoid()

        one, two = encode(x)
        for _ in range(3):
            loss = (head(one + two) - y).pow(2).mean()
            head_optimizer.zero_grad()
            loss.backward()
            head_optimizer.step()
        """,
        None,
    ),
    "a list of batches": (
        """
        batches = [other(part).tanh() for part in x.split(2)]
        for _ in range(3):
            for batch in batches:
                loss = head(batch).pow(2).mean()
                head_optimizer.zero_grad()
                loss.backward()
                head_optimizer.step()
        """,
        None,
    ),
    "a function that makes the loop": (
        """
        def fit(data, rounds):
            for _ in range(rounds):
                loss = (head(data) - y).pow(2).mean()
                head_optimizer.zero_grad()
                loss.backward()
                head_optimizer.step()

        inputs = torch.sigmoid(other(x))
        fit(inputs, 3)
        """,
        ["-inputs = torch.sigmoid(other(x))", "+inputs = torch.sigmoid(other(x)).detach()"],
    ),
    "kept by a module from its first call": (
        """
        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.freqs = nn.Parameter(torch.ones(4))
                self.cache = None

            def forward(self):
                if self.cache is None:
                    self.cache = self.freqs.cos() * self.freqs.sin()
                return self.cache

        table = Table()
        for _ in range(3):
            loss = (head(encoder(x) * table()) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        [
            "-self.cache = self.freqs.cos() * self.freqs.sin()",
            "+self.cache = (self.freqs.cos() * self.freqs.sin()).detach()",
        ],
    ),
    "an optimizer's closure that is called again and again": (
        """
        features = other(x).tanh()
        solver = torch.optim.LBFGS(head.parameters(), max_iter=3)

        def closure():
            solver.zero_grad()
            loss = (head(features) - y).pow(2).mean()
            loss.backward(retain_graph=True)
            return loss

        solver.step(closure)
        """,
        [
            "-features = other(x).tanh()",
            "-loss.backward(retain_graph=True)",
            "+features = other(x).tanh().detach()",
            "+loss.backward()",
        ],
    ),
}

LEFT_ALONE = {
    "detached": """
        features = encoder(x).tanh().detach()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "under no_grad": """
        with torch.no_grad():
            features = encoder(x).tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "frozen": """
        for p in other.parameters():
            p.requires_grad_(False)
        features = other(x).tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            head_optimizer.zero_grad()
            loss.backward()
            head_optimizer.step()
        """,
    "a view of a leaf": """
        weight = encoder.weight.t().reshape(-1)[:5]
        for _ in range(3):
            loss = (x.sum(1) + weight).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "sums of leaves": """
        bias = encoder.bias.sum() + head.bias
        for _ in range(3):
            loss = (y + bias).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "gradients of several losses, one step": """
        features = encoder(x).tanh()
        optimizer.zero_grad()
        for scale in (1.0, 2.0):
            (scale * head(features)).mean().backward(retain_graph=True)
        optimizer.step()
        """,
    "rows of a Jacobian": """
        out = encoder(x).tanh()
        rows = []
        for i in range(4):
            rows.append(torch.autograd.grad(out[0, i], encoder.weight, retain_graph=True)[0])
        """,
    "one backward after the loop": """
        features = encoder(x).tanh()
        total = 0.0
        for part in range(5):
            total = total + (head(features[part]) - y[part]).pow(2).mean()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        """,
    "only a number of it is used": """
        size = encoder(x).tanh().norm().item()
        for _ in range(3):
            loss = (head(encoder(x)) - y).pow(2).mean() / size
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "computed in the loop": """
        for _ in range(3):
            features = encoder(x).tanh()
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "old log-probs": """
        with torch.no_grad():
            old = encoder(x).log_softmax(1)
        for _ in range(3):
            ratio = (encoder(x).log_softmax(1) - old).exp()
            loss = -(ratio * y).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "the loop ends after its first backward": """
        features = encoder(x).tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            break
        """,
    "a generator": """
        def losses():
            for part in range(3):
                yield (head(encoder(x).tanh()) - y)[part].pow(2).mean()

        for loss in losses():
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a perturbation whose gradient is read": """
        delta = torch.zeros_like(x, requires_grad=True)
        shifted = (x + delta) * 2
        for _ in range(3):
            loss = (head(encoder(shifted)) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
            delta.data += delta.grad
        """,
}

REPORTED = {
    "made anew in some iterations only": """
        features = None
        for turn in range(4):
            if turn % 2 == 0:
                features = encoder(x).tanh()
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a cache of a trained encoder": """
        cache = None
        for _ in range(3):
            if cache is None:
                cache = encoder(x).tanh()
            loss = (head(cache) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "read before the loop": """
        features = encoder(x).tanh()
        print(features.shape)
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "another input in the loop": """
        features = encoder(x).tanh()
        for x in torch.randn(3, 5, 3):
            loss = (head(features) - encoder(x).mean(1, keepdim=True)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "its own earlier value": """
        z = x.clone()
        z = encoder(z)[:, :3].tanh()
        for _ in range(3):
            loss = (head(encoder(z)) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "the next element of an iterator": """
        stream = iter(torch.randn(9, 5, 3))
        features = encoder(next(stream)).tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "collected in another loop": """
        features = []
        for part in x.split(2):
            features.append(encoder(part).tanh())
        features = torch.cat(features)
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "another mode": """
        encoder.eval()
        features = encoder(x).tanh()
        encoder.train()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "another function reads it": """
        def measure():
            return (head(features) - y).pow(2).mean()

        features = encoder(x).tanh()
        for _ in range(3):
            loss = measure()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "only the branch with the loop": """
        features = encoder(x).tanh()
        if len(x) > 2:
            for _ in range(3):
                loss = (head(features) - y).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        else:
            head(features).mean().backward()
        """,
    "a closure that is called again and again": """
        features = encoder(x).tanh()
        solver = torch.optim.LBFGS([*encoder.parameters(), *head.parameters()], max_iter=3)

        def closure():
            solver.zero_grad()
            loss = (head(features) - y).pow(2).mean()
            loss.backward()
            return loss

        solver.step(closure)
        """,
    "log-probabilities of an episode, a step for each": """
        log_probs = []
        for part in x:
            log_probs.append(head(encoder(part).tanh()))
        for log_prob in log_probs:
            loss = -log_prob * 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
}

UNKNOWN = {
    "an encoder that cannot be seen": """
        import torch
        from somewhere import build

        def train(loader, data):
            model = build()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            features = model.encode(data)
            for x in loader:
                loss = model(x, features)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "a part of a model that cannot be seen": """
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self, bert):
                super().__init__()
                self.embedding = bert.embeddings
                self.mask = self.embedding(torch.tensor([[3]])) * 2
                self.out = nn.Linear(4, 1)

            def forward(self, x):
                return self.out(self.embedding(x) * self.mask)

        def train(bert, loader):
            model = Model(bert)
            optimizer = torch.optim.Adam(model.parameters())
            for x in loader:
                loss = model(x).mean()
                optimizer.zero_grad()
                loss.backward(retain_graph=True)
                optimizer.step()
        """,
    "data that nobody knows": """
        import torch

        def train(net, optimizer, data, targets):
            scaled = (data * 2).exp()
            for target in targets:
                loss = (net(scaled) - target).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
}


@pytest.mark.parametrize("name", MOVED)
def test_moves_into_the_loop(name: str) -> None:
    source, lines = MOVED[name]
    (finding,) = findings(_whole(source), "GM103")
    assert finding.severity is Severity.ERROR
    after = mended(_whole(source), "GM103")
    assert sorted(map(str.strip, after.splitlines())) == sorted(map(str.strip, _whole(source).splitlines()))
    for line in lines:
        assert f"\n{line}" not in after
        assert f" {line}" in after


@pytest.mark.parametrize("name", [*MOVED, *DETACHED])
def test_runs_after_it(name: str) -> None:
    source = (MOVED | DETACHED)[name][0]
    script = _script(source)
    before = runtime.run_source(script.encode())
    if "retain_graph" not in source:
        assert "second time" in (before.error or "") or "inplace operation" in (before.error or "")
    after = runtime.run_source(mended(script, "GM103").encode())
    assert after.error is None
    if before.error is None:
        assert runtime.same(before.values, after.values)


@pytest.mark.parametrize("name", DETACHED)
def test_detaches(name: str) -> None:
    source, lines = DETACHED[name]
    changed = changed_lines(_whole(source), "GM103")
    assert changed == lines if lines is not None else changed


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_leaves_alone(name: str) -> None:
    assert findings(_whole(LEFT_ALONE[name]), "GM103") == []


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone_runs(name: str) -> None:
    assert runtime.run_source(_script(LEFT_ALONE[name]).encode()).error is None


@pytest.mark.parametrize("name", REPORTED)
def test_only_reports(name: str) -> None:
    source = _whole(REPORTED[name])
    (finding,) = findings(source, "GM103")
    assert finding.repair is None
    assert codemods.mend(source, unsafe=True, select=frozenset({"GM103"})).source == source


@pytest.mark.parametrize("name", [name for name in REPORTED if name != "only the branch with the loop"])
def test_what_is_reported_dies(name: str) -> None:
    error = runtime.run_source(_script(REPORTED[name]).encode()).error or ""
    assert "second time" in error or "inplace operation" in error


@pytest.mark.parametrize("name", UNKNOWN)
def test_claims_nothing_about_what_it_cannot_see(name: str) -> None:
    assert findings(UNKNOWN[name], "GM103") == []


def test_moved_statements_stand_before_what_needs_them() -> None:
    source = """
        features = encoder(x).tanh()
        for _ in range(3):
            optimizer.zero_grad()
            # the value is needed from here on
            loss = (head(features) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
        """
    assert "zero_grad()\n    # the value is needed from here on\n    features =" in mended(_whole(source), "GM103")


@pytest.mark.parametrize(
    ("made", "read_after"), [("encoder(torch.randn(5, 3))", ""), ("encoder(x)", "print(features.shape)")]
)
def test_is_unsafe_where_more_than_the_graph_changes(made: str, read_after: str) -> None:
    source = _whole(
        f"""
        features = {made}.tanh()
        for _ in range(3):
            loss = (head(features) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        {read_after}
        """
    )
    (finding,) = findings(source, "GM103")
    assert finding.repair is not None
    assert finding.repair.safety is Safety.UNSAFE


def test_an_attribute_is_computed_where_it_is_read() -> None:
    source = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 1)
                self.penalty = self.size() * 0.1

            def size(self):
                return self.layer.weight.pow(2).sum()

            def forward(self, x):
                return self.layer(x)

        def main():
            torch.manual_seed(0)
            net = Net()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x in torch.randn(4, 5, 3):
                loss = net(x).pow(2).mean() + net.penalty
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            return net
        """
    assert changed_lines(source, "GM103") == [
        "-loss = net(x).pow(2).mean() + net.penalty",
        "+loss = net(x).pow(2).mean() + (net.size() * 0.1)",
    ]
    assert runtime.run_source(mended(source, "GM103").encode()).error is None


def test_both_kinds_at_once() -> None:
    source = _whole(
        """
        features, target = encoder(x).tanh(), y
        goal = other(x).tanh().mean(1, keepdim=True)
        for _ in range(3):
            loss = (head(features) - goal).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    after = mended(source, "GM103")
    assert "    features, target = encoder(x).tanh(), y\n" in after
    assert "\ngoal = other(x).tanh().mean(1, keepdim=True).detach()\n" in after


def test_the_retained_walk_is_only_waste() -> None:
    (finding,) = findings(_whole(DETACHED["held up by retain_graph"][0]), "GM103")
    assert finding.severity is Severity.WARNING
    assert "thrown away" in finding.message


def test_the_page_shows_the_mistake_and_its_repair() -> None:
    page = (loop_invariant_graph.__doc__ or "").split("```python\n")
    wrong, right = page[1].partition("```")[0], page[2].partition("```")[0]
    assert {finding.code for finding in codemods.scan(wrong)} == {"GM103"}
    assert codemods.scan(right) == []
    assert codemods.mend(wrong).source == right


def _whole(source: str) -> str:
    return SETTING + dedent(source)


def _script(source: str) -> str:
    """A script whose ``main()`` does what the source does and returns the trained weights."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in _whole(source).splitlines())
    return f"def main():\n{lines}    return encoder.weight, head.weight\n"
