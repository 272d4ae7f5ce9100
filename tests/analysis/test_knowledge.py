"""The table of torch operations, held against the installed PyTorch: each entry is measured."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as functional
from torch import Tensor

from gradmend.codemods.analysis.knowledge.torch_operations import (
    ALIASES_DETACHED,
    AUGMENTED_OPERATORS,
    BINARY_OPERATORS,
    CONSTRUCTORS,
    INTEGER_TYPES,
    MAY_RETURN_INPUT,
    MULTIPLE_VIEWS,
    NOT_DIFFERENTIABLE,
    NUMBERS,
    OPERATIONS,
    SCALAR_LOSSES,
    UNARY_OPERATORS,
    WITH_DIM,
    WITH_TENSOR,
    WITHOUT_GRAPH,
    Keeps,
    Operation,
)
from tests.analysis.torch_operands import fresh
from tests.analysis.torch_programs import PROGRAMS, Observation, observe, outcome, program, tensors, touch, traverse

NEEDS_ANOTHER_BUILD = frozenset({"cuda", "xpu", "pin_memory"})
SPARSE = frozenset({"to_sparse", "to_sparse_coo", "to_sparse_csr", "coalesce"})
"""Their results have no strides to modify in place."""
MEASURED_AS_MODULES = frozenset({"multi_head_attention_forward"})
APPROXIMATE = {
    "addcdiv": "keeps the dividend only if the divisor requires grad",
    "linear_cross_entropy": "keeps the weight only if the input requires grad",
    "poisson_nll_loss": "its target does not require grad in practice",
    "multilabel_soft_margin_loss": "its target does not require grad in practice",
    "lu_solve": "keeps the factors only",
}
"""Entries that are right where the input alone requires grad, and claim more or less than PyTorch does elsewhere."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def kept(keeps: Keeps, index: int, tracked: tuple[bool, ...]) -> bool:
    """What the table says about the operand at ``index``."""
    if keeps is Keeps.IF_TRACKED:
        return tracked[index]
    others = any(flag for position, flag in enumerate(tracked) if position != index)
    further = any(flag for position, flag in enumerate(tracked) if position not in {0, index})
    return {
        Keeps.ALWAYS: True,
        Keeps.NEVER: False,
        Keeps.IF_OTHER_TRACKED: others,
        Keeps.IF_FURTHER_TRACKED: further,
    }[keeps]


def tracked_combinations(name: str) -> Iterator[tuple[bool, ...]]:
    kinds = program(name)[0].split()
    floating = tuple(fresh(kind).is_floating_point() or fresh(kind).is_complex() for kind in kinds)
    first = (floating[0], *(False for _ in kinds[1:]))
    rest = (False, *floating[1:])
    for combination in dict.fromkeys((first, rest, floating)):
        if any(combination):
            yield combination


def assert_as_in_table(name: str, operation: Operation, tracked: tuple[bool, ...], seen: Observation) -> None:
    expected = tuple(
        kept(operation.input if index == 0 else operation.other, index, tracked) for index in range(len(tracked))
    )
    if name in {"put", "index_copy", "index_add"}:
        expected = (*expected[:2], seen.saves_operands[2])
    assert seen.records
    if name not in MULTIPLE_VIEWS:
        assert seen.saves_operands == expected
        assert seen.saves_result == operation.result
    assert seen.saves == (operation.internal or operation.result or any(expected))
    assert seen.view == operation.view or name in MAY_RETURN_INPUT


def names_to_measure() -> list[str]:
    left_out = NEEDS_ANOTHER_BUILD | SPARSE | MEASURED_AS_MODULES | NOT_DIFFERENTIABLE
    return sorted(OPERATIONS.keys() - left_out)


def test_every_operation_is_one_of_pytorch() -> None:
    for name in OPERATIONS.keys() | WITH_DIM.keys() | WITH_TENSOR.keys():
        program(name)


def test_every_program_is_of_an_operation() -> None:
    assert PROGRAMS.keys() <= OPERATIONS.keys()


@pytest.mark.parametrize("name", names_to_measure())
def test_operation_keeps_what_the_table_says(name: str) -> None:
    measured = 0
    for tracked in tracked_combinations(name):
        if name in APPROXIMATE and (measured or not tracked[0] or name in {"addcdiv", "lu_solve"}):
            continue
        if name == "soft_margin_loss" and tracked[1]:
            continue
        seen = observe(name, tracked)
        assert_as_in_table(name, OPERATIONS[name], tracked, seen)
        measured += 1
    assert measured or name in APPROXIMATE


