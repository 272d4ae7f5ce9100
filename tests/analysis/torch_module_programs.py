"""Small modules, one for each class in the knowledge table, with operands to call them on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tests.analysis.torch_operands import fresh
from tests.analysis.torch_programs import outcome, tensors, touch

ModuleProgram = tuple[Callable[[], nn.Module], str]
"""How the module is made, and the kinds of its operands."""


def _pools(name: str, argument: object) -> dict[str, ModuleProgram]:
    kinds = {"1d": "signal", "2d": "image", "3d": "volume"}
    return {name + size: (lambda n=name + size: getattr(nn, n)(argument), kind) for size, kind in kinds.items()}  # type: ignore[misc]


MODULE_PROGRAMS: dict[str, ModuleProgram] = {
    "Linear": (lambda: nn.Linear(3, 3), "x"),
    "LazyLinear": (lambda: nn.LazyLinear(3), "x"),
    "Bilinear": (lambda: nn.Bilinear(3, 3, 3), "x y"),
    "Identity": (nn.Identity, "x"),
    "Conv1d": (lambda: nn.Conv1d(4, 4, 2), "signal"),
    "Conv2d": (lambda: nn.Conv2d(4, 4, 2), "image"),
    "Conv3d": (lambda: nn.Conv3d(4, 4, 2), "volume"),
    "LazyConv1d": (lambda: nn.LazyConv1d(4, 2), "signal"),
    "LazyConv2d": (lambda: nn.LazyConv2d(4, 2), "image"),
    "LazyConv3d": (lambda: nn.LazyConv3d(4, 2), "volume"),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 4, 2), "signal"),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 4, 2), "image"),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(4, 4, 2), "volume"),
    "LazyConvTranspose1d": (lambda: nn.LazyConvTranspose1d(4, 2), "signal"),
    "LazyConvTranspose2d": (lambda: nn.LazyConvTranspose2d(4, 2), "image"),
    "LazyConvTranspose3d": (lambda: nn.LazyConvTranspose3d(4, 2), "volume"),
    "Fold": (lambda: nn.Fold((3, 4), (2, 2)), "signal"),
    "Unfold": (lambda: nn.Unfold(2), "image"),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), "x"),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4), "image"),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(4), "volume"),
    "LazyBatchNorm1d": (nn.LazyBatchNorm1d, "x"),
    "LazyBatchNorm2d": (nn.LazyBatchNorm2d, "image"),
    "LazyBatchNorm3d": (nn.LazyBatchNorm3d, "volume"),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), "signal"),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, affine=True), "image"),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(4, affine=True), "volume"),
    "LazyInstanceNorm1d": (lambda: nn.LazyInstanceNorm1d(affine=True), "signal"),
    "LazyInstanceNorm2d": (lambda: nn.LazyInstanceNorm2d(affine=True), "image"),
    "LazyInstanceNorm3d": (lambda: nn.LazyInstanceNorm3d(affine=True), "volume"),
    "LayerNorm": (lambda: nn.LayerNorm(3), "x"),
    "GroupNorm": (lambda: nn.GroupNorm(1, 4), "image"),
    "RMSNorm": (lambda: nn.RMSNorm(3), "x"),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), "signal"),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(2), "image"),
    "RNN": (lambda: nn.RNN(3, 3), "batch"),
    "GRU": (lambda: nn.GRU(3, 3), "batch"),
    "LSTM": (lambda: nn.LSTM(3, 3), "batch"),
    "RNNCell": (lambda: nn.RNNCell(3, 3), "x y"),
    "GRUCell": (lambda: nn.GRUCell(3, 3), "x y"),
    "LSTMCell": (lambda: nn.LSTMCell(3, 3), "x y y"),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(3, 1), "batch batch batch"),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(3, 1, 4, dropout=0.0), "batch"),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(3, 1, 4, dropout=0.0), "batch batch"),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(3, 1, 4), 1, enable_nested_tensor=False),
        "batch",
    ),
    "TransformerDecoder": (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(3, 1, 4), 1), "batch batch"),
    "Transformer": (lambda: nn.Transformer(3, 1, 1, 1, 4), "batch batch"),
    "Embedding": (lambda: nn.Embedding(5, 3), "table"),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 3), "table"),
    "GLU": (lambda: nn.GLU(1), "image"),
    "Softmax": (lambda: nn.Softmax(-1), "x"),
    "Softmax2d": (nn.Softmax2d, "image"),
    "LogSoftmax": (lambda: nn.LogSoftmax(-1), "x"),
    "Softmin": (lambda: nn.Softmin(-1), "x"),
    "Threshold": (lambda: nn.Threshold(0.3, 0.0), "x"),
    "Dropout1d": (nn.Dropout1d, "signal"),
    "Dropout2d": (nn.Dropout2d, "image"),
    "Dropout3d": (nn.Dropout3d, "volume"),
    "FeatureAlphaDropout": (nn.FeatureAlphaDropout, "image"),
    **_pools("AvgPool", 2),
    **_pools("MaxPool", 2),
    **_pools("AdaptiveAvgPool", 2),
    **_pools("AdaptiveMaxPool", 2),
    **_pools("ZeroPad", 1),
    **_pools("ReflectionPad", 1),
    **_pools("ReplicationPad", 1),
    **_pools("CircularPad", 1),
    "ConstantPad1d": (lambda: nn.ConstantPad1d(1, 0.0), "signal"),
    "ConstantPad2d": (lambda: nn.ConstantPad2d(1, 0.0), "image"),
    "ConstantPad3d": (lambda: nn.ConstantPad3d(1, 0.0), "volume"),
    "FractionalMaxPool2d": (lambda: nn.FractionalMaxPool2d(2, output_size=2), "image"),
    "FractionalMaxPool3d": (lambda: nn.FractionalMaxPool3d(2, output_size=2), "volume"),
    "LPPool1d": (lambda: nn.LPPool1d(2, 2), "signal"),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), "image"),
    "LPPool3d": (lambda: nn.LPPool3d(2, 2), "volume"),
    "MaxUnpool1d": (lambda: nn.MaxUnpool1d(2), "batch counts1"),
    "MaxUnpool2d": (lambda: nn.MaxUnpool2d(2), "volume1 counts2"),
    "MaxUnpool3d": (lambda: nn.MaxUnpool3d(2), "volume2 counts3"),
    "Flatten": (nn.Flatten, "image"),
    "Unflatten": (lambda: nn.Unflatten(1, (1, 3)), "x"),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), "image"),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), "image"),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), "image"),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), "image"),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), "image"),
    "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), "image"),
    "CosineSimilarity": (nn.CosineSimilarity, "x y"),
    "PairwiseDistance": (nn.PairwiseDistance, "x y"),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, "x positions"),
    "NLLLoss": (nn.NLLLoss, "x positions"),
    "MultiMarginLoss": (nn.MultiMarginLoss, "x positions"),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, "x table"),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, "x ones"),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, "x y signs"),
    "MarginRankingLoss": (nn.MarginRankingLoss, "vector vector signs"),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, "vector signs"),
    "TripletMarginLoss": (nn.TripletMarginLoss, "x y y"),
    "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, "x y y"),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, "x y ones"),
    **{
        name: (getattr(nn, name), "x y")
        for name in (
            "MSELoss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "SoftMarginLoss", "KLDivLoss",
            "PoissonNLLLoss", "L1Loss",
        )
    },
    "AdaptiveLogSoftmaxWithLoss": (lambda: nn.AdaptiveLogSoftmaxWithLoss(3, 6, [2, 4]), "x positions"),
    "LinearCrossEntropyLoss": (lambda: nn.LinearCrossEntropyLoss(3, 4), "x positions"),
}  # fmt: skip
"""Classes whose program is more than ``nn.NAME()`` on one square matrix."""


def module_program(name: str) -> ModuleProgram:
    """How to make and call a module of the class."""
    return MODULE_PROGRAMS.get(name, (getattr(nn, name), "x"))


def operands(name: str) -> list[Tensor]:
    """The module's operands; the same values each time."""
    return [fresh(kind) for kind in module_program(name)[1].split()]


