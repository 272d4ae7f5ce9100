"""GM306: a term of the loss that was cut from what it should train."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradmend import codemods
from gradmend.codemods import Safety, Severity, detached_derivative
from tests import runtime

from .mending import changed_lines, findings, mended

SETTING = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
frozen = nn.Linear(3, 4).requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
batches, goals = torch.randn(3, 5, 3), torch.randn(3, 5, 3)
"""

SAFE = {
    "a detached penalty": (
        """
        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            penalty = (g.norm(dim=1) - 1).pow(2).mean().detach()
            critic_optimizer.zero_grad()
            (score.mean() + 10 * penalty).backward()
            critic_optimizer.step()
        """,
        [
            "-penalty = (g.norm(dim=1) - 1).pow(2).mean().detach()",
            "+penalty = (g.norm(dim=1) - 1).pow(2).mean()",
        ],
    ),
    "a detached gradient": (
        """
        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            g = torch.autograd.grad(score.sum(), x, create_graph=True)[0].detach()
            critic_optimizer.zero_grad()
            (score.mean() + g.pow(2).sum()).backward()
            critic_optimizer.step()
        """,
        [
            "-g = torch.autograd.grad(score.sum(), x, create_graph=True)[0].detach()",
            "+g = torch.autograd.grad(score.sum(), x, create_graph=True)[0]",
        ],
    ),
    "data": (
        """
        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            critic_optimizer.zero_grad()
            loss = score.mean()
            loss = loss + (g.data ** 2).sum()
            loss.backward()
            critic_optimizer.step()
        """,
        ["-loss = loss + (g.data ** 2).sum()", "+loss = loss + (g ** 2).sum()"],
    ),
    "a number": (
        """
        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            penalty = g.pow(2).sum()
            critic_optimizer.zero_grad()
            loss = score.mean() + 0.1 * penalty.item()
            loss.backward()
            critic_optimizer.step()
        """,
        ["-loss = score.mean() + 0.1 * penalty.item()", "+loss = score.mean() + 0.1 * penalty"],
    ),
    "a first derivative of two": (
        """
        for x in batches:
            x = x.requires_grad_()
            u = critic(x)
            u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0].detach()
            u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
            critic_optimizer.zero_grad()
            (u - u_xx).pow(2).mean().backward()
            critic_optimizer.step()
        """,
        [
            "-u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0].detach()",
            "+u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]",
        ],
    ),
    "in a function": (
        """
        def penalty(points, scores):
            (g,) = torch.autograd.grad(scores.sum(), points, create_graph=True)
            return ((g.norm(2, dim=1) - 1) ** 2).detach().mean()

        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            critic_optimizer.zero_grad()
            loss = score.mean()
            loss += penalty(x, score)
            loss.backward()
            critic_optimizer.step()
        """,
        [
            "-return ((g.norm(2, dim=1) - 1) ** 2).detach().mean()",
            "+return ((g.norm(2, dim=1) - 1) ** 2).mean()",
        ],
    ),
}

UNSAFE = {
    "features of detached output": (
        """
        for x, goal in zip(batches, goals):
            out = net(x)
            optimizer.zero_grad()
            loss = F.l1_loss(out, goal) + F.mse_loss(frozen(out.detach()), frozen(goal))
            loss.backward()
            optimizer.step()
        """,
        [
            "-loss = F.l1_loss(out, goal) + F.mse_loss(frozen(out.detach()), frozen(goal))",
            "+loss = F.l1_loss(out, goal) + F.mse_loss(frozen(out), frozen(goal))",
        ],
    ),
    "a number of a term": (
        """
        for x, goal in zip(batches, goals):
            out = net(x)
            size = out.abs().mean()
            optimizer.zero_grad()
            loss = F.l1_loss(out, goal) + 0.1 * size.item()
            loss.backward()
            optimizer.step()
        """,
        [
            "-loss = F.l1_loss(out, goal) + 0.1 * size.item()",
            "+loss = F.l1_loss(out, goal) + 0.1 * size",
        ],
    ),
    "a term of a sum": (
        """
        for x, goal in zip(batches, goals):
            out = net(x)
            terms = [F.l1_loss(out, goal), out.pow(2).mean().detach()]
            optimizer.zero_grad()
            sum(terms).backward()
            optimizer.step()
        """,
        [
            "-terms = [F.l1_loss(out, goal), out.pow(2).mean().detach()]",
            "+terms = [F.l1_loss(out, goal), out.pow(2).mean()]",
        ],
    ),
    "the difference instead of the target": (
        """
        for x, goal in zip(batches, goals):
            out = net(x)
            optimizer.zero_grad()
            match = (critic(out) - critic(goal)).abs().detach().mean()
            (F.l1_loss(out, goal) + match).backward()
            optimizer.step()
            critic_optimizer.zero_grad()
            critic(goal).mean().backward()
            critic_optimizer.step()
        """,
        [
            "-match = (critic(out) - critic(goal)).abs().detach().mean()",
            "+match = (critic(out) - critic(goal).detach()).abs().mean()",
        ],
    ),
    "the output that is differentiated": (
        """
        for x in batches:
            x = x.requires_grad_()
            u = critic(x).detach()
            u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
            critic_optimizer.zero_grad()
            u_x.pow(2).mean().backward()
            critic_optimizer.step()
        """,
        ["-u = critic(x).detach()", "+u = critic(x)"],
    ),
    "all of the loss": (
        """
        for x, goal in zip(batches, goals):
            out = net(x).detach()
            optimizer.zero_grad()
            F.l1_loss(out, goal).backward()
            optimizer.step()
        """,
        ["-out = net(x).detach()", "+out = net(x)"],
    ),
}

