"""Denoise short signals with a convolutional autoencoder."""

import torch
from torch import nn

STEPS = 20


class Denoiser(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, channels, 5, padding=2), nn.ReLU())
        self.decoder = nn.Conv1d(channels, 1, 5, padding=2)

    def forward(self, noisy):
        return self.decoder(self.encoder(noisy))


def main():
    torch.manual_seed(0)
    model = Denoiser()
    criterion = nn.L1Loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for step in range(STEPS):
        phase = 6.2832 * torch.rand(16, 1, 1)
        clean = torch.sin(torch.linspace(0, 20, 64) + phase)
        noisy = clean + 0.3 * torch.randn_like(clean)

        loss = criterion(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step:2d}  loss {loss.item():.4f}")
    return model


if __name__ == "__main__":
    main()
