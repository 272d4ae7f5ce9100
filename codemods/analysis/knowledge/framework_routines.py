"""In which order frameworks call their hooks, and what the methods of their own objects do.

What each hook does with its result is said in :data:`.frameworks.HOOKS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .frameworks import (
    _ALLENNLP_MODEL,
    _AVALANCHE,
    _CATALYST_RUNNER,
    _COMPOSER_MODEL,
    _DETECTRON_TRAINER,
    _ESPNET_MODEL,
    _FAIRSEQ_CRITERION,
    _FASTAI_CALLBACK,
    _HUGGING_FACE_TRAINER,
    _LIGHTNING_CALLBACK,
    _LIGHTNING_MODULE,
    _MMCV_RUNNER_MODEL,
    _MMENGINE_MODEL,
    _SKORCH_NET,
    _SPEECHBRAIN,
)


@dataclass(frozen=True, slots=True)
class Routine:
    """How a framework runs a class.

    ``setup`` is called once; ``optimizers`` names the method whose result holds the optimizers, "" where the
    framework has its own. Every epoch calls ``epoch_start``, then ``batch`` for each batch, then ``epoch_end``;
    ``evaluation`` and ``evaluation_end`` are the same without gradients. ``@name`` among them back-propagates the
    attribute ``name``. ``inherited``: what the framework's own version of a method calls. ``provided``: attributes that
    hold the batch's result of the model, with a graph; the last is a copy of the one before. ``starters``: methods (the
    object's own, or of a trainer that it is given to) that start it. ``is_module``: the base class is a
    ``torch.nn.Module`` that adds no parameters. ``keeps``: parameters of the framework's constructor, in order, that
    become attributes of the same names; a hook's parameter of such a name gets it. ``losses``: the framework's own
    versions of these give the batch's loss, with its graph; with ``return_outputs=True`` also what the model returned.
    ``companions``: base classes of callbacks whose hooks are called before its own of the same names, with the trainer
    and the object before all else.
    """

    class_names: frozenset[str]
    batch: tuple[str, ...]
    setup: tuple[str, ...] = ()
    optimizers: str = ""
    epoch_start: tuple[str, ...] = ()
    epoch_end: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()
    evaluation_end: tuple[str, ...] = ()
    inherited: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provided: tuple[str, ...] = ()
    starters: frozenset[str] = frozenset()
    is_module: bool = False
    keeps: tuple[str, ...] = ()
    losses: frozenset[str] = frozenset()
    companions: frozenset[str] = frozenset()


LIGHTNING = Routine(
    # https://lightning.ai/docs/pytorch/stable/common/lightning_module.html#hooks, with the epoch-end hooks of 1.x.
    _LIGHTNING_MODULE,
    setup=("configure_model", "setup", "on_fit_start", "on_train_start"),
    optimizers="configure_optimizers",
    epoch_start=("on_train_epoch_start", "on_epoch_start"),
    batch=("on_train_batch_start", "training_step", "on_train_batch_end"),
    epoch_end=("training_epoch_end", "on_train_epoch_end", "on_epoch_end"),
    evaluation=("validation_step", "test_step"),
    evaluation_end=("validation_epoch_end", "on_validation_epoch_end", "test_epoch_end", "on_test_epoch_end"),
    starters=frozenset({"fit"}),
    is_module=True,
    companions=_LIGHTNING_CALLBACK,
)

ROUTINES: tuple[Routine, ...] = (
    LIGHTNING,
    # src/transformers/trainer.py: training_step calls compute_loss, back-propagates it and returns it detached.
    Routine(
        _HUGGING_FACE_TRAINER,
        batch=("training_step",),
        evaluation=("prediction_step",),
        inherited={"training_step": ("compute_loss",), "prediction_step": ("compute_loss",)},
        starters=frozenset({"train"}),
        keeps=("model", "args", "data_collator", "train_dataset", "eval_dataset"),
        losses=frozenset({"compute_loss"}),
    ),
    # speechbrain/core.py
    Routine(
        _SPEECHBRAIN,
        setup=("init_optimizers", "on_fit_start"),
        epoch_start=("on_stage_start",),
        batch=("fit_batch", "on_fit_batch_end"),
        epoch_end=("on_stage_end",),
        evaluation=("evaluate_batch",),
        inherited={
            "fit_batch": ("compute_forward", "compute_objectives"),
            "evaluate_batch": ("compute_forward", "compute_objectives"),
        },
        starters=frozenset({"fit"}),
    ),
    # https://docs.fast.ai/learner.html: the training loop's events; loss is a copy of loss_grad.
    Routine(
        _FASTAI_CALLBACK,
        setup=("before_fit",),
        epoch_start=("before_epoch", "before_train"),
        batch=(
            "before_batch",
            "after_pred",
            "after_loss",
            "before_backward",
            "@loss_grad",
            "after_backward",
            "before_step",
            "after_step",
            "after_batch",
        ),
        epoch_end=("after_train", "after_epoch"),
        provided=("pred", "loss_grad", "loss"),
    ),
    Routine(_MMENGINE_MODEL, batch=("train_step",), evaluation=("val_step", "test_step"), is_module=True),
    Routine(_MMCV_RUNNER_MODEL, batch=("train_step",), is_module=True),
    Routine(_DETECTRON_TRAINER, batch=("run_step",), starters=frozenset({"train"})),
    Routine(_FAIRSEQ_CRITERION, batch=("forward",), is_module=True),
    Routine(_COMPOSER_MODEL, batch=("forward", "loss"), evaluation=("eval_forward",), is_module=True),
    Routine(_CATALYST_RUNNER, batch=("handle_batch",), starters=frozenset({"train"})),
    Routine(
        _SKORCH_NET,
        batch=("train_step_single",),
        evaluation=("validation_step",),
        inherited={"train_step_single": ("get_loss",)},
        starters=frozenset({"fit"}),
    ),
    Routine(_ALLENNLP_MODEL, batch=("forward",), is_module=True),
    Routine(_ESPNET_MODEL, batch=("forward",), is_module=True),
    Routine(_AVALANCHE, batch=("criterion",)),
)

LASTING_PARAMETERS: frozenset[str] = frozenset(
    {
        "model", "stage", "engine", "trainer", "pl_module", "optim_wrapper", "optimizer", "optimizers", "criterion",
        "dataloader_idx", "return_outputs", "net", "module", "learn", "learner",
    }
)  # fmt: skip
"""Parameters of hooks that get the same object on every call; all others get the next batch's."""
RESULT_PARAMETERS: frozenset[str] = frozenset({"outputs", "output", "predictions", "preds", "y_pred", "step_output"})
"""Parameters of hooks that get what the hook before returned, or at an epoch's end all that its batches returned."""
COUNTER_PARAMETERS: frozenset[str] = frozenset({"batch_idx", "batch_nb", "batch_index", "i_batch"})
"""Parameters of hooks that number the batches of an epoch."""
OPTIMIZER_PARAMETERS: frozenset[str] = frozenset({"optimizer_idx", "optimizer_i", "opt_idx"})
"""``training_step`` with one of these is called once for every optimizer, the others' parameters switched off
(https://pytorch-lightning.readthedocs.io/en/1.9.0/common/optimization.html, "toggle_optimizer")."""

