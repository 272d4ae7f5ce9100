"""Lightning: its Trainer runs the module's hooks, Fabric gives a loop of one's own a backward."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

FRAMEWORKS = ("lightning.pytorch",)
SECOND_TIME = "second time"

FIT = """
def fit(model, data, **options):
    trainer = L.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, **options,
    )
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=2))
    return trainer
"""

MISTAKES = {
    "state on self": Mistake(
        ("GM101",),
        "hidden",
        "tuple(part.detach() for part in hidden)",
        FIT
        + """
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 3)
        self.hidden = None

    def training_step(self, batch, batch_idx):
        out, hidden = self.rnn(batch, self.hidden)
        self.hidden = @@
        loss = out.pow(2).mean()
        self.log("loss", loss, prog_bar=True)
        return {"loss": loss, "out": out}

    def on_train_epoch_start(self):
        self.hidden = None

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Model()
    fit(model, torch.randn(6, 3), max_epochs=2)
    return model
""",
        SECOND_TIME,
    ),
    "outputs collected for the epoch's end": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        FIT
        + """
import lightning.pytorch as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
        self.outputs, self.last = [], None

    def training_step(self, batch, batch_idx):
        loss = self.net(batch).pow(2).mean()
        self.outputs.append(@@)
        return loss

    def on_train_epoch_end(self):
        self.last = list(self.outputs)
        self.log("mean", torch.stack(self.outputs).mean())
        self.outputs.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Model()
    fit(model, torch.randn(6, 3), max_epochs=2)
    return model.last
""",
    ),
    "a running mean over the batches": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        FIT
        + """
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
        self.smooth = 0.0

    def training_step(self, batch, batch_idx):
        loss = self.net(batch).pow(2).mean()
        self.smooth = 0.9 * self.smooth + 0.1 * @@
        self.log("smooth", self.smooth)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.1)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1)}

def main():
    model = Model()
    fit(model, torch.randn(6, 3), max_epochs=1)
    return model.smooth
""",
    ),
    "what training_step returned beside the loss": Mistake(
        ("GM102",),
        'outputs["out"].mean()',
        'outputs["out"].mean().item()',
        FIT
        + """
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
        self.outs, self.losses = [], []

    def training_step(self, batch, batch_idx):
        out = self.net(batch)
        return {"loss": out.pow(2).mean(), "out": out}

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.losses.append(outputs["loss"])
        self.outs.append(@@)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Model()
    fit(model, torch.randn(6, 3), max_epochs=1)
    return model.outs, model.losses
""",
    ),
    "kept by a callback": Mistake(
        ("GM102",),
        "pl_module.out",
        "pl_module.out.detach()",
        FIT
        + """
import lightning as L

class Keep(L.Callback):
    def __init__(self):
        self.outs = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.outs.append(@@.mean())

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)

    def training_step(self, batch, batch_idx):
        self.out = self.net(batch)
        return self.out.pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    keep = Keep()
    fit(Model(), torch.randn(6, 3), max_epochs=2, callbacks=[keep])
    print(sum(keep.outs))
    return keep.outs
""",
    ),
    "manual optimisation, two optimizers": Mistake(
        ("GM201",),
        "fake",
        "fake.detach()",
        FIT
        + """
import lightning as L

class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.G, self.D = nn.Linear(3, 4), nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        fake = self.G(torch.randn(len(batch), 3))
        d_loss = F.softplus(-self.D(batch)).mean() + F.softplus(self.D(@@)).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        d_opt.step()
        g_loss = F.softplus(-self.D(fake)).mean()
        self.log_dict({"g": g_loss, "d": d_loss})
        g_opt.zero_grad()
        self.manual_backward(g_loss)
        g_opt.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(self.G.parameters(), 0.1), torch.optim.SGD(self.D.parameters(), 0.1)], []

def main():
    model = Gan()
    fit(model, torch.randn(6, 4), max_epochs=2)
    return model
