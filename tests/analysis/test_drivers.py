"""Code that a framework runs: for each framework something to mend, and the same thing done right, left alone."""

from __future__ import annotations

from textwrap import dedent

import pytest

from gradmend import codemods

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn

"""

LIGHTNING_STATE = """
import pytorch_lightning as pl

class Model(pl.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = nn.GRU(width, width)
        self.hidden = None

    def training_step(self, batch, batch_idx):
        x, y = batch
        out, hidden = self.rnn(x, self.hidden)
        self.hidden = {hidden}
        loss = F.mse_loss(out, y)
        self.log("loss", loss)
        return {result}

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {{"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3)}}
"""
LIGHTNING_OUTPUTS = """
import lightning as L

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)
        self.outputs = []

    def training_step(self, batch, batch_idx):
        loss = self.net(batch).pow(2).mean()
        self.outputs.append({loss})
        return loss

    def on_train_epoch_end(self):
        self.log("mean", torch.stack(self.outputs).mean())
        self.outputs.clear()

    def validation_step(self, batch, batch_idx):
        self.outputs.append(self.net(batch).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""
LIGHTNING_MANUAL = """
from lightning.pytorch import LightningModule

class Gan(LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.G, self.D = nn.Linear(3, 4), nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        fake = self.G(torch.randn(len(batch), 3))
        d_loss = F.softplus(-self.D(batch)).mean() + F.softplus(self.D({fake})).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        d_opt.step()
        self.toggle_optimizer(g_opt)
        g_loss = F.softplus(-self.D(fake)).mean()
        self.log_dict({{"g": g_loss, "d": d_loss}})
        g_opt.zero_grad()
        self.manual_backward(g_loss)
        g_opt.step()
        self.untoggle_optimizer(g_opt)

    def configure_optimizers(self):
        return [torch.optim.Adam(self.G.parameters()), torch.optim.Adam(self.D.parameters())], []
"""
LIGHTNING_INDEXED = """
import pytorch_lightning as pl

class Gan(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.G, self.D = nn.Linear(3, 4), nn.Linear(4, 1)

    def training_step(self, batch, batch_idx, optimizer_idx):
        if optimizer_idx == 0:
            self.made = self.G(torch.randn(len(batch), 3))
            return F.softplus(-self.D(self.made)).mean()
        loss = F.softplus(-self.D(batch)).mean() + F.softplus(self.D({fake})).mean()
        return {{"loss": loss, "log": {{"d": loss}}}}

    def configure_optimizers(self):
        return torch.optim.Adam(self.G.parameters()), torch.optim.Adam(self.D.parameters())
"""
ACCELERATE = """
from accelerate import Accelerator

def main():
    accelerator = Accelerator(gradient_accumulation_steps=2)
    cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
    cell, head, optimizer, loader = accelerator.prepare(cell, head, optimizer, list(torch.randn(5, 2, 3)))
    h = torch.zeros(2, 4)
    total = 0.0
    for x in loader:
        with accelerator.accumulate(cell):
            h = cell(x, {h})
            loss = head(h).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        total += {loss}
        accelerator.log({{"loss": loss}})
    accelerator.print(total)

main()
"""
APEX = """
from apex import amp

net = nn.GRUCell(3, 4)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
h = torch.zeros(2, 4)
for x in torch.randn(3, 2, 3):
    h = net(x, {h})
    loss = h.pow(2).mean()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
    optimizer.step()
"""
FABRIC = """
from lightning.fabric import Fabric

fabric = Fabric()
G, D = nn.Linear(3, 4), nn.Linear(4, 1)
g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
G, g_opt = fabric.setup(G, g_opt)
D, d_opt = fabric.setup(D, d_opt)
for x in fabric.setup_dataloaders(list(torch.randn(3, 2, 4))):
    fake = G(torch.randn(2, 3))
    d_opt.zero_grad()
    fabric.backward(F.softplus(-D(x)).mean() + F.softplus(D({fake})).mean())
    d_opt.step()
    g_opt.zero_grad()
    fabric.backward(F.softplus(-D(fake)).mean())
    g_opt.step()
"""
DEEPSPEED = """
import deepspeed

model = nn.GRUCell(3, 4)
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
h = torch.zeros(2, 4)
for x in torch.randn(5, 2, 3):
    h = engine(x, {h})
    engine.backward(h.pow(2).mean())
    engine.step()
"""
IGNITE = """
from ignite.engine import Engine, Events

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
history = []

def step(engine, batch):
    optimizer.zero_grad()
    loss = net(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss

trainer = Engine(step)

@trainer.on(Events.ITERATION_COMPLETED)
def remember(engine):
    history.append({output})

trainer.run(list(torch.randn(4, 2, 3)))
print(sum(history) / len(history))
"""
IGNITE_GAN = """
from ignite.engine import Engine

def make(G, D):
    g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())

    def step(engine, batch):
        fake = G(torch.randn(len(batch), 3))
        d_opt.zero_grad()
        (F.softplus(-D(batch)).mean() + F.softplus(D({fake})).mean()).backward()
        d_opt.step()
        g_opt.zero_grad()
        F.softplus(-D(fake)).mean().backward()
        g_opt.step()

    return Engine(step)

trainer = make(nn.Linear(3, 4), nn.Linear(4, 1))
"""
HUGGING_FACE = """
from transformers import Trainer

class Mine(Trainer):
    total = 0.0

    def compute_loss(self, model, inputs, return_outputs=False):
        outputs = model(**inputs)
        loss = F.cross_entropy(outputs.logits, inputs["labels"])
        self.total += {loss}
        return (loss, outputs) if return_outputs else loss

    def log(self, logs):
        logs["mean"] = self.total / 10
        super().log(logs)
"""
FASTAI = """
from fastai.callback.core import Callback
from fastai.torch_core import to_detach

class Track(Callback):
    def before_fit(self):
        self.losses = []

    def after_batch(self):
        self.losses.append({loss})

    def after_epoch(self):
        print(sum(self.losses) / len(self.losses))
"""
SPEECHBRAIN = """
import speechbrain as sb

class Recogniser(sb.Brain):
    def compute_forward(self, batch, stage):
        return self.modules.net(batch.sig)

    def compute_objectives(self, predictions, batch, stage):
        loss = F.mse_loss(predictions, batch.target)
        self.running = self.running + {loss}
        return loss

    def on_stage_start(self, stage, epoch=None):
        self.running = 0.0

    def on_stage_end(self, stage, stage_loss, epoch=None):
        print(self.running)
"""

PAIRS = {
    "lightning: state on self": (
        LIGHTNING_STATE.format(hidden="hidden", result="loss"),
        LIGHTNING_STATE.format(hidden="hidden.detach()", result="loss"),
        "GM101",
    ),
    "lightning: the loss in a dict": (
        LIGHTNING_STATE.format(hidden="hidden", result='{"loss": loss, "out": out}'),
        LIGHTNING_STATE.format(hidden="hidden.detach()", result='{"loss": loss, "out": out}'),
        "GM101",
    ),
    "lightning: outputs for the epoch's end": (
        LIGHTNING_OUTPUTS.format(loss="loss"),
        LIGHTNING_OUTPUTS.format(loss="loss.detach()"),
        "GM102",
    ),
    "lightning: manual optimisation": (
        LIGHTNING_MANUAL.format(fake="fake"),
        LIGHTNING_MANUAL.format(fake="fake.detach()"),
        "GM201",
    ),
    "lightning: an optimizer index": (
        LIGHTNING_INDEXED.format(fake="self.made"),
        LIGHTNING_INDEXED.format(fake="self.made.detach()"),
        "GM201",
    ),
    "accelerate: state": (
        ACCELERATE.format(h="h", loss="loss.item()"),
        ACCELERATE.format(h="h.detach()", loss="loss.item()"),
        "GM101",
    ),
    "accelerate: a total": (
        ACCELERATE.format(h="h.detach()", loss="loss"),
        ACCELERATE.format(h="h.detach()", loss="accelerator.gather(loss).mean()"),
        "GM102",
    ),
    "fabric": (FABRIC.format(fake="fake"), FABRIC.format(fake="fake.detach()"), "GM201"),
    "apex": (APEX.format(h="h"), APEX.format(h="h.detach()"), "GM101"),
    "deepspeed": (DEEPSPEED.format(h="h"), DEEPSPEED.format(h="h.detach()"), "GM101"),
    "ignite: an event handler": (
        IGNITE.format(output="engine.state.output"),
        IGNITE.format(output="engine.state.output.item()"),
        "GM102",
    ),
    "ignite: a process function": (IGNITE_GAN.format(fake="fake"), IGNITE_GAN.format(fake="fake.detach()"), "GM201"),
    "transformers": (HUGGING_FACE.format(loss="loss"), HUGGING_FACE.format(loss="loss.item()"), "GM102"),
    "fastai": (FASTAI.format(loss="self.loss"), FASTAI.format(loss="to_detach(self.loss)"), "GM102"),
    "speechbrain": (SPEECHBRAIN.format(loss="loss"), SPEECHBRAIN.format(loss="loss.detach()"), "GM102"),
}

LEFT_ALONE = {
    "lightning: evaluation records nothing": """
        import pytorch_lightning as pl

        class Model(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(3, 3)
                self.state = None
                self.scores = []

            def training_step(self, batch, batch_idx):
                return self.rnn(batch)[0].pow(2).mean()

            def validation_step(self, batch, batch_idx):
                out, self.state = self.rnn(batch, self.state)
                self.scores.append(out.mean())

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)
        """,
    "lightning: the state starts anew with every batch": """
        import pytorch_lightning as pl

        class Model(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(3, 3)
                self.state = None

            def on_train_batch_start(self, batch, batch_idx):
                self.state = None

            def training_step(self, batch, batch_idx):
                loss = 0.0
                for part in batch.split(2):
                    out, self.state = self.rnn(part, self.state)
                    loss = loss + out.pow(2).mean()
                return loss

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)
        """,
    "lightning: no loss is traversed without automatic optimisation": """
        import pytorch_lightning as pl

        class Model(pl.LightningModule):
            automatic_optimization = False

            def __init__(self):
                super().__init__()
                self.net = nn.Linear(3, 1)

            def training_step(self, batch, batch_idx):
                optimizer = self.optimizers()
                loss = self.net(batch).pow(2).mean()
                optimizer.zero_grad()
                self.manual_backward(loss)
                optimizer.step()
                return loss

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)
        """,
    "pyro: a float": """
        import pyro
        from pyro.infer import SVI, Trace_ELBO

        def train(model, guide, loader):
            svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), loss=Trace_ELBO())
            total, losses = 0.0, []
            for x in loader:
                loss = svi.step(x)
                total += loss
                losses.append(loss)
            return total
        """,
    "learn2learn: losses of adapted copies": """
        import learn2learn as l2l

        maml = l2l.algorithms.MAML(nn.Linear(3, 1), lr=0.1)
        optimizer = torch.optim.Adam(maml.parameters())
        for _ in range(100):
            optimizer.zero_grad()
            total = 0.0
            for task in range(4):
                learner = maml.clone()
                for _ in range(3):
                    learner.adapt(learner(torch.randn(2, 3)).pow(2).mean())
                total += learner(torch.randn(2, 3)).pow(2).mean()
            total.backward()
            optimizer.step()
        """,
    "higher: an inner loop": """
        import higher

        model = nn.Linear(3, 1)
        inner = torch.optim.SGD(model.parameters(), lr=0.1)
        outer = torch.optim.Adam(model.parameters())
        for _ in range(100):
            outer.zero_grad()
            for task in range(4):
                with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fmodel, diffopt):
                    for _ in range(3):
                        diffopt.step(fmodel(torch.randn(2, 3)).pow(2).mean())
                    fmodel(torch.randn(2, 3)).pow(2).mean().backward()
            outer.step()
        """,
    "transformers: memories of a model that is not seen": """
        from transformers import Trainer

        class Mine(Trainer):
            mems = None

            def compute_loss(self, model, inputs, return_outputs=False):
                outputs = model(**inputs, mems=self.mems)
                self.mems = outputs.mems
                return (outputs.loss, outputs) if return_outputs else outputs.loss
        """,
    "a compiled model": """
        model = torch.compile(nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(5, 2, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        """,
    "checkpoints": """
        from torch.utils.checkpoint import checkpoint

        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(5, 2, 3):
            optimizer.zero_grad()
            checkpoint(model, x, use_reentrant=False).pow(2).mean().backward()
            optimizer.step()
        """,
    "what an unknown library says of predictions": """
        from some_library import accuracy

        net = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        total, seen = 0.0, []
        for x in torch.randn(4, 2, 3):
            out = net(x)
            loss = out.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += accuracy(out, x)
            seen.append(accuracy(out, x))
        print(total, sum(seen))
        """,
    "a helper of a library that detaches": """
        from some_library import repackage_hidden

        rnn = nn.GRU(3, 4)
        optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
        h = None
        for x in torch.randn(5, 2, 1, 3):
            if h is not None:
                h = repackage_hidden(h)
            out, h = rnn(x, h)
            optimizer.zero_grad()
            out.pow(2).mean().backward()
            optimizer.step()
        """,
}


def source(text: str) -> str:
    return HEAD + dedent(text)


@pytest.mark.parametrize("name", PAIRS)
def test_mended(name: str) -> None:
    wrong, _, code = PAIRS[name]
    mended = codemods.mend(source(wrong))
    assert [finding.code for finding in mended.applied] == [code]
    assert not mended.left
    assert codemods.mend(mended.source).source == mended.source


@pytest.mark.parametrize("name", PAIRS)
def test_done_right(name: str) -> None:
    assert not codemods.scan(source(PAIRS[name][1]))


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_left_alone(name: str) -> None:
    assert not codemods.scan(source(LEFT_ALONE[name]))


def test_a_repair_detaches_where_the_hook_writes() -> None:
    mended = codemods.mend(source(LIGHTNING_STATE.format(hidden="hidden", result="loss")))
    assert "self.hidden = hidden.detach()" in mended.source


def test_a_program_that_starts_the_trainer_gives_the_module_its_parts() -> None:
    text = """
        import pytorch_lightning as pl

        class Gan(pl.LightningModule):
            def __init__(self, G, D):
                super().__init__()
                self.automatic_optimization = False
                self.G, self.D = G, D

            def training_step(self, batch, batch_idx):
                g_opt, d_opt = self.optimizers()
                fake = self.G(torch.randn(len(batch), 3))
                d_opt.zero_grad()
                self.manual_backward(F.softplus(-self.D(batch)).mean() + F.softplus(self.D(fake)).mean())
                d_opt.step()
                g_opt.zero_grad()
                self.manual_backward(F.softplus(-self.D(fake)).mean())
                g_opt.step()

            def configure_optimizers(self):
                return torch.optim.Adam(self.G.parameters()), torch.optim.Adam(self.D.parameters())

        trainer = pl.Trainer(max_epochs=3)
        trainer.fit(Gan(nn.Linear(3, 4), nn.Linear(4, 1)), list(torch.randn(4, 2, 4)))
        """
    assert [finding.code for finding in codemods.scan(source(text))] == ["GM201"]


def test_a_module_is_known_by_its_bare_name_too() -> None:
    text = LIGHTNING_STATE.format(hidden="hidden", result="loss")
    text = text.replace("import pytorch_lightning as pl", "from my_framework import *")
    text = text.replace("pl.LightningModule", "LightningModule")
    assert [finding.code for finding in codemods.scan(source(text))] == ["GM101"]
