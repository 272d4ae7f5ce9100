"""Classify signals with a small residual network."""

import torch
from torch import nn

STEPS = 10


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv1d(width, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x):
        residual = x
        out = self.relu(self.conv1(x))
        out = self.relu(self.conv2(out))
        out += residual
        return out


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv1d(1, 8, 3, padding=1),
        ResidualBlock(8),
        ResidualBlock(8),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(8, 2),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for step in range(STEPS):
        signals = torch.randn(16, 1, 32)
        labels = (signals.mean(dim=(1, 2)) > 0).long()
        loss = criterion(model(signals), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: {loss.item():.4f}")
    return model


if __name__ == "__main__":
    main()
