"""Two tasks on one shared backbone: which digit is it, and how thick is the stroke?"""

import torch
from torch import nn

STEPS = 20


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(16, 32), nn.Tanh())
        self.digit = nn.Linear(32, 10)
        self.stroke = nn.Linear(32, 1)

    def forward(self, image):
        features = self.backbone(image)
        return self.digit(features), self.stroke(features).squeeze(-1)


def main():
    torch.manual_seed(0)
    model = TwoTasks()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    digit_criterion = nn.CrossEntropyLoss()
    stroke_criterion = nn.MSELoss()

    for step in range(STEPS):
        images = torch.randn(32, 16)
        digits = images[:, :10].argmax(dim=1)
        strokes = images.mean(dim=1)

        optimizer.zero_grad()
        digit_logits, stroke_widths = model(images)
        digit_loss = digit_criterion(digit_logits, digits)
        stroke_loss = stroke_criterion(stroke_widths, strokes)
        digit_loss.backward()
        stroke_loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step}: digit {digit_loss.item():.4f}, stroke {stroke_loss.item():.4f}")
    return model


if __name__ == "__main__":
    main()
