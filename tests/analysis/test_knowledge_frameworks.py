"""The tables of consumers and frameworks: what PyTorch, Python and numpy can be asked, and that the tables agree."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from gradmend.codemods.analysis import prefilter
from gradmend.codemods.analysis.knowledge import consumers, frameworks, grad_modes, optimizers, torch_modules
from gradmend.codemods.analysis.knowledge.frameworks import HOOKS
from tests.analysis.test_knowledge_modules import resolve
from tests.analysis.torch_operands import fresh
from tests.analysis.torch_programs import outcome, tensors, traverse


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def loss() -> Tensor:
    return fresh("x").requires_grad_().sin().sum()


@pytest.mark.parametrize("name", sorted(consumers.BUILTINS))
def test_builtins_give_no_graph(name: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "isinstance": lambda: isinstance(loss(), Tensor),
        "issubclass": lambda: issubclass(type(loss()), Tensor),
        "hasattr": lambda: hasattr(loss(), "grad"),
        "any": lambda: any([loss()]),
        "all": lambda: all([loss()]),
        "len": lambda: len(loss().reshape(1)),
        "range": lambda: range(torch.tensor(3)),
        "bin": lambda: bin(torch.tensor(3)),
        "hex": lambda: hex(torch.tensor(3)),
    }
    call = getattr(builtins, name)
    result = calls[name]() if name in calls else call(loss())
    assert not isinstance(result, Tensor)


@pytest.mark.parametrize("name", ["sum", "max", "min", "sorted", "abs", "list", "tuple", "next", "pow", "filter"])
def test_builtins_pass_the_graph_on(name: str) -> None:
    assert name in consumers.BUILTINS_PASSING_ON
    given = [loss(), loss()]
    calls: dict[str, Callable[[], object]] = {
        "abs": lambda: abs(given[0]),
        "next": lambda: next(iter(given)),
        "pow": lambda: pow(given[0], 2),
        "filter": lambda: list(filter(None, given)),
    }
    result = calls[name]() if name in calls else getattr(builtins, name)(given)
    assert next(tensors(result)).requires_grad


def test_all_builtins_exist() -> None:
    for name in consumers.BUILTINS | consumers.BUILTINS_PASSING_ON:
        assert hasattr(builtins, name)
    assert not consumers.BUILTINS & consumers.BUILTINS_PASSING_ON


def test_the_standard_library_gives_no_graph() -> None:
    assert isinstance(math.log(loss() + 10), float)
    assert isinstance(pickle.dumps(loss()), bytes)
    assert isinstance(sys.getsizeof(loss()), int)
    assert time.perf_counter()


@pytest.mark.parametrize("name", sorted(n for n in consumers.DOTTED if n.startswith("torch.") and "onnx" not in n))
def test_functions_of_torch_exist(name: str) -> None:
    assert callable(resolve(name))


def test_collectives_change_their_argument() -> None:
    assert "torch.distributed.all_reduce" in consumers.CHANGE_IN_PLACE


@pytest.mark.parametrize("name", sorted(consumers.REFUSES_GRAPH))
def test_numpy_refuses_a_graph(name: str) -> None:
    numpy = pytest.importorskip("numpy")
    call = getattr(numpy, name.removeprefix("numpy."))
    arguments = ([0.0], loss()) if name.endswith("append") else ([loss(), loss()],)
    with pytest.raises((RuntimeError, TypeError), match="requires grad"):
        call(*arguments)


def test_keepers_and_consumers_do_not_overlap() -> None:
    assert not consumers.KEEPERS & consumers.DOTTED
    assert not consumers.CONTAINER_METHODS & consumers.METHODS


def test_traversals_of_torch() -> None:
    total = loss()
    traverse(total)
    assert outcome(lambda: torch.autograd.backward(total)) == "freed"
    x = fresh("x").requires_grad_()
    result = x.sin().sum()
    torch.autograd.grad(result, x)
    assert x.grad is None
    assert outcome(lambda: torch.autograd.backward(result)) == "freed"


def test_flags_default_as_the_tape_assumes() -> None:
    for function in (torch.autograd.backward, torch.autograd.grad, Tensor.backward):
        parameters = inspect.signature(function).parameters
        assert parameters["retain_graph"].default is None
        assert parameters["create_graph"].default is False


def test_creating_a_graph_retains_it() -> None:
    x = fresh("x").requires_grad_()
    result = x.sin().sum()
    (gradient,) = torch.autograd.grad(result, x, create_graph=True)
    assert gradient.requires_grad
    assert outcome(lambda: torch.autograd.backward(result)) == ""


def test_hooks_are_consistent() -> None:
    seen = set()
    for hook in HOOKS:
        assert hook.class_names
        assert hook.recording or not hook.traverses_result
        key = (hook.class_names, hook.method)
        assert key not in seen
        seen.add(key)


def test_files_with_losses_for_a_framework_are_read() -> None:
    general = {"forward", "loss", "criterion", "train_step"}
    for hook in HOOKS:
        if hook.traverses_result and hook.method not in general:
            assert prefilter.may_go_wrong(f"import torch\nclass A:\n    def {hook.method}(self): ...".encode())


@pytest.mark.parametrize("module", [consumers, frameworks, grad_modes, optimizers, torch_modules])
def test_tables_import_nothing_but_the_standard_library(module: object) -> None:
    tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or node.module in sys.stdlib_module_names
