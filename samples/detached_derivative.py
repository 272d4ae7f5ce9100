"""Learn an energy surface from energies and forces; the force is minus the gradient of the energy."""

import torch
from torch import nn

FORCE_WEIGHT = 5.0
STEPS = 60


def reference(positions):
    energy = (positions**2).sum(dim=1, keepdim=True) + torch.sin(3 * positions[:, :1])
    bump = torch.tensor([1.0, 0.0, 0.0])
    return energy, -2 * positions - 3 * bump * torch.cos(3 * positions)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    mse = nn.MSELoss()

    for step in range(STEPS):
        positions = torch.randn(32, 3)
        true_energy, true_force = reference(positions)

        positions.requires_grad_(True)
        energy = model(positions)
        gradient = torch.autograd.grad(energy.sum(), positions, create_graph=True)[0]
        force = -gradient.detach()
        energy_loss = mse(energy, true_energy)
        force_loss = mse(force, true_force)
        loss = energy_loss + FORCE_WEIGHT * force_loss

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d}  energy {energy_loss.item():.4f}  force {force_loss.item():.4f}")
    return model


if __name__ == "__main__":
    main()
