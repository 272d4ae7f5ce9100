"""What the libraries of pretrained networks give that is no network: nothing trained is behind its results."""

from __future__ import annotations

import pytest

from gradmend import codemods

PROGRAM = """
import torch
from torch import nn
import clip
from torchvision import models, transforms
from transformers import AutoTokenizer, CLIPModel, CLIPProcessor

embedding, layer = nn.Embedding(100, 8), nn.Linear(8, 8)
optimizer = torch.optim.Adam([*embedding.parameters(), *layer.parameters()])
{before}
for _ in range(10):
    {forward}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PLAIN = {
    "a tokenizer": (
        "tokenizer = AutoTokenizer.from_pretrained('gpt2'); ids = tokenizer('text', return_tensors='pt').input_ids",
        "loss = layer(embedding(ids)).mean()",
    ),
    "a processor": (
        "processor = CLIPProcessor.from_pretrained('clip'); pixels = processor(images=[]).pixel_values.exp()",
        "loss = layer(pixels).mean()",
    ),
    "the transform beside a model": (
        "model, preprocess = clip.load('ViT-B/32'); image = preprocess(open('a.png')).exp()",
        "loss = layer(image).mean()",
    ),
    "indices that a network gave": (
        "backbone = models.resnet18(); ids = backbone(torch.randn(1, 3, 8, 8))",
        "loss = layer(embedding(ids)).mean()",
    ),
}


@pytest.mark.parametrize("case", PLAIN.values(), ids=PLAIN.keys())
def test_what_is_no_network_records_nothing(case: tuple[str, str]) -> None:
    before, forward = case
    assert codemods.scan(PROGRAM.format(before=before, forward=forward)) == []


def test_a_network_records() -> None:
    program = PROGRAM.format(
        before="model, preprocess = clip.load('ViT-B/32'); features = model(torch.randn(1, 3, 8, 8))",
        forward="loss = layer(features).mean()",
    )
    assert [finding.code for finding in codemods.scan(program)] == ["GM103"]
