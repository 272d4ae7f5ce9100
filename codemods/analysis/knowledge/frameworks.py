"""Who traverses, and who calls what in a loop: facts about the frameworks around PyTorch.

Every entry names its source. A class is recognised by the dotted name of its base class, or by the bare name where the
import cannot be followed.
"""

from __future__ import annotations

from dataclasses import dataclass

DETACHING_FUNCTIONS: frozenset[str] = frozenset(
    {
        "fastai.torch_core.to_detach", "fastai.torch_core.to_np", "fastai.torch_core.detach",
        "pytorch_lightning.utilities.memory.recursive_detach", "lightning.pytorch.utilities.memory.recursive_detach",
        "transformers.trainer_pt_utils.nested_detach", "transformers.trainer_pt_utils.nested_numpify",
        "accelerate.utils.gather", "accelerate.utils.gather_object", "accelerate.utils.broadcast",
    }
)  # fmt: skip
"""Library functions whose result has no graph. Sources: https://docs.fast.ai/torch_core.html#to_detach, the modules
that are named, and https://huggingface.co/docs/accelerate/package_reference/utilities: collectives record nothing."""

DETACHING_HELPER_NAMES: frozenset[str] = frozenset(
    {
        "repackage_hidden", "repackage_state", "detach_hidden", "detach_state", "detach_states", "detach_memory",
        "detach_mems", "reset_hidden", "to_detach", "recursive_detach", "detach_all", "detach_tensors",
        "truncate_hidden",
    }
)  # fmt: skip
"""Names that projects give to their own detaching helper (``repackage_hidden`` is that of pytorch/examples'
word_language_model). Where the definition is in the project it is run; elsewhere the name is a hint to stay silent."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A method that a framework calls.

    ``class_names``: base classes, dotted and bare. ``loop``: once for every batch, so state on ``self`` is carried from
    one call into the next. ``traverses_result``: what it returns, or its entry ``result_key`` if that is a dict, or its
    first item if that is a tuple, is back-propagated. ``recording``: gradients are recorded while it runs.
    ``unless``: an attribute that, when false on the class, leaves the traversal to the author.
    """

    class_names: frozenset[str]
    method: str
    loop: bool
    traverses_result: bool
    recording: bool
    result_key: str = "loss"
    unless: str = ""


_LIGHTNING_MODULE = frozenset(
    {
        "pytorch_lightning.LightningModule", "pytorch_lightning.core.LightningModule",
        "pytorch_lightning.core.lightning.LightningModule", "pytorch_lightning.core.module.LightningModule",
        "lightning.LightningModule", "lightning.pytorch.LightningModule", "lightning.pytorch.core.LightningModule",
        "LightningModule",
    }
)  # fmt: skip
_LIGHTNING_CALLBACK = frozenset(
    {
        "pytorch_lightning.Callback", "pytorch_lightning.callbacks.Callback",
        "pytorch_lightning.callbacks.base.Callback",
        "lightning.Callback", "lightning.pytorch.Callback", "lightning.pytorch.callbacks.Callback",
    }
)  # fmt: skip
_HUGGING_FACE_TRAINER = frozenset(
    {
        "transformers.Trainer", "transformers.Seq2SeqTrainer", "transformers.trainer.Trainer",
        "transformers.trainer_seq2seq.Seq2SeqTrainer", "trl.SFTTrainer", "trl.DPOTrainer", "trl.RewardTrainer",
        "sentence_transformers.SentenceTransformerTrainer", "Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer",
    }
)  # fmt: skip
_SPEECHBRAIN = frozenset({"speechbrain.Brain", "speechbrain.core.Brain", "sb.Brain", "sb.core.Brain", "Brain"})
_FASTAI_CALLBACK = frozenset(
    {"fastai.callback.core.Callback", "fastai.basics.Callback", "fastai.learner.Callback", "fastai.vision.all.Callback"}
)
_MMENGINE_MODEL = frozenset({"mmengine.model.BaseModel", "mmengine.model.base_model.BaseModel"})
_MMCV_RUNNER_MODEL = frozenset({"mmdet.models.detectors.BaseDetector", "mmdet.models.BaseDetector", "BaseDetector"})
_DETECTRON_TRAINER = frozenset(
    {
        "detectron2.engine.TrainerBase", "detectron2.engine.train_loop.TrainerBase", "detectron2.engine.SimpleTrainer",
        "detectron2.engine.DefaultTrainer", "TrainerBase", "SimpleTrainer",
    }
)  # fmt: skip
_FAIRSEQ_CRITERION = frozenset(
    {"fairseq.criterions.FairseqCriterion", "fairseq.criterions.fairseq_criterion.FairseqCriterion", "FairseqCriterion"}
)
_COMPOSER_MODEL = frozenset({"composer.models.ComposerModel", "composer.ComposerModel", "ComposerModel"})
_CATALYST_RUNNER = frozenset({"catalyst.dl.Runner", "catalyst.runners.Runner", "dl.Runner"})
_SKORCH_NET = frozenset({"skorch.NeuralNet", "skorch.net.NeuralNet", "skorch.NeuralNetClassifier", "NeuralNet"})
_ALLENNLP_MODEL = frozenset({"allennlp.models.Model", "allennlp.models.model.Model"})
_ESPNET_MODEL = frozenset({"espnet2.train.abs_espnet_model.AbsESPnetModel", "AbsESPnetModel"})
_AVALANCHE = frozenset({"avalanche.training.templates.SupervisedTemplate", "avalanche.training.BaseStrategy"})

