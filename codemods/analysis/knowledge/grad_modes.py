"""Contexts and decorators that switch the recording of the tape, and those that leave it alone.

Source: https://pytorch.org/docs/stable/torch.html#locally-disabling-gradient-computation,
https://pytorch.org/docs/stable/notes/autograd.html#grad-modes and the documentation of the libraries named.
Each works as ``with name():`` and as a decorator; ``torch.no_grad`` without parentheses is a decorator too.
"""

from __future__ import annotations

RECORDING_OFF: frozenset[str] = frozenset(
    {
        "torch.no_grad",
        "torch.autograd.no_grad",
        "torch.autograd.grad_mode.no_grad",
        "torch.inference_mode",
        "torch.autograd.inference_mode",
        "torch.autograd.grad_mode.inference_mode",
    }
)
"""``torch.inference_mode(False)`` and ``inference_mode(mode=False)`` leave the recording as it is: see TAKES_MODE."""

RECORDING_ON: frozenset[str] = frozenset(
    {"torch.enable_grad", "torch.autograd.enable_grad", "torch.autograd.grad_mode.enable_grad"}
)
"""Back on inside a no_grad region; without effect inside inference_mode."""

TAKES_MODE: dict[str, str] = {
    "torch.set_grad_enabled": "mode",
    "torch.autograd.set_grad_enabled": "mode",
    "torch.autograd.grad_mode.set_grad_enabled": "mode",
    "torch.inference_mode": "mode",
    "torch.autograd.inference_mode": "mode",
    "torch.autograd.grad_mode.inference_mode": "mode",
}
"""Name -> its argument, the first positional one. ``set_grad_enabled(True)`` records, ``(False)`` does not; as a bare
statement it acts at once and until the next one. ``inference_mode(True)`` and ``()`` switch off, ``(False)`` is
neutral. With an argument that is not known the recording may be on."""

CALLED_AS_STATEMENT: frozenset[str] = frozenset(
    {
        "torch.set_grad_enabled",
        "torch.autograd.set_grad_enabled",
        "torch.autograd.grad_mode.set_grad_enabled",
    }
)
"""They switch when called, without ``with``. ``torch.no_grad()`` as a bare statement does nothing."""

NEUTRAL: frozenset[str] = frozenset(
    {
        "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast",
        "torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly", "torch.autograd.profiler.profile",
        "torch.autograd.profiler.record_function", "torch.profiler.profile", "torch.profiler.record_function",
        "torch.autograd.graph.save_on_cpu", "torch.autograd.graph.saved_tensors_hooks",
        "torch.autograd.graph.allow_mutation_on_saved_tensors", "torch.autograd.graph.disable_saved_tensors_hooks",
        "torch.autograd.set_multithreading_enabled", "torch.backends.cudnn.flags",
        "torch.backends.cuda.sdp_kernel", "torch.nn.attention.sdpa_kernel", "torch.cuda.stream", "torch.cuda.device",
        "torch.device", "torch.random.fork_rng", "torch.autograd.forward_ad.dual_level",
        "torch.nn.utils.parametrize.cached", "torch.distributed.algorithms.join.Join", "contextlib.nullcontext",
        "contextlib.suppress", "warnings.catch_warnings", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange",
    }
)  # fmt: skip
"""They do not change what is recorded. ``allow_mutation_on_saved_tensors`` makes in-place changes legal: inside it no
in-place finding may be made (https://pytorch.org/docs/stable/autograd.html#torch.autograd.graph.allow_mutation_on_saved_tensors)."""

ALLOWS_MUTATION: frozenset[str] = frozenset({"torch.autograd.graph.allow_mutation_on_saved_tensors"})

NEUTRAL_METHODS: frozenset[str] = frozenset(
    {"accumulate", "autocast", "no_sync", "no_backward_sync", "join", "trigger_sync_in_backward", "toggled_optimizer"}
)
"""Context managers as methods (Accelerator, Fabric, DistributedDataParallel, LightningModule) that record as before:
https://huggingface.co/docs/accelerate/package_reference/accelerator, https://lightning.ai/docs/fabric/stable/api/."""

FREEZING_METHODS: frozenset[str] = frozenset({"toggle_optimizer", "toggled_optimizer"})
"""Lightning's freeze every other optimizer's parameters, until ``untoggle_optimizer``: no gradient for those, yet the
graph through them is recorded (https://lightning.ai/docs/pytorch/stable/common/optimization.html)."""

ONCE_DIFFERENTIABLE: frozenset[str] = frozenset({"torch.autograd.function.once_differentiable", "once_differentiable"})
"""Decorator of a custom ``backward``: differentiating its result again raises
(https://pytorch.org/docs/stable/notes/extending.html)."""

GRAD_TRANSFORMS: frozenset[str] = frozenset(
    {
        "torch.func.grad", "torch.func.grad_and_value", "torch.func.vjp", "torch.func.jvp", "torch.func.jacrev",
        "torch.func.jacfwd", "torch.func.hessian", "torch.func.vmap", "torch.vmap", "functorch.grad",
        "functorch.grad_and_value", "functorch.vjp", "functorch.jvp", "functorch.jacrev", "functorch.jacfwd",
        "functorch.hessian", "functorch.vmap", "torch.autograd.functional.jacobian",
        "torch.autograd.functional.hessian", "torch.autograd.functional.hvp", "torch.autograd.functional.vhp",
        "torch.autograd.functional.vjp", "torch.autograd.functional.jvp", "torch.utils.checkpoint.checkpoint",
        "torch.utils.checkpoint.checkpoint_sequential",
    }
)  # fmt: skip
"""They keep a tape of their own: none of them frees the caller's graph. ``torch.autograd.functional`` gives results
without a graph unless ``create_graph=True`` (https://pytorch.org/docs/stable/func.html,
https://pytorch.org/docs/stable/autograd.html#functional-higher-level-api)."""
