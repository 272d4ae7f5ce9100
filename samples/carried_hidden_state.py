"""Forecast a noisy signal with a stateful LSTM, one window after another."""

import torch
from torch import nn

WINDOW = 20
EPOCHS = 2


class Forecaster(nn.Module):
    def __init__(self, hidden_size=16):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden_size, batch_first=True)
        self.head = nn.Linear(hidden_size, 1)

    def forward(self, window, state=None):
        features, state = self.lstm(window, state)
        return self.head(features), state


def load_windows():
    time = torch.linspace(0, 12, 10 * WINDOW + 1)
    signal = torch.sin(time) + 0.1 * torch.randn_like(time)
    for start in range(0, 10 * WINDOW, WINDOW):
        stretch = signal[start : start + WINDOW + 1].reshape(1, -1, 1)
        yield stretch[:, :-1], stretch[:, 1:]


def main():
    torch.manual_seed(0)
    model = Forecaster()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    for epoch in range(EPOCHS):
        state = None
        total = 0.0
        for window, target in load_windows():
            optimizer.zero_grad()
            prediction, state = model(window, state)
            loss = criterion(prediction, target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / 10:.4f}")
    return model


if __name__ == "__main__":
    main()
