"""Solve u'' = -u, u(0) = 0, u'(0) = 1 with a physics-informed network."""

import torch
from torch import nn

STEPS = 50


def residual(network, x):
    u = network(x)
    u_x = torch.autograd.grad(u, x, torch.ones_like(u))[0]
    u_xx = torch.autograd.grad(u_x, x, torch.ones_like(u_x))[0]
    return u_xx + u


def main():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    known_x = torch.linspace(0, 0.3, 4).reshape(-1, 1)
    known_u = torch.sin(known_x)

    for step in range(STEPS):
        x = 3 * torch.rand(64, 1)
        x.requires_grad_(True)
        equation_loss = residual(network, x).pow(2).mean()
        data_loss = (network(known_x) - known_u).pow(2).mean()
        loss = equation_loss + 10 * data_loss

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step:3d}  equation {equation_loss.item():.4f}  data {data_loss.item():.4f}")
    return network


if __name__ == "__main__":
    main()
