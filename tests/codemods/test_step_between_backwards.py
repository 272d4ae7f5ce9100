"""GM403: an optimizer's step between a forward pass and its traversal."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from gradmend import codemods
from gradmend.codemods import Safety, step_between_backwards
from tests import runtime

from .mending import changed_lines, findings, mended

SETTING = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
critic = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
twin = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
twin_optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)

def q(net, state, action):
    return net(torch.cat([state, action], dim=1))

def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

LATER = """
for state in torch.randn(3, 6, 3):
    critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    actor_loss = -q(critic, state, actor(state)).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
"""

MENDED = {
    "the loss behind the step": (
        """
        for state in torch.randn(3, 6, 3):
            critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
            actor_loss = -q(critic, state, actor(state)).mean()
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
        """,
        LATER,
    ),
    "what leads to the loss goes along": (
        """
        for state in torch.randn(3, 6, 3):
            action = actor(state)
            value = q(critic, state, action)
            actor_loss = -value.mean()
            critic_loss = q(critic, state, action.detach()).pow(2).mean()
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
        """,
        """
        for state in torch.randn(3, 6, 3):
            action = actor(state)
            critic_loss = q(critic, state, action.detach()).pow(2).mean()
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()
            value = q(critic, state, action)
            actor_loss = -value.mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
        """,
    ),
    "what is noted of the loss goes along": (
        """
        log = []
        for state in torch.randn(3, 6, 3):
            critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
            actor_loss = -q(critic, state, actor(state)).mean()
            log.append(actor_loss.item())
            update(critic_optimizer, critic_loss)
            update(actor_optimizer, actor_loss)
        """,
        """
        log = []
        for state in torch.randn(3, 6, 3):
            critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
            update(critic_optimizer, critic_loss)
            actor_loss = -q(critic, state, actor(state)).mean()
            log.append(actor_loss.item())
            update(actor_optimizer, actor_loss)
        """,
    ),
    "behind the last of two steps": (
        """
        for state in torch.randn(3, 6, 3):
            fixed = actor(state).detach()
            critic_loss = q(critic, state, fixed).pow(2).mean()
            twin_loss = q(twin, state, fixed).pow(2).mean()
            actor_loss = -torch.min(q(critic, state, actor(state)), q(twin, state, actor(state))).mean()
            update(critic_optimizer, critic_loss)
            update(twin_optimizer, twin_loss)
            update(actor_optimizer, actor_loss)
        """,
        """
        for state in torch.randn(3, 6, 3):
            fixed = actor(state).detach()
            critic_loss = q(critic, state, fixed).pow(2).mean()
            twin_loss = q(twin, state, fixed).pow(2).mean()
            update(critic_optimizer, critic_loss)
            update(twin_optimizer, twin_loss)
            actor_loss = -torch.min(q(critic, state, actor(state)), q(twin, state, actor(state))).mean()
            update(actor_optimizer, actor_loss)
        """,
    ),
    "the traversal before the step where the value is needed": (
        """
        for state in torch.randn(3, 6, 3):
            value = q(critic, state, actor(state))
            critic_loss = (q(critic, state, actor(state).detach()) - value.detach() + 1).pow(2).mean()
            actor_loss = -value.mean()

            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()

            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
        """,
        """
        for state in torch.randn(3, 6, 3):
            value = q(critic, state, actor(state))
            critic_loss = (q(critic, state, actor(state).detach()) - value.detach() + 1).pow(2).mean()
            actor_loss = -value.mean()

            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()

        """,
    ),
    "in methods": (
        """
        class Agent:
            def learn(self, state):
                critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
                self.actor_loss = -q(critic, state, actor(state)).mean()
                self.step_critic(critic_loss)
                self.step_actor()

            def step_critic(self, loss):
                update(critic_optimizer, loss)

            def step_actor(self):
                update(actor_optimizer, self.actor_loss)

        agent = Agent()
        for state in torch.randn(3, 6, 3):
            agent.learn(state)
        """,
        """
        class Agent:
            def learn(self, state):
                critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
                self.step_critic(critic_loss)
                self.actor_loss = -q(critic, state, actor(state)).mean()
                self.step_actor()

            def step_critic(self, loss):
                update(critic_optimizer, loss)

            def step_actor(self):
                update(actor_optimizer, self.actor_loss)

        agent = Agent()
        for state in torch.randn(3, 6, 3):
            agent.learn(state)
        """,
    ),
}

REPORTED = {
    "both need both": """
        for state in torch.randn(3, 6, 3):
            action = actor(state)
            value = q(critic, state, action)
            critic_optimizer.zero_grad()
            actor_optimizer.zero_grad()
            value.pow(2).mean().backward(retain_graph=True)
            critic_optimizer.step()
            value.mean().backward()
            actor_optimizer.step()
        """,
    "on either side of a branch": """
        import sys
        flag = len(sys.argv) > 99
        for i, state in enumerate(torch.randn(3, 6, 3)):
            action = actor(state)
            value = q(critic, state, action)
            if i % 2 == 0:
                value.mean().backward(retain_graph=True)
                actor_optimizer.step()
            critic_optimizer.zero_grad()
            if flag:
                loss = (value - 1).mean()
            else:
                loss = (value + 1).pow(2).mean()
            loss.backward()
            critic_optimizer.step()
        """,
    "the loss is read on the way": """
        for state in torch.randn(3, 6, 3):
            critic_optimizer.zero_grad()
            actor_optimizer.zero_grad()
            actor_loss = -q(critic, state, actor(state)).mean()
            critic_loss = q(critic, state, actor(state).detach()).pow(2).mean() * actor_loss.item()
            critic_loss.backward()
            critic_optimizer.step()
            actor_loss.backward()
            actor_optimizer.step()
        """,
}

LEFT_ALONE = {
    "AMP saves copies of another type": """
        for state in torch.randn(3, 6, 3):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
                actor_loss = -q(critic, state, actor(state)).mean()
            update(critic_optimizer, critic_loss)
            update(actor_optimizer, actor_loss)
        """,
    "a context that lets saved tensors change": """
        for state in torch.randn(3, 6, 3):
            with torch.autograd.graph.allow_mutation_on_saved_tensors():
                critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
                actor_loss = -q(critic, state, actor(state)).mean()
                update(critic_optimizer, critic_loss)
                update(actor_optimizer, actor_loss)
        """,
    "the loss is computed after the step": LATER,
    "both traversals come before the steps": """
        for state in torch.randn(3, 6, 3):
            critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
            actor_loss = -q(critic, state, actor(state)).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()
            actor_optimizer.step()
        """,
    "the value is detached": """
        for state in torch.randn(3, 6, 3):
            action = actor(state)
            critic_loss = q(critic, state, action.detach()).pow(2).mean()
            actor_loss = (action * q(critic, state, action).detach()).mean()
            update(critic_optimizer, critic_loss)
            update(actor_optimizer, actor_loss)
        """,
    "the step concerns another network": """
        for state in torch.randn(3, 6, 3):
            critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
            twin_loss = q(twin, state, actor(state).detach()).pow(2).mean()
            update(critic_optimizer, critic_loss)
            update(twin_optimizer, twin_loss)
        """,
    "only the last layer's bias is stepped": """
        scale = nn.Parameter(torch.zeros(1))
        scale_optimizer = torch.optim.SGD([scale], lr=0.1)
        for state in torch.randn(3, 6, 3):
            values = q(critic, state, actor(state).detach())
            scale_loss = (scale - values.detach()).pow(2).mean()
            critic_loss = (values + scale).mean()
            update(scale_optimizer, scale_loss)
            update(critic_optimizer, critic_loss)
        """,
    "a temperature whose exponential was saved": """
        log_alpha = torch.zeros(1, requires_grad=True)
        alpha_optimizer = torch.optim.SGD([log_alpha], lr=0.1)
        for state in torch.randn(3, 6, 3):
            alpha = log_alpha.exp()
            alpha_loss = (alpha * 2).mean()
            actor_loss = (log_alpha.exp() * actor(state)).mean()
            update(alpha_optimizer, alpha_loss)
            update(actor_optimizer, actor_loss)
        """,
    "the first layer on data keeps no weight": """
        linear = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
        for state in torch.randn(3, 6, 3):
            one, two = linear(state).mean(), linear(state).pow(2).mean()
            update(optimizer, one)
            update(optimizer, two)
        """,
    "the optimizer has no gradients to apply": """
        for state in torch.randn(3, 6, 3):
            actor_loss = -q(critic, state, actor(state)).mean()
            critic_optimizer.zero_grad()
            critic_optimizer.step()
            update(actor_optimizer, actor_loss)
        """,
    "targets that follow": """
        slow = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1)).requires_grad_(False)
        for state in torch.randn(3, 6, 3):
            fixed = actor(state).detach()
            critic_loss = (q(critic, state, fixed) - q(slow, state, fixed)).pow(2).mean()
            update(critic_optimizer, critic_loss)
            for p, s in zip(critic.parameters(), slow.parameters()):
                s.data.copy_(0.9 * s.data + 0.1 * p.data)
        """,
    "rollout values are numbers": """
        values = []
        for state in torch.randn(3, 6, 3):
            values.append(q(critic, state, actor(state)).detach())
            update(critic_optimizer, (q(critic, state, actor(state).detach()) - sum(values)).pow(2).mean())
        """,
}

UNKNOWN = {
    "networks and optimizers of somewhere else": """
        from somewhere import actor, critic, actor_optimizer, critic_optimizer, batches

        for state in batches:
            critic_loss = critic(state).mean()
            actor_loss = critic(actor(state)).mean()
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
        """,
}


@pytest.mark.parametrize("name", MENDED)
def test_mends(name: str) -> None:
    before, after = (_whole(source) for source in MENDED[name])
    assert mended(before, "GM403", unsafe=True) == after
    assert mended(before, "GM403") == before


@pytest.mark.parametrize("name", MENDED)
def test_runs_after_it(name: str) -> None:
    before, after = (_script(source) for source in MENDED[name])
    assert "inplace operation" in (runtime.run_source(before.encode()).error or "")
    assert runtime.run_source(after.encode()).error is None


@pytest.mark.parametrize("name", REPORTED)
def test_reports_what_it_cannot_mend(name: str) -> None:
    source = _whole(REPORTED[name])
    (finding,) = findings(source, "GM403")
    assert finding.repair is None
    assert "inplace operation" in (runtime.run_source(_script(REPORTED[name]).encode()).error or "")


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_leaves_alone(name: str) -> None:
    assert findings(_whole(LEFT_ALONE[name]), "GM403") == []
    assert runtime.run_source(_script(LEFT_ALONE[name]).encode()).error is None


@pytest.mark.parametrize("name", UNKNOWN)
def test_claims_nothing_about_what_it_cannot_see(name: str) -> None:
    assert findings(UNKNOWN[name], "GM403") == []


def test_offers_both_meanings() -> None:
    (finding,) = findings(_whole(MENDED["the loss behind the step"][0]), "GM403")
    assert finding.repair is not None
    assert [r.message for r in (finding.repair, *finding.alternatives)] == [
        "Compute the loss after the step",
        "Traverse before the step",
    ]
    assert {r.safety for r in (finding.repair, *finding.alternatives)} == {Safety.UNSAFE}


def test_a_traversal_is_not_moved_where_its_gradients_would_leak() -> None:
    source = _whole(
        """
        for state in torch.randn(3, 6, 3):
            critic_optimizer.zero_grad()
            actor_optimizer.zero_grad()
            actor_loss = -q(critic, state, actor(state)).mean()
            critic_loss = q(critic, state, actor(state).detach()).pow(2).mean()
            critic_loss.backward()
            critic_optimizer.step()
            actor_loss.backward()
            actor_optimizer.step()
        """
    )
    (finding,) = findings(source, "GM403")
    assert finding.repair is not None
    assert finding.repair.message == "Compute the loss after the step"
    assert finding.alternatives == ()


def test_reads_the_fresh_value_instead_of_the_stale_one_and_drops_the_flag() -> None:
    source = """
        class Trainer:
            def critic_step(self, state):
                self.value = q(critic, state, actor(state).detach())
                critic_optimizer.zero_grad()
                self.value.pow(2).mean().backward(retain_graph=True)
                critic_optimizer.step()

            def actor_step(self, state):
                value = q(critic, state, actor(state))
                actor_loss = actor(state).pow(2).mean() - self.value.mean()
                actor_optimizer.zero_grad()
                actor_loss.backward()
                actor_optimizer.step()

        trainer = Trainer()
        for state in torch.randn(3, 6, 3):
            trainer.critic_step(state)
            trainer.actor_step(state)
        """
    assert changed_lines(_whole(source), "GM403", unsafe=True) == [
        "-self.value.pow(2).mean().backward(retain_graph=True)",
        "-actor_loss = actor(state).pow(2).mean() - self.value.mean()",
        "+self.value.pow(2).mean().backward()",
        "+actor_loss = actor(state).pow(2).mean() - value.mean()",
    ]


def test_the_page_shows_the_mistake_and_its_repair() -> None:
    page = (step_between_backwards.__doc__ or "").split("```python\n")
    wrong, right = page[1].partition("```")[0], page[2].partition("```")[0]
    assert {finding.code for finding in codemods.scan(wrong)} == {"GM403"}
    assert codemods.scan(right) == []
    assert codemods.mend(wrong, unsafe=True).source == right


def _whole(source: str) -> str:
    return SETTING + dedent(source)


def _script(source: str) -> str:
    return f"def main():\n{indent(_whole(source), '    ')}\n    return actor[0].weight, critic[0].weight\n"
