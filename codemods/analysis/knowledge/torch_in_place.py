"""In-place operations: which calls modify a tensor, what they record and what becomes of its graph.

Source: https://pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd,
https://pytorch.org/docs/stable/tensors.html and ``tools/autograd/derivatives.yaml`` of PyTorch 2.13.
What the operation saves is in ``torch_operations.OPERATIONS``, with two differences: where the formula needs the input,
the in-place form saves a private copy of the old value, so it never invalidates itself; and see IN_PLACE_KEEPS_RESULT.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InPlace:
    """An in-place method: the operation that it records, and what it changes.

    ``changes_data``: it counts up the version that saved tensors are checked against. ``changes_graph``: the tensor's
    ``grad_fn`` is another one afterwards. ``cuts``: no gradient passes to what the tensor held before.
    """

    operation: str
    changes_data: bool
    changes_graph: bool = True
    cuts: bool = False


_ELEMENTWISE = (
    "abs", "absolute", "acos", "acosh", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh",
    "baddbmm", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "ceil", "clamp", "clamp_max", "clamp_min", "clip", "conj_physical", "copysign", "cos", "cosh", "cumprod", "cumsum",
    "deg2rad", "digamma", "div", "divide", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "float_power",
    "floor", "floor_divide", "fmod", "frac", "hypot", "i0", "index_add", "index_copy", "index_fill",
    "index_put", "index_reduce", "ldexp", "lerp", "lgamma", "log", "log10", "log1p", "log2", "logit", "masked_fill",
    "masked_scatter", "mul", "multiply", "mvlgamma", "nan_to_num", "neg", "negative", "nextafter", "polygamma", "pow",
    "put", "rad2deg", "reciprocal", "relu", "remainder", "renorm", "round", "rsqrt", "scatter", "scatter_add",
    "scatter_reduce", "sgn", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt", "square", "sub", "subtract", "tan",
    "tanh", "tril", "triu", "true_divide", "trunc", "xlogy", "elu", "celu", "selu", "leaky_relu", "rrelu", "hardtanh",
    "threshold", "dropout", "alpha_dropout", "feature_alpha_dropout", "heaviside", "fill_diagonal",
)  # fmt: skip

IN_PLACE: dict[str, InPlace] = {
    **{name + "_": InPlace(name, True) for name in _ELEMENTWISE},
    # Overwritten whole: the node passes zeros to the past.
    **dict.fromkeys(("zero_", "fill_", "normal_", "uniform_"), InPlace("fill", True, cuts=True)),
    **dict.fromkeys(("random_", "bernoulli_", "exponential_"), InPlace("fill", True, cuts=True)),
    **dict.fromkeys(("cauchy_", "log_normal_", "geometric_"), InPlace("fill", True, cuts=True)),
    # Takes over the graph of its argument.
    "copy_": InPlace("copy", True, cuts=True),
    # Comparisons in place keep the type and give zeros and ones.
    **dict.fromkeys(("eq_", "ne_", "lt_", "le_", "gt_", "ge_"), InPlace("fill", True, cuts=True)),
    # Nothing is recorded, so gradients go on as if nothing had happened.
    **dict.fromkeys(
        ("logical_and_", "logical_or_", "logical_not_", "logical_xor_"), InPlace("fill", True, changes_graph=False)
    ),
    # Shape only, yet they count as a change: x.t_() after x * x is an error at the traversal.
    **dict.fromkeys(("unsqueeze_", "squeeze_", "t_", "transpose_", "swapaxes_"), InPlace("view", True)),
    **dict.fromkeys(("swapdims_", "as_strided_"), InPlace("view", True)),
    # Graph only.
    "detach_": InPlace("detach", False, cuts=True),
    "requires_grad_": InPlace("requires_grad", False, changes_graph=False),
    # Neither.
    "share_memory_": InPlace("share_memory", False, changes_graph=False),
    # Storage; forbidden on tensors with a graph.
    **dict.fromkeys(("set_", "resize_", "resize_as_"), InPlace("resize", True, changes_graph=False)),
}
"""In-place methods, in-place functions (``F.relu_``, ``torch.exp_``) included. What they save: ``OPERATIONS``."""

AUGMENTED_OPERATORS: dict[str, str] = {
    "Add": "add_",
    "Sub": "sub_",
    "Mult": "mul_",
    "Div": "div_",
    "FloorDiv": "floor_divide_",
    "Mod": "remainder_",
    "Pow": "pow_",
    "BitAnd": "bitwise_and_",
    "BitOr": "bitwise_or_",
    "BitXor": "bitwise_xor_",
    "LShift": "bitwise_left_shift_",
    "RShift": "bitwise_right_shift_",
}
"""``x += y`` on a tensor modifies it in place. ``x @= y`` is absent: it rebinds ``x`` to a new tensor."""

IN_PLACE_ARGUMENT: dict[str, int] = {
    "relu": 1,
    "relu6": 1,
    "selu": 1,
    "silu": 1,
    "mish": 1,
    "hardswish": 1,
    "hardsigmoid": 1,
    "elu": 2,
    "celu": 2,
    "leaky_relu": 2,
    "hardtanh": 3,
    "threshold": 3,
    "dropout": 3,
    "dropout1d": 3,
    "dropout2d": 3,
    "dropout3d": 3,
    "alpha_dropout": 3,
    "feature_alpha_dropout": 3,
    "rrelu": 4,
}
"""``torch.nn.functional`` functions with an ``inplace`` argument, and its position (the input is 0)."""

IN_PLACE_KEEPS_RESULT: frozenset[str] = frozenset({"relu", "elu", "celu", "selu", "leaky_relu", "rrelu"})
"""Activations that in their in-place form keep the result, the modified tensor itself; all but ``relu`` keep the input
otherwise. The other in-place activations keep a private copy."""