""",
        SECOND_TIME,
    ),
    "manual optimisation, state within the step": Mistake(
        ("GM101",),
        "h",
        "h.detach()",
        FIT
        + """
import lightning as L

class Model(L.LightningModule):
    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(3, 4), nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        h = torch.zeros(2, 4)
        for x in batch.unbind(1):
            h = self.cell(x, @@)
            loss = self.head(h).pow(2).mean()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Model()
    fit(model, torch.randn(4, 3, 3), max_epochs=1)
    return model
""",
        SECOND_TIME,
    ),
    "manual optimisation, one graph twice": Mistake(
        ("GM305",),
        "first",
        "first, retain_graph=True",
        FIT
        + """
import lightning as L

class Model(L.LightningModule):
    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.body, self.one, self.two = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1), nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        features = self.body(batch)
        first = self.one(features).pow(2).mean()
        second = self.two(features).abs().mean()
        optimizer.zero_grad()
        self.manual_backward(@@)
        self.manual_backward(second)
        optimizer.step()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Model()
    fit(model, torch.randn(4, 3), max_epochs=1)
    return model
""",
        SECOND_TIME,
    ),
    "a penalty without a graph": Mistake(
        ("GM301",),
        "retain_graph=True",
        "create_graph=True",
        FIT
        + """
import lightning as L

class Critic(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def penalty(self, batch):
        x = batch.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(self.net(x).sum(), x, @@)
        return (slope.norm(dim=1) - 1).pow(2).mean()

    def training_step(self, batch, batch_idx):
        return self.net(batch).mean() + 10 * self.penalty(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Critic()
    fit(model, torch.randn(4, 3), max_epochs=1)
    return model
""",
    ),
    "Fabric": Mistake(
        ("GM201",),
        "fake",
        "fake.detach()",
        """
from lightning.fabric import Fabric

def main():
    fabric = Fabric(accelerator="cpu")
    G, D = nn.Linear(3, 4), nn.Linear(4, 1)
    G, g_opt = fabric.setup(G, torch.optim.SGD(G.parameters(), lr=0.1))
    D, d_opt = fabric.setup(D, torch.optim.SGD(D.parameters(), lr=0.1))
    for x in fabric.setup_dataloaders(torch.utils.data.DataLoader(torch.randn(6, 4), batch_size=2)):
        fake = G(torch.randn(2, 3))
        d_opt.zero_grad()
        fabric.backward(F.softplus(-D(x)).mean() + F.softplus(D(@@)).mean())
        d_opt.step()
        g_opt.zero_grad()
        fabric.backward(F.softplus(-D(fake)).mean())
        g_opt.step()
    return [*G.parameters(), *D.parameters()]
""",
        SECOND_TIME,
    ),
    "Fabric, a total": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
import lightning as L

def main():
    fabric = L.Fabric(accelerator="cpu")
    fabric.launch()
    net = nn.Linear(3, 1)
    net, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
    total = torch.zeros(())
    for i, x in enumerate(torch.randn(6, 2, 3)):
        with fabric.no_backward_sync(net, enabled=i % 2 == 0):
            loss = net(x).pow(2).mean()
            fabric.backward(loss)
        if i % 2:
            fabric.clip_gradients(net, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
        total = total + @@
        fabric.log_dict({"loss": loss})
    return fabric.all_reduce(total)
""",
    ),
}