@dataclass(frozen=True, slots=True)
class ModuleObservation:
    """What a call of a module keeps for the traversal."""

    saves_input: bool
    saves_result: bool
    saves_parameters: tuple[str, ...]
    saves: bool
    result: object


class ModuleRun:
    """One call of a new module on new operands."""

    def __init__(self, name: str, tracked: bool) -> None:
        torch.manual_seed(5)
        self.module = module_program(name)[0]()
        self.operands = operands(name)
        for index, operand in enumerate(self.operands):
            learns = index == 0 or any(True for _ in self.module.parameters())
            if tracked and learns and operand.is_floating_point():
                self.operands[index] = operand.requires_grad_().clone()
        arguments: tuple[object, ...] = tuple(self.operands)
        if name == "LSTMCell":
            arguments = (self.operands[0], tuple(self.operands[1:]))
        self.result = self.module(*arguments)
        self.outputs = [output for output in tensors(self.result) if output.requires_grad]

    def traverse(self) -> None:
        sources = [*self.module.parameters(), *(o for o in self.operands if o.requires_grad)]
        torch.autograd.grad(self.outputs, sources, [torch.ones_like(o) for o in self.outputs], allow_unused=True)


def observe_module(name: str, tracked: bool) -> ModuleObservation:
    """Call the module again and again, each time with another tensor modified before the traversal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = ModuleRun(name, tracked)
        first.traverse()
        saves = outcome(first.traverse) == "freed"

        def modified(pick: Callable[[ModuleRun], Tensor]) -> bool:
            again = ModuleRun(name, tracked)
            touch(pick(again))
            return outcome(again.traverse) == "modified"

        parameters = tuple(
            parameter
            for parameter, _ in first.module.named_parameters()
            if modified(lambda run, parameter=parameter: dict(run.module.named_parameters())[parameter])  # type: ignore[misc]
        )
        return ModuleObservation(
            modified(lambda run: run.operands[0]),
            any(modified(lambda run, i=i: run.outputs[i]) for i in range(len(first.outputs))),  # type: ignore[misc]
            parameters,
            saves,
            first.result,
        )
