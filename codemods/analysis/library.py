"""Calls into libraries: torch, builtins, the standard library, and all others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from collections.abc import Sequence as Seq
from typing import Final

from .disturbance import Disturbance
from .guards import ALWAYS, Guard
from .knowledge import consumers, grad_modes, optimizers, torch_modules, torch_operations
from .tape import Cut, Edge, Handed, Node, Operand
from .values import (
    DictCell,
    External,
    Frame,
    FunctionValue,
    Instance,
    ListCell,
    Method,
    NamedTupleClass,
    Optimizer,
    Parameters,
    Partial,
    Phi,
    Range,
    Sequence,
    SuperValue,
    Symbol,
    Tensor,
    TorchModule,
    TupleValue,
    Value,
)

TORCH_PREFIXES: Final = (
    "torch.nn.functional.",
    "torch.linalg.",
    "torch.special.",
    "torch.fft.",
    "torch.functional.",
    "torch.",
)
GRADIENT_FUNCTIONS: Final = frozenset({"torch.autograd.grad"})
DATA_LIBRARIES: Final = (
    "torchvision.transforms",
    "torchvision.datasets",
    "torchvision.io",
    "torchaudio.load",
    "datasets.",
)
"""They make data: what comes from them has no graph."""
STATELESS: Final = tuple(torch_modules.STATELESS_FACTORIES)
NUMERIC_LIBRARIES: Final = frozenset(
    {
        "gym",
        "gymnasium",
        "pettingzoo",
        "argparse",
        "numpy",
        "math",
        "random",
        "os",
        "time",
        "json",
        "sys",
        "logging",
        "re",
        "statistics",
    }
)
PURE: Final = frozenset(
    {
        "len",
        "isinstance",
        "hasattr",
        "issubclass",
        "type",
        "abs",
        "round",
        "str",
        "int",
        "float",
        "bool",
        "max",
    }
)
OWNERS: Final = frozenset({Optimizer, TorchModule, Instance, Parameters, ListCell, TupleValue, DictCell, Sequence})
"""Kinds of values that own parameters or may hold what does."""
Arguments = Seq[Operand]
Keywords = dict[str, Operand]


def plain(value: Value) -> bool:
    """Whether ``value`` is a Python constant."""
    return value is None or isinstance(value, (bool, int, float, str, bytes))


class Library(Disturbance):
    """The machine with libraries."""

    # -- dispatch --------------------------------------------------------------------------------------------------

    def call_external(self, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        """``name(*arguments, **keywords)`` for a dotted library name."""
        if name.startswith("builtins."):
            return self.call_builtin(name[9:], arguments, keywords, call)
        root = name.partition(".")[0]
        if name in torch_modules.COPIERS and name.startswith("copy.") and arguments:
            return self.copied(arguments[0].value, call)
        if name in torch_modules.WRAPPERS:
            return self.call_wrapper(name, arguments, call)
        if root == "torch":
            return self.call_torch(name, arguments, keywords, call)
        bare = name.rsplit(".", 1)[-1]
        special = LIBRARY_CALLS.get(name)
        if special is not None:
            return special(self, arguments, keywords, call)
        if bare in optimizers.OPTIMIZERS and arguments and bare != "Optimizer":
            return self.make_optimizer(bare, arguments, keywords, call)
        if bare in optimizers.ZERO_GRAD_METHODS:
            self.zero_grad(call, None)
            return None
        if (
            root in NUMERIC_LIBRARIES
            or root + "." in consumers.DOTTED_PREFIXES
            or name in consumers.DOTTED
            or name.startswith(DATA_LIBRARIES)
        ):
            return Symbol(("library", name, self.fresh()), cuts=self.argument_cuts(arguments))
        if name.startswith(STATELESS) and any(word in name for word in torch_modules.NO_MODULES):
            return Symbol(("library", name, self.fresh()))
        if name.startswith(STATELESS):
            return Symbol(("stateless", name, self.fresh()))
        return self.unknown_call(External(name), arguments, keywords, call)

    def argument_cuts(self, arguments: Arguments) -> frozenset[Cut]:
        return frozenset().union(*(self.cuts_of(a.value) for a in arguments)) if arguments else frozenset()

    def call_wrapper(self, name: str, arguments: Arguments, call: ast.AST) -> Value:
        if not arguments:
            return External(name)
        return self.resolve(arguments[0].value)

    def copied(self, value: Value, call: ast.AST) -> Value:
        """``copy.deepcopy(value)``"""
        value = self.resolve(value)
        kind = type(value)
        if kind is Tensor:
            node = value.slots["node"]
            copy = Tensor(None, scalar=value.scalar)
            if isinstance(node, Node) and node.kind == "leaf":
                copy.slots["node"] = self.make_leaf(self.fresh("leaf"), node.operation, call, copy.storage)
            return copy
        if kind is TorchModule or kind is Instance:
            twin: Value = (
                TorchModule(value.name, self.fresh("module", value.name), value.site)
                if kind is TorchModule
                else self.make_instance(value.cls, self.fresh("instance", value.cls.name))
            )
            for key, slot in list(value.slots.items()):
                twin.slots[key] = self.copied(slot, call)
            return twin
        if kind is ListCell:
            cell = ListCell(
                tuple((g, self.copied(v, call)) for g, v in value.slots["items"]), value.slots["more"], value.kind
            )
            return cell
        if kind is DictCell:
            table = DictCell(value.factory)
            table.slots = {k: self.copied(v, call) for k, v in value.slots.items()}
            return table
        if kind is Symbol:
            return Symbol(self.fresh("copy", value.key))
        return value

    # -- torch -----------------------------------------------------------------------------------------------------

    def call_torch(self, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        special = TORCH_CALLS.get(name)
        if special is not None:
            return special(self, arguments, keywords, call)
        bare = name.rsplit(".", 1)[-1]
        if name.startswith("torch.Tensor.") and arguments:
            first = arguments[0]
            return self.call_attribute(first.value, bare, first.expression, arguments[1:], keywords, call)
        if name in grad_modes.RECORDING_OFF or name in grad_modes.RECORDING_ON or name in grad_modes.TAKES_MODE:
            return self.call_mode(name, arguments, keywords)
        if name in optimizers.GRAD_SCALERS:
            return Symbol(("scaler", self.fresh()))
        if bare == "autocast":
            return Symbol(("autocast", self.fresh()))
        if name.startswith("torch.optim.lr_scheduler.") or (
            name.startswith("torch.optim.") and bare in optimizers.SCHEDULERS
        ):
            return Symbol(("scheduler", self.fresh()))
        if name.startswith("torch.optim.") and bare in optimizers.OPTIMIZERS:
            return self.make_optimizer(bare, arguments, keywords, call)
        if name.startswith("torch.nn.") and bare in torch_modules.PARAMETER_CLASSES:
            return self.make_parameter(arguments, keywords, call)
        if (
            name.startswith("torch.nn.")
            and not name.startswith("torch.nn.functional.")
            and bare in torch_modules.MODULES
            and name.count(".") <= 4
        ):
            return self.make_module(bare, arguments, keywords, call)
        if name in grad_modes.GRAD_TRANSFORMS or name.startswith("torch.func."):
            return Symbol(("transform", self.fresh()))
        if name.startswith("torch.distributions.") and bare[0].isupper():
            given = self.record("distribution", call, [*arguments, *keywords.values()])
            return Symbol(("distribution", self.fresh()), given.node)
        if name in consumers.DOTTED:
            return Symbol(self.fresh("external", name))
        for prefix in TORCH_PREFIXES:
            if name.startswith(prefix) and name == prefix + bare:
                return self.torch_function(bare, arguments, keywords, call)
        return self.unknown_call(External(name), arguments, keywords, call)

    def torch_function(self, bare: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        """``torch.NAME(…)`` or ``torch.nn.functional.NAME(…)``"""
        if bare in {"tensor", "as_tensor", "asarray", "Tensor", "FloatTensor"} or bare in torch_operations.CONSTRUCTORS:
            return self.constructed(bare, arguments, keywords, call)
        if bare in torch_operations.IN_PLACE and arguments:
            return self.call_method(
                Method(arguments[0].value, bare, arguments[0].expression), arguments[1:], keywords, call
            )
        position = torch_operations.IN_PLACE_ARGUMENT.get(bare)
        if position is not None:
            inplace = keywords.get("inplace") or (arguments[position] if position < len(arguments) else None)
            given = self.resolve(arguments[0].value) if arguments else None
            if inplace is not None and inplace.value is True and type(given) is Tensor:
                self.change(given, bare, call, [], arguments[0].expression)
                return given
        return self.torch_operation(bare, arguments, keywords, call)

    def torch_operation(self, bare: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        """An operation by its bare name, as a function or as a method (the receiver is the first argument)."""
        if bare in torch_operations.NUMBERS:
            return self.number(bare, arguments, call)
        if bare in torch_operations.WITHOUT_GRAPH:
            return self.without_graph(bare, arguments, call)
        operands = [o for o in (*arguments, *keywords.values()) if not plain(o.value) or o.value is None]
        operands = self.flattened(arguments, keywords, bare)
        dimension = "dim" in keywords or "axis" in keywords
        operation = torch_operations.OPERATIONS.get(bare)
        returns = operation.returns if operation else "tensor"
        second = self.resolve(arguments[1].value) if len(arguments) > 1 else None
        if bare in torch_operations.WITH_TENSOR and type(second) in (Tensor, Parameters):
            operation = torch_operations.WITH_TENSOR[bare]
            returns = "tensor"
        elif bare in torch_operations.WITH_DIM and (dimension or isinstance(second, int)):
            operation = torch_operations.WITH_DIM[bare]
            returns = "pair"
        scalar = returns == "scalar" and self.keyword_constant(keywords, "reduction") != "none"
        if returns in {"reduction", "extremum"}:
            scalar = not dimension and (len(arguments) == 1 or second is None)
        if bare in {
            "float",
            "double",
            "half",
            "to",
            "clone",
            "detach",
            "contiguous",
            "cpu",
            "cuda",
            "view",
            "neg",
            "squeeze",
        }:
            first = self.resolve(arguments[0].value) if arguments else None
            scalar = type(first) is Tensor and first.scalar and bare != "view"
        if scalar and returns == "scalar" and operation is not None and operation.returns == "scalar":
            pass
        result = self.operate(bare, call, operands, scalar=scalar, operation=operation)
        if returns == "scalar" and not scalar:
            result.scalar = False
        if returns == "pair":
            return TupleValue((result, Tensor()))
        if returns == "attention":
            return TupleValue((result, Tensor()))
        if returns == "tensors":
            parts = [Tensor(result.node, result.storage, cuts=result.cuts) for _ in range(self.parts(bare, arguments))]
            return Sequence(tuple((ALWAYS, part) for part in parts), exact=False)
        return result

    def parts(self, bare: str, arguments: Arguments) -> int:
        count = self.resolve(arguments[1].value) if len(arguments) > 1 else None
        if bare in {"chunk", "tensor_split"} and isinstance(count, int) and 0 < count <= 6:
            return count
        return 2

    def flattened(self, arguments: Arguments, keywords: Keywords, bare: str) -> list[Operand]:
        """The tensors among the arguments; lists of tensors (``cat``, ``stack``) opened."""
        operands: list[Operand] = []
        for operand in (*arguments, *keywords.values()):
            value = self.resolve(operand.value)
            if type(value) in (ListCell, TupleValue, Sequence):
                inner = operand.expression.elts if isinstance(operand.expression, (ast.List, ast.Tuple)) else None
                items = _entries(value)
                for index, item in enumerate(items):
                    expression = inner[index] if inner is not None and len(inner) == len(items) else operand.expression
                    operands.append(Operand(expression, item))
            elif not plain(value) or bare in {"mul", "pow", "div"}:
                operands.append(Operand(operand.expression, value))
        return operands

    def listed(self, value: Value) -> Value:
        """The list that a ``ParameterList`` or ``ModuleList`` holds; anything else as it is."""
        if type(value) is TorchModule and "children" in value.slots:
            return self.resolve(value.slots["children"])
        return value

    def keyword_constant(self, keywords: Keywords, name: str, default: Value = None) -> Value:
        """The value of a keyword argument, resolved."""
        return self.resolve(keywords[name].value) if name in keywords else default

    def number(self, bare: str, arguments: Arguments, call: ast.AST) -> Value:
        receiver = self.resolve(arguments[0].value) if arguments else None
        if bare in {"item", "tolist"}:
            edges = self.edges_of(receiver)
            cuts = self.cuts_of(receiver)
            if edges:
                cuts = cuts | {self.cut("item", call, edges)}
            return Symbol(self.fresh(bare), cuts=cuts)
        keys = tuple(key_of(self.resolve(a.value)) for a in arguments)
        return Symbol(("torch", bare, *keys))

    def without_graph(self, bare: str, arguments: Arguments, call: ast.AST) -> Tensor:
        result = Tensor()
        if arguments:
            receiver = self.resolve(arguments[0].value)
            edges = self.edges_of(receiver)
            cuts = self.cuts_of(receiver)
            if bare in {"detach", "numpy", "data"}:
                if edges:
                    cuts = cuts | {self.cut("detach" if bare == "detach" else "data", call, edges)}
                elif bare != "numpy":
                    # What is detached by hand is meant to be a constant.
                    cuts = frozenset(cut for cut in cuts if cut.kind != "derivative")
                if type(receiver) is Tensor:
                    result.scalar = receiver.scalar
                    if bare == "detach":
                        result.storage = receiver.storage
                result.cuts = cuts
            elif edges:
                self.cut("choice", call, edges)
        return result

    def cut(self, kind: str, call: ast.AST, edges: tuple[Edge, ...]) -> Cut:
        """Note that a value is taken without its graph."""
        cut = Cut(kind, self.where(call), edges, None)
        self.tape.cuts.append(cut)
        return cut

    def constructed(self, bare: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Tensor:
        first = self.resolve(arguments[0].value) if arguments else None
        if bare in {"as_tensor", "asarray"} and type(first) is Tensor:
            return first
        scalar = bare in {"tensor", "scalar_tensor"} and (plain(first) or (type(first) is Tensor and first.scalar))
        if bare == "zeros" and (not arguments or (type(first) is TupleValue and not first.items)):
            scalar = True
        tensor = Tensor(None, scalar=scalar)
        requires = self.keyword_constant(keywords, "requires_grad", False)
        if requires is not False:
            self.require_grad(tensor, call, requires)
        return tensor

    def make_parameter(self, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Tensor:
        tensor = Tensor()
        leaf = self.make_leaf(self.fresh("parameter"), "Parameter", call, tensor.storage)
        requires = self.keyword_constant(keywords, "requires_grad", True)
        if len(arguments) > 1:
            requires = self.resolve(arguments[1].value)
        leaf.slots["requires_grad"] = requires
        tensor.slots["node"] = leaf
        return tensor

    def make_optimizer(self, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Optimizer:
        optimizer = Optimizer(name, self.where(call))
        given = arguments[0].value if arguments else keywords["params"].value if "params" in keywords else None
        optimizer.slots["groups"] = (self.parameter_group(given, call),)
        return optimizer

    def parameter_group(self, given: Value, call: ast.AST) -> Parameters:
        """What an optimizer owns that was made with ``given``: parameters, a list of them, or of groups."""
        given = self.resolve(given)
        leaves: dict[Node, None] = {}
        whole = self.add_group(given, call, leaves, 0)
        return Parameters(tuple(leaves), whole)

    def add_group(self, given: Value, call: ast.AST, leaves: dict[Node, None], depth: int) -> bool:
        given = self.resolve(given)
        kind = type(given)
        if kind is Parameters:
            leaves.update(dict.fromkeys(given.leaves))
            return bool(given.whole)
        if kind is Tensor:
            node = given.slots["node"]
            if isinstance(node, Node) and node.kind == "leaf":
                leaves[node] = None
                return True
            return False
        if kind in (ListCell, TupleValue, Sequence) and depth < 4:
            whole = not (kind is ListCell and given.slots["more"] and not given.slots["items"])
            guards = _guards(given)
            for guard, item in zip(guards, _entries(given), strict=True):
                whole = self.add_group(item, call, leaves, depth + 1) and whole and not guard.facts
            return whole
        if kind is DictCell and depth < 4:
            if ("key", "params") in given.slots:
                return self.add_group(given.slots["key", "params"], call, leaves, depth + 1)
            wholes = [self.add_group(v, call, leaves, depth + 1) for v in list(given.slots.values())]
            return all(wholes)
        if kind is Symbol:
            key = given.key
            if isinstance(key, tuple) and len(key) == 2 and key[0] == "parameters":
                leaves[self.make_leaf(("params", key[1]), "parameters", call)] = None
                return True
            leaves[self.symbol_leaf(given, call)] = None
            return False
        if kind in (TorchModule, Instance):
            parameters = self.parameters_of(given, call)
            leaves.update(dict.fromkeys(parameters.leaves))
            return parameters.whole
        if kind is Phi:
            for _, alternative in given.alternatives:
                self.add_group(alternative, call, leaves, depth + 1)
        return False

    def call_mode(self, name: str, arguments: Arguments, keywords: Keywords) -> Value:
        """``torch.no_grad()`` and its like, as a value that ``with`` and ``@`` understand."""
        if name in grad_modes.TAKES_MODE and (arguments or keywords):
            mode = self.resolve(arguments[0].value if arguments else next(iter(keywords.values())).value)
            if "inference_mode" in name:
                state: Value = False if mode is True else Symbol(("mode",)) if not isinstance(mode, bool) else "neutral"
            else:
                state = mode
        else:
            state = name in grad_modes.RECORDING_ON
        return TupleValue((External("gradmend.mode"), state, name in grad_modes.CALLED_AS_STATEMENT))

    # -- unknown ---------------------------------------------------------------------------------------------------

    def unknown_call(
        self, callee: Value, arguments: Arguments, keywords: Keywords, call: ast.AST, key: Hashable = None
    ) -> Value:
        """The result of a call that cannot be seen: it may hang on everything that went in."""
        operands = [*arguments, *keywords.values()]
        for operand in operands:
            self.called_back(operand.value, call)
        self.note_handed(callee, operands, call)
        edges = [operand for operand in operands if self.edges_of(operand.value)]
        weights: list[Operand] = []
        stateless = False
        if type(callee) is Symbol and not _of_library(callee.key):
            leaf = self.make_leaf(("params", callee.key), "parameters", call)
            stateless = root_of(callee.key) == "stateless"
            if ("known", callee.key) not in self.symbol_slots and not stateless:
                leaf.assumed = True
            weights.append(Operand(None, Parameters((leaf,))))
            if callee.node is not None:
                weights.append(Operand(None, callee))
        if not stateless:
            for operand in edges:
                self.escape(operand.value, call, "call")
        if not edges and not weights:
            return Symbol(key or self.fresh("call"))
        kind = "operation" if stateless else "unknown"
        tensor = self.record("call", call, [*operands, *weights], kind=kind, saves=stateless or None)
        name = key or self.fresh("call")
        return Symbol(name, tensor.node, cuts=tensor.cuts)

    def called_back(self, value: Value, call: ast.AST) -> None:
        """A function of the project that is given away may be called by whoever gets it."""

    def note_handed(self, callee: Value, operands: Arguments, call: ast.AST) -> None:
        """Note that a call that cannot be seen gets what may own parameters, or belongs to an object that may."""
        given = tuple(value for o in operands if type(value := self.resolve(o.value)) in OWNERS)
        key = callee.key if type(callee) is Symbol else None
        if not (type(callee) is External and callee.dotted.startswith("torch.")):
            self.disturb([*given, *self.owner_of(key)], call)
        while isinstance(key, tuple) and len(key) == 3 and key[0] == "attr":
            key = key[1]
        if given or (isinstance(key, tuple) and (key[0] == "self" or "instance" in key)):
            self.tape.add(Handed(self.tape.next_index, self.where(call), self.path, given, key))

    def call_builtin(self, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        raise NotImplementedError

    def call_attribute(
        self,
        receiver: Value,
        name: str,
        expression: ast.expr | None,
        arguments: Arguments,
        keywords: Keywords,
        call: ast.AST,
    ) -> Value:
        raise NotImplementedError

    def flag(self, operand: Operand | None, default: bool | None) -> bool | None:
        raise NotImplementedError

    def input_nodes(self, value: Value) -> tuple[Node, ...] | None:
        raise NotImplementedError

    def backward(self, call: ast.Call, root: Operand, named: Keywords, gradient: str, framework: bool = False) -> None:
        raise NotImplementedError

    def instance_test(self, given: Value, test: Callable[[Value], bool | None], what: str) -> Value:
        raise NotImplementedError


def _of_library(key: Hashable) -> bool:
    """Whether a symbol is, or belongs to, an object of a library that holds no parameters."""
    return root_of(key) in {"scheduler", "scaler", "torch", "string", "builtin", "library"}


def root_of(key: Hashable) -> Hashable:
    """What a symbol comes from: the first word of the key of the object whose part or result it is."""
    while isinstance(key, tuple) and len(key) > 1 and key[0] in {"attr", "item", "method", "member", "entered"}:
        if key[0] == "item" and key[1][0] == "stateless" and key[2] != ("constant", 0):
            # ``model, preprocess = clip.load(…)``: the model comes first.
            return "library"
        key = key[1]
    return key[0] if isinstance(key, tuple) and key else None


def key_of(value: Value) -> Hashable:
    """A name for ``value`` that is the same whenever the value is."""
    if type(value) is Symbol:
        return value.key
    if plain(value):
        return ("constant", value)
    if type(value) is External:
        return ("external", value.dotted)
    if type(value) is TupleValue:
        return ("tuple", *(key_of(item) for item in value.items))
    return ("object", id(value))


def _entries(value: Value) -> list[Value]:
    if type(value) is ListCell:
        return [item for _, item in value.slots["items"]]
    if type(value) is TupleValue:
        return list(value.items)
    return [item for _, item in value.items]


def _guards(value: Value) -> list[Guard]:
    if type(value) is ListCell:
        return [guard for guard, _ in value.slots["items"]]
    if type(value) is TupleValue:
        return [ALWAYS] * len(value.items)
    return [guard for guard, _ in value.items]


def _autograd_grad(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    named = dict(zip(("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"), arguments, strict=False))
    named.update(keywords)
    outputs, inputs = named.get("outputs"), named.get("inputs")
    if outputs is None or not isinstance(call, ast.Call):
        return Symbol(machine.fresh("grad"))
    create = machine.flag(named.get("create_graph"), False)
    retain = machine.flag(named.get("retain_graph"), create)
    nodes = machine.input_nodes(inputs.value) if inputs is not None else None
    event = machine.traverse(
        call,
        outputs.expression,
        outputs.value,
        retain=retain,
        create=create,
        accumulates=False,
        inputs=nodes,
        gradient_argument="grad_outputs" in named,
        flag=named["retain_graph"].expression if "retain_graph" in named else None,
    )
    given = machine.listed(machine.resolve(inputs.value)) if inputs is not None else None
    if type(given) in (ListCell, TupleValue, Sequence):
        entries = _entries(given)
        exact = not (type(given) is ListCell and given.slots["more"]) and not (
            type(given) is Sequence and not given.exact
        )
        results = [machine.gradient(event, call) for _ in entries]
        if exact and all(type(machine.resolve(e)) is Tensor for e in entries):
            return TupleValue(tuple(results))
        return Sequence(tuple((ALWAYS, r) for r in results), exact=False)
    if type(given) is Parameters:
        return Sequence(((ALWAYS, machine.gradient(event, call)),), exact=True)
    return TupleValue((machine.gradient(event, call),))


def _autograd_backward(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    named = dict(
        zip(
            ("tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"),
            arguments,
            strict=False,
        )
    )
    named.update(keywords)
    tensors = named.get("tensors")
    if tensors is not None and isinstance(call, ast.Call):
        machine.backward(call, tensors, named, "grad_tensors")
    return None


def _partial(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    if not arguments:
        return Symbol(machine.fresh("partial"))
    return Partial(
        machine.resolve(arguments[0].value),
        tuple(a.value for a in arguments[1:]),
        {name: operand.value for name, operand in keywords.items()},
    )


def _field(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    """``dataclasses.field(…)``: the default, or a :class:`Partial` that makes it."""
    if "default_factory" in keywords:
        return Partial(machine.resolve(keywords["default_factory"].value), (), {})
    return keywords["default"].value if "default" in keywords else Symbol(machine.fresh("field"))


def _namedtuple(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    if len(arguments) < 2:
        return Symbol(machine.fresh("namedtuple"))
    fields = machine.resolve(arguments[1].value)
    names: tuple[str, ...] | None = None
    if isinstance(fields, str):
        names = tuple(fields.replace(",", " ").split())
    elif type(fields) in (ListCell, TupleValue) and all(isinstance(f, str) for f in _entries(fields)):
        names = tuple(_entries(fields))
    return NamedTupleClass(str(arguments[0].value), names) if names else Symbol(machine.fresh("namedtuple"))


def _namespace(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    key = machine.fresh("namespace")
    machine.symbol_slots[key] = {name: operand.value for name, operand in keywords.items()}
    return Symbol(key)


def _defaultdict(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    return DictCell(arguments[0].value if arguments else None)


def _ordered_dict(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    return machine.call_builtin("dict", arguments, keywords, call)


def _deque(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    result = machine.call_builtin("list", arguments[:1], {}, call)
    if type(result) is ListCell:
        result.kind = "deque"
    return result


def _chain(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    items: list[tuple[Guard, Value]] = []
    exact = True
    for argument in arguments:
        found, whole = machine.elements(argument.value, call)
        items += found
        exact = exact and whole
    return Sequence(tuple(items), exact)


def _checkpoint(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    inner = {k: v for k, v in keywords.items() if k not in {"use_reentrant", "preserve_rng_state", "context_fn"}}
    return machine.call_value(arguments[0].value, arguments[1:], inner, call) if arguments else None


def _functional_call(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    return machine.unknown_call(Symbol(machine.fresh("functional_call")), arguments[1:], keywords, call)


def _is_tensor(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    given = machine.resolve(arguments[0].value) if arguments else None
    return machine.instance_test(
        given, lambda v: True if type(v) in (Tensor, Parameters) else None if type(v) is Symbol else False, "tensor"
    )


def _clip(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    return Tensor(None, scalar=True)


def _variable(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    given = machine.resolve(arguments[0].value) if arguments else None
    requires = machine.keyword_constant(keywords, "requires_grad", False)
    tensor = machine.without_graph("detach", arguments, call) if type(given) is Tensor else Tensor()
    if type(given) is Symbol and given.node is not None:
        return given
    if requires is not False:
        machine.require_grad(tensor, call, requires)
    return tensor


def _stack_like(name: str) -> Callable[[Library, Arguments, Keywords, ast.AST], Value]:
    def run(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        return machine.operate(name, call, machine.flattened(arguments, keywords, name))

    return run


Handler = Callable[[Library, Arguments, Keywords, ast.AST], Value]

TORCH_CALLS: Final[dict[str, Handler]] = {
    "torch.autograd.grad": _autograd_grad,
    "torch.autograd.backward": _autograd_backward,
    "torch.autograd.Variable": _variable,
    "torch.autograd.variable.Variable": _variable,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.func.functional_call": _functional_call,
    "torch.nn.utils.stateless.functional_call": _functional_call,
    "torch.is_tensor": _is_tensor,
    "torch.cat": _stack_like("cat"),
    "torch.concat": _stack_like("cat"),
    "torch.stack": _stack_like("stack"),
    "torch.nn.utils.clip_grad_norm_": _clip,
    "torch.nn.utils.clip_grad_norm": _clip,
    "torch.nn.utils.clip_grad_value_": _clip,
    "torch.manual_seed": lambda m, a, k, c: None,
}

LIBRARY_CALLS: Final[dict[str, Handler]] = {
    "functools.partial": _partial,
    "dataclasses.field": _field,
    "collections.namedtuple": _namedtuple,
    "types.SimpleNamespace": _namespace,
    "argparse.Namespace": _namespace,
    "collections.defaultdict": _defaultdict,
    "collections.OrderedDict": _ordered_dict,
    "collections.deque": _deque,
    "itertools.chain": _chain,
    "copy.copy": lambda m, a, k, c: a[0].value if a else None,
    "tqdm.tqdm": lambda m, a, k, c: a[0].value if a else Symbol(m.fresh("bar")),
    "tqdm.auto.tqdm": lambda m, a, k, c: a[0].value if a else Symbol(m.fresh("bar")),
    "tqdm.notebook.tqdm": lambda m, a, k, c: a[0].value if a else Symbol(m.fresh("bar")),
    "tqdm.tqdm_notebook": lambda m, a, k, c: a[0].value if a else Symbol(m.fresh("bar")),
    "tqdm.trange": lambda m, a, k, c: m.call_builtin("range", a, {}, c),
    "tqdm.auto.trange": lambda m, a, k, c: m.call_builtin("range", a, {}, c),
}

__all__ = ["Frame", "FunctionValue", "Library", "Range", "SuperValue", "key_of", "plain"]
