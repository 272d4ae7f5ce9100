"""transformers: its Trainer back-propagates what compute_loss returns, and gives back detached losses."""

from __future__ import annotations

import pytest

from tests.examples import Mistake, prove, prove_right

FRAMEWORKS = ("transformers.trainer",)
SECOND_TIME = "second time"

FIT = """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return {"x": torch.randn(3, generator=generator), "labels": index % 2}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(3, 4), nn.Linear(4, 2)

    def forward(self, x, labels=None, memory=None):
        memory = self.cell(x, memory)
        logits = self.head(memory)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits, "memory": memory}

def fit(cls):
    arguments = transformers.TrainingArguments(
        output_dir="out", use_cpu=True, report_to=[], save_strategy="no", logging_strategy="no", eval_strategy="epoch",
        per_device_train_batch_size=2, num_train_epochs=1, learning_rate=0.1, disable_tqdm=True,
    )
    trainer = cls(model=Net(), args=arguments, train_dataset=Data(), eval_dataset=Data())
    trainer.train()
    return trainer
"""

MISTAKES = {
    "a total of the losses": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
import transformers
from transformers import Trainer
"""
        + FIT
        + """
class Mine(Trainer):
    total = 0.0

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs, labels=labels)
        loss = F.cross_entropy(outputs["logits"], labels, label_smoothing=0.1)
        if model.training:
            self.total += @@
        return (loss, outputs) if return_outputs else loss

    def log(self, logs, *arguments):
        logs["mean"] = float(self.total)
        super().log(logs, *arguments)

def main():
    return fit(Mine).total
""",
    ),
    "memory on self": Mistake(
        ("GM101",),
        "outputs['memory']",
        "outputs['memory'].detach()",
        """
import transformers
from transformers import Trainer
"""
        + FIT
        + """
class Mine(Trainer):
    memory = None

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(inputs["x"], inputs["labels"], self.memory)
        self.memory = @@
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        self.memory = None
        return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)

def main():
    trainer = fit(Mine)
    return trainer.model

if __name__ == "__main__":
    main()
""",
        SECOND_TIME,
    ),
    "a step of one's own, with its losses kept": Mistake(
        ("GM102",),
        "loss",
        "loss.detach()",
        """
import transformers
from transformers import Trainer
"""
        + FIT
        + """
class Mine(Trainer):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.seen = []

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs)
        self.accelerator.backward(loss)
        self.seen.append(@@)
        return loss.detach()

def main():
    trainer = fit(Mine)
    print(sum(trainer.seen) / len(trainer.seen))
    return trainer.seen
""",
    ),
}

RIGHT = {
    "the Trainer's own loss, changed": """
import transformers
"""
    + FIT
    + """
class Mine(transformers.Trainer):
    seen, scores = 0.0, []

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        loss = loss + 0.01 * outputs["logits"].pow(2).mean()
        self.seen += loss.item()
        return (loss, outputs) if return_outputs else loss

    def score(self, batches):
        with torch.no_grad():
            for inputs in batches:
                self.scores.append(self.compute_loss(self.model, inputs))
        return self.accelerator.gather(torch.stack(self.scores)).mean()

def main():
    trainer = fit(Mine)
    trainer.score(trainer.get_train_dataloader())
    assert not any(score.requires_grad for score in trainer.scores)
    return trainer.seen
""",
    "the step gives a detached loss back": """
import transformers
"""
    + FIT
    + """
class Mine(transformers.Trainer):
    total, steps = 0.0, 0

    def training_step(self, model, inputs, *arguments, **options):
        loss = super().training_step(model, inputs, *arguments, **options)
        self.total += loss
        self.steps += 1
        return loss

    def evaluate(self, *arguments, **options):
        metrics = super().evaluate(*arguments, **options)
        metrics["train"] = self.total / max(self.steps, 1)
        return metrics

def main():
    trainer = fit(Mine)
    assert not trainer.total.requires_grad
    return trainer.total
""",
    "several losses of one batch": """
import transformers
"""
    + FIT
    + """
class Mine(transformers.Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        loss = outputs["loss"]
        for part in outputs["logits"].unbind(1):
            loss = loss + 0.01 * part.pow(2).mean()
        self.last = loss.item()
        return (loss, outputs) if return_outputs else loss

def main():
    return fit(Mine).last
""",
    "evaluation keeps what has no graph": """
import transformers
"""
    + FIT
    + """
class Mine(transformers.Trainer):
    memory = None
    seen = ()

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        with torch.no_grad():
            outputs = model(inputs["x"], inputs["labels"], self.memory)
        self.memory = outputs["memory"]
        self.seen = [*self.seen, outputs["loss"]]
        return outputs["loss"], outputs["logits"], inputs["labels"]

def main():
    trainer = fit(Mine)
    return list(trainer.seen)
""",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    prove(MISTAKES[name], *FRAMEWORKS)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    prove_right(RIGHT[name], *FRAMEWORKS)