HOOKS: tuple[Hook, ...] = (
    # https://lightning.ai/docs/pytorch/stable/common/lightning_module.html. With automatic_optimization = False the
    # author calls manual_backward and what training_step returns is not traversed. Evaluation runs under no_grad or
    # inference_mode, so only training_step and the hooks around it record.
    Hook(_LIGHTNING_MODULE, "training_step", True, True, True, unless="automatic_optimization"),
    Hook(_LIGHTNING_MODULE, "validation_step", True, False, False),
    Hook(_LIGHTNING_MODULE, "test_step", True, False, False),
    Hook(_LIGHTNING_MODULE, "predict_step", True, False, False),
    Hook(_LIGHTNING_MODULE, "on_train_batch_start", True, False, True),
    Hook(_LIGHTNING_MODULE, "on_train_batch_end", True, False, True),
    Hook(_LIGHTNING_MODULE, "on_train_epoch_start", True, False, True),
    Hook(_LIGHTNING_MODULE, "on_train_epoch_end", True, False, True),
    Hook(_LIGHTNING_MODULE, "training_epoch_end", True, False, True),
    Hook(_LIGHTNING_MODULE, "validation_epoch_end", True, False, False),
    Hook(_LIGHTNING_MODULE, "on_validation_epoch_end", True, False, False),
    Hook(_LIGHTNING_MODULE, "configure_optimizers", False, False, True),
    # https://huggingface.co/docs/transformers/main_classes/trainer: training_step calls compute_loss and
    # accelerator.backward on what it returns; prediction_step calls it under no_grad. With return_outputs=True it
    # returns (loss, outputs).
    Hook(_HUGGING_FACE_TRAINER, "compute_loss", True, True, True),
    Hook(_HUGGING_FACE_TRAINER, "training_step", True, False, True),
    Hook(_HUGGING_FACE_TRAINER, "prediction_step", True, False, False),
    # https://speechbrain.readthedocs.io/en/latest/API/speechbrain.core.html: fit_batch calls compute_forward and
    # compute_objectives and back-propagates the latter's result; evaluate_batch runs under no_grad.
    Hook(_SPEECHBRAIN, "compute_objectives", True, True, True),
    Hook(_SPEECHBRAIN, "compute_forward", True, False, True),
    Hook(_SPEECHBRAIN, "fit_batch", True, False, True),
    Hook(_SPEECHBRAIN, "evaluate_batch", True, False, False),
    Hook(_SPEECHBRAIN, "on_fit_batch_end", True, False, True),
    # https://docs.fast.ai/callback.core.html: the learner back-propagates self.loss_grad between after_loss and
    # after_backward; callbacks read and set learn.pred and learn.loss. Validation runs the same ones under no_grad.
    Hook(_FASTAI_CALLBACK, "after_pred", True, False, True),
    Hook(_FASTAI_CALLBACK, "after_loss", True, False, True),
    Hook(_FASTAI_CALLBACK, "before_backward", True, False, True),
    Hook(_FASTAI_CALLBACK, "after_backward", True, False, True),
    Hook(_FASTAI_CALLBACK, "after_step", True, False, True),
    Hook(_FASTAI_CALLBACK, "before_batch", True, False, True),
    Hook(_FASTAI_CALLBACK, "after_batch", True, False, True),
    # https://mmengine.readthedocs.io/en/latest/tutorials/model.html: train_step sums the losses that forward returns
    # and calls optim_wrapper.update_params; an overridden train_step calls it itself.
    Hook(_MMENGINE_MODEL, "train_step", True, False, True),
    Hook(_MMENGINE_MODEL, "val_step", True, False, False),
    Hook(_MMENGINE_MODEL, "test_step", True, False, False),
    Hook(_MMCV_RUNNER_MODEL, "train_step", True, True, True),
    # https://detectron2.readthedocs.io/en/latest/modules/engine.html: run_step does everything itself.
    Hook(_DETECTRON_TRAINER, "run_step", True, False, True),
    # https://fairseq.readthedocs.io/en/latest/criterions.html: forward returns (loss, sample_size, logging_output).
    Hook(_FAIRSEQ_CRITERION, "forward", True, True, True),
    # https://docs.mosaicml.com/projects/composer/en/stable/api_reference/generated/composer.ComposerModel.html
    Hook(_COMPOSER_MODEL, "loss", True, True, True),
    Hook(_COMPOSER_MODEL, "eval_forward", True, False, False),
    # https://catalyst-team.github.io/catalyst/core/runner.html: batch_metrics["loss"] is back-propagated by a callback.
    Hook(_CATALYST_RUNNER, "handle_batch", True, False, True),
    # https://skorch.readthedocs.io/en/stable/net.html: train_step_single back-propagates get_loss's result.
    Hook(_SKORCH_NET, "get_loss", True, True, True),
    Hook(_SKORCH_NET, "train_step_single", True, False, True),
    Hook(_SKORCH_NET, "validation_step", True, False, False),
    # https://docs.allennlp.org/main/api/models/model/: forward returns a dict whose loss is back-propagated.
    Hook(_ALLENNLP_MODEL, "forward", True, True, True),
    # https://espnet.github.io/espnet/: forward returns (loss, stats, weight).
    Hook(_ESPNET_MODEL, "forward", True, True, True),
    # https://avalanche-api.continualai.org/: criterion's result is added to self.loss, which is back-propagated.
    Hook(_AVALANCHE, "criterion", True, True, True),
)

PROCESS_FUNCTION_TAKERS: dict[str, int] = {
    "ignite.engine.Engine": 0,
    "ignite.engine.engine.Engine": 0,
}
"""Callables that run their argument once for every batch. Ignite's ``Engine(process_function)`` keeps its result in
``engine.state.output`` until the next one: it traverses nothing (https://pytorch.org/ignite/generated/ignite.engine.engine.Engine.html)."""

TOGGLES_GRADIENT: dict[str, bool] = {
    "toggle_optimizer": True,
    "untoggle_optimizer": False,
    "freeze": False,
    "unfreeze": True,
}
"""LightningModule methods that set ``requires_grad`` on parameters: ``toggle_optimizer(optimizer)`` leaves only that
optimizer's parameters trainable (https://lightning.ai/docs/pytorch/stable/common/optimization.html)."""
