"""The tables of modules, optimizers and gradient modes, held against the installed PyTorch."""

from __future__ import annotations

import copy
import importlib
import inspect
import warnings
from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from gradmend.codemods.analysis.knowledge import grad_modes, optimizers
from gradmend.codemods.analysis.knowledge.torch_modules import (
    COPIERS,
    MODULE_METHODS_RETURNING_SELF,
    MODULE_PARAMETER_METHODS,
    MODULES,
    PARAMETER_CLASSES,
    WRAPPERS,
)
from gradmend.codemods.analysis.knowledge.torch_operations import OPERATIONS
from tests.analysis.torch_module_programs import module_program, observe_module
from tests.analysis.torch_operands import fresh
from tests.analysis.torch_programs import outcome, shares_memory, tensors, traverse

NOT_CALLED = frozenset(
    {
        "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "DataParallel",
        "DistributedDataParallel", "FullyShardedDataParallel", "SyncBatchNorm", "RNNBase", "CTCLoss", "NLLLoss2d",
    }
)  # fmt: skip
"""Containers, wrappers, what needs a GPU, abstract or deprecated classes, and CTC, whose operation is measured."""
OTHER_ON_CUDNN = frozenset({"RNN", "GRU"})
"""Their plain CPU kernels keep less than the fused ones, for which the table speaks."""
ABSTRACT = frozenset({"Module", "Container", "RNNCellBase"})


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def called() -> list[str]:
    return sorted(MODULES.keys() - NOT_CALLED)


def test_every_public_module_is_known() -> None:
    public = {n for n, c in vars(nn).items() if inspect.isclass(c) and issubclass(c, nn.Module)}
    assert public - ABSTRACT == MODULES.keys() - {"DistributedDataParallel", "FullyShardedDataParallel"}


@pytest.mark.parametrize("name", called())
def test_parameters(name: str) -> None:
    kind = MODULES[name]
    if name.startswith("Lazy"):
        assert kind.parameters == MODULES[name.removeprefix("Lazy")].parameters
        return
    found = tuple(parameter for parameter, _ in module_program(name)[0]().named_parameters())
    if kind.parameters == ("*",):
        assert found
    else:
        assert found == kind.parameters


@pytest.mark.parametrize("name", called())
def test_module_keeps_what_the_table_says(name: str) -> None:
    kind = MODULES[name]
    tracked = observe_module(name, tracked=True)
    assert tracked.saves_input == kind.saves_input
    if name not in OTHER_ON_CUDNN:
        assert tracked.saves_result == kind.saves_result
    assert tracked.saves == (kind.saves_input or kind.saves_result or kind.internal)
    if kind.saves_parameters != ("*",):
        assert tracked.saves_parameters == kind.saves_parameters
    else:
        assert tracked.saves_parameters
    if kind.parameters:
        untracked = observe_module(name, tracked=False)
        if kind.saves_parameters_untracked != ("*",) and name != "AdaptiveLogSoftmaxWithLoss":
            assert untracked.saves_parameters == kind.saves_parameters_untracked


@pytest.mark.parametrize("name", called())
def test_module_returns_what_the_table_says(name: str) -> None:
    kind = MODULES[name]
    result = observe_module(name, tracked=True).result
    found = list(tensors(result))
    assert all(output.requires_grad for output in found)
    shape = {
        "tensor": isinstance(result, Tensor),
        "cell": isinstance(result, Tensor),
        "recurrent": isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Tensor),
        "lstm": isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], tuple) and len(found) == 3,
        "lstm_cell": isinstance(result, tuple) and len(found) == 2,
        "attention": isinstance(result, tuple) and len(found) == 2,
        "tensors": isinstance(result, tuple),
    }
    assert shape[kind.returns]
    if kind.returns == "tensor":
        assert (found[0].dim() == 0) == kind.loss


@pytest.mark.parametrize("name", called())
def test_module_makes_the_operation_that_the_table_names(name: str) -> None:
    kind = MODULES[name]
    if not kind.operation:
        return
    operation = OPERATIONS[kind.operation]
    assert kind.saves_result == operation.result
    assert kind.loss == (operation.returns == "scalar")


