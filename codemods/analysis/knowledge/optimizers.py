"""Optimizers, schedulers and gradient scalers: who changes parameters in place, and when.

Source: https://pytorch.org/docs/stable/optim.html, https://pytorch.org/docs/stable/amp.html#gradient-scaling and the
documentation of the libraries that are named beside an entry.
"""

from __future__ import annotations

OPTIMIZERS: frozenset[str] = frozenset(
    {
        # torch.optim
        "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "RAdam",
        "RMSprop", "Rprop", "SGD", "SparseAdam", "Optimizer",
        # transformers, apex, deepspeed, bitsandbytes, timm, torch_optimizer, pytorch_optimizer
        "FusedAdam", "FusedLAMB", "FusedSGD", "FusedNovoGrad", "DeepSpeedCPUAdam", "Adam8bit", "AdamW8bit", "Lion8bit",
        "PagedAdamW", "PagedAdamW8bit", "Lamb", "LAMB", "LARS", "Lars", "Lion", "RangerQH", "Ranger", "Ranger21",
        "AdaBelief", "AdaBound", "AdaHessian", "Adahessian", "AdaMod", "Adan", "AdamP", "SGDP", "SGDW", "NovoGrad",
        "NvNovoGrad", "Lookahead", "RMSpropTF", "Yogi", "Prodigy", "DAdaptAdam", "DAdaptSGD", "MADGRAD", "Shampoo",
        "SOAP", "Sophia", "SophiaG", "SAM", "ASAM", "Nadam", "AdamWScheduleFree", "SGDScheduleFree", "BertAdam",
        "ZeroRedundancyOptimizer",
    }
)  # fmt: skip
"""Class names; the first argument is an iterable of parameters, of (name, parameter) pairs, or of group dicts.
The constructors ``timm.optim.create_optimizer`` and ``create_optimizer_v2`` take the module itself."""

OPTIMIZER_BASES: frozenset[str] = frozenset({"torch.optim.Optimizer", "torch.optim.optimizer.Optimizer", "Optimizer"})

OPTIMIZER_FACTORIES: frozenset[str] = frozenset(
    {"timm.optim.create_optimizer", "timm.optim.create_optimizer_v2", "timm.optim.optim_factory.create_optimizer"}
)
"""Functions that take the module and return its optimizer (https://huggingface.co/docs/timm/reference/optimizers)."""

WRAPPING_OPTIMIZERS: frozenset[str] = frozenset(
    {"Lookahead", "SAM", "ASAM", "ZeroRedundancyOptimizer", "DistributedOptimizer", "AcceleratedOptimizer"}
)
"""They drive another optimizer. SAM steps in two halves, ``first_step`` and ``second_step``, and both change parameters
in place."""

NEEDS_CLOSURE: frozenset[str] = frozenset({"LBFGS", "SAM", "ASAM"})
"""``step(closure)`` re-evaluates the model, LBFGS several times (https://pytorch.org/docs/stable/optim.html)."""

CALLS_CLOSURE_AGAIN: frozenset[str] = frozenset({"LBFGS"})
"""``step(closure)`` calls it up to ``max_eval`` times, changing the parameters in between
(https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html)."""

TAKES_CLOSURE_GRADIENT_GRAPH: frozenset[str] = frozenset({"AdaHessian", "Adahessian", "SophiaH"})
"""Their ``step`` differentiates the gradients again: the traversal before it needs ``create_graph=True``."""

STEP_METHODS: frozenset[str] = frozenset({"step", "first_step", "second_step"})
"""Change the owned parameters in place (``scaler.step(optimizer)`` likewise)."""

ZERO_GRAD_METHODS: frozenset[str] = frozenset({"zero_grad"})
"""On an optimizer: its parameters' gradients; on a module: those of every parameter below it. ``set_to_none=True`` is
the default since PyTorch 2.0 (https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html):
``p.grad`` becomes None, nothing is modified in place. With ``set_to_none=False`` a gradient that has a graph
is detached and then zeroed in place. ``SAM``'s steps take ``zero_grad=True``."""

ZERO_GRAD_SETS_TO_NONE: bool = True

PARAMETER_GROUP_KEYS: frozenset[str] = frozenset({"params", "lr", "weight_decay", "momentum", "betas", "eps", "names"})
"""Only ``params`` names tensors; the rest are numbers."""

OPTIMIZER_NUMBERS: frozenset[str] = frozenset({"param_groups", "state", "state_dict", "defaults"})
"""Attributes without a graph; ``param_groups[i]["params"]`` are the parameters themselves."""

SCHEDULERS: frozenset[str] = frozenset(
    {
        "LRScheduler", "_LRScheduler", "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR",
        "LinearLR", "ExponentialLR", "PolynomialLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
        "ChainedScheduler", "SequentialLR", "ReduceLROnPlateau", "CyclicLR", "OneCycleLR", "SWALR",
        "CosineLRScheduler", "StepLRScheduler",
        "get_linear_schedule_with_warmup", "get_cosine_schedule_with_warmup", "get_constant_schedule",
        "get_constant_schedule_with_warmup", "get_polynomial_decay_schedule_with_warmup", "get_scheduler",
        "get_cosine_with_hard_restarts_schedule_with_warmup", "get_inverse_sqrt_schedule", "create_scheduler",
        "create_scheduler_v2", "WarmupLR", "GradualWarmupScheduler",
    }
)  # fmt: skip
"""Their ``step`` changes learning rates only, never a parameter. ``ReduceLROnPlateau.step(metric)`` makes a float of
what it is given (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html)."""

GRAD_SCALERS: frozenset[str] = frozenset(
    {
        "torch.amp.GradScaler",
        "torch.cuda.amp.GradScaler",
        "torch.cpu.amp.GradScaler",
        "torch.amp.grad_scaler.GradScaler",
        "torch.cuda.amp.grad_scaler.GradScaler",
        "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
        "GradScaler",
        "ShardedGradScaler",
    }
)
"""``scale(loss)`` is ``loss * scale`` with a graph (a tensor, or a list of tensors); ``unscale_(optimizer)`` divides
the gradients in place; ``step(optimizer)`` steps it; ``update()`` concerns the scale only."""

AVERAGED_MODELS: frozenset[str] = frozenset(
    {"AveragedModel", "ModelEma", "ModelEmaV2", "ModelEmaV3", "ExponentialMovingAverage"}
)
"""Weights that follow a model's without a graph (``torch.optim.swa_utils``, ``timm.utils``, ``torch_ema``)."""

GRADIENT_CLIPPING: frozenset[str] = frozenset(
    {
        "torch.nn.utils.clip_grad_norm_",
        "torch.nn.utils.clip_grad_norm",
        "torch.nn.utils.clip_grad_value_",
        "torch.nn.utils.clip_grads_with_norm_",
        "torch.nn.utils.get_total_norm",
    }
)
"""They read and scale gradients, not parameters; the norm they return has no graph unless the gradients have one."""
