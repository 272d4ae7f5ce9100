"""GM402: gradients that are applied twice."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from gradmend import codemods
from gradmend.codemods import Safety, missing_zero_grad
from tests import runtime

from .mending import changed_lines, findings, mended

SETTING = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
other = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other_optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
batches = torch.randn(4, 6, 3)
"""

MENDED = {
    "no zero_grad at all": (
        """
        for x in batches:
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
        """,
        """
        for x in batches:
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    ),
    "outside the loop": (
        """
        optimizer.zero_grad()
        for x in batches:
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
        """,
        """
        optimizer.zero_grad()
        for x in batches:
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    ),
    "once an epoch": (
        """
        for epoch in range(3):
            optimizer.zero_grad()
            for x in batches:
                F.mse_loss(model(x), torch.zeros(6, 1)).backward()
                optimizer.step()
        """,
        """
        for epoch in range(3):
            optimizer.zero_grad()
            for x in batches:
                optimizer.zero_grad()
                F.mse_loss(model(x), torch.zeros(6, 1)).backward()
                optimizer.step()
        """,
    ),
    "before the inner loop that accumulates": (
        """
        optimizer.zero_grad()
        for _ in range(3):
            for x in batches:
                (model(x).pow(2).mean() / len(batches)).backward()
            optimizer.step()
        """,
        """
        optimizer.zero_grad()
        for _ in range(3):
            optimizer.zero_grad()
            for x in batches:
                (model(x).pow(2).mean() / len(batches)).backward()
            optimizer.step()
        """,
    ),
    "the wrong optimizer is cleared": (
        """
        for x in batches:
            other_optimizer.zero_grad()
            (model(x) - other(x)).pow(2).mean().backward()
            optimizer.step()
            other_optimizer.step()
        """,
        """
        for x in batches:
            other_optimizer.zero_grad()
            optimizer.zero_grad()
            (model(x) - other(x)).pow(2).mean().backward()
            optimizer.step()
            other_optimizer.step()
        """,
    ),
    "before the first of two losses": (
        """
        for x in batches:
            model(x).pow(2).mean().backward()
            model(-x).abs().mean().backward()
            optimizer.step()
        """,
        """
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            model(-x).abs().mean().backward()
            optimizer.step()
        """,
    ),
    "in one of two functions": (
        """
        def right():
            for x in batches:
                optimizer.zero_grad()
                model(x).pow(2).mean().backward()
                optimizer.step()

        def wrong():
            for x in batches:
                model(x).abs().mean().backward()
                optimizer.step()

        wrong()
        """,
        """
        def right():
            for x in batches:
                optimizer.zero_grad()
                model(x).pow(2).mean().backward()
                optimizer.step()

        def wrong():
            for x in batches:
                optimizer.zero_grad()
                model(x).abs().mean().backward()
                optimizer.step()

        wrong()
        """,
    ),
    "in a helper": (
        """
        def update(loss):
            loss.backward()
            optimizer.step()

        for x in batches:
            update(model(x).pow(2).mean())
        """,
        """
        def update(loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        for x in batches:
            update(model(x).pow(2).mean())
        """,
    ),
    "in a trainer": (
        """
        class Trainer:
            def __init__(self):
                self.model = model
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def fit(self):
                for x in batches:
                    loss = self.model(x).pow(2).mean()
                    loss.backward()
                    self.optimizer.step()

        Trainer().fit()
        """,
        """
        class Trainer:
            def __init__(self):
                self.model = model
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def fit(self):
                for x in batches:
                    loss = self.model(x).pow(2).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()

        Trainer().fit()
        """,
    ),
}

REPORTED = {
    "the step lies in a helper of its own": """
        def apply():
            optimizer.step()

        for x in batches:
            model(x).pow(2).mean().backward()
            apply()
        """,
}