@pytest.mark.parametrize("name", called())
def test_in_place_option(name: str) -> None:
    names = list(inspect.signature(getattr(nn, name)).parameters)
    assert MODULES[name].in_place_option == ("inplace" in names)
    assert MODULES[name].in_place_position == (names.index("inplace") if "inplace" in names else -1)


@pytest.mark.parametrize("name", called())
def test_switches(name: str) -> None:
    kind = MODULES[name]
    if not kind.parameters or name.startswith("Lazy"):
        return
    names = inspect.signature(getattr(nn, name)).parameters
    if "bias" not in names and name in {"RNN", "GRU", "LSTM"}:
        names = inspect.signature(nn.RNNBase).parameters
    assert set(kind.switches) <= names.keys()
    if kind.parameters != ("*",):
        assert names.keys() & {"bias", "affine", "elementwise_affine"} <= {*kind.switches, "bias"}


@pytest.mark.parametrize("name", ["Identity", "Flatten", "Unflatten"])
def test_views(name: str) -> None:
    kind, operand = MODULES[name], fresh(module_program(name)[1]).requires_grad_().clone()
    assert kind.view
    assert shares_memory(module_program(name)[0]()(operand), operand)


def test_a_first_convolution_keeps_its_weight_and_a_first_linear_does_not() -> None:
    assert MODULES["Conv2d"].saves_parameters_untracked == ("weight",)
    assert MODULES["Linear"].saves_parameters_untracked == ()
    for layer, data, expected in ((nn.Linear(3, 3), "x", ""), (nn.Conv1d(4, 4, 2), "signal", "modified")):
        loss = layer(fresh(data)).sum()
        torch.autograd.backward(loss, retain_graph=True)
        torch.optim.SGD(layer.parameters(), lr=0.1).step()
        assert outcome(partial(traverse, loss)) == expected


@pytest.mark.parametrize("name", sorted(MODULE_METHODS_RETURNING_SELF - {"cuda", "xpu", "ipu"}))
def test_methods_that_return_the_module(name: str) -> None:
    module = nn.Linear(2, 2)
    arguments: dict[str, tuple[object, ...]] = {"apply": (print,), "type": (torch.float64,), "requires_grad_": (False,)}
    keywords = {"device": "cpu"} if name == "to_empty" else {}
    if name == "apply":
        assert module.apply(lambda part: None) is module
        return
    assert getattr(module, name)(*arguments.get(name, ()), **keywords) is module


def test_parameter_methods_and_classes() -> None:
    module = nn.Linear(2, 2)
    for name in MODULE_PARAMETER_METHODS:
        assert list(getattr(module, name)())
    for name in PARAMETER_CLASSES:
        assert hasattr(nn, name)
    start = fresh("x").requires_grad_().clone()
    assert nn.Parameter(start).grad_fn is None
    assert not module.state_dict()["weight"].requires_grad


