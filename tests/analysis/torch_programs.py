"""Small programs, one for each operation in the knowledge tables, and what PyTorch does with them.

A program is run on operands that are not leaves, so that they may be modified in place; then the traversal says whether
the operand was saved, and a second traversal whether anything was.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor

from tests.analysis.torch_operands import fresh

Program = tuple[str, Callable[..., Any]]


_broadcast_tensors: Callable[..., Any] = torch.broadcast_tensors

PROGRAMS: dict[str, Program] = {
    "add": ("x y", torch.add),
    "sub": ("x y", torch.sub),
    "subtract": ("x y", torch.subtract),
    "rsub": ("x y", torch.rsub),
    "mul": ("x y", torch.mul),
    "multiply": ("x y", torch.multiply),
    "div": ("x y", torch.div),
    "divide": ("x y", torch.divide),
    "true_divide": ("x y", torch.true_divide),
    "remainder": ("x", lambda x: x % 0.3),
    "fmod": ("x", lambda x: x.fmod(0.3)),
    "pow": ("x", lambda x: x**2),
    "float_power": ("x", lambda x: x.float_power(2)),
    "addcmul": ("x y y", torch.addcmul),
    "addcdiv": ("x y y", torch.addcdiv),
    "addmm": ("x y y", torch.addmm),
    "addmv": ("vector x vector", torch.addmv),
    "addr": ("x vector vector", torch.addr),
    "addbmm": ("x batch batch", torch.addbmm),
    "baddbmm": ("batch batch batch", torch.baddbmm),
    "lerp": ("x y", lambda x, y: torch.lerp(x, y, 0.3)),
    "maximum": ("x y", torch.maximum),
    "minimum": ("x y", torch.minimum),
    "fmax": ("x y", torch.fmax),
    "fmin": ("x y", torch.fmin),
    "atan2": ("x y", torch.atan2),
    "arctan2": ("x y", torch.arctan2),
    "logaddexp": ("x y", torch.logaddexp),
    "logaddexp2": ("x y", torch.logaddexp2),
    "xlogy": ("x y", torch.xlogy),
    "xlog1py": ("x y", torch.special.xlog1py),
    "hypot": ("x y", torch.hypot),
    "dist": ("x y", torch.dist),
    "cdist": ("x y", torch.cdist),
    "copysign": ("x y", torch.copysign),
    "ldexp": ("x positions", torch.ldexp),
    "matmul": ("x y", torch.matmul),
    "mm": ("x y", torch.mm),
    "bmm": ("batch batch", torch.bmm),
    "mv": ("x vector", torch.mv),
    "dot": ("vector vector", torch.dot),
    "vdot": ("vector vector", torch.vdot),
    "inner": ("x y", torch.inner),
    "outer": ("vector vector", torch.outer),
    "ger": ("vector vector", torch.ger),
    "einsum": ("x y", lambda x, y: torch.einsum("ij,jk->ik", x, y)),
    "tensordot": ("x y", lambda x, y: torch.tensordot(x, y, dims=1)),
    "cross": ("x y", lambda x, y: torch.cross(x, y, dim=1)),
    "linear": ("x y", functional.linear),
    "vecdot": ("x y", torch.linalg.vecdot),
    "multi_dot": ("x y", lambda x, y: torch.linalg.multi_dot([x, y])),
    "chain_matmul": ("x y", torch.chain_matmul),
    "bilinear": ("x y kernel", lambda x, y, kernel: functional.bilinear(x, y, kernel)),
    "kron": ("x y", torch.kron),
    "polygamma": ("x", lambda x: torch.polygamma(1, x)),
    "mvlgamma": ("large", lambda x: torch.mvlgamma(x, 2)),
    "multigammaln": ("large", lambda x: torch.special.multigammaln(x, 2)),
    "renorm": ("x", lambda x: torch.renorm(x, 2, 0, 1.0)),
    "combinations": ("vector", torch.combinations),
    "vander": ("vector", torch.linalg.vander),
    "clamp": ("x y y", torch.clamp),
    "clip": ("x y y", torch.clip),
    "clamp_min": ("x y", torch.clamp_min),
    "clamp_max": ("x y", torch.clamp_max),
    "softmax": ("x", lambda x: x.softmax(-1)),
    "log_softmax": ("x", lambda x: x.log_softmax(-1)),
    "softmin": ("x", lambda x: functional.softmin(x, dim=-1)),
    "threshold": ("x", lambda x: functional.threshold(x, 0.3, 0.0)),
    "glu": ("image", lambda x: functional.glu(x, 1)),
    "prelu": ("x weight", functional.prelu),
    "logsumexp": ("x", lambda x: x.logsumexp(0)),
    "quantile": ("x", lambda x: x.quantile(0.4)),
    "nanquantile": ("x", lambda x: x.nanquantile(0.4)),
    "cumsum": ("x", lambda x: x.cumsum(0)),
    "cumprod": ("x", lambda x: x.cumprod(0)),
    "logcumsumexp": ("x", lambda x: x.logcumsumexp(0)),
    "cummax": ("x", lambda x: x.cummax(0)),
    "cummin": ("x", lambda x: x.cummin(0)),
    "sum_to_size": ("x", lambda x: x.sum_to_size(1, 3)),
    "topk": ("x", lambda x: x.topk(2)),
    "kthvalue": ("x", lambda x: x.kthvalue(2)),
    "index_select": ("x positions", lambda x, i: x.index_select(0, i)),
    "masked_fill": ("x mask", lambda x, m: x.masked_fill(m, 0.0)),
    "masked_scatter": ("x mask", lambda x, m: x.masked_scatter(m, torch.zeros(3, 3))),
    "masked_select": ("x mask", torch.masked_select),
    "scatter": ("x table", lambda x, t: x.scatter(0, t, 1.0)),
    "scatter_add": ("x table y", lambda x, t, y: x.scatter_add(0, t, y)),
    "scatter_reduce": ("x table y", lambda x, t, y: x.scatter_reduce(0, t, y, "prod")),
    "index_reduce": ("x positions y", lambda x, i, y: x.index_reduce(0, i, y, "prod")),
    "put": ("x positions vector", lambda x, i, y: x.put(i, y)),
    "index_add": ("x positions y", lambda x, i, y: x.index_add(0, i, y)),
    "index_fill": ("x positions", lambda x, i: x.index_fill(0, i, 1.0)),
    "index_copy": ("x positions y", lambda x, i, y: x.index_copy(0, i, y)),
    "index_put": ("x positions", lambda x, i: x.index_put((i,), torch.zeros(3))),
    "gather": ("x table", lambda x, t: x.gather(0, t)),
    "take": ("x table", torch.take),
    "take_along_dim": ("x table", lambda x, t: torch.take_along_dim(x, t, 0)),
    "where": ("x y", lambda x, y: torch.where(torch.eye(3, dtype=torch.bool), x, y)),
    "embedding": ("positions y", lambda i, w: functional.embedding(i, w)),
    "embedding_bag": ("table y", lambda i, w: functional.embedding_bag(i, w)),
    "getitem": ("x", lambda x: x[0, None, ..., 1:]),
    "getitem_advanced": ("x", lambda x: x[[0, 2]]),
    "cat": ("x y", lambda x, y: torch.cat([x, y])),
    "concat": ("x y", lambda x, y: torch.concat([x, y])),
    "concatenate": ("x y", lambda x, y: torch.concatenate([x, y])),
    "stack": ("x y", lambda x, y: torch.stack([x, y])),
    "hstack": ("x y", lambda x, y: torch.hstack([x, y])),
    "vstack": ("x y", lambda x, y: torch.vstack([x, y])),
    "dstack": ("x y", lambda x, y: torch.dstack([x, y])),
    "column_stack": ("x y", lambda x, y: torch.column_stack([x, y])),
    "row_stack": ("x y", lambda x, y: torch.vstack([x, y])),
    "block_diag": ("x y", torch.block_diag),
    "cartesian_prod": ("vector vector", torch.cartesian_prod),
    "repeat": ("x", lambda x: x.repeat(2, 1)),
    "tile": ("x", lambda x: x.tile(2)),
    "flip": ("x", lambda x: x.flip(0)),
    "roll": ("x", lambda x: x.roll(1)),
    "diag": ("vector", torch.diag),
    "select_scatter": ("x", lambda x: x.select_scatter(torch.zeros(3), 0, 0)),
    "slice_scatter": ("x", lambda x: x.slice_scatter(torch.zeros(1, 3), 0, 0, 1)),
    "diagonal_scatter": ("x", lambda x: x.diagonal_scatter(torch.zeros(3))),
    "as_strided_scatter": ("x", lambda x: x.as_strided_scatter(torch.zeros(2), (2,), (1,))),
    "repeat_interleave": ("x", lambda x: x.repeat_interleave(2)),
    "pad": ("x", lambda x: functional.pad(x, (1, 1))),
    "constant_pad_nd": ("x", lambda x: torch.constant_pad_nd(x, (1, 1))),
    "to": ("x", lambda x: x.to(torch.float64)),
    "type": ("x", lambda x: x.type(torch.float64)),
    "type_as": ("x", lambda x: x.type_as(torch.zeros(1, dtype=torch.float64))),
    "view": ("x", lambda x: x.view(-1)),
    "view_as": ("x", lambda x: x.view_as(torch.zeros(9))),
    "reshape": ("x", lambda x: x.reshape(9)),
    "reshape_as": ("x", lambda x: x.reshape_as(torch.zeros(9))),
    "unflatten": ("x", lambda x: x.unflatten(1, (1, 3))),
    "squeeze": ("row", torch.squeeze),
    "unsqueeze": ("x", lambda x: x.unsqueeze(0)),
    "transpose": ("x", lambda x: x.transpose(0, 1)),
    "permute": ("x", lambda x: x.permute(1, 0)),
    "movedim": ("x", lambda x: x.movedim(0, 1)),
    "moveaxis": ("x", lambda x: x.moveaxis(0, 1)),
    "swapaxes": ("x", lambda x: x.swapaxes(0, 1)),
    "swapdims": ("x", lambda x: x.swapdims(0, 1)),
    "expand": ("x", lambda x: x.expand(1, 3, 3)),
    "expand_as": ("x", lambda x: x.expand_as(torch.zeros(1, 3, 3))),
    "broadcast_to": ("x", lambda x: x.broadcast_to(1, 3, 3)),
    "narrow": ("x", lambda x: x.narrow(0, 0, 1)),
    "select": ("x", lambda x: x.select(0, 0)),
    "as_strided": ("x", lambda x: x.as_strided((2,), (1,))),
    "as_subclass": ("x", lambda x: x.as_subclass(Tensor)),
    "view_as_real": ("complex", torch.view_as_real),
    "view_as_complex": ("grid", torch.view_as_complex),
    "real": ("complex", torch.real),
    "imag": ("complex", torch.imag),
    "atleast_1d": ("x", torch.atleast_1d),
    "atleast_2d": ("vector", torch.atleast_2d),
    "atleast_3d": ("x", torch.atleast_3d),
    "unfold": ("x", lambda x: x.unfold(0, 2, 1)),
    "split": ("x", lambda x: x.split(1)),
    "chunk": ("x", lambda x: x.chunk(3)),
    "split_with_sizes": ("x", lambda x: x.split_with_sizes([1, 2])),
    "tensor_split": ("x", lambda x: x.tensor_split(3)),
    "hsplit": ("x", lambda x: x.hsplit(3)),
    "vsplit": ("x", lambda x: x.vsplit(3)),
    "dsplit": ("batch", lambda x: x.dsplit(3)),
    "unsafe_split": ("x", lambda x: x.unsafe_split(1)),
    "unsafe_chunk": ("x", lambda x: x.unsafe_chunk(3)),
    "meshgrid": ("vector", lambda x: torch.meshgrid(x, torch.zeros(1), indexing="ij")),
    "broadcast_tensors": ("x", lambda x: _broadcast_tensors(x, torch.zeros(3, 3))),
    "complex": ("x y", torch.complex),
    "polar": ("x y", torch.polar),
    "stft": ("wave", lambda x: torch.stft(x, 4, window=torch.ones(4), return_complex=True)),
    "istft": ("grid", lambda x: torch.istft(torch.view_as_complex(x)[0], 4, window=torch.ones(4))),
    "householder_product": ("x vector", torch.linalg.householder_product),
    "orgqr": ("x vector", torch.orgqr),
    "cholesky": ("definite", torch.linalg.cholesky),
    "cholesky_ex": ("definite", torch.linalg.cholesky_ex),
    "cholesky_inverse": ("triangle", torch.cholesky_inverse),
    "cholesky_solve": ("x triangle", torch.cholesky_solve),
    "eig": ("definite", torch.linalg.eig),
    "eigh": ("definite", torch.linalg.eigh),
    "eigvals": ("definite", torch.linalg.eigvals),
    "eigvalsh": ("definite", torch.linalg.eigvalsh),
    "qr": ("x", torch.linalg.qr),
    "svd": ("x", lambda x: torch.linalg.svd(x, full_matrices=False)),
    "lu": ("definite", torch.linalg.lu),
    "svd_lowrank": ("x", lambda x: torch.svd_lowrank(x, 2)),
    "det": ("definite", torch.det),
    "logdet": ("definite", torch.logdet),
    "slogdet": ("definite", torch.slogdet),
    "tensorinv": ("batch", lambda x: torch.linalg.tensorinv(x[0].reshape(3, 3, 1), ind=1)),
    "solve": ("definite", lambda a: torch.linalg.solve(a, torch.ones(3, 1))),
    "solve_triangular": ("triangle", lambda a: torch.linalg.solve_triangular(a, torch.ones(3, 1), upper=False)),
    "tensorsolve": ("definite", lambda a: torch.linalg.tensorsolve(a, torch.ones(3))),
    "lu_solve": ("definite pivots x", torch.linalg.lu_solve),
    "lstsq": ("definite x", torch.linalg.lstsq),
    "triangular_solve": ("x triangle", torch.triangular_solve),
    "matrix_power": ("x", lambda x: torch.linalg.matrix_power(x, 3)),
    "frobenius_norm": ("x", torch.linalg.matrix_norm),
    "conv1d": ("signal kernel1", functional.conv1d),
    "conv2d": ("image kernel2", functional.conv2d),
    "conv3d": ("volume kernel3", functional.conv3d),
    "conv_transpose1d": ("signal kernel1", functional.conv_transpose1d),
    "conv_transpose2d": ("image kernel2", functional.conv_transpose2d),
    "conv_transpose3d": ("volume kernel3", functional.conv_transpose3d),
    "avg_pool1d": ("signal", lambda x: functional.avg_pool1d(x, 2)),
    "avg_pool2d": ("image", lambda x: functional.avg_pool2d(x, 2)),
    "avg_pool3d": ("volume", lambda x: functional.avg_pool3d(x, 2)),
    "adaptive_avg_pool1d": ("signal", lambda x: functional.adaptive_avg_pool1d(x, 2)),
    "adaptive_avg_pool2d": ("image", lambda x: functional.adaptive_avg_pool2d(x, 2)),
    "adaptive_avg_pool3d": ("volume", lambda x: functional.adaptive_avg_pool3d(x, 2)),
    "max_pool1d": ("signal", lambda x: functional.max_pool1d(x, 2)),
    "max_pool2d": ("image", lambda x: functional.max_pool2d(x, 2)),
    "max_pool3d": ("volume", lambda x: functional.max_pool3d(x, 2)),
    "adaptive_max_pool1d": ("signal", lambda x: functional.adaptive_max_pool1d(x, 2)),
    "adaptive_max_pool2d": ("image", lambda x: functional.adaptive_max_pool2d(x, 2)),
    "adaptive_max_pool3d": ("volume", lambda x: functional.adaptive_max_pool3d(x, 2)),
    "fractional_max_pool2d": ("image", lambda x: functional.fractional_max_pool2d(x, 2, output_size=2)),
    "fractional_max_pool3d": ("volume", lambda x: functional.fractional_max_pool3d(x, 2, output_size=2)),
    "lp_pool1d": ("signal", lambda x: functional.lp_pool1d(x, 2, 2)),
    "lp_pool2d": ("image", lambda x: functional.lp_pool2d(x, 2, 2)),
    "lp_pool3d": ("volume", lambda x: functional.lp_pool3d(x, 2, 2)),
    "interpolate": ("image", lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear")),
    "upsample": ("image", lambda x: functional.interpolate(x, scale_factor=2)),
    "upsample_nearest": ("image", lambda x: functional.interpolate(x, scale_factor=2, mode="nearest")),
    "upsample_bilinear": ("image", lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear")),
    "pixel_shuffle": ("image", lambda x: functional.pixel_shuffle(x, 2)),
    "pixel_unshuffle": ("image", lambda x: functional.pixel_unshuffle(x, 2)),
    "channel_shuffle": ("image", lambda x: functional.channel_shuffle(x, 2)),
    "fold": ("signal", lambda x: functional.fold(x, (3, 4), (2, 2))),
    "affine_grid": ("batch", lambda x: functional.affine_grid(x[:, :2], [2, 1, 4, 4], align_corners=False)),
    "grid_sample": ("image grid", lambda x, g: functional.grid_sample(x, g, align_corners=False)),
    "batch_norm": ("x", lambda x: functional.batch_norm(x, torch.zeros(3), torch.ones(3), training=True)),
    "instance_norm": ("image", functional.instance_norm),
    "layer_norm": ("x vector", lambda x, w: functional.layer_norm(x, (3,), w)),
    "rms_norm": ("x vector", lambda x, w: functional.rms_norm(x, (3,), w)),
    "group_norm": ("x vector", lambda x, w: functional.group_norm(x, 1, w)),
    "local_response_norm": ("signal", lambda x: functional.local_response_norm(x, 2)),
    "dropout2d": ("image", functional.dropout2d),
    "dropout1d": ("signal", functional.dropout1d),
    "dropout3d": ("volume", functional.dropout3d),
    "alpha_dropout": ("x", lambda x: functional.alpha_dropout(x, training=True)),
    "feature_alpha_dropout": ("image", lambda x: functional.feature_alpha_dropout(x, training=True)),
    "pairwise_distance": ("x y", functional.pairwise_distance),
    "cosine_similarity": ("x y", functional.cosine_similarity),
    "cross_entropy": ("x positions", functional.cross_entropy),
    "nll_loss": ("x positions", functional.nll_loss),
    "mse_loss": ("x y", functional.mse_loss),
    "smooth_l1_loss": ("x y", functional.smooth_l1_loss),
    "huber_loss": ("x y", functional.huber_loss),
    "binary_cross_entropy": ("x y", functional.binary_cross_entropy),
    "binary_cross_entropy_with_logits": ("x y", functional.binary_cross_entropy_with_logits),
    "soft_margin_loss": ("x y", functional.soft_margin_loss),
    "multi_margin_loss": ("x positions", functional.multi_margin_loss),
    "multilabel_margin_loss": ("x table", functional.multilabel_margin_loss),
    "multilabel_soft_margin_loss": ("x ones", functional.multilabel_soft_margin_loss),
    "cosine_embedding_loss": (
        "x y",
        lambda x, y: functional.cosine_embedding_loss(x, y, torch.tensor([1.0, -1.0, 1.0])),
    ),
    "linear_cross_entropy": (
        "x y positions",
        functional.linear_cross_entropy,
    ),
    "kl_div": ("x y", lambda x, y: functional.kl_div(x, y, reduction="sum")),
    "poisson_nll_loss": ("x y", functional.poisson_nll_loss),
    "l1_loss": ("x y", functional.l1_loss),
    "margin_ranking_loss": ("vector vector", lambda x, y: functional.margin_ranking_loss(x, y, fresh("signs"))),
    "triplet_margin_loss": ("x y y", functional.triplet_margin_loss),
    "triplet_margin_with_distance_loss": ("x y y", functional.triplet_margin_with_distance_loss),
    "hinge_embedding_loss": ("vector", lambda x: functional.hinge_embedding_loss(x, fresh("signs"))),
    "gaussian_nll_loss": ("x y", lambda x, y: functional.gaussian_nll_loss(x, y, torch.ones(3, 3))),
    "normal": ("x", lambda x: torch.normal(x, 1.0)),
    "floor_divide": ("x", lambda x: x // 0.3),
    "histogram": ("x", lambda x: torch.histogram(x, bins=2)),
    "histogramdd": ("x", lambda x: torch.histogramdd(x, bins=[2, 2, 2])),
    "heaviside": ("x", lambda x: torch.heaviside(x, torch.zeros(()))),
    "conv_tbc": ("batch kernel", lambda x, w: torch.conv_tbc(x, w, torch.zeros(3))),
    "max_unpool1d": ("batch counts1", lambda x, i: functional.max_unpool1d(x, i, [2])),
    "max_unpool2d": ("volume1 counts2", lambda x, i: functional.max_unpool2d(x, i, [2, 2])),
    "max_unpool3d": ("volume2 counts3", lambda x, i: functional.max_unpool3d(x, i, [2, 2, 2])),
    "grid_sampler": ("image grid", lambda x, g: torch.grid_sampler(x, g, 0, 0, False)),
    "scaled_dot_product_attention": ("heads heads heads", functional.scaled_dot_product_attention),
    "ctc_loss": (
        "frames labels",
        lambda x, t: functional.ctc_loss(x, t, torch.tensor([6, 6, 6]), torch.tensor([3, 3, 3])),
    ),
    "coalesce": ("x", lambda x: x.to_sparse().coalesce()),
}
"""Names whose program is more than a call on one square matrix: the kinds of its operands, and the call."""

NAMESPACES: tuple[object, ...] = (
    torch.nn.functional, torch, Tensor, torch.special, torch.linalg, torch.fft, torch._C._nn,
)  # fmt: skip


def program(name: str) -> Program:
    """The program for the operation; raises ``LookupError`` where PyTorch has no such name."""
    if name in PROGRAMS:
        return PROGRAMS[name]
    for namespace in NAMESPACES:
        found = getattr(namespace, name, None)
        if callable(found):
            return "x", found
    if hasattr(Tensor, name):
        return "x", lambda x: getattr(x, name)
    raise LookupError(name)


def tensors(value: object) -> Iterator[Tensor]:
    """The tensors of a result, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)


