"""Fit a signed distance function to a circle; its gradient should have length one everywhere."""

import torch
from torch import nn

STEPS = 30


def main():
    torch.manual_seed(0)
    sdf = nn.Sequential(
        nn.Linear(2, 32), nn.Softplus(beta=20), nn.Linear(32, 32), nn.Softplus(beta=20), nn.Linear(32, 1)
    )
    optimizer = torch.optim.Adam(sdf.parameters(), lr=1e-3)

    for step in range(STEPS):
        angle = 6.2832 * torch.rand(64)
        on_surface = torch.stack([angle.cos(), angle.sin()], dim=1)
        anywhere = (4 * torch.rand(64, 2) - 2).requires_grad_()

        distance = sdf(anywhere)
        normals = torch.autograd.grad(
            distance,
            anywhere,
            grad_outputs=torch.ones_like(distance),
            create_graph=True,
            retain_graph=True,
        )[0]
        eikonal_loss = ((normals.norm(dim=-1) - 1) ** 2).mean()
        surface_loss = sdf(on_surface).abs().mean()
        loss = surface_loss + 0.1 * eikonal_loss

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}  surface {surface_loss.item():.4f}  eikonal {eikonal_loss.item():.4f}")
    return sdf


if __name__ == "__main__":
    main()
