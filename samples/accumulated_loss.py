"""Train a small classifier and keep the learning curve."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 4


def make_loader():
    features = torch.randn(128, 10)
    labels = (features[:, 0] * features[:, 1] > 0).long()
    return DataLoader(TensorDataset(features, labels), batch_size=16, shuffle=True)


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    running_loss = 0
    for features, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss
    return running_loss / len(loader)


def main():
    torch.manual_seed(0)
    loader = make_loader()
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    history = []
    for epoch in range(EPOCHS):
        mean_loss = train_one_epoch(model, loader, criterion, optimizer)
        history.append(mean_loss)
        print(f"epoch {epoch + 1}/{EPOCHS}  loss {mean_loss:.4f}")
    return history


if __name__ == "__main__":
    main()
