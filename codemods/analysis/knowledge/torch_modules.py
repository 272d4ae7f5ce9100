"""What the modules of ``torch.nn`` own, keep and return, and which model constructors carry no state between calls.

Source: https://pytorch.org/docs/stable/nn.html for the parameters and what a call returns; what a call keeps for the
traversal is that of the operation it makes (``torch_operations``), measured under PyTorch 2.13 by changing input,
result and every parameter in place before the traversal (``tests/analysis/test_knowledge.py`` repeats it).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModuleKind:
    """One class of module, with its parameters trained and in training mode.

    * ``parameters``: their attribute names; ``("*",)`` every parameter of the modules inside it. A constructor argument
      can take some away: ``bias=False``, ``affine=False``, ``elementwise_affine=False`` (``switches``).
    * ``saves_input``, ``saves_result``: changing that tensor in place before the traversal is an error.
    * ``saves_parameters``: changing these in place (an optimizer's step) is an error if the input requires grad;
      ``saves_parameters_untracked``: also if the input is plain data. A first ``Linear`` on data keeps no weight, a
      first convolution does.
    * ``returns``: ``tensor``; ``recurrent`` (output, h); ``lstm`` (output, (h, c)); ``cell`` h; ``lstm_cell`` (h, c);
      ``attention`` (output, weights); ``tensors`` a tuple, all with a graph; ``container``.
    * ``in_place_option``: it has ``inplace=False``; with True it changes its input. ``in_place_position``: that
      argument's position in the constructor's call.
    * ``loss``: a scalar unless ``reduction="none"``.
    * ``internal``: it saves something that nobody can modify, so a second traversal is an error.
    * ``view``: the result shares memory with the input. ``operation``: the entry of ``OPERATIONS`` that says the rest.
    """

    parameters: tuple[str, ...]
    saves_input: bool
    saves_result: bool
    returns: str = "tensor"
    in_place_option: bool = False
    loss: bool = False
    saves_parameters: tuple[str, ...] = ()
    saves_parameters_untracked: tuple[str, ...] = ()
    internal: bool = False
    view: bool = False
    operation: str = ""
    switches: tuple[str, ...] = ()
    in_place_position: int = -1


_WEIGHT = ("weight",)
_BOTH = ("weight", "bias")
_ALL = ("*",)
_SWITCH_BIAS = ("bias",)
_SWITCH_AFFINE = ("affine",)


def _input(operation: str, in_place: int = -1) -> ModuleKind:
    return ModuleKind((), True, False, in_place_option=in_place >= 0, operation=operation, in_place_position=in_place)


def _result(operation: str, in_place: int = -1) -> ModuleKind:
    return ModuleKind((), False, True, in_place_option=in_place >= 0, operation=operation, in_place_position=in_place)


def _nothing(operation: str) -> ModuleKind:
    return ModuleKind((), False, False, operation=operation)


def _dropout(operation: str) -> ModuleKind:
    return ModuleKind((), False, False, in_place_option=True, internal=True, operation=operation, in_place_position=1)


def _convolution(operation: str) -> ModuleKind:
    return ModuleKind(
        _BOTH,
        True,
        False,
        saves_parameters=_WEIGHT,
        saves_parameters_untracked=_WEIGHT,
        operation=operation,
        switches=_SWITCH_BIAS,
    )


def _loss(operation: str, saves_input: bool = True, internal: bool = False) -> ModuleKind:
    return ModuleKind((), saves_input, False, loss=True, internal=internal, operation=operation)


_LINEAR = ModuleKind(_BOTH, True, False, saves_parameters=_WEIGHT, operation="linear", switches=_SWITCH_BIAS)
_BATCH_NORM = ModuleKind(
    _BOTH,
    True,
    False,
    saves_parameters=_WEIGHT,
    saves_parameters_untracked=_WEIGHT,
    internal=True,
    operation="batch_norm",
    switches=("affine", "bias"),
)
# Its weight is repeated over the batch first, so a copy is kept and not the parameter; affine=False by default.
_INSTANCE_NORM = ModuleKind(_BOTH, True, False, internal=True, operation="instance_norm", switches=_SWITCH_AFFINE)
_TRANSFORMER = ModuleKind(_ALL, True, False, saves_parameters=_ALL, saves_parameters_untracked=_ALL, internal=True)
_CONTAINER = ModuleKind(_ALL, False, False, returns="container")
_RECURRENT_PARAMETERS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
_CELL_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
# cuDNN keeps the result of RNN and GRU; the plain CPU kernels do not. More layers have l1, l2, ... and _reverse.
_RECURRENT = ModuleKind(
    _RECURRENT_PARAMETERS,
    True,
    True,
    returns="recurrent",
    saves_parameters=("weight_ih_l0", "weight_hh_l0"),
    saves_parameters_untracked=("weight_hh_l0",),
    internal=True,
    switches=_SWITCH_BIAS,
)

MODULES: dict[str, ModuleKind] = {
    # Linear.
    "Linear": _LINEAR,
    "LazyLinear": _LINEAR,
    "Bilinear": ModuleKind(_BOTH, True, False, saves_parameters=_WEIGHT, operation="bilinear", switches=_SWITCH_BIAS),
    "Identity": ModuleKind((), False, False, view=True),
    # Convolution.
    **dict.fromkeys(("Conv1d", "LazyConv1d"), _convolution("conv1d")),
    **dict.fromkeys(("Conv2d", "LazyConv2d"), _convolution("conv2d")),
    **dict.fromkeys(("Conv3d", "LazyConv3d"), _convolution("conv3d")),
    **dict.fromkeys(("ConvTranspose1d", "LazyConvTranspose1d"), _convolution("conv_transpose1d")),
    **dict.fromkeys(("ConvTranspose2d", "LazyConvTranspose2d"), _convolution("conv_transpose2d")),
    **dict.fromkeys(("ConvTranspose3d", "LazyConvTranspose3d"), _convolution("conv_transpose3d")),
    "Fold": _nothing("fold"),
    "Unfold": _nothing("unfold"),
    # Normalisation.
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"), _BATCH_NORM),
    **dict.fromkeys(("LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d"), _BATCH_NORM),
    **dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), _INSTANCE_NORM),
    **dict.fromkeys(("LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d"), _INSTANCE_NORM),
    # The native kernel keeps the bias too.
    "LayerNorm": ModuleKind(
        _BOTH,
        True,
        False,
        saves_parameters=_BOTH,
        saves_parameters_untracked=_BOTH,
        internal=True,
        operation="layer_norm",
        switches=("elementwise_affine", "bias"),
    ),
    "GroupNorm": ModuleKind(
        _BOTH,
        True,
        False,
        saves_parameters=_WEIGHT,
        saves_parameters_untracked=_WEIGHT,
        internal=True,
        operation="group_norm",
        switches=("affine", "bias"),
    ),
    "RMSNorm": ModuleKind(
        _WEIGHT,
        True,
        False,
        saves_parameters=_WEIGHT,
        internal=True,
        operation="rms_norm",
        switches=("elementwise_affine",),
    ),
    "LocalResponseNorm": _input("local_response_norm"),
    "CrossMapLRN2d": ModuleKind((), True, True),
    # Recurrent.
    **dict.fromkeys(("RNN", "GRU", "RNNBase"), _RECURRENT),
    "LSTM": ModuleKind(
        _RECURRENT_PARAMETERS,
        True,
        True,
        returns="lstm",
        saves_parameters=_RECURRENT_PARAMETERS,
        saves_parameters_untracked=_RECURRENT_PARAMETERS,
        internal=True,
        switches=_SWITCH_BIAS,
    ),
    "RNNCell": ModuleKind(
        _CELL_PARAMETERS,
        True,
        True,
        returns="cell",
        saves_parameters=("weight_ih", "weight_hh"),
        internal=True,
        switches=_SWITCH_BIAS,
    ),
    "GRUCell": ModuleKind(
        _CELL_PARAMETERS,
        True,
        False,
        returns="cell",
        saves_parameters=("weight_ih", "weight_hh"),
        internal=True,
        switches=_SWITCH_BIAS,
    ),
    "LSTMCell": ModuleKind(
        _CELL_PARAMETERS,
        True,
        False,
        returns="lstm_cell",
        saves_parameters=("weight_ih", "weight_hh"),
        internal=True,
        switches=_SWITCH_BIAS,
    ),
    # Attention. (query, key, value) -> (output, weights); the weights are None with need_weights=False.
    "MultiheadAttention": ModuleKind(
        ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"),
        True,
        False,
        returns="attention",
        saves_parameters=("in_proj_weight", "out_proj.weight"),
        saves_parameters_untracked=("out_proj.weight",),
        internal=True,
        operation="multi_head_attention_forward",
        switches=_SWITCH_BIAS,
    ),
    **dict.fromkeys(("Transformer", "TransformerEncoder", "TransformerDecoder"), _TRANSFORMER),
    **dict.fromkeys(("TransformerEncoderLayer", "TransformerDecoderLayer"), _TRANSFORMER),
    # Embedding keeps the indices, not the weight.
    "Embedding": ModuleKind(_WEIGHT, True, False, operation="embedding"),
    "EmbeddingBag": ModuleKind(_WEIGHT, True, False, operation="embedding_bag"),
    # Activations.
    "ReLU": _result("relu", in_place=0),
    "Sigmoid": _result("sigmoid"),
    "Tanh": _result("tanh"),
    **dict.fromkeys(("Softmax", "Softmax2d"), _result("softmax")),
    "LogSoftmax": _result("log_softmax"),
    "Softmin": _result("softmin"),
    "ReLU6": _input("relu6", in_place=0),
    "LeakyReLU": _input("leaky_relu", in_place=1),
    "ELU": _input("elu", in_place=1),
    "CELU": _input("celu", in_place=1),
    "SELU": _input("selu", in_place=0),
    "RReLU": _input("rrelu", in_place=2),
    "SiLU": _input("silu", in_place=0),
    "Mish": _input("mish", in_place=0),
    "Hardswish": _input("hardswish", in_place=0),
    "Hardsigmoid": _input("hardsigmoid", in_place=0),
    "Hardtanh": _input("hardtanh", in_place=2),
    "Threshold": _input("threshold", in_place=2),
    "GELU": _input("gelu"),
    "GLU": _input("glu"),
    "Softplus": _input("softplus"),
    "Softsign": _input("softsign"),
    "Softshrink": _input("softshrink"),
    "Hardshrink": _input("hardshrink"),
    "LogSigmoid": _input("logsigmoid"),
    "Tanhshrink": ModuleKind((), False, False, internal=True, operation="tanhshrink"),
    "PReLU": ModuleKind(
        _WEIGHT, True, False, saves_parameters=_WEIGHT, saves_parameters_untracked=_WEIGHT, operation="prelu"
    ),
    # Dropout.
    "Dropout": _dropout("dropout"),
    "Dropout1d": _dropout("dropout1d"),
    "Dropout2d": _dropout("dropout2d"),
    "Dropout3d": _dropout("dropout3d"),
    "AlphaDropout": _dropout("alpha_dropout"),
    "FeatureAlphaDropout": _dropout("feature_alpha_dropout"),
    # Pooling. Max pooling with return_indices=True gives a pair.
    "AvgPool1d": _input("avg_pool1d"),
    "AvgPool2d": _input("avg_pool2d"),
    "AvgPool3d": _input("avg_pool3d"),
    "AdaptiveAvgPool1d": _input("adaptive_avg_pool1d"),
    "AdaptiveAvgPool2d": _input("adaptive_avg_pool2d"),
    "AdaptiveAvgPool3d": _input("adaptive_avg_pool3d"),
    "MaxPool1d": _input("max_pool1d"),
    "MaxPool2d": _input("max_pool2d"),
    "MaxPool3d": _input("max_pool3d"),
    "AdaptiveMaxPool1d": _input("adaptive_max_pool1d"),
    "AdaptiveMaxPool2d": _input("adaptive_max_pool2d"),
    "AdaptiveMaxPool3d": _input("adaptive_max_pool3d"),
    "FractionalMaxPool2d": _input("fractional_max_pool2d"),
    "FractionalMaxPool3d": _input("fractional_max_pool3d"),
    "LPPool1d": _input("lp_pool1d"),
    "LPPool2d": _input("lp_pool2d"),
    "LPPool3d": _input("lp_pool3d"),
    "MaxUnpool1d": ModuleKind((), False, False, internal=True, operation="max_unpool1d"),
    "MaxUnpool2d": ModuleKind((), False, False, internal=True, operation="max_unpool2d"),
    "MaxUnpool3d": ModuleKind((), False, False, internal=True, operation="max_unpool3d"),
    # Shape and padding.
    "Flatten": ModuleKind((), False, False, view=True, operation="flatten"),
    "Unflatten": ModuleKind((), False, False, view=True, operation="unflatten"),
    "ChannelShuffle": _nothing("channel_shuffle"),
    "PixelShuffle": _nothing("pixel_shuffle"),
    "PixelUnshuffle": _nothing("pixel_unshuffle"),
    **dict.fromkeys(("Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"), _nothing("interpolate")),
    **dict.fromkeys(("ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "ConstantPad1d", "ConstantPad2d"), _nothing("pad")),
    "ConstantPad3d": _nothing("pad"),
    **dict.fromkeys(("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"), _input("pad")),
    **dict.fromkeys(("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"), _input("pad")),
    **dict.fromkeys(
        ("CircularPad1d", "CircularPad2d", "CircularPad3d"),
        ModuleKind((), False, False, internal=True, operation="pad"),
    ),
    # Distances.
    "CosineSimilarity": ModuleKind((), True, False, internal=True, operation="cosine_similarity"),
    "PairwiseDistance": ModuleKind((), False, True, internal=True, operation="pairwise_distance"),
    # Losses.
    "MSELoss": _loss("mse_loss"),
    "SmoothL1Loss": _loss("smooth_l1_loss"),
    "HuberLoss": _loss("huber_loss"),
    "BCELoss": _loss("binary_cross_entropy"),
    "BCEWithLogitsLoss": _loss("binary_cross_entropy_with_logits"),
    **dict.fromkeys(("NLLLoss", "NLLLoss2d"), _loss("nll_loss")),
    "CTCLoss": _loss("ctc_loss"),
    "SoftMarginLoss": _loss("soft_margin_loss"),
    "MultiMarginLoss": _loss("multi_margin_loss"),
    "MultiLabelMarginLoss": _loss("multilabel_margin_loss"),
    "MultiLabelSoftMarginLoss": _loss("multilabel_soft_margin_loss", internal=True),
    "CosineEmbeddingLoss": _loss("cosine_embedding_loss", internal=True),
    "KLDivLoss": _loss("kl_div", saves_input=False, internal=True),
    "PoissonNLLLoss": _loss("poisson_nll_loss", saves_input=False, internal=True),
    "CrossEntropyLoss": _loss("cross_entropy", saves_input=False, internal=True),
    "L1Loss": _loss("l1_loss", saves_input=False, internal=True),
    "GaussianNLLLoss": _loss("gaussian_nll_loss", saves_input=False, internal=True),
    "HingeEmbeddingLoss": _loss("hinge_embedding_loss", saves_input=False, internal=True),
    "MarginRankingLoss": _loss("margin_ranking_loss", saves_input=False, internal=True),
    "TripletMarginLoss": _loss("triplet_margin_loss", saves_input=False, internal=True),
    "TripletMarginWithDistanceLoss": _loss("triplet_margin_with_distance_loss", saves_input=False, internal=True),
    # Losses with parameters: a named pair (output, loss); and with bias=True linear.bias too.
    "AdaptiveLogSoftmaxWithLoss": ModuleKind(
        _ALL, True, False, returns="tensors", saves_parameters=_ALL, internal=True
    ),
    "LinearCrossEntropyLoss": ModuleKind(
        ("linear.weight",),
        True,
        False,
        loss=True,
        saves_parameters=("linear.weight",),
        internal=True,
        operation="linear_cross_entropy",
    ),
    # Containers and wrappers: what a call keeps is what the modules inside keep.
    **dict.fromkeys(("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"), _CONTAINER),
    **dict.fromkeys(("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel"), _CONTAINER),
}
"""Public classes of ``torch.nn`` by bare name, and the data-parallel wrappers."""

PARAMETER_CLASSES: frozenset[str] = frozenset({"Parameter", "UninitializedParameter"})
"""A leaf that requires grad; ``nn.Parameter(x)`` of a tensor with a graph starts anew."""

WRAPPERS: frozenset[str] = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "torch.compile",
        "torch.jit.script",
        "torch.jit.trace",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "torch.nn.utils.parametrizations.orthogonal",
        "apex.parallel.DistributedDataParallel",
        "apex.parallel.convert_syncbn_model",
    }
)
"""Given a module they return one that behaves like it and holds its parameters."""

COPIERS: frozenset[str] = frozenset({"copy.deepcopy"})
"""Given a module they return one that behaves like it with parameters of its own; ``copy.copy`` shares them. A tensor
that is not a leaf cannot be deep-copied: that raises."""

MODULE_METHODS_RETURNING_SELF: frozenset[str] = frozenset(
    {
        "to", "cuda", "cpu", "xpu", "ipu", "to_empty", "train", "eval", "half", "float", "double", "bfloat16", "type",
        "requires_grad_", "apply", "share_memory",
    }
)  # fmt: skip
"""Source: https://pytorch.org/docs/stable/generated/torch.nn.Module.html."""

MODULE_METHODS: frozenset[str] = MODULE_METHODS_RETURNING_SELF | {
    "parameters", "named_parameters", "zero_grad", "modules", "children", "named_modules", "named_children",
    "register_buffer", "register_parameter", "add_module", "forward", "state_dict", "load_state_dict", "buffers",
}  # fmt: skip
"""Methods that every module has. Source: https://pytorch.org/docs/stable/generated/torch.nn.Module.html."""

MODULE_PARAMETER_METHODS: frozenset[str] = frozenset({"parameters", "named_parameters"})
"""They iterate over the module's parameters; ``buffers``, ``state_dict`` do not carry a graph."""

NO_MODULES: tuple[str, ...] = (
    "Tokenizer", "Processor", "FeatureExtractor", "Config", "DataCollator", "TrainingArguments",
)  # fmt: skip
"""Words in the names of what the libraries of ``STATELESS_FACTORIES`` make that is no module: its results are integers,
numbers or settings. Source: https://huggingface.co/docs/transformers/main_classes/tokenizer."""

STATELESS_FACTORIES: frozenset[str] = frozenset(
    {
        "torchvision.models", "torchvision.ops", "torchvision.transforms", "timm.create_model", "timm.models",
        "timm.layers", "timm.loss", "transformers.Auto", "transformers.Bert", "transformers.Roberta",
        "transformers.GPT2", "transformers.GPTNeo", "transformers.GPTJ", "transformers.T5", "transformers.Bart",
        "transformers.DistilBert", "transformers.Albert", "transformers.Electra", "transformers.Deberta",
        "transformers.XLMRoberta", "transformers.XLNet", "transformers.Llama", "transformers.Mistral",
        "transformers.Qwen", "transformers.Gemma", "transformers.OPT", "transformers.Bloom", "transformers.ViT",
        "transformers.CLIP", "transformers.Swin", "transformers.Wav2Vec2", "transformers.Whisper",
        "transformers.Hubert", "transformers.EncoderDecoderModel", "transformers.VisionEncoderDecoderModel",
        "diffusers.UNet", "diffusers.Autoencoder", "diffusers.ControlNet", "diffusers.Transformer",
        "segmentation_models_pytorch", "efficientnet_pytorch", "torchaudio.models", "open_clip.create_model",
        "clip.load", "lpips.LPIPS", "kornia", "monai.networks", "monai.losses", "einops.layers.torch",
        "sentence_transformers.SentenceTransformer", "peft.get_peft_model", "torch_geometric.nn",
        "dgl.nn", "pytorch_metric_learning.losses",
    }
)  # fmt: skip
"""Dotted prefixes of constructors whose objects keep nothing with a graph between two calls: what they remember they
return and take as an argument (``past_key_values``, ``mems``). ``torch_geometric.nn.models.TGNMemory`` is the exception
that STATEFUL_FACTORIES names. Sources: the libraries' documentation of each ``forward``."""

STATEFUL_FACTORIES: frozenset[str] = frozenset(
    {
        "spikingjelly", "snntorch", "torch_geometric.nn.TGNMemory", "torch_geometric.nn.models.TGNMemory", "bindsnet",
    }
)  # fmt: skip
"""Objects that keep a tensor with its graph between calls until told to reset or detach: spikingjelly's membrane
potentials (``functional.reset_net``), snntorch's with ``init_hidden=True`` (``utils.reset``, ``detach_hidden``), TGN's
memory (``memory.detach()``)."""
