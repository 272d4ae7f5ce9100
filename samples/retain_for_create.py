"""Wasserstein GAN with a gradient penalty, on two-dimensional data."""

import torch
from torch import autograd, nn

LATENT = 4
BATCH = 32
CRITIC_STEPS = 3
PENALTY_WEIGHT = 10.0


def gradient_penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    scores = critic(between)
    gradients = autograd.grad(
        outputs=scores,
        inputs=between,
        grad_outputs=torch.ones_like(scores),
        retain_graph=True,
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def main():
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))

    for step in range(5):
        for _ in range(CRITIC_STEPS):
            real = torch.randn(BATCH, 2) + 2
            fake = generator(torch.randn(BATCH, LATENT)).detach()
            penalty = gradient_penalty(critic, real, fake)
            critic_loss = critic(fake).mean() - critic(real).mean() + PENALTY_WEIGHT * penalty
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()

        generator_loss = -critic(generator(torch.randn(BATCH, LATENT))).mean()
        generator_optimizer.zero_grad()
        generator_loss.backward()
        generator_optimizer.step()
        print(f"step {step}  critic {critic_loss.item():.4f}  penalty {penalty.item():.4f}")
    return critic


if __name__ == "__main__":
    main()