def resolve(dotted: str) -> object:
    """The object of that dotted name."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ImportError(dotted)


def torch_names(table: object) -> list[str]:
    assert isinstance(table, (frozenset, dict))
    return sorted(name for name in table if str(name).startswith("torch."))


@pytest.mark.parametrize(
    "table",
    [
        "WRAPPERS", "RECORDING_OFF", "RECORDING_ON", "TAKES_MODE", "CALLED_AS_STATEMENT", "NEUTRAL", "ALLOWS_MUTATION",
        "ONCE_DIFFERENTIABLE", "GRAD_TRANSFORMS", "OPTIMIZER_BASES", "GRAD_SCALERS", "GRADIENT_CLIPPING",
    ],
)  # fmt: skip
def test_names_under_torch_exist(table: str) -> None:
    for module in (grad_modes, optimizers):
        if hasattr(module, table):
            names = torch_names(getattr(module, table))
            break
    else:
        names = torch_names(WRAPPERS)
    for name in names:
        resolve(name)


def test_copying() -> None:
    assert {"copy.deepcopy"} == COPIERS
    module = nn.Linear(2, 2)
    assert copy.deepcopy(module).weight is not module.weight
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(fresh("x").requires_grad_().clone())


@pytest.mark.parametrize("name", sorted(set(torch_names(grad_modes.RECORDING_OFF))))
def test_recording_off(name: str) -> None:
    switch = resolve(name)
    x = fresh("x").requires_grad_()
    assert callable(switch)
    with switch():
        assert not (x * 2).requires_grad
    assert not switch()(lambda: x * 2)().requires_grad


@pytest.mark.parametrize("name", sorted(grad_modes.RECORDING_ON))
def test_recording_on(name: str) -> None:
    switch = resolve(name)
    x = fresh("x").requires_grad_()
    assert callable(switch)
    with torch.no_grad(), switch():
        assert (x * 2).requires_grad
    with torch.inference_mode(), switch():
        assert not (x * 2).requires_grad


@pytest.mark.parametrize("name", sorted(grad_modes.TAKES_MODE))
def test_modes_with_an_argument(name: str) -> None:
    switch = resolve(name)
    x = fresh("x").requires_grad_()
    assert callable(switch)
    assert next(iter(inspect.signature(switch).parameters)) == grad_modes.TAKES_MODE[name]
    records_if = "inference" not in name
    for mode in (True, False):
        with switch(mode):
            assert (x * 2).requires_grad == (mode == records_if)
    before = torch.is_grad_enabled()
    try:
        switch(False)
        assert torch.is_grad_enabled() == (before if name not in grad_modes.CALLED_AS_STATEMENT else False)
    finally:
        torch.set_grad_enabled(before)


def test_no_grad_as_a_statement_does_nothing() -> None:
    torch.no_grad()
    assert torch.is_grad_enabled()


def test_allowed_mutation() -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        x = fresh("x").requires_grad_().clone()
        result = x.sin()
        x.add_(1)
        traverse(result)


def test_optimizers_of_torch_are_known() -> None:
    found = {n for n, c in vars(torch.optim).items() if inspect.isclass(c) and issubclass(c, torch.optim.Optimizer)}
    assert found <= optimizers.OPTIMIZERS
    module = torch.optim.lr_scheduler
    base = module.LRScheduler
    found = {n for n, c in vars(module).items() if inspect.isclass(c) and issubclass(c, base)}
    assert found <= optimizers.SCHEDULERS


def test_zero_grad_sets_to_none() -> None:
    for owner in (torch.optim.Optimizer, nn.Module):
        default = inspect.signature(owner.zero_grad).parameters["set_to_none"].default
        assert default is optimizers.ZERO_GRAD_SETS_TO_NONE


def test_step_changes_parameters_in_place() -> None:
    parameter = nn.Parameter(fresh("x"))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    loss = parameter.sin().sum()
    torch.autograd.backward(loss, retain_graph=True)
    version = parameter._version
    optimizer.step()
    assert parameter._version > version
    assert outcome(lambda: traverse(loss)) == "modified"


def test_zeroing_in_place_destroys_a_saved_gradient_and_setting_to_none_does_not() -> None:
    for to_none, expected in ((True, ""), (False, "detached in-place")):
        parameter = nn.Parameter(fresh("x"))
        torch.autograd.backward(parameter.pow(3).sum(), create_graph=True)
        gradient = parameter.grad
        assert gradient is not None
        penalty = gradient.pow(2).sum()
        torch.optim.SGD([parameter], lr=0.1).zero_grad(set_to_none=to_none)
        parameter.grad = None
        del gradient
        found = outcome(partial(traverse, penalty))
        assert expected in found
        assert bool(expected) == bool(found)


def test_loss_scaling_keeps_the_graph() -> None:
    scaler = torch.amp.GradScaler("cpu")
    assert scaler.scale(fresh("x").requires_grad_().sum()).requires_grad


@pytest.mark.parametrize("name", sorted(optimizers.GRADIENT_CLIPPING - {"torch.nn.utils.clip_grads_with_norm_"}))
def test_gradient_clipping_changes_no_parameter(name: str) -> None:
    parameter = nn.Parameter(fresh("x"))
    traverse(parameter.sin())
    version = parameter._version
    clip = resolve(name)
    assert callable(clip)
    if name.endswith("get_total_norm"):
        clip([parameter.grad])
    else:
        clip([parameter], 0.1)
    assert parameter._version == version
