"""Match pictures to class names: both are embedded, the nearest name wins."""

import torch
import torch.nn.functional as F
from torch import nn

CLASSES = 5
STEPS = 20


class NameEncoder(nn.Module):
    def __init__(self, vocabulary=30, width=16):
        super().__init__()
        self.words = nn.EmbeddingBag(vocabulary, width)
        self.project = nn.Linear(width, width)

    def forward(self, tokens):
        return F.normalize(self.project(self.words(tokens)), dim=-1)


def main():
    torch.manual_seed(0)
    images = torch.randn(64, 24)
    labels = torch.randint(0, CLASSES, (64,))
    class_names = torch.randint(0, 30, (CLASSES, 4))

    image_encoder = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 16))
    name_encoder = NameEncoder()
    optimizer = torch.optim.AdamW([*image_encoder.parameters(), *name_encoder.parameters()], lr=3e-3)

    # the class names never change
    name_embeddings = name_encoder(class_names)

    for step in range(STEPS):
        batch = torch.randperm(64)[:16]
        image_embeddings = F.normalize(image_encoder(images[batch]), dim=-1)
        logits = 10 * image_embeddings @ name_embeddings.t()
        loss = F.cross_entropy(logits, labels[batch])

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")
    return name_encoder


if __name__ == "__main__":
    main()
