"""What PyTorch's operations record: which tensors a node keeps, what a call returns, what has no graph.

Source: ``tools/autograd/derivatives.yaml`` of PyTorch 2.13 (a tensor that a backward formula names is saved; ``result``
in a formula means that the output is saved), https://pytorch.org/docs/stable/notes/autograd.html#saved-tensors and
#in-place-operations-with-autograd, and for composite functions a measurement: modify an operand or the result in place,
then traverse; traverse twice. ``tests/analysis/test_knowledge.py`` repeats the measurement.

How to read an entry:

* A node that saves nothing at all can be traversed any number of times without ``retain_graph`` (``add``, ``sum``,
  ``cat``, views). Every other node raises on the second traversal, also when what it saved is only an index, a mask or
  a number: ``x * 2`` saves the 2.
* A saved tensor that was modified in place since raises at the traversal.
* In-place forms (``x.sin_()``) save a private copy of the old value where the formula needs ``input``: they never
  invalidate themselves. Where the formula needs the result they save ``x`` itself as it is afterwards.
* A tensor that may be modified in place since has the very memory that was saved, or a view of it: ``y`` after
  ``y = x.float()`` is ``x`` where the type is the same already (``MAY_RETURN_INPUT``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .torch_in_place import (
    AUGMENTED_OPERATORS as AUGMENTED_OPERATORS,
)
from .torch_in_place import (
    IN_PLACE as IN_PLACE,
)
from .torch_in_place import (
    IN_PLACE_ARGUMENT as IN_PLACE_ARGUMENT,
)
from .torch_in_place import (
    IN_PLACE_KEEPS_RESULT as IN_PLACE_KEEPS_RESULT,
)
from .torch_in_place import (
    InPlace as InPlace,
)


class Keeps(Enum):
    """When a node keeps one of its operands."""

    NEVER = "never"
    ALWAYS = "always"
    """Whenever the node is recorded at all."""
    IF_OTHER_TRACKED = "if other tracked"
    """Only if another operand requires grad, as ``mul`` and ``matmul`` do. A Python number counts as an operand:
    ``x * 2`` keeps the 2, so a second traversal is an error, and keeps no ``x``."""
    IF_TRACKED = "if tracked"
    """Only if that operand requires grad itself."""
    IF_FURTHER_TRACKED = "if further tracked"
    """Only if another operand after the first requires grad: ``addmm(bias, a, b)`` keeps ``a`` if ``b`` requires grad,
    ``index_add(x, dim, index, source)`` keeps ``index`` if ``source`` does."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One differentiable operation.

    ``input`` is the tensor it is called on or its first argument, ``other`` every further tensor argument; of those
    that take an index or a mask (``_INDEXED`` below) it is that index or mask, and what they put there is not kept.
    ``internal``: it saves something that nobody can modify (indices that it found, a mask, statistics, a
    wrapped number, an intermediate), which counts for the second traversal only. ``view``: the result shares memory and
    version counter with the input. ``returns``:

    * ``tensor``; ``scalar`` always 0-dim, for losses unless ``reduction="none"``; ``none``; ``number``;
    * ``reduction`` 0-dim when called without dim or axis;
    * ``extremum`` 0-dim without dim, a pair with dim (see ``WITH_DIM``), element by element with a second tensor
      (see ``WITH_TENSOR``);
    * ``pair`` (values, indices), the second without a graph; ``tensors`` a tuple, all with a graph;
    * ``attention`` (output, weights).
    """

    input: Keeps
    other: Keeps
    result: bool
    view: bool = False
    returns: str = "tensor"
    internal: bool = False


_NEVER = Keeps.NEVER
_ALWAYS = Keeps.ALWAYS
_IF_OTHER = Keeps.IF_OTHER_TRACKED

_NOTHING = Operation(_NEVER, _NEVER, False)
_VIEW = Operation(_NEVER, _NEVER, False, view=True)
_INTERNAL = Operation(_NEVER, _NEVER, False, internal=True)
_INPUT = Operation(_ALWAYS, _NEVER, False)
_RESULT = Operation(_NEVER, _NEVER, True)
_INPUT_AND_RESULT = Operation(_ALWAYS, _NEVER, True)
_INDEXED = Operation(_NEVER, _ALWAYS, False)
_FURTHER = Operation(_NEVER, Keeps.IF_FURTHER_TRACKED, False)
_ITSELF = Operation(Keeps.IF_TRACKED, Keeps.IF_TRACKED, False)
_BOTH = Operation(_ALWAYS, _ALWAYS, False)
_ALL = Operation(_ALWAYS, _ALWAYS, True)
_PRODUCT = Operation(_IF_OTHER, _IF_OTHER, False)
_QUOTIENT = Operation(_IF_OTHER, _ALWAYS, False)
_PAIR = Operation(_NEVER, _NEVER, False, returns="pair", internal=True)

OPERATIONS: dict[str, Operation] = {
    # Arithmetic. A sum keeps nothing, whatever its operands.
    **dict.fromkeys(("add", "sub", "subtract", "rsub", "neg", "negative", "positive"), _NOTHING),
    **dict.fromkeys(("mul", "multiply"), _PRODUCT),
    **dict.fromkeys(("div", "divide", "true_divide"), _QUOTIENT),
    # By a number, which is the usual form, nothing; by a tensor that requires grad, both.
    **dict.fromkeys(("remainder", "fmod"), Operation(_IF_OTHER, Keeps.IF_TRACKED, False)),
    # By a number the input only, also for x ** 1; see WITH_TENSOR for a tensor as the exponent and for 2 ** x.
    **dict.fromkeys(("pow", "square"), _INPUT),
    # It keeps the float64 copy that it made.
    "float_power": _INTERNAL,
    **dict.fromkeys(("addcmul", "addmm", "addmv", "addr", "addbmm", "baddbmm"), _FURTHER),
    "addcdiv": _INDEXED,
    # With a number as the weight; a tensor as the weight keeps all three.
    "lerp": _NOTHING,
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin", "atan2", "arctan2", "logaddexp", "logaddexp2"), _BOTH),
    **dict.fromkeys(("xlogy", "xlog1py"), _BOTH),
    **dict.fromkeys(("dist", "cdist", "householder_product", "orgqr"), _ALL),
    "hypot": Operation(Keeps.IF_TRACKED, Keeps.IF_TRACKED, True),
    "copysign": Operation(Keeps.IF_TRACKED, _NEVER, True),
    "ldexp": Operation(_NEVER, _ALWAYS, True),
    # Piecewise constant: they do have a node, its gradient is zero, and it keeps nothing.
    **dict.fromkeys(("sign", "round", "ceil", "floor", "trunc", "fix", "frac"), _NOTHING),
    "sgn": _INPUT_AND_RESULT,
    # No derivative, yet the result hangs on the tape: see NOT_DIFFERENTIABLE.
    **dict.fromkeys(("floor_divide", "heaviside"), _NOTHING),
    **dict.fromkeys(("unique", "unique_consecutive", "histogram", "histogramdd"), _NOTHING),
    # Products of matrices and vectors.
    **dict.fromkeys(
        ("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "outer", "ger", "einsum", "tensordot", "cross"), _PRODUCT
    ),
    **dict.fromkeys(("linear", "vecdot", "multi_dot", "chain_matmul"), _PRODUCT),
    "bilinear": Operation(_IF_OTHER, _ALWAYS, False),
    "kron": _INTERNAL,
    # Elementwise functions whose derivative is written with the input.
    **dict.fromkeys(("abs", "absolute", "sin", "cos", "sinh", "cosh", "asin", "acos", "atan", "asinh"), _INPUT),
    **dict.fromkeys(("acosh", "atanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"), _INPUT),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "erf", "erfc", "erfinv", "digamma", "psi", "lgamma"), _INPUT),
    **dict.fromkeys(("gammaln", "polygamma", "mvlgamma", "multigammaln", "i0", "sinc", "logit", "entr"), _INPUT),
    **dict.fromkeys(("nan_to_num", "angle", "matrix_exp", "renorm", "combinations", "vander"), _INPUT),
    **dict.fromkeys(("i0e", "i1", "i1e", "log_ndtr", "erfcx"), _INPUT_AND_RESULT),
    **dict.fromkeys(("clamp", "clip", "clamp_min", "clamp_max"), _BOTH),
    # With the result.
    **dict.fromkeys(("exp", "exp2", "expm1", "sigmoid", "expit", "tanh", "tan", "sqrt", "rsqrt", "ndtri"), _RESULT),
    "reciprocal": _RESULT,
    "ndtr": _INTERNAL,
    **dict.fromkeys(("deg2rad", "rad2deg"), _NOTHING),
    # Activations. In place (F.elu(x, inplace=True), elu_) elu, celu, selu, leaky_relu and rrelu keep the result instead
    # of the input: see IN_PLACE_KEEPS_RESULT.
    **dict.fromkeys(("relu", "softmax", "log_softmax", "softmin", "gumbel_softmax"), _RESULT),
    **dict.fromkeys(("elu", "celu", "selu", "leaky_relu", "rrelu", "silu", "gelu", "mish", "softplus"), _INPUT),
    **dict.fromkeys(("softshrink", "hardshrink", "hardtanh", "relu6", "hardswish", "hardsigmoid"), _INPUT),
    **dict.fromkeys(("logsigmoid", "threshold", "softsign", "glu"), _INPUT),
    "tanhshrink": _INTERNAL,
    "prelu": _BOTH,
    # Reductions.
    **dict.fromkeys(("sum", "mean"), Operation(_NEVER, _NEVER, False, returns="reduction")),
    **dict.fromkeys(("nansum", "nanmean", "var"), Operation(_ALWAYS, _NEVER, False, returns="reduction")),
    **dict.fromkeys(
        ("std", "prod", "norm", "amax", "amin", "vector_norm", "matrix_norm", "frobenius_norm"),
        Operation(_ALWAYS, _NEVER, True, returns="reduction"),
    ),
    "logsumexp": _INPUT_AND_RESULT,
    **dict.fromkeys(("quantile", "nanquantile"), Operation(_NEVER, _NEVER, False, returns="reduction", internal=True)),
    "nuclear_norm": Operation(_NEVER, _NEVER, False, returns="reduction", internal=True),
    **dict.fromkeys(("max", "min", "median", "nanmedian"), Operation(_ALWAYS, _NEVER, True, returns="extremum")),
    "aminmax": Operation(_ALWAYS, _NEVER, True, returns="tensors"),
    "var_mean": Operation(_ALWAYS, _NEVER, False, returns="tensors"),
    "std_mean": Operation(_ALWAYS, _NEVER, True, returns="tensors"),
    "trace": Operation(_NEVER, _NEVER, False, returns="scalar"),
    **dict.fromkeys(("cumsum", "diff", "sum_to_size"), _NOTHING),
    **dict.fromkeys(("cumprod", "logcumsumexp"), _INPUT_AND_RESULT),
    **dict.fromkeys(("cummax", "cummin"), Operation(_ALWAYS, _NEVER, False, returns="pair", internal=True)),
    **dict.fromkeys(("trapz", "trapezoid", "cumulative_trapezoid"), _NOTHING),
    "gradient": Operation(_NEVER, _NEVER, False, returns="tensors"),
    **dict.fromkeys(("cov", "corrcoef"), _INTERNAL),
    # Order. The values are gathered at saved indices; neither operand nor values are kept.
    **dict.fromkeys(("sort", "topk", "kthvalue", "mode"), _PAIR),
    "msort": _INTERNAL,
    # Picking and placing. The index or mask is kept.
    **dict.fromkeys(("index_select", "masked_fill", "masked_scatter", "scatter", "put"), _INDEXED),
    **dict.fromkeys(("index_fill", "index_copy", "index_put"), _INDEXED),
    **dict.fromkeys(("scatter_add", "index_add"), _FURTHER),
    **dict.fromkeys(("gather", "take", "masked_select"), _BOTH),
    # The index is broadcast first where the shapes differ.
    "take_along_dim": Operation(_ALWAYS, _NEVER, False, internal=True),
    **dict.fromkeys(("scatter_reduce", "index_reduce"), _ALL),
    "where": _INTERNAL,
    # F.embedding(indices, weight): the indices are kept, the weight is not.
    **dict.fromkeys(("embedding", "embedding_bag"), _INPUT),
    # Not names of functions: a subscript with integers, slices, None and ellipses, and one with a tensor or a list.
    "getitem": _VIEW,
    "getitem_advanced": _INTERNAL,
    # Joining, repeating, moving.
    **dict.fromkeys(("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"), _NOTHING),
    **dict.fromkeys(("row_stack", "block_diag", "cartesian_prod", "repeat", "tile", "flip", "fliplr"), _NOTHING),
    **dict.fromkeys(("flipud", "roll", "rot90", "tril", "triu", "diag_embed", "diagflat", "diag"), _NOTHING),
    **dict.fromkeys(("select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter"), _NOTHING),
    "repeat_interleave": _NOTHING,
    # Padding with a constant, the default; reflect and replicate keep the input.
    **dict.fromkeys(("pad", "constant_pad_nd"), _NOTHING),
    # Copies and casts; several of them may hand back the very tensor: see MAY_RETURN_INPUT.
    **dict.fromkeys(("clone", "contiguous", "to", "type", "type_as", "cpu", "cuda", "xpu"), _NOTHING),
    **dict.fromkeys(("float", "double", "half", "bfloat16", "cfloat", "cdouble", "chalf", "pin_memory"), _NOTHING),
    **dict.fromkeys(("conj", "conj_physical", "resolve_conj", "resolve_neg", "to_dense"), _NOTHING),
    **dict.fromkeys(("to_sparse", "to_sparse_coo", "to_sparse_csr", "coalesce"), _INTERNAL),
    # Views.
    **dict.fromkeys(("view", "view_as", "reshape", "reshape_as", "flatten", "ravel", "unflatten", "squeeze"), _VIEW),
    **dict.fromkeys(("unsqueeze", "transpose", "t", "T", "mT", "H", "mH", "adjoint", "permute", "movedim"), _VIEW),
    **dict.fromkeys(("moveaxis", "swapaxes", "swapdims", "expand", "expand_as", "broadcast_to", "narrow"), _VIEW),
    **dict.fromkeys(("select", "diagonal", "as_strided", "view_as_real", "view_as_complex", "real", "imag"), _VIEW),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d", "as_subclass"), _VIEW),
    # Tensor.unfold; F.unfold copies, and keeps as little.
    "unfold": _VIEW,
    **dict.fromkeys(
        ("split", "chunk", "unbind", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit"),
        Operation(_NEVER, _NEVER, False, view=True, returns="tensors"),
    ),
    **dict.fromkeys(("meshgrid", "broadcast_tensors"), Operation(_NEVER, _NEVER, False, view=True, returns="tensors")),
    **dict.fromkeys(("unsafe_split", "unsafe_chunk"), Operation(_NEVER, _NEVER, False, returns="tensors")),
    # Complex numbers and Fourier transforms.
    "complex": _ITSELF,
    "polar": _RESULT,
    **dict.fromkeys(("fft", "ifft", "rfft", "ihfft", "rfft2", "rfftn", "ihfft2", "ihfftn", "stft"), _INPUT),
    **dict.fromkeys(("fft2", "fftn", "ifft2", "ifftn", "hfft", "hfft2", "hfftn", "irfft", "irfft2"), _NOTHING),
    **dict.fromkeys(("irfftn", "fftshift", "ifftshift"), _NOTHING),
    "istft": _INTERNAL,
    # Linear algebra.
    **dict.fromkeys(("cholesky", "inverse", "inv", "svdvals", "eigvals", "eigvalsh", "tensorinv"), _RESULT),
    "det": Operation(_ALWAYS, _NEVER, True),
    "logdet": _INPUT,
    "slogdet": Operation(_ALWAYS, _NEVER, True, returns="tensors"),
    **dict.fromkeys(("pinv", "pinverse", "cholesky_inverse"), _INPUT_AND_RESULT),
    **dict.fromkeys(("qr", "svd", "eigh", "eig", "lu"), Operation(_NEVER, _NEVER, True, returns="tensors")),
    "svd_lowrank": Operation(_ALWAYS, _NEVER, True, returns="tensors"),
    **dict.fromkeys(("lu_factor", "cholesky_ex", "inv_ex"), Operation(_NEVER, _NEVER, True, returns="pair")),
    **dict.fromkeys(("solve", "solve_triangular", "tensorsolve"), _INPUT_AND_RESULT),
    **dict.fromkeys(("cholesky_solve", "lu_solve"), _ALL),
    "lstsq": Operation(_ALWAYS, _ALWAYS, True, returns="tensors"),
    "triangular_solve": Operation(_ALWAYS, _ALWAYS, True, returns="tensors"),
    # For a power of 2 or more.
    "matrix_power": Operation(_ALWAYS, _NEVER, False, internal=True),
    # Convolution keeps input and weight whichever of them requires grad.
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"), _BOTH),
    **dict.fromkeys(("conv_transpose3d", "conv_tbc"), _BOTH),
    # Pooling and resampling.
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d"), _INPUT),
    **dict.fromkeys(("adaptive_avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d"), _INPUT),
    **dict.fromkeys(("adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d"), _INPUT),
    **dict.fromkeys(("fractional_max_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d"), _INPUT),
    **dict.fromkeys(("max_unpool1d", "max_unpool2d", "max_unpool3d"), _INDEXED),
    **dict.fromkeys(("interpolate", "upsample", "upsample_nearest", "upsample_bilinear"), _NOTHING),
    **dict.fromkeys(("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "fold", "affine_grid"), _NOTHING),
    **dict.fromkeys(("grid_sample", "grid_sampler"), _BOTH),
    # Normalisation: the input and the weight; layer_norm even the bias.
    **dict.fromkeys(("batch_norm", "instance_norm"), Operation(_ALWAYS, _NEVER, False, internal=True)),
    **dict.fromkeys(("layer_norm", "group_norm"), Operation(_ALWAYS, _ALWAYS, False, internal=True)),
    "rms_norm": Operation(Keeps.IF_TRACKED, _IF_OTHER, False, internal=True),
    "local_response_norm": _INPUT,
    "normalize": Operation(_ALWAYS, _NEVER, False, internal=True),
    # Dropout keeps its mask. With training=False it hands back its input.
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"), _INTERNAL),
    "feature_alpha_dropout": _INTERNAL,
    # The fused kernels keep their result; the plain one on the CPU does not.
    "scaled_dot_product_attention": _ALL,
    "multi_head_attention_forward": Operation(_ALWAYS, _ALWAYS, False, returns="attention", internal=True),
    # Distances.
    "pdist": _INPUT_AND_RESULT,
    "pairwise_distance": Operation(_NEVER, _NEVER, True, internal=True),
    "cosine_similarity": Operation(Keeps.IF_TRACKED, Keeps.IF_TRACKED, False, internal=True),
    # Samplers that record a node with a zero gradient.
    **dict.fromkeys(("bernoulli", "normal", "poisson"), _NOTHING),
    # Losses. cross_entropy keeps the log-softmax that it computed, and the target.
    "cross_entropy": Operation(_NEVER, _ALWAYS, False, returns="scalar", internal=True),
    **dict.fromkeys(
        ("nll_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "ctc_loss"),
        Operation(_ALWAYS, _ALWAYS, False, returns="scalar"),
    ),
    **dict.fromkeys(
        ("binary_cross_entropy_with_logits", "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss"),
        Operation(_ALWAYS, _ALWAYS, False, returns="scalar"),
    ),
    **dict.fromkeys(
        ("cosine_embedding_loss", "multilabel_soft_margin_loss"),
        Operation(_ALWAYS, _ALWAYS, False, returns="scalar", internal=True),
    ),
    **dict.fromkeys(
        ("kl_div", "poisson_nll_loss", "linear_cross_entropy"),
        Operation(_IF_OTHER, _ALWAYS, False, returns="scalar", internal=True),
    ),
    **dict.fromkeys(
        ("l1_loss", "margin_ranking_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"),
        Operation(_NEVER, _NEVER, False, returns="scalar", internal=True),
    ),
    **dict.fromkeys(
        ("hinge_embedding_loss", "gaussian_nll_loss"),
        Operation(_NEVER, _NEVER, False, returns="scalar", internal=True),
    ),
}

WITH_DIM: dict[str, Operation] = {
    "max": _PAIR,
    "min": _PAIR,
    "median": _PAIR,
    "nanmedian": _PAIR,
}
"""The same names called with a dim: (values, indices), and only the indices are kept."""

WITH_TENSOR: dict[str, Operation] = {
    "max": _BOTH,
    "min": _BOTH,
    "pow": _ALL,
    "float_power": Operation(_NEVER, _NEVER, True, internal=True),
    "lerp": _BOTH,
    "remainder": _BOTH,
    "fmod": _BOTH,
}
"""The same names where the second operand is a tensor: ``torch.max(a, b)``, ``x ** y``, also ``2 ** y``."""

NOT_DIFFERENTIABLE: frozenset[str] = frozenset(
    {"floor_divide", "heaviside", "unique", "unique_consecutive", "histogram", "histogramdd"}
)
"""Their result requires grad and keeps the graph alive, and a traversal that reaches it raises."""

MULTIPLE_VIEWS: frozenset[str] = frozenset({"split", "chunk", "unbind", "split_with_sizes"})
"""Their views may not be modified in place while the graph is recorded, nor may the base afterwards; iterating over a
tensor is an ``unbind``. Source: torch/csrc/autograd/variable.h, ``CreationMeta::MULTI_OUTPUT_NODE``."""

MAY_RETURN_INPUT: frozenset[str] = frozenset(
    {
        "to", "type", "type_as", "float", "double", "half", "bfloat16", "cpu", "cuda", "xpu", "contiguous", "positive",
        "reshape", "reshape_as", "flatten", "ravel", "broadcast_to", "atleast_1d", "atleast_2d", "atleast_3d", "real",
        "conj", "conj_physical", "resolve_conj", "resolve_neg", "dropout", "dropout1d", "dropout2d", "dropout3d",
        "alpha_dropout", "feature_alpha_dropout", "as_tensor", "asarray", "pin_memory", "coalesce",
        "to_dense", "long", "int", "bool",
    }
)  # fmt: skip
"""They can hand back the tensor they were given, so a later in-place operation may reach the original.
Source: https://pytorch.org/docs/stable/generated/torch.Tensor.to.html and the pages of the others."""