@pytest.mark.parametrize("name", names_to_measure())
def test_operation_returns_what_the_table_says(name: str) -> None:
    seen = observe(name, next(tracked_combinations(name)))
    returns = OPERATIONS[name].returns
    if returns == "pair":
        assert seen.tracked_results[0]
        assert not any(seen.tracked_results[1:])
    elif returns == "tensors":
        assert any(seen.tracked_results)
        assert isinstance(program(name)[1](*map(fresh, program(name)[0].split())), tuple)
    else:
        assert len(seen.shapes) == 1
    if returns in {"scalar", "reduction", "extremum"}:
        assert seen.shapes == ((),)


@pytest.mark.parametrize("name", sorted(n for n, o in OPERATIONS.items() if o.returns == "reduction"))
def test_reduction_with_dim_is_no_scalar(name: str) -> None:
    if name in {"matrix_norm", "frobenius_norm", "nuclear_norm"}:
        pytest.skip("over matrices")
    call = program(name)[1] if name not in PROGRAMS else getattr(torch, name)
    arguments = (0.5,) if "quantile" in name else ()
    assert call(fresh("x"), *arguments, dim=0).dim() == 1


@pytest.mark.parametrize("name", sorted(WITH_DIM))
def test_extremum_with_dim(name: str) -> None:
    def after(modify: Callable[[Tensor, Tensor], object]) -> str:
        x = fresh("x").requires_grad_().clone()
        values, indices = getattr(x, name)(0)
        assert values.requires_grad
        assert not indices.requires_grad
        modify(x, values)
        return outcome(lambda: traverse(values))

    assert WITH_DIM[name] == Operation(Keeps.NEVER, Keeps.NEVER, False, returns="pair", internal=True)
    assert after(lambda x, values: touch(x)) == ""
    assert after(lambda x, values: touch(values)) == ""
    assert after(lambda x, values: traverse(values)) == "freed"


@pytest.mark.parametrize("name", sorted(WITH_TENSOR))
@pytest.mark.parametrize("modified", ["input", "other", "result"])
def test_with_a_tensor_as_the_second_operand(name: str, modified: str) -> None:
    first, second = (fresh(kind).requires_grad_().clone() for kind in ("x", "y"))
    weight = fresh("x").requires_grad_().clone()
    arguments = (first, second, weight) if name == "lerp" else (first, second)
    result = getattr(torch, name)(*arguments)
    touch({"input": first, "other": second, "result": result}[modified])
    operation = WITH_TENSOR[name]
    says = {"input": operation.input, "other": operation.other}.get(modified)
    expected = operation.result if says is None else says is not Keeps.NEVER
    if name == "float_power" and modified != "result":
        expected = False
    assert outcome(lambda: traverse(result)) == ("modified" if expected else "")


def test_two_to_the_power_of_a_tensor_keeps_the_result() -> None:
    x = fresh("x").requires_grad_().clone()
    result = 2**x
    touch(result)
    assert outcome(lambda: traverse(result)) == "modified"


@pytest.mark.parametrize(
    ("expression", "freed", "keeps_operand"),
    [
        ("x + 1", False, False),
        ("1 - x", False, False),
        ("-x", False, False),
        ("x % 2", False, False),
        ("x * 2", True, False),
        ("2 * x", True, False),
        ("x / 2", True, False),
        ("2 / x", True, False),
        ("x ** 1", True, True),
        ("x ** 2", True, True),
        ("x.clamp(0, 1)", True, True),
    ],
)
def test_operations_with_python_numbers(expression: str, freed: bool, keeps_operand: bool) -> None:
    x = fresh("x").requires_grad_().clone()
    result = eval(expression, {"x": x})
    traverse(result)
    assert outcome(lambda: traverse(result)) == ("freed" if freed else "")
    x = fresh("x").requires_grad_().clone()
    result = eval(expression, {"x": x})
    touch(x)
    assert outcome(lambda: traverse(result)) == ("modified" if keeps_operand else "")


@pytest.mark.parametrize("name", sorted(NOT_DIFFERENTIABLE))
def test_not_differentiable(name: str) -> None:
    call = program(name)[1]
    with pytest.raises((RuntimeError, NotImplementedError), match=r"not implemented|not differentiable"):
        traverse(next(tensors(call(fresh("x").requires_grad_().clone()))))


@pytest.mark.parametrize("name", sorted(MULTIPLE_VIEWS))
def test_multiple_views_may_not_be_modified(name: str) -> None:
    call = program(name)[1]
    x = fresh("x").requires_grad_().clone()
    with pytest.raises(RuntimeError, match="multiple views"):
        call(x)[0].add_(1)
    row = next(iter(fresh("x").requires_grad_().clone()))
    with pytest.raises(RuntimeError, match="multiple views"):
        row.add_(1)


