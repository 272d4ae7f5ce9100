"""GM202: a detach() whose result is thrown away."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradmend import codemods
from gradmend.codemods import Severity, discarded_detach
from tests import runtime

from .mending import changed_lines, findings, mended

SETTING = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
head = nn.Linear(3, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
states, following = torch.randn(4, 5, 3), torch.randn(4, 5, 3)
"""

MENDED = {
    "a target": (
        """
        for state, after in zip(states, following):
            target = net(after)
            target.detach()
            loss = F.mse_loss(net(state), 1 + 0.9 * target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        ["-target.detach()", "+target = target.detach()"],
    ),
    "given to a function": (
        """
        def distance(one, other):
            return (one - other).pow(2).mean()

        for state, after in zip(states, following):
            target = net(after)
            target.detach()
            loss = distance(net(state), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        ["-target.detach()", "+target = target.detach()"],
    ),
    "a parameter of the function": (
        """
        def distance(one, other):
            other.detach()
            return (one - other).pow(2).mean()

        for state, after in zip(states, following):
            loss = distance(net(state), net(after))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        ["-other.detach()", "+other = other.detach()"],
    ),
    "an attribute": (
        """
        class Agent:
            def update(self, state, after):
                self.target = net(after)
                self.target.detach()
                loss = (net(state) - self.target).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        agent = Agent()
        for state, after in zip(states, following):
            agent.update(state, after)
        """,
        ["-self.target.detach()", "+self.target = self.target.detach()"],
    ),
    "several on one line": (
        """
        for state, after in zip(states, following):
            target = net(after); target.detach()  # the target is fixed
            loss = (net(state) - target).pow(2).mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
        """,
        [
            "-target = net(after); target.detach()  # the target is fixed",
            "+target = net(after); target = target.detach()  # the target is fixed",
        ],
    ),
    "on one side of a branch": (
        """
        for turn, (state, after) in enumerate(zip(states, following)):
            target = net(after)
            if turn % 2:
                target.detach()
            loss = (net(state) - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
        ["-target.detach()", "+target = target.detach()"],
    ),
}

LEFT_ALONE = {
    "assigned": """
        for state, after in zip(states, following):
            target = net(after)
            target = target.detach()
            loss = (net(state) - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "in place": """
        for state, after in zip(states, following):
            target = net(after)
            target.detach_()
            loss = (net(state) - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "behind the backward": """
        for state in states:
            loss = net(state).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            loss.detach()
            optimizer.step()
        """,
    "not used afterwards": """
        for state, after in zip(states, following):
            value = net(after)
            value.detach()
            loss = net(state).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "only printed afterwards": """
        for state, after in zip(states, following):
            value = net(after)
            value.detach()
            size = value.abs().mean()
            loss = net(state).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(size.item())
        """,
    "no graph": """
        for state, after in zip(states, following):
            after.detach()
            loss = (net(state) - after.sum(1, keepdim=True)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "made anew before it is used": """
        for state, after in zip(states, following):
            value = net(after)
            value.detach()
            value = net(state)
            loss = value.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "used before it only": """
        for state in states:
            value = net(state)
            loss = value.pow(2).mean()
            value.detach()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "the result is used": """
        for state, after in zip(states, following):
            target = net(after)
            loss = (net(state) - target.detach()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "the loop variable of a list": """
        for state, after in zip(states, following):
            values = [net(state), net(after)]
            for value in values:
                value.detach()
            loss = (values[0] + values[1]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
}


@pytest.mark.parametrize("name", MENDED)
def test_mends(name: str) -> None:
    source, lines = MENDED[name]
    (finding,) = findings(_whole(source), "GM202")
    assert finding.severity is Severity.ERROR
    assert changed_lines(_whole(source), "GM202") == lines


@pytest.mark.parametrize("name", MENDED)
def test_trains_as_with_a_detach_in_place(name: str) -> None:
    script = _script(MENDED[name][0])
    right = runtime.run_source(script.replace(".detach()", ".detach_()").encode())
    before = runtime.run_source(script.encode())
    after = runtime.run_source(mended(script, "GM202").encode())
    assert after.error is None
    assert not runtime.same(before.values, right.values)
    assert runtime.same(after.values, right.values)


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_leaves_alone(name: str) -> None:
    assert findings(_whole(LEFT_ALONE[name]), "GM202") == []


def test_the_loss_itself_is_not_cut() -> None:
    source = _whole(
        """
        for state in states:
            loss = net(state).pow(2).mean()
            loss.detach()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    assert mended(source, "GM202") == source


def test_a_global_is_not_made_local() -> None:
    source = _whole(
        """
        target = net(following[0])

        def loss_of(state):
            target.detach()
            return (net(state) - target).pow(2).mean()

        loss = loss_of(states[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        """
    )
    (finding,) = findings(source, "GM202")
    assert finding.repair is None


@pytest.mark.parametrize(
    ("source", "code", "lines"),
    [
        (
            """
            cell, hidden = nn.GRU(3, 4), None
            optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
            for window in torch.randn(4, 5, 2, 3):
                output, hidden = cell(window, hidden)
                loss = output.pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                hidden.detach()
                optimizer.step()
            """,
            "GM101",
            ["-hidden.detach()", "+hidden = hidden.detach()"],
        ),
        (
            """
            features = net[:2](states[0])
            features.detach()
            for _ in range(3):
                loss = net[2](features).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
            "GM103",
            ["-features.detach()", "+features = features.detach()"],
        ),
        (
            """
            actor_optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            critic_optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
            for state, reward in zip(states, following):
                values = head(state)
                values.detach()
                advantage = reward.sum(1, keepdim=True) - values
                loss = -(net(state) * advantage).mean()
                actor_optimizer.zero_grad()
                loss.backward()
                actor_optimizer.step()
                critic_loss = (head(state) - reward.sum(1, keepdim=True)).pow(2).mean()
                critic_optimizer.zero_grad()
                critic_loss.backward()
                critic_optimizer.step()
            """,
            "GM201",
            ["-values.detach()", "+values = values.detach()"],
        ),
    ],
)
def test_other_rules_mend_it_in_the_same_way(source: str, code: str, lines: list[str]) -> None:
    assert {finding.code for finding in codemods.scan(_whole(source))} == {code}
    assert changed_lines(_whole(source), code) == lines
    assert runtime.run_source(mended(_script(source), code).encode()).error is None


def test_the_page_shows_the_mistake_and_its_repair() -> None:
    page = (discarded_detach.__doc__ or "").split("```python\n")
    wrong, right = page[1].partition("```")[0], page[2].partition("```")[0]
    assert {finding.code for finding in codemods.scan(wrong)} == {"GM202"}
    assert codemods.scan(right) == []
    assert codemods.mend(wrong).source == right


def _whole(source: str) -> str:
    return SETTING + dedent(source)


def _script(source: str) -> str:
    """A script whose ``main()`` does what the source does and returns the trained weights."""
    lines = "".join(f"    {line}\n" if line else "\n" for line in _whole(source).splitlines())
    return f"def main():\n{lines}    return net[0].weight, head.weight\n"