BINARY_OPERATORS: dict[str, str] = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "Div": "div",
    "FloorDiv": "floor_divide",
    "Mod": "remainder",
    "Pow": "pow",
    "MatMult": "matmul",
    "BitAnd": "bitwise_and",
    "BitOr": "bitwise_or",
    "BitXor": "bitwise_xor",
    "LShift": "bitwise_left_shift",
    "RShift": "bitwise_right_shift",
}
"""From the class of an ``ast`` operator to the operation: https://pytorch.org/docs/stable/tensors.html."""

UNARY_OPERATORS: dict[str, str] = {"USub": "neg", "UAdd": "positive", "Invert": "bitwise_not"}
"""``not x`` is absent: it gives a Python bool."""

WITHOUT_GRAPH: frozenset[str] = frozenset(
    {
        # Comparisons and tests.
        "eq", "ne", "lt", "le", "gt", "ge", "greater", "greater_equal", "less", "less_equal", "not_equal", "isclose",
        "isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "isin", "signbit", "all", "any",
        "logical_and", "logical_or", "logical_not", "logical_xor",
        "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift",
        # Positions and counts.
        "argmax", "argmin", "argsort", "argwhere", "nonzero", "nonzero_static", "count_nonzero", "bincount", "histc",
        "searchsorted", "bucketize", "one_hot", "tril_indices", "triu_indices", "gcd", "lcm",
        # Sampling.
        "multinomial", "rand_like", "randn_like", "randint_like", "randint", "randperm",
        # New tensors after the shape of another.
        "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty",
        "new_tensor", "new",
        # Casts to types that cannot require grad.
        "long", "int", "short", "char", "byte", "bool",
        # Cut off on purpose.
        "detach", "data", "numpy", "__array__",
        # Ranks and quantised types.
        "matrix_rank", "quantize_per_tensor", "int_repr",
    }
)  # fmt: skip
"""Methods, attributes and functions whose result never has a graph, whatever they are given."""

