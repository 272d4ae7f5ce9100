"""The table of in-place operations, held against the installed PyTorch."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as functional
from torch import Tensor

from gradmend.codemods.analysis.knowledge.torch_operations import IN_PLACE, IN_PLACE_ARGUMENT, IN_PLACE_KEEPS_RESULT
from tests.analysis.torch_operands import fresh
from tests.analysis.torch_programs import outcome, touch, traverse


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


IN_PLACE_ARGUMENTS: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(("addbmm_", "baddbmm_"), (fresh("batch"), fresh("batch"))),
    **dict.fromkeys(("addcdiv_", "addcmul_", "addmm_"), (fresh("y"), fresh("y"))),
    "addmv_": (fresh("y"), fresh("vector")),
    "addr_": (fresh("vector"), fresh("vector")),
    **dict.fromkeys(("clamp_", "clip_"), (0.0, 1.0)),
    **dict.fromkeys(("cumprod_", "cumsum_", "tril_", "triu_", "unsqueeze_"), (0,)),
    "fill_diagonal_": (1.0,),
    **dict.fromkeys(("index_add_", "index_copy_"), (0, fresh("positions"), fresh("y"))),
    "index_fill_": (0, fresh("positions"), 1.0),
    "index_put_": ((fresh("positions"),), torch.zeros(3)),
    "index_reduce_": (0, fresh("positions"), fresh("y"), "prod"),
    "ldexp_": (torch.ones(3, 3),),
    "lerp_": (fresh("y"), 0.5),
    **dict.fromkeys(("masked_fill_",), (fresh("mask"), 0.0)),
    "masked_scatter_": (fresh("mask"), fresh("y")),
    "mvlgamma_": (1,),
    "polygamma_": (1,),
    "put_": (fresh("positions"), fresh("vector")),
    "renorm_": (2, 0, 1.0),
    "scatter_": (0, fresh("table"), 1.0),
    "scatter_add_": (0, fresh("table"), fresh("y")),
    "scatter_reduce_": (0, fresh("table"), fresh("y"), "prod"),
    "threshold_": (0.3, 0.0),
    **dict.fromkeys(("dropout_", "alpha_dropout_", "feature_alpha_dropout_"), (0.5, True)),
    **dict.fromkeys(("transpose_", "swapaxes_", "swapdims_"), (0, 1)),
    "as_strided_": ((3,), (1,)),
    "set_": (torch.zeros(3, 3),),
    "resize_": (2, 2),
    "resize_as_": (torch.zeros(2, 2),),
    "copy_": (fresh("y"),),
    "fill_": (1.0,),
    "geometric_": (0.5,),
}
TWO_OPERANDS = frozenset(
    {
        "add_", "arctan2_", "atan2_", "copysign_", "div_", "divide_", "float_power_", "floor_divide_", "fmod_",
        "hypot_", "mul_", "multiply_", "nextafter_", "pow_", "remainder_", "sub_", "subtract_", "true_divide_",
        "xlogy_", "eq_", "ne_", "lt_", "le_", "gt_", "ge_", "logical_and_", "logical_or_",
        "logical_xor_", "clamp_min_", "clamp_max_",
        "heaviside_",
    }
)  # fmt: skip


def operand(name: str) -> Tensor:
    """A tensor that the in-place method takes."""
    return fresh({"addmv_": "vector", "baddbmm_": "batch", "squeeze_": "row"}.get(name, "x"))


def in_place(name: str, x: Tensor) -> object:
    """Call the in-place method, or the function that stands for it."""
    arguments = IN_PLACE_ARGUMENTS.get(name, (fresh("y"),) if name in TWO_OPERANDS else ())
    method = getattr(x, name, None)
    if method is not None:
        return method(*arguments)
    function = getattr(functional, name, None) or getattr(torch, name, None) or getattr(torch._C._nn, name)
    return function(x, *arguments)


@pytest.mark.parametrize("name", sorted(IN_PLACE))
def test_in_place(name: str) -> None:
    entry = IN_PLACE[name]
    bits = name.startswith("bitwise_")
    if bits:
        x = fresh("table")
        version = x._version
        getattr(x, name)(*(() if name == "bitwise_not_" else (1,)))
        assert x._version > version
        return
    if name == "float_power_":
        x = fresh("x").double()
    elif name in {"acosh_", "arccosh_", "mvlgamma_"}:
        x = fresh("large")
    else:
        x = operand(name)
    version = x._version
    in_place(name, x)
    assert (x._version > version) == entry.changes_data
    if not entry.changes_graph or name in {"float_power_", "heaviside_", "floor_divide_", "nextafter_"}:
        return
    start = operand(name).requires_grad_()
    tracked = start.clone()
    before = tracked.grad_fn
    in_place(name, tracked)
    assert tracked.grad_fn is not before
    if entry.cuts:
        reached = torch.autograd.grad(tracked.sum(), start, allow_unused=True)[0] if tracked.requires_grad else None
        assert reached is None or not reached.any()


@pytest.mark.parametrize("name", ["sin_", "pow_", "mul_", "exp_", "sigmoid_", "relu_", "clamp_min_", "div_"])
def test_in_place_operations_do_not_invalidate_themselves(name: str) -> None:
    x = fresh("x").requires_grad_().clone()
    other = fresh("y").requires_grad_().clone()
    if name in {"mul_", "div_", "clamp_min_"}:
        getattr(x, name)(other)
    elif name == "pow_":
        x.pow_(2)
    else:
        getattr(x, name)()
    assert outcome(lambda: traverse(x)) == ""


@pytest.mark.parametrize("name", sorted(IN_PLACE_ARGUMENT.keys() - {"dropout1d", "dropout2d", "dropout3d"}))
def test_activations_in_place_keep_the_result_or_a_copy(name: str) -> None:
    x = fresh("x").requires_grad_().clone()
    arguments = (0.3, 0.0) if name == "threshold" else ()
    keywords = {"training": True} if name == "rrelu" or "dropout" in name else {}
    result = getattr(functional, name)(x, *arguments, **keywords, inplace=True)
    assert result is x
    touch(x)
    assert outcome(lambda: traverse(x)) == ("modified" if name in IN_PLACE_KEEPS_RESULT else "")


def test_functions_with_an_in_place_argument() -> None:
    found = {}
    for name in dir(functional):
        function = getattr(functional, name)
        if not inspect.isfunction(function) or name.startswith("_"):
            continue
        names = list(inspect.signature(function).parameters)
        if "inplace" in names:
            found[name] = names.index("inplace")
    assert found == IN_PLACE_ARGUMENT
