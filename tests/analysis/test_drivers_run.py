"""The same programs under the real frameworks, where they are installed: what is mended fails, the repair works."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gradmend import codemods
from tests.analysis import test_drivers as programs

SECOND_TIME = "backward through the graph a second time|modified by an inplace operation"
FIT = """
trainer = {trainer}(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, limit_val_batches=0)
"""


def execute(text: str) -> dict[str, Any]:
    """The variables that a program leaves."""
    torch.manual_seed(0)
    names: dict[str, Any] = {"__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(text, "program.py", "exec"), names)
    return names


def lightning(text: str, trainer: str, fit: str) -> str:
    text = text.replace("import pytorch_lightning as pl", "import lightning.pytorch as pl")
    return programs.source(text) + FIT.format(trainer=trainer) + fit


STATE = lightning(
    programs.LIGHTNING_STATE.format(hidden="hidden", result='{"loss": loss, "out": out}').replace(
        "self.hparams.lr", "0.1"
    ),
    "pl.Trainer",
    "pairs = [(torch.randn(1, 3), torch.randn(1, 3)) for _ in range(6)]\n"
    "trainer.fit(Model(3), torch.utils.data.DataLoader(pairs, batch_size=2))\n",
)
GAN = lightning(
    programs.LIGHTNING_MANUAL.format(fake="fake"),
    "__import__('lightning').Trainer",
    "trainer.fit(Gan(), torch.utils.data.DataLoader(torch.randn(6, 4), batch_size=2))\n",
)
FABRIC = programs.source(
    programs.FABRIC.format(fake="fake").replace(
        "list(torch.randn(3, 2, 4))", "torch.utils.data.DataLoader(torch.randn(6, 4), batch_size=2)"
    )
)
ACCELERATE = programs.source(programs.ACCELERATE.format(h="h", loss="loss.item()"))
IGNITE_GAN = programs.source(programs.IGNITE_GAN.format(fake="fake")) + "trainer.run(list(torch.randn(3, 2, 4)))\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("framework", "text"),
    [
        ("lightning", STATE),
        ("lightning", GAN),
        ("lightning", FABRIC),
        ("accelerate", ACCELERATE),
        ("ignite", IGNITE_GAN),
    ],
    ids=["lightning state", "lightning manual", "fabric", "accelerate", "ignite"],
)
def test_the_mistake_raises_and_the_repair_does_not(framework: str, text: str) -> None:
    pytest.importorskip(framework)
    mended = codemods.mend(text)
    assert mended.applied
    with pytest.raises(Exception, match=SECOND_TIME):
        execute(text)
    execute(mended.source)


def graphs(values: object) -> list[bool]:
    assert isinstance(values, list)
    return [value.grad_fn is not None for value in values]


@pytest.mark.parametrize(
    ("framework", "text", "held"),
    [
        (
            "lightning",
            lightning(
                programs.LIGHTNING_OUTPUTS.format(loss="loss").replace("        self.outputs.clear()\n", ""),
                "L.Trainer",
                "model = Model()\ntrainer.fit(model, torch.utils.data.DataLoader(torch.randn(6, 3), batch_size=2))\n",
            ),
            lambda names: names["model"].outputs,
        ),
        (
            "ignite",
            programs.source(programs.IGNITE.format(output="engine.state.output")),
            lambda names: names["history"],
        ),
    ],
    ids=["lightning", "ignite"],
)
def test_the_list_keeps_graphs_and_the_repair_none(
    framework: str, text: str, held: Callable[[dict[str, Any]], object]
) -> None:
    pytest.importorskip(framework)
    assert all(graphs(held(execute(text))))
    mended = codemods.mend(text)
    assert mended.applied
    assert not any(graphs(held(execute(mended.source))))
