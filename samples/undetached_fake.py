"""A small GAN that learns to draw points on a ring."""

import math

import torch
from torch import nn

LATENT = 4
BATCH = 32
STEPS = 10


def sample_ring(count):
    angle = 2 * math.pi * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(count, 2)


def main():
    torch.manual_seed(0)
    netG = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 2))
    netD = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    criterion = nn.BCEWithLogitsLoss()
    optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))

    for step in range(STEPS):
        # discriminator: real points up, fake points down
        netD.zero_grad()
        real = sample_ring(BATCH)
        errD_real = criterion(netD(real), torch.ones(BATCH, 1))
        fake = netG(torch.randn(BATCH, LATENT))
        errD_fake = criterion(netD(fake), torch.zeros(BATCH, 1))
        errD = errD_real + errD_fake
        errD.backward()
        optimizerD.step()

        # generator: fool the discriminator
        netG.zero_grad()
        errG = criterion(netD(fake), torch.ones(BATCH, 1))
        errG.backward()
        optimizerG.step()
        print(f"[{step}/{STEPS}] loss D {errD.item():.4f}  loss G {errG.item():.4f}")
    return netG


if __name__ == "__main__":
    main()