INTEGER_TYPES: frozenset[str] = frozenset(
    {
        "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "short", "int", "long", "bool",
        "LongTensor", "IntTensor", "ShortTensor", "ByteTensor", "CharTensor", "BoolTensor",
    }
)  # fmt: skip
"""Names of types; ``x.to(torch.long)`` or ``x.type(torch.LongTensor)`` has no graph: only floating-point and complex
tensors can require grad (https://pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html)."""

CONSTRUCTORS: frozenset[str] = frozenset(
    {
        "zeros", "ones", "full", "empty", "empty_strided", "eye", "arange", "range", "linspace", "logspace", "tensor",
        "rand", "randn", "randint", "randperm", "from_numpy", "from_file", "frombuffer", "from_dlpack", "scalar_tensor",
        "tril_indices", "triu_indices", "hann_window", "hamming_window", "blackman_window", "bartlett_window",
        "kaiser_window", "sparse_coo_tensor", "Tensor", "FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor",
        "IntTensor", "ShortTensor", "ByteTensor", "BoolTensor", "CharTensor", "BFloat16Tensor", "zeros_like",
        "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "randint_like", "load",
    }
)  # fmt: skip
"""``torch.NAME`` that makes a fresh tensor without a graph; ``requires_grad=True`` makes it a leaf. ``as_tensor`` and
``asarray`` are absent: given a tensor they hand it back, graph and all."""

