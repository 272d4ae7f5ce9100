"""Fit a curve with a small network and plain gradient descent."""

import torch
from torch import nn

STEPS = 200


def main():
    torch.manual_seed(0)
    x = torch.linspace(-2, 2, 64).reshape(-1, 1)
    y = torch.sin(2 * x)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    history = []
    for step in range(STEPS):
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if step % 50 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")
    print(f"final loss {history[-1]:.4f}")
    return history


if __name__ == "__main__":
    main()
