"""How sharp is the minimum? The largest curvature of a trained network's loss, by power iteration."""

import torch
from torch import nn


def flat(tensors):
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def largest_curvature(model, criterion, inputs, targets, iterations=10):
    parameters = list(model.parameters())
    loss = criterion(model(inputs), targets)
    gradient = flat(torch.autograd.grad(loss, parameters, create_graph=True))

    rows = []
    for i in range(gradient.numel()):
        row = torch.autograd.grad(gradient[i], parameters, retain_graph=True)
        rows.append(flat(row))
    hessian = torch.stack(rows)

    direction = torch.randn(gradient.numel())
    for _ in range(iterations):
        product = hessian @ direction
        direction = product / product.norm()
    return torch.dot(direction, hessian @ direction).item()


def main():
    torch.manual_seed(0)
    inputs = torch.randn(64, 4)
    targets = inputs.prod(dim=1, keepdim=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for _ in range(50):
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    curvature = largest_curvature(model, criterion, inputs, targets)
    print(f"loss {loss.item():.4f}  largest curvature {curvature:.4f}")
    return curvature


if __name__ == "__main__":
    main()