def shares_memory(result: Tensor, operand: Tensor) -> bool:
    """It is the operand, or a view of its memory with its version counter."""
    if result is operand:
        return True
    if result.layout != torch.strided or not result._is_view():
        return False
    return result.untyped_storage().data_ptr() == operand.untyped_storage().data_ptr()


def traverse(result: Tensor) -> None:
    """Back-propagate the sum, and free the graph."""
    torch.autograd.backward(result.sum())


def outcome(run: Callable[[], object]) -> str:
    """How a traversal ends: nothing, ``modified`` for a saved tensor changed in place, ``freed`` for a second one."""
    try:
        run()
    except RuntimeError as error:
        message = str(error)
        if "modified by an inplace operation" in message or "has been modified inplace" in message:
            return "modified"
        if "second time" in message:
            return "freed"
        return message
    return ""


@dataclass(frozen=True, slots=True)
class Observation:
    """What PyTorch did with one program, with certain operands tracked."""

    records: bool
    """A result requires grad."""
    saves_operands: tuple[bool, ...]
    saves_result: bool
    saves: bool
    """A second traversal is an error."""
    view: bool
    """The first result shares memory with the first operand."""
    shapes: tuple[tuple[int, ...], ...]
    tracked_results: tuple[bool, ...]


class Run:
    """One run of a program on new operands."""

    def __init__(self, name: str, tracked: Sequence[bool]) -> None:
        kinds, call = program(name)
        torch.manual_seed(3)
        self.operands = [fresh(kind) for kind in kinds.split()]
        for index, wanted in enumerate(tracked):
            operand = self.operands[index]
            if wanted and (operand.is_floating_point() or operand.is_complex()):
                self.operands[index] = operand.requires_grad_().clone()
        self.result = call(*self.operands)
        self.outputs = [output for output in tensors(self.result) if output.requires_grad]

    def traverse(self) -> None:
        sources = [operand for operand in self.operands if operand.requires_grad]
        torch.autograd.grad(self.outputs, sources, [torch.ones_like(o) for o in self.outputs], allow_unused=True)


def touch(tensor: Tensor) -> None:
    """Modify in place without changing a value."""
    with torch.no_grad():
        if tensor.dtype == torch.bool:
            tensor.logical_or_(torch.zeros((), dtype=torch.bool))
        else:
            tensor.add_(0)


def observe(name: str, tracked: Sequence[bool]) -> Observation:
    """Run the program under PyTorch again and again, each time with another tensor modified."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = Run(name, tracked)
        everything = list(tensors(first.result))
        view = shares_memory(everything[0], first.operands[0])
        shapes = tuple(tuple(output.shape) for output in everything)
        tracked_results = tuple(output.requires_grad for output in everything)
        nothing = tuple(False for _ in first.operands)
        if not first.outputs:
            return Observation(False, nothing, False, False, view, shapes, tracked_results)
        first.traverse()
        saves = outcome(first.traverse) == "freed"
        operands = []
        for index in range(len(first.operands)):
            again = Run(name, tracked)
            touch(again.operands[index])
            operands.append(outcome(again.traverse) == "modified")
        again = Run(name, tracked)
        for output in again.outputs:
            touch(output)
        result = outcome(again.traverse) == "modified"
        return Observation(True, tuple(operands), result, saves, view, shapes, tracked_results)
