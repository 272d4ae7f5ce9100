"""Deterministic actor-critic on a toy control task: push the state to the origin."""

import torch
import torch.nn.functional as F
from torch import nn

DISCOUNT = 0.9
STEPS = 20


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, state, action):
        return self.layers(torch.cat([state, action], dim=1))


def transitions(count):
    state = torch.randn(count, 2)
    action = torch.rand(count, 1) * 2 - 1
    next_state = 0.9 * state + 0.1 * action
    reward = -next_state.pow(2).sum(dim=1, keepdim=True)
    return state, action, reward, next_state


def main():
    torch.manual_seed(0)
    actor = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())
    critic = Critic()
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)

    for step in range(STEPS):
        state, action, reward, next_state = transitions(64)
        with torch.no_grad():
            target = reward + DISCOUNT * critic(next_state, actor(next_state))
        critic_loss = F.mse_loss(critic(state, action), target)
        actor_loss = -critic(state, actor(state)).mean()

        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()

        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        if step % 5 == 0:
            print(f"step {step:2d}  critic {critic_loss.item():.4f}  actor {actor_loss.item():.4f}")
    return actor


if __name__ == "__main__":
    main()