OBJECTS: dict[str, str] = {
    "accelerate.Accelerator": "accelerator",
    "accelerate.accelerator.Accelerator": "accelerator",
    "lightning.Fabric": "fabric",
    "lightning.fabric.Fabric": "fabric",
    "lightning.fabric.fabric.Fabric": "fabric",
    "lightning_fabric.Fabric": "fabric",
    "pytorch_lightning.Trainer": "trainer",
    "lightning.Trainer": "trainer",
    "lightning.pytorch.Trainer": "trainer",
    "pytorch_lightning.trainer.Trainer": "trainer",
    "pyro.infer.SVI": "svi",
    "pyro.infer.svi.SVI": "svi",
    "ignite.engine.Engine": "process",
    "ignite.engine.engine.Engine": "process",
}
"""Classes of libraries and the kind of object that they make. None of them has parameters of its own."""

OBJECT_NAMES: dict[str, str] = {"accelerator": "accelerator", "fabric": "fabric"}
"""What an object is taken for that is called so and comes from elsewhere."""

HANDS_BACK, DETACHES, NOTHING, NUMBER, TRAVERSES, STARTS, CALLS = (
    "hands back", "detaches", "nothing", "number", "traverses", "starts", "calls",
)  # fmt: skip
"""What a method does: returns its arguments (wrapped, prepared, moved); returns them without graph; takes its arguments
and keeps no graph; returns a number; back-propagates its first argument; starts the hooks of an argument; calls its
argument."""

OBJECT_METHODS: dict[str, dict[str, str]] = {
    # https://huggingface.co/docs/accelerate/package_reference/accelerator. In one process gather and reduce hand back
    # what they get; in several it has no graph any more, and nothing in the program says which it will be.
    "accelerator": {
        "prepare": HANDS_BACK, "prepare_model": HANDS_BACK, "prepare_optimizer": HANDS_BACK,
        "prepare_data_loader": HANDS_BACK, "prepare_scheduler": HANDS_BACK, "unwrap_model": HANDS_BACK,
        "pad_across_processes": HANDS_BACK, "gather": DETACHES, "gather_for_metrics": DETACHES, "reduce": DETACHES,
        "backward": TRAVERSES, "clip_grad_norm_": NUMBER, "clip_grad_value_": NOTHING, "log": NOTHING,
        "print": NOTHING, "save": NOTHING, "save_state": NOTHING, "save_model": NOTHING, "init_trackers": NOTHING,
        "wait_for_everyone": NOTHING, "end_training": NOTHING, "register_for_checkpointing": NOTHING,
        "accumulate": NUMBER, "autocast": NUMBER, "no_sync": NUMBER, "free_memory": NOTHING, "clear": NOTHING,
    },
    # https://lightning.ai/docs/fabric/stable/api/fabric_methods.html
    "fabric": {
        "setup": HANDS_BACK, "setup_module": HANDS_BACK, "setup_optimizers": HANDS_BACK,
        "setup_dataloaders": HANDS_BACK, "to_device": HANDS_BACK, "backward": TRAVERSES, "log": NOTHING,
        "log_dict": NOTHING, "print": NOTHING, "save": NOTHING, "barrier": NOTHING, "call": NOTHING,
        "clip_gradients": NOTHING, "seed_everything": NOTHING, "autocast": NUMBER, "no_backward_sync": NUMBER,
        "launch": CALLS, "run": CALLS,
    },
    "trainer": {
        "fit": STARTS, "validate": NOTHING, "test": NOTHING, "predict": NUMBER, "save_checkpoint": NOTHING,
        "tune": NOTHING,
    },
    # https://docs.pyro.ai/en/stable/inference_algos.html: both return floats.
    "svi": {"step": NUMBER, "evaluate_loss": NUMBER},
    "process": {"run": STARTS, "terminate": NOTHING},
    "metric": {"update": NOTHING, "reset": NOTHING, "compute": NUMBER, "plot": NUMBER, "attach": NOTHING},
}  # fmt: skip

