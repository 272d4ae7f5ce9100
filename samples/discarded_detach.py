"""Q-learning on a small chain of states; the target of each update comes from the network itself."""

import torch
import torch.nn.functional as F
from torch import nn

STATES = 6
GAMMA = 0.9
STEPS = 60


def transitions(count):
    """Walk left or right along the chain; its right end pays one."""
    state = torch.randint(0, STATES, (count,))
    action = torch.randint(0, 2, (count,))
    following = (state + 2 * action - 1).clamp(0, STATES - 1)
    reward = (following == STATES - 1).float()
    return F.one_hot(state, STATES).float(), action, reward, F.one_hot(following, STATES).float()


def main():
    torch.manual_seed(0)
    q_net = nn.Sequential(nn.Linear(STATES, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-2)

    for step in range(STEPS):
        state, action, reward, following = transitions(32)
        q = q_net(state).gather(1, action.unsqueeze(1)).squeeze(1)

        next_q = q_net(following).max(1).values
        next_q.detach()
        target = reward + GAMMA * next_q

        loss = F.mse_loss(q, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")
    return q_net


if __name__ == "__main__":
    main()