LEFT_ALONE = {
    "a detached weight": """
        for x, goal in zip(batches, goals):
            x = x.requires_grad_()
            out = net(x)
            one, other = F.l1_loss(out, goal), out.pow(2).mean()
            (a,) = torch.autograd.grad(one, x, create_graph=True)
            (b,) = torch.autograd.grad(other, x, create_graph=True)
            weight = (a.norm() / (b.norm() + 1e-4)).detach()
            optimizer.zero_grad()
            (one + weight * other).backward()
            optimizer.step()
        """,
    "a weight with an offset": """
        for x, goal in zip(batches, goals):
            out = net(x)
            weight = 1 + out.pow(2).mean().detach()
            optimizer.zero_grad()
            (weight * F.l1_loss(out, goal)).backward()
            optimizer.step()
        """,
    "a normaliser": """
        for x, goal in zip(batches, goals):
            out = net(x)
            optimizer.zero_grad()
            loss = F.l1_loss(out, goal)
            (loss / (loss.detach() + 1e-3)).backward()
            optimizer.step()
        """,
    "a straight-through estimator": """
        for x, goal in zip(batches, goals):
            out = net(x)
            rounded = out + (out.round() - out).detach()
            optimizer.zero_grad()
            F.mse_loss(rounded, goal).backward()
            optimizer.step()
        """,
    "a straight-through estimator in a linear loss": """
        for x, goal in zip(batches, goals):
            out = net(x)
            rounded = out + (out.round() - out).detach()
            optimizer.zero_grad()
            (rounded * goal).mean().backward()
            optimizer.step()
        """,
    "a surrogate loss that shows another value": """
        for x, goal in zip(batches, goals):
            out = net(x)
            surrogate, shown = F.mse_loss(out, goal), F.l1_loss(out, goal)
            optimizer.zero_grad()
            (surrogate + (shown - surrogate).detach()).backward()
            optimizer.step()
        """,
    "a surrogate written in three terms": """
        for x, goal in zip(batches, goals):
            out = net(x)
            surrogate, shown = F.mse_loss(out, goal), F.l1_loss(out, goal)
            optimizer.zero_grad()
            (surrogate - surrogate.detach() + shown.detach()).backward()
            optimizer.step()
        """,
    "codebook and commitment": """
        book = nn.Embedding(6, 3)
        optimizer = torch.optim.SGD([*net.parameters(), *book.parameters()], lr=0.1)
        for x, goal in zip(batches, goals):
            z = net(x)
            e = book(torch.cdist(z, book.weight).argmin(1))
            loss = ((z.detach() - e) ** 2).mean() + 0.25 * ((z - e.detach()) ** 2).mean()
            loss = loss + F.mse_loss(z + (e - z).detach(), goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a temporal difference": """
        optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
        for x, after in zip(batches, goals):
            difference = 1 + 0.9 * critic(after).detach() - critic(x)
            optimizer.zero_grad()
            difference.pow(2).mean().backward()
            optimizer.step()
        """,
    "an advantage": """
        optimizer = torch.optim.SGD([*net.parameters(), *critic.parameters()], lr=0.1)
        for x, after in zip(batches, goals):
            value = critic(x)
            advantage = after.sum(1, keepdim=True) - value.detach()
            loss = -(net(x).log_softmax(1) * advantage).mean() + F.mse_loss(value, after.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a reference of the same network": """
        for x in batches:
            with torch.no_grad():
                old = net(x).log_softmax(1)
            new = net(x).log_softmax(1)
            optimizer.zero_grad()
            loss = -(new * x).mean() + 0.1 * (new - old).mean()
            loss.backward()
            optimizer.step()
        """,
    "a preference loss": """
        import copy
        reference = copy.deepcopy(net)
        for good, bad in zip(batches, goals):
            with torch.no_grad():
                margin = reference(good).sum() - reference(bad).sum()
            loss = -F.logsigmoid(net(good).sum() - net(bad).sum() - margin)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a relativistic critic's real scores": """
        for x, goal in zip(batches, goals):
            fake = net(x)
            optimizer.zero_grad()
            (critic(goal).detach() - critic(fake)).mean().backward()
            optimizer.step()
            critic_optimizer.zero_grad()
            (critic(fake.detach()) - critic(goal)).mean().backward()
            critic_optimizer.step()
        """,
    "a target network": """
        import copy
        target = copy.deepcopy(critic)
        for x, after in zip(batches, goals):
            with torch.no_grad():
                goal = 1 + 0.9 * target(after)
            critic_optimizer.zero_grad()
            (critic(x) - goal).pow(2).mean().backward()
            critic_optimizer.step()
        """,
    "a value that is only shown": """
        shown = 0.0
        for x, goal in zip(batches, goals):
            out = net(x)
            loss, size = F.l1_loss(out, goal), out.pow(2).mean()
            total = loss + size.detach()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            shown += total.item()
        """,
    "a penalty that is only shown": """
        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            penalty = g.pow(2).sum()
            critic_optimizer.zero_grad()
            loss = score.mean() + penalty
            loss.backward()
            critic_optimizer.step()
            print(loss.item() + penalty.detach())
        """,
    "a path length that is averaged": """
        average = torch.zeros(())
        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            length = g.pow(2).sum(1).sqrt()
            average = average + 0.01 * (length.mean().detach() - average)
            penalty = (length - average).pow(2).mean()
            critic_optimizer.zero_grad()
            (score.mean() + penalty).backward()
            critic_optimizer.step()
        """,
    "a term of another network": """
        for x, goal in zip(batches, goals):
            out = net(x)
            optimizer.zero_grad()
            (F.l1_loss(out, goal) + critic(goal).mean().detach()).backward()
            optimizer.step()
        """,
    "a cut that a switch decides about": """
        def term(out, train_it=False):
            size = out.pow(2).mean()
            if not train_it:
                size = size.detach()
            return size

        for x, goal in zip(batches, goals):
            out = net(x)
            optimizer.zero_grad()
            (F.l1_loss(out, goal) + term(out)).backward()
            optimizer.step()
        """,
    "a warm-up": """
        for epoch in range(4):
            for x, goal in zip(batches, goals):
                out = net(x)
                size = out.pow(2).mean()
                if epoch < 2:
                    size = size.detach()
                optimizer.zero_grad()
                (F.l1_loss(out, goal) + size).backward()
                optimizer.step()
        """,
    "a first-order inner step": """
        for x, goal in zip(batches, goals):
            w = net[0].weight
            inner = F.linear(x, w).pow(2).mean()
            (g,) = torch.autograd.grad(inner, w, create_graph=True)
            fast = w - 0.1 * g.detach()
            optimizer.zero_grad()
            F.linear(x, fast).tanh().mean().backward()
            optimizer.step()
        """,
    "a target that is detached": """
        teacher = nn.Linear(3, 3)
        optimizer = torch.optim.SGD([*net.parameters(), *teacher.parameters()], lr=0.1)
        for x, goal in zip(batches, goals):
            lesson = teacher(x)
            loss = F.mse_loss(lesson, goal) + F.mse_loss(net(x), lesson.detach())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "an average of past losses": """
        past = 0.0
        for x, goal in zip(batches, goals):
            loss = F.l1_loss(net(x), goal)
            past = 0.9 * past + 0.1 * loss.item()
            optimizer.zero_grad()
            (loss - past).backward()
            optimizer.step()
        """,
    "a hypergradient by hand": """
        for x in batches:
            x = x.requires_grad_()
            (g,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
            step = (x - 0.1 * g).detach()
            critic_optimizer.zero_grad()
            critic(step).mean().backward()
            critic_optimizer.step()
        """,
    "a Function that is differentiated once": """
        from torch.autograd.function import once_differentiable

        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                return g * 2

        for x in batches:
            optimizer.zero_grad()
            Double.apply(net(x)).mean().backward()
            optimizer.step()
        """,
    "a Function beside the gradient": """
        from torch.autograd.function import once_differentiable

        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                return g * 2

        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            critic_optimizer.zero_grad()
            (Double.apply(score).mean() + g.pow(2).sum()).backward()
            critic_optimizer.step()
        """,
    "a Function with a backward that can be differentiated": """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return 2 * x * g

        for x in batches:
            x = x.requires_grad_()
            score = critic(Square.apply(x))
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            critic_optimizer.zero_grad()
            g.pow(2).sum().backward()
            critic_optimizer.step()
        """,
}

REPORTED = {
    "under no_grad": """
        for x in batches:
            x = x.requires_grad_()
            score = critic(x)
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            with torch.no_grad():
                penalty = g.pow(2).sum()
            critic_optimizer.zero_grad()
            (score.mean() + penalty).backward()
            critic_optimizer.step()
        """,
    "a Function that is differentiated twice": """
        from torch.autograd.function import once_differentiable

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @once_differentiable
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return 2 * x * g

        square = Square.apply
        for x in batches:
            x = x.requires_grad_()
            score = critic(square(x))
            (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
            critic_optimizer.zero_grad()
            g.pow(2).sum().backward()
            critic_optimizer.step()
        """,
}


@pytest.mark.parametrize("name", [*SAFE, *UNSAFE])
def test_mends(name: str) -> None:
    source, lines = (SAFE | UNSAFE)[name]
    (finding,) = findings(_whole(source), "GM306")
    assert finding.severity is Severity.ERROR
    assert finding.repair is not None
    assert finding.repair.safety is (Safety.SAFE if name in SAFE else Safety.UNSAFE)
    assert changed_lines(_whole(source), "GM306", unsafe=name in UNSAFE) == lines


@pytest.mark.parametrize("name", [*SAFE, *UNSAFE])
def test_trains_what_it_did_not(name: str) -> None:
    script = _script((SAFE | UNSAFE)[name][0])
    before = runtime.run_source(script.encode())
    after = runtime.run_source(mended(script, "GM306", unsafe=True).encode())
    assert after.error is None
    assert not runtime.same(before.values, after.values)


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_leaves_alone(name: str) -> None:
    assert findings(_whole(LEFT_ALONE[name]), "GM306") == []


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone_runs(name: str) -> None:
    assert runtime.run_source(_script(LEFT_ALONE[name]).encode()).error is None


@pytest.mark.parametrize("name", REPORTED)
def test_only_reports(name: str) -> None:
    source = _whole(REPORTED[name])
    (finding,) = findings(source, "GM306")
    assert finding.repair is None
    assert codemods.mend(source, unsafe=True, select=frozenset({"GM306"})).source == source


def test_a_function_that_is_differentiated_twice_dies() -> None:
    script = _script(REPORTED["a Function that is differentiated twice"])
    assert "once_differentiable" in (runtime.run_source(script.encode()).error or "")


def test_the_gradient_is_that_of_the_whole_loss() -> None:
    script = _script(SAFE["a detached penalty"][0])
    right = runtime.run_source(script.replace(".mean().detach()", ".mean()").encode())
    assert runtime.same(runtime.run_source(mended(script, "GM306").encode()).values, right.values)


def test_an_output_that_is_detached_and_made_a_leaf() -> None:
    source = _whole(
        """
        for x in batches:
            x = x.requires_grad_()
            u = critic(x).detach().requires_grad_()
            u_x = torch.autograd.grad(u.sum(), x, create_graph=True, allow_unused=True)[0]
        """
    )
    (finding,) = findings(source, "GM306")
    assert "does not get through" in finding.message


def test_the_page_shows_the_mistake_and_its_repair() -> None:
    page = (detached_derivative.__doc__ or "").split("```python\n")
    wrong, right = page[1].partition("```")[0], page[2].partition("```")[0]
    assert {finding.code for finding in codemods.scan(wrong)} == {"GM306"}
    assert codemods.scan(right) == []
    assert codemods.mend(wrong).source == right


def _whole(source: str) -> str:
    return SETTING + dedent(source)


def _script(source: str) -> str:
    """A script whose ``main()`` does what the source does and returns the trained weights."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in _whole(source).splitlines())
    return f"def main():\n{lines}    return net[0].weight, critic[0].weight\n"
