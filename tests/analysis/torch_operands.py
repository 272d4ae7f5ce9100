"""Operands for the small PyTorch programs of the tests."""

from __future__ import annotations

import torch
from torch import Tensor


def fresh(kind: str) -> Tensor:
    """An operand of the kind that PROGRAMS names; the same values each time."""
    generator = torch.Generator().manual_seed(7)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator) * 0.8 + 0.1

    match kind:
        case "x":
            return uniform(3, 3)
        case "y":
            return uniform(3, 3) + 0.05
        case "vector":
            return uniform(3)
        case "row":
            return uniform(1, 3)
        case "batch":
            return uniform(2, 3, 3)
        case "signal":
            return uniform(1, 4, 6)
        case "image":
            return uniform(1, 4, 6, 6)
        case "volume":
            return uniform(1, 4, 6, 6, 6)
        case "kernel1":
            return uniform(4, 4, 2)
        case "kernel2":
            return uniform(4, 4, 2, 2)
        case "kernel3":
            return uniform(4, 4, 2, 2, 2)
        case "counts1":
            return torch.arange(3).repeat(2, 3, 1)
        case "counts2":
            return torch.arange(4).reshape(1, 1, 2, 2)
        case "counts3":
            return torch.arange(8).reshape(1, 1, 2, 2, 2)
        case "volume1":
            return uniform(1, 1, 2, 2)
        case "volume2":
            return uniform(1, 1, 2, 2, 2)
        case "heads":
            return uniform(1, 2, 4, 8)
        case "frames":
            return uniform(6, 3, 5).log_softmax(-1)
        case "kernel":
            return uniform(3, 3, 3)
        case "large":
            return uniform(3, 3) + 3
        case "wave":
            return uniform(16)
        case "pivots":
            return torch.tensor([1, 2, 3], dtype=torch.int32)
        case "weight":
            return uniform(1)
        case "grid":
            return uniform(1, 3, 3, 2)
        case "definite":
            return uniform(3, 3) @ uniform(3, 3).T + 3 * torch.eye(3)
        case "triangle":
            triangle: Tensor = torch.linalg.cholesky(fresh("definite"))
            return triangle
        case "complex":
            return torch.complex(uniform(3, 3), uniform(3, 3))
        case "positions":
            return torch.tensor([0, 2, 1])
        case "table":
            return torch.tensor([[0, 1, 2], [2, 1, 0], [1, 1, 1]])
        case "labels":
            return torch.tensor([[1, 2, 3], [3, 2, 1], [1, 2, 4]])
        case "mask":
            return torch.eye(3, dtype=torch.bool)
        case "signs":
            return torch.tensor([1.0, -1.0, 1.0])
        case "ones":
            return torch.ones(3, 3)
    raise ValueError(kind)