def test_other_views_that_come_as_a_tuple_may_be_modified() -> None:
    for name in ("tensor_split", "hsplit", "vsplit", "dsplit"):
        assert OPERATIONS[name].view
        kinds, call = program(name)
        call(fresh(kinds).requires_grad_().clone())[0].add_(1)


@pytest.mark.parametrize("name", sorted(MAY_RETURN_INPUT))
def test_may_return_its_input(name: str) -> None:
    x = fresh("x")
    same: dict[str, Callable[[], object]] = {
        "to": lambda: x.to(torch.float32),
        "type": lambda: x.type(torch.float32),
        "type_as": lambda: x.type_as(x),
        "reshape": lambda: x.reshape(3, 3),
        "reshape_as": lambda: x.reshape_as(x),
        "broadcast_to": lambda: x.broadcast_to(3, 3),
        "flatten": lambda: x[0].flatten(),
        "ravel": lambda: x[0].ravel(),
        "atleast_3d": lambda: program("atleast_3d")[1](x[None]),
        "real": lambda: torch.real(x),
        "as_tensor": lambda: torch.as_tensor(x),
        "asarray": lambda: torch.asarray(x),
    }
    if name in NEEDS_ANOTHER_BUILD | SPARSE | {"half", "bfloat16", "double", "long", "int", "bool"}:
        pytest.skip("needs another type or device")
    if "dropout" in name:
        result = getattr(functional, name)(x, training=False)
    else:
        method = getattr(Tensor, name, None) or getattr(torch, name)
        result = same[name]() if name in same else method(x)
    assert isinstance(result, Tensor)
    assert result.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("name", sorted(BINARY_OPERATORS))
def test_binary_operators(name: str) -> None:
    spelled = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**"}
    spelled |= {"MatMult": "@", "BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>"}
    operation = BINARY_OPERATORS[name]
    integers = name.startswith("Bit") or name.endswith("Shift")
    x, y = (fresh("table"), fresh("table")) if integers else (fresh("x"), fresh("y"))
    expected = getattr(torch, operation)(x, y)
    assert torch.equal(eval(f"x {spelled[name]} y", {"x": x, "y": y}), expected)
    values: dict[str, Tensor] = {"x": x.clone(), "y": y}
    before, version = values["x"], values["x"]._version
    exec(f"x {spelled[name]}= y", values)
    assert torch.equal(values["x"], expected)
    assert (values["x"] is before) == (name in AUGMENTED_OPERATORS)
    if name in AUGMENTED_OPERATORS:
        assert before._version > version
        assert hasattr(Tensor, AUGMENTED_OPERATORS[name])


def test_unary_operators() -> None:
    x, mask = fresh("x"), fresh("mask")
    assert torch.equal(-x, getattr(torch, UNARY_OPERATORS["USub"])(x))
    assert torch.equal(+x, getattr(torch, UNARY_OPERATORS["UAdd"])(x))
    assert torch.equal(~mask, getattr(torch, UNARY_OPERATORS["Invert"])(mask))


WITHOUT_GRAPH_ARGUMENTS: dict[str, Callable[[Tensor], object]] = {
    **{
        name: lambda x, name=name: getattr(x, name)(fresh("y"))  # type: ignore[misc]
        for name in (
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
            "not_equal",
            "isclose",
            "logical_and",
            "logical_or",
            "logical_xor",
        )
    },
    "isin": lambda x: torch.isin(x, x),
    "searchsorted": lambda x: torch.searchsorted(fresh("vector"), x),
    "bucketize": lambda x: torch.bucketize(x, fresh("vector")),
    "one_hot": lambda x: functional.one_hot(x.long()),
    "multinomial": lambda x: x.multinomial(1),
    "randint_like": lambda x: torch.randint_like(x, 3),
    "randint": lambda x: torch.randint(3, (2,)),
    "randperm": lambda x: torch.randperm(3),
    "full_like": lambda x: torch.full_like(x, 1.0),
    "new_full": lambda x: x.new_full((2,), 1.0),
    "new_zeros": lambda x: x.new_zeros(2),
    "new_ones": lambda x: x.new_ones(2),
    "new_empty": lambda x: x.new_empty(2),
    "new": lambda x: x.new(2),
    "new_tensor": lambda x: x.new_tensor(x),
    "tril_indices": lambda x: torch.tril_indices(2, 2),
    "triu_indices": lambda x: torch.triu_indices(2, 2),
    "nonzero_static": lambda x: x.nonzero_static(size=2),
    "data": lambda x: x.data,
    "matrix_rank": lambda x: torch.linalg.matrix_rank(x),
    "quantize_per_tensor": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "int_repr": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).int_repr(),
    "bincount": lambda x: x.long().flatten().bincount(),
    **{
        name: lambda x, name=name: getattr(x.long(), name)(1)  # type: ignore[misc]
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
    },
    "bitwise_not": lambda x: x.long().bitwise_not(),
    "gcd": lambda x: x.long().gcd(fresh("table")),
    "lcm": lambda x: x.long().lcm(fresh("table")),
}