LEFT_ALONE = {
    "zero_grad before": """
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        """,
    "zero_grad after": """
        for x in batches:
            model(x).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        """,
    "the model clears": """
        for x in batches:
            model.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        """,
    "each parameter is set to None": """
        for x in batches:
            for p in model.parameters():
                p.grad = None
            model(x).pow(2).mean().backward()
            optimizer.step()
        """,
    "each gradient is zeroed": """
        for x in batches:
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.data.zero_()
            model(x).pow(2).mean().backward()
            optimizer.step()
        """,
    "by parameter groups": """
        for x in batches:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad = None
            model(x).pow(2).mean().backward()
            optimizer.step()
        """,
    "in a helper": """
        def prepare(*optimizers):
            for one in optimizers:
                one.zero_grad()

        for x in batches:
            prepare(optimizer, other_optimizer)
            model(x).pow(2).mean().backward()
            optimizer.step()
        """,
    "in a comprehension": """
        for x in batches:
            [one.zero_grad() for one in (optimizer, other_optimizer)]
            model(x).pow(2).mean().backward()
            optimizer.step()
        """,
    "accumulated over two batches": """
        optimizer.zero_grad()
        for i, x in enumerate(batches):
            (model(x).pow(2).mean() / 2).backward()
            if (i + 1) % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
    "cleared at the start of each group": """
        for i, x in enumerate(batches):
            if i % 2 == 0:
                optimizer.zero_grad()
            (model(x).pow(2).mean() / 2).backward()
            if (i + 1) % 2 == 0:
                optimizer.step()
        """,
    "accumulated over an epoch": """
        for epoch in range(3):
            optimizer.zero_grad()
            for x in batches:
                (model(x).pow(2).mean() / len(batches)).backward()
            optimizer.step()
        """,
    "stepped every other time": """
        for i, x in enumerate(batches):
            model(x).pow(2).mean().backward()
            if i % 2:
                optimizer.step()
        """,
    "a closure clears": """
        lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=2)
        for x in batches:
            def closure():
                lbfgs.zero_grad()
                loss = model(x).pow(2).mean()
                loss.backward()
                return loss
            lbfgs.step(closure)
        """,
    "a closure without": """
        lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=2)
        for x in batches:
            def closure():
                loss = model(x).pow(2).mean()
                loss.backward()
                return loss
            lbfgs.step(closure)
        """,
    "one step only": """
        model(batches[0]).pow(2).mean().backward()
        optimizer.step()
        """,
    "a loop that ends after one step": """
        for x in batches:
            model(x).pow(2).mean().backward()
            optimizer.step()
            break
        """,
    "an optimizer in each iteration for what it made": """
        for x in batches:
            shift = torch.zeros(3, requires_grad=True)
            search = torch.optim.SGD([shift], lr=0.1)
            model(x + shift).mean().backward()
            search.step()
        model.zero_grad()
        """,
    "the steps of two networks": """
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            other_optimizer.zero_grad()
            (other(x) - model(x)).pow(2).mean().backward()
            other_optimizer.step()
        """,
    "a gradient that is applied in halves": """
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            for _ in range(2):
                optimizer.step()
        """,
    "no gradient": """
        for x in batches:
            with torch.no_grad():
                loss = model(x).pow(2).mean()
            optimizer.step()
        """,
}

UNKNOWN = {
    "a method that something else calls": """
        import torch

        class Trainer:
            def __init__(self):
                self.model = torch.nn.Linear(3, 1)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def fit(self, batches):
                for x in batches:
                    self.model(x).mean().backward()
                    self.optimizer.step()

            def on_batch_end(self):
                self.optimizer.zero_grad()
        """,
    "a method that is handed on": """
        import torch

        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hooks = [optimizer.zero_grad]
        for x in torch.randn(4, 5, 3):
            for hook in hooks:
                hook()
            model(x).mean().backward()
            optimizer.step()
        """,
    "a method of a base class": """
        import torch
        from framework import Base

        class Trainer(Base):
            def __init__(self, model):
                self.model = torch.nn.Linear(3, 1)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def fit(self, batches):
                for x in batches:
                    self.before_batch()
                    self.model(x).mean().backward()
                    self.optimizer.step()
        """,
    "a function that gets the optimizer": """
        import torch
        from framework import prepare

        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(4, 5, 3):
            prepare(optimizer)
            model(x).mean().backward()
            optimizer.step()
        """,
    "a function that gets the model": """
        import torch
        from framework import prepare

        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(4, 5, 3):
            prepare(nets=[model])
            model(x).mean().backward()
            optimizer.step()
        """,
    "an optimizer of somewhere else": """
        import torch
        from framework import build

        model, optimizer = build()
        for x in torch.randn(4, 5, 3):
            model(x).mean().backward()
            optimizer.step()
        """,
    "something else clears": """
        import torch
        from framework import engine

        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(4, 5, 3):
            engine.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        """,
    "sharpness-aware minimisation": """
        import torch
        from sam import SAM

        model = torch.nn.Linear(3, 1)
        optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
        for x in torch.randn(4, 5, 3):
            model(x).mean().backward()
            optimizer.first_step(zero_grad=True)
            model(x).mean().backward()
            optimizer.second_step(zero_grad=True)
        """,
}


@pytest.mark.parametrize("name", MENDED)
def test_mends(name: str) -> None:
    before, after = (_whole(source) for source in MENDED[name])
    assert mended(before, "GM402", unsafe=True) == after
    assert mended(before, "GM402") == before


@pytest.mark.parametrize("name", MENDED)
def test_each_gradient_is_applied_once_after_it(name: str) -> None:
    before, after = (_script(source) for source in MENDED[name])
    assert _applied(before) is True
    assert _applied(after) is False


@pytest.mark.parametrize("name", REPORTED)
def test_reports_what_it_cannot_mend(name: str) -> None:
    (finding,) = findings(_whole(REPORTED[name]), "GM402")
    assert finding.repair is None


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_leaves_alone(name: str) -> None:
    assert findings(_whole(LEFT_ALONE[name]), "GM402") == []
    assert runtime.run_source(_script(LEFT_ALONE[name]).encode()).error is None


@pytest.mark.parametrize("name", UNKNOWN)
def test_claims_nothing_about_what_it_cannot_see(name: str) -> None:
    assert findings(UNKNOWN[name], "GM402") == []


def test_two_optimizers_are_both_reported() -> None:
    source = _whole(
        """
        for x in batches:
            (model(x) - other(x)).pow(2).mean().backward()
            optimizer.step()
            other_optimizer.step()
        """
    )
    assert len(findings(source, "GM402")) == 2
    assert changed_lines(source, "GM402", unsafe=True) == ["+optimizer.zero_grad()", "+other_optimizer.zero_grad()"]


def test_a_scaler_steps_the_optimizer_that_is_cleared() -> None:
    source = _whole(
        """
        scaler = torch.amp.GradScaler("cpu")
        for x in batches:
            scaler.scale(model(x).pow(2).mean()).backward()
            scaler.step(optimizer)
            scaler.update()
        """
    )
    (finding,) = findings(source, "GM402")
    assert finding.repair is not None
    assert finding.repair.safety is Safety.UNSAFE
    assert changed_lines(source, "GM402", unsafe=True) == ["+optimizer.zero_grad()"]


def test_the_page_shows_the_mistake_and_its_repair() -> None:
    page = (missing_zero_grad.__doc__ or "").split("```python\n")
    wrong, right = page[1].partition("```")[0], page[2].partition("```")[0]
    assert {finding.code for finding in codemods.scan(wrong)} == {"GM402"}
    assert codemods.scan(right) == []
    assert codemods.mend(wrong, unsafe=True).source == right


def _applied(script: str) -> bool:
    """Whether a step finds a gradient tensor that an earlier step has applied already."""
    outcome = runtime.run_source(script.encode())
    assert outcome.error is None
    return bool(outcome.values)


def _whole(source: str) -> str:
    return SETTING + dedent(source)


def _script(source: str) -> str:
    """A script whose ``main()`` says whether a gradient that was applied once was still there at a later step."""
    watch = """
original = torch.optim.SGD.step
applied, again = set(), []

def watched(self, *arguments, **keywords):
    gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
    again.extend(id(g) in applied for g in gradients)
    kept.extend(gradients)
    applied.update(id(g) for g in gradients)
    return original(self, *arguments, **keywords)

kept = []
torch.optim.SGD.step = watched
"""
    setting = SETTING.replace("torch.manual_seed(0)\n", "torch.manual_seed(0)\n" + watch)
    body = indent(setting + dedent(source), "    ")
    return f"def main():\n{body}\n    torch.optim.SGD.step = original\n    return any(again)\n"