EVENTS: dict[str, str] = {
    "STARTED": "start", "EPOCH_STARTED": "epoch start", "GET_BATCH_STARTED": "batch start",
    "GET_BATCH_COMPLETED": "batch start", "ITERATION_STARTED": "batch start", "ITERATION_COMPLETED": "batch end",
    "EPOCH_COMPLETED": "epoch end", "COMPLETED": "end", "TERMINATE": "end", "INTERRUPT": "end",
    "EXCEPTION_RAISED": "never", "DATALOADER_STOP_ITERATION": "epoch end",
}  # fmt: skip
"""When an engine calls the handlers of its events; others come after each batch
(https://docs.pytorch.org/ignite/generated/ignite.engine.events.Events.html)."""

ENGINE_MAKERS: dict[str, tuple[str, ...]] = {
    "deepspeed.initialize": ("model", "optimizer", "training_data", "lr_scheduler"),
}
"""Functions that wrap a model together with its optimizer, and the keywords behind the items of what they return. The
wrapped model's ``backward(loss)`` traverses; its ``step()`` steps the optimizer and clears the gradients
(https://deepspeed.readthedocs.io/en/latest/training.html)."""

METRICS: tuple[str, ...] = ("torchmetrics.", "torcheval.metrics.", "ignite.metrics.", "pytorch_lightning.metrics.")
"""Where libraries keep their metrics: classes whose objects take tensors and keep no graph of them. torchmetrics wraps
every ``update``, those of derived classes too, in ``torch.set_grad_enabled(False)`` unless it computes the value of one
batch (``Metric._wrap_update``, torchmetrics/metric.py); ignite's and torcheval's detach."""
DIFFERENTIABLE_METRICS: frozenset[str] = frozenset(
    {
        "MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredLogError", "LogCoshError",
        "CosineSimilarity", "ExplainedVariance", "KLDivergence", "R2Score", "PearsonCorrCoef", "MinkowskiDistance",
        "PeakSignalNoiseRatio", "StructuralSimilarityIndexMeasure", "MultiScaleStructuralSimilarityIndexMeasure",
        "SpectralAngleMapper", "TotalVariation", "UniversalImageQualityIndex", "ScaleInvariantSignalDistortionRatio",
        "ScaleInvariantSignalNoiseRatio", "SignalDistortionRatio", "SignalNoiseRatio", "Perplexity",
    }
)  # fmt: skip
"""Metrics whose value of one batch, ``metric(prediction, target)``, has a graph: ``is_differentiable`` is true."""

LOSS_SCALERS: frozenset[str] = frozenset({"apex.amp.scale_loss"})
"""``with amp.scale_loss(loss, optimizer) as scaled_loss``: the loss times a number, with its graph."""
PREPARERS: frozenset[str] = frozenset({"apex.amp.initialize"})
"""They hand back the models and optimizers that they are given (https://nvidia.github.io/apex/amp.html)."""

META_LEARNERS: frozenset[str] = frozenset(
    {
        "learn2learn.algorithms.MAML", "learn2learn.algorithms.MetaSGD", "learn2learn.algorithms.GBML",
        "learn2learn.algorithms.maml.MAML", "learn2learn.MAML", "learn2learn.algorithms.meta_sgd.MetaSGD",
    }
)  # fmt: skip
"""Wrappers of a model: ``clone()`` gives a copy that hangs on the original's parameters, ``adapt(loss)`` differentiates
with ``create_graph=True`` unless ``first_order=True`` (learn2learn/algorithms/maml.py)."""

INNER_LOOPS: frozenset[str] = frozenset({"higher.innerloop_ctx", "higher.get_diff_optim"})
"""``with higher.innerloop_ctx(model, optimizer) as (fmodel, diffopt)``: ``diffopt.step(loss)`` differentiates with
``create_graph=True`` unless ``track_higher_grads=False`` (https://github.com/facebookresearch/higher)."""