TAKES_INDICES: frozenset[str] = frozenset({"embedding", "embedding_bag"})
"""Their input is integers, through which no gradient flows.
Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html."""

NUMBERS: frozenset[str] = frozenset(
    {
        "item", "tolist", "size", "dim", "ndimension", "numel", "nelement", "ndim", "shape", "dtype", "device",
        "layout", "stride", "storage_offset", "element_size", "itemsize", "nbytes", "data_ptr", "get_device", "names",
        "is_cuda", "is_cpu", "is_mps", "is_leaf", "is_sparse", "is_quantized", "is_meta", "is_complex",
        "is_floating_point", "is_contiguous", "is_pinned", "is_shared", "is_signed", "is_nonzero", "is_same_size",
        "is_set_to", "is_inference", "is_coalesced", "is_conj", "is_neg", "requires_grad", "retains_grad", "output_nr",
        "grad_fn", "equal", "allclose", "sparse_dim", "dense_dim", "qscheme", "q_scale", "__len__", "is_tensor",
    }
)  # fmt: skip
"""Methods and attributes that give Python numbers, strings, shapes or types."""

ALIASES_DETACHED: frozenset[str] = frozenset({"detach", "detach_", "data", "numpy", "__array__", "Variable"})
"""The same memory without a graph. ``torch.autograd.Variable(x)`` belongs here: it wraps the data and drops the graph.
``detach`` shares the version counter, so an in-place change of the alias is still noticed; ``data`` and ``numpy`` have
their own, so it is not (https://pytorch.org/docs/stable/generated/torch.Tensor.detach.html)."""


SAMPLERS: frozenset[str] = frozenset({"sample", "sample_n", "enumerate_support"})
"""Methods of the classes of ``torch.distributions`` that draw without a graph; ``rsample`` keeps it
(https://docs.pytorch.org/docs/stable/distributions.html)."""

SCALAR_LOSSES: frozenset[str] = frozenset(
    {
        "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
        "ctc_loss", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
        "linear_cross_entropy", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
        "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
        "triplet_margin_loss", "triplet_margin_with_distance_loss",
    }
)  # fmt: skip
"""Functional losses; 0-dim unless called with ``reduction="none"``."""