@pytest.mark.parametrize("name", sorted(WITHOUT_GRAPH - {"numpy", "__array__"}))
def test_without_graph(name: str) -> None:
    x = fresh("x").requires_grad_().clone()
    call = WITHOUT_GRAPH_ARGUMENTS.get(name)
    if call is None:
        method = getattr(x, name, None)
        result = method() if method is not None else getattr(torch, name)(x)
    else:
        result = call(x)
    found = result if isinstance(result, tuple) else (result,)
    for tensor in found:
        assert not (isinstance(tensor, Tensor) and tensor.requires_grad)


def test_without_graph_and_operations_do_not_overlap() -> None:
    assert not WITHOUT_GRAPH & OPERATIONS.keys()
    assert not NUMBERS & OPERATIONS.keys()
    assert not NUMBERS & WITHOUT_GRAPH


@pytest.mark.parametrize("name", sorted(INTEGER_TYPES))
def test_integer_types_cannot_have_a_graph(name: str) -> None:
    x = fresh("x").requires_grad_().clone()
    kind = getattr(torch, name)
    assert not (x.type(kind) if name.endswith("Tensor") else x.to(kind)).requires_grad


def test_constructors_exist_and_give_no_graph() -> None:
    missing = {name for name in CONSTRUCTORS if not hasattr(torch, name)}
    assert not missing
    for name in ("zeros", "ones", "empty", "eye", "arange", "rand", "randn", "randperm"):
        assert not getattr(torch, name)(3).requires_grad
    x = fresh("x").requires_grad_().clone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not torch.tensor(x).requires_grad
    for name in ("zeros_like", "ones_like", "rand_like", "randn_like", "empty_like"):
        assert not getattr(torch, name)(x).requires_grad
    assert torch.as_tensor(x) is x
    assert torch.asarray(x) is x


@pytest.mark.parametrize("name", sorted(NUMBERS - {"is_tensor", "__len__", "q_scale", "qscheme", "names"}))
def test_numbers_are_no_tensors(name: str) -> None:
    x = torch.ones(1)
    if name == "is_coalesced":
        x = x.to_sparse()
    value = getattr(x, name, None) if hasattr(x, name) else getattr(torch, name)
    if callable(value):
        arguments = (torch.ones(1),) if name in {"is_same_size", "is_set_to", "equal", "allclose"} else ()
        value = value(*arguments)
    assert not isinstance(value, Tensor)


@pytest.mark.parametrize("name", sorted(ALIASES_DETACHED - {"__array__"}))
def test_aliases_without_a_graph(name: str) -> None:
    if name == "numpy":
        pytest.importorskip("numpy")
    x = fresh("x").requires_grad_().clone()
    aliases: dict[str, Callable[[], object]] = {
        "detach": x.detach,
        "data": lambda: x.data,
        "detach_": x.detach_,
        "numpy": lambda: torch.from_numpy(x.detach().numpy()),
        "Variable": lambda: torch.autograd.Variable(x),
    }
    alias = aliases[name]()
    assert isinstance(alias, Tensor)
    assert alias.data_ptr() == x.data_ptr()
    assert not alias.requires_grad


@pytest.mark.parametrize(("name", "noticed"), [("detach", True), ("data", False)])
def test_in_place_change_of_an_alias(name: str, noticed: bool) -> None:
    x = fresh("x").requires_grad_().clone()
    result = x.sin()
    alias = x.detach() if name == "detach" else x.data
    alias.add_(1)
    assert outcome(lambda: traverse(result)) == ("modified" if noticed else "")


def test_scalar_losses() -> None:
    found = {
        name
        for name in dir(functional)
        if name.endswith(("_loss", "_entropy", "_logits", "_div"))
        and "reduction" in inspect.signature(getattr(functional, name)).parameters
    }
    assert found == SCALAR_LOSSES
    assert {name for name, operation in OPERATIONS.items() if operation.returns == "scalar"} == found | {"trace"}