RIGHT = {
    "toggled optimizers": FIT
    + """
import lightning as L

class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.G, self.D = nn.Linear(3, 4), nn.Linear(4, 1)
        self.seen = []

    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        z = torch.randn(len(batch), 3)
        self.toggle_optimizer(g_opt)
        g_loss = F.softplus(-self.D(self.G(z))).mean()
        g_opt.zero_grad()
        self.manual_backward(g_loss)
        g_opt.step()
        self.untoggle_optimizer(g_opt)
        self.toggle_optimizer(d_opt)
        d_loss = F.softplus(-self.D(batch)).mean() + F.softplus(self.D(self.G(z).detach())).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        self.clip_gradients(d_opt, gradient_clip_val=0.5, gradient_clip_algorithm="norm")
        d_opt.step()
        self.untoggle_optimizer(d_opt)
        self.seen.append({"g": g_loss.item(), "d": d_loss.detach()})

    def configure_optimizers(self):
        return torch.optim.SGD(self.G.parameters(), 0.1), torch.optim.SGD(self.D.parameters(), 0.1)

def main():
    model = Gan()
    fit(model, torch.randn(6, 4), max_epochs=2)
    return model.seen
""",
    "evaluation collects without a graph": FIT
    + """
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 3)
        self.state, self.scores, self.total = None, [], 0.0

    def training_step(self, batch, batch_idx):
        return self.rnn(batch)[0].pow(2).mean()

    def validation_step(self, batch, batch_idx):
        out, self.state = self.rnn(batch, self.state)
        self.scores.append(out.mean())
        self.total += out.mean()

    def on_validation_epoch_end(self):
        self.log("score", torch.stack(self.scores).mean())

    def val_dataloader(self):
        return torch.utils.data.DataLoader(torch.randn(6, 3), batch_size=2)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Model()
    fit(model, torch.randn(6, 3), max_epochs=2)
    assert not any(score.requires_grad for score in model.scores)
    return model.scores
""",
    "what hooks and callbacks are given has no graph": FIT
    + """
import lightning as L

class Remember(L.Callback):
    def __init__(self):
        self.losses = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.losses.append(outputs["loss"])

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
        self.outputs = []

    def training_step(self, batch, batch_idx):
        out = self.net(batch)
        return {"loss": out.pow(2).mean(), "out": out}

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.outputs.append(outputs["loss"])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model, remember = Model(), Remember()
    fit(model, torch.randn(6, 3), max_epochs=2, callbacks=[remember])
    assert not any(kept.requires_grad for kept in (*model.outputs, *remember.losses))
    return model.outputs
""",
    "state that a callback cuts": FIT
    + """
import lightning as L

class Cut(L.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        pl_module.h = pl_module.h.detach()

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.rnn, self.h = nn.GRU(3, 3), None

    def training_step(self, batch, batch_idx):
        out, self.h = self.rnn(batch, self.h)
        return out.pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    fit(Model(), torch.randn(6, 3), max_epochs=2, callbacks=[Cut()])
""",
    "accumulated by the author": FIT
    + """
import lightning as L

class Model(L.LightningModule):
    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        loss = self.net(batch).pow(2).mean() / 2
        self.manual_backward(loss)
        if (batch_idx + 1) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Model()
    fit(model, torch.randn(8, 3), max_epochs=2)
    return model
""",
    "several losses of one step": FIT
    + """
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.head = nn.Linear(3, 4), nn.Linear(4, 1)

    def shared_step(self, batch, name):
        losses = [self.head(self.net(part)).pow(2).mean() for part in batch.split(1)]
        total = 0.0
        for loss in losses:
            total += loss
        self.log(f"{name}/loss", total, on_step=True, on_epoch=True)
        return total

    def training_step(self, batch, batch_idx):
        return self.shared_step(batch, "train")

    def validation_step(self, batch, batch_idx):
        return self.shared_step(batch, "val")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

def main():
    model = Model()
    fit(model, torch.randn(6, 3), max_epochs=2)
    return model
""",
    "closures given to the optimizer": FIT
    + """
import lightning as L

class Model(L.LightningModule):
    automatic_optimization = False

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
        self.losses = []

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()

        def closure():
            loss = self.net(batch).pow(2).mean()
            optimizer.zero_grad()
            self.manual_backward(loss)
            return loss

        optimizer.step(closure=closure)

    def configure_optimizers(self):
        return torch.optim.LBFGS(self.parameters(), max_iter=3)

def main():
    model = Model()
    fit(model, torch.randn(6, 3), max_epochs=1)
    return model
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
