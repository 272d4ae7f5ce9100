"""Methods of values that are not objects of the project: tensors, modules, optimizers, containers, strings, unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from typing import Final

from .guards import ALWAYS, Guard
from .knowledge import consumers, optimizers, torch_modules, torch_operations
from .library import Arguments, Keywords, Library, _entries, key_of, plain, root_of
from .modules import MOST_MODULES
from .recording import APPLY
from .tape import Cut, Discarded, Misuse, Node, Operand
from .values import (
    BoundMethod,
    ClassValue,
    DictCell,
    External,
    FunctionValue,
    Instance,
    ListCell,
    Method,
    Optimizer,
    Parameters,
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

PURE_METHODS: Final = frozenset(
    {
        "size", "dim", "numel", "get", "lower", "upper", "startswith", "endswith", "strip", "split", "keys", "items",
        "values", "is_available", "device", "type", "ndimension", "nelement", "shape", "count", "index", "format",
        "join", "is_alive", "exists", "is_file", "is_dir", "named_children", "children",
    }
)  # fmt: skip
"""Methods of unknown objects that give the same answer when asked again."""
FORWARD_METHODS: Final = frozenset(
    {"forward", "encode", "decode", "encode_text", "encode_image", "extract_features", "log_prob", "evaluate"}
)
"""Methods of unknown models that surely run them."""
TENSOR_METHODS: Final = frozenset(
    {"item", "detach", "cpu", "cuda", "backward", "numpy", "data", "mean", "sum", "to", "clone", "tolist", "dim",
     "size", "view", "squeeze", "unsqueeze", "float", "double", "reshape", "requires_grad_", "shape", "norm", "sqrt"}
)  # fmt: skip
"""What a tensor has and a Python number has not."""
ADDING: Final = frozenset({"append", "add", "appendleft", "insert", "put"})
EXTENDING: Final = frozenset({"extend", "update"})


class Methods(Library):
    """The machine with methods."""

    def call_method(self, method: Method, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        """``receiver.name(*arguments, **keywords)``"""
        receiver = self.resolve(method.receiver)
        name = method.name
        kind = type(receiver)
        mine = Operand(method.receiver_node, receiver)
        if kind is Phi:
            return self.fork(
                receiver.alternatives,
                lambda one: self.call_attribute(one, name, mine.expression, arguments, keywords, call),
            )
        if kind is Tensor or kind is Parameters:
            return self.call_tensor(receiver, name, mine, arguments, keywords, call)
        if kind is ListCell:
            return self.call_list(receiver, name, arguments, keywords, call)
        if kind is DictCell:
            return self.call_dict(receiver, name, arguments, keywords, call)
        if kind is Optimizer:
            return self.call_optimizer(receiver, name, arguments, keywords, call)
        if kind is TorchModule or kind is Instance:
            return self.call_torch_method(receiver, name, mine, arguments, keywords, call)
        if kind is SuperValue:
            return self.call_super(receiver, name, arguments, keywords, call)
        if kind is Symbol:
            return self.call_symbol(receiver, name, mine, arguments, keywords, call)
        if kind is TupleValue or kind is Sequence:
            return self.call_tuple(receiver, name, arguments, keywords, call)
        if kind is External:
            return self.call_external(f"{receiver.dotted}.{name}", arguments, keywords, call)
        if kind is ClassValue and name == "apply":
            return self.apply_function(receiver, arguments, keywords, call)
        if isinstance(receiver, str):
            return self.call_string(receiver, name, arguments, call)
        if kind is FunctionValue or kind is BoundMethod:
            return Symbol(self.fresh("function", name))
        return Symbol(self.fresh("method", name))

    def apply_function(self, cls: ClassValue, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        """``cls.apply(…)`` of a ``torch.autograd.Function``: one node that keeps what its forward saves.

        Only tensors given to ``ctx.save_for_backward`` are freed by a traversal
        (https://docs.pytorch.org/docs/stable/notes/extending.html).
        """
        forward = self.find_in_class(cls, "forward")
        context = self.find_in_class(cls, "setup_context")
        bodies = [one.node for one in (forward, context) if type(one) is FunctionValue]
        saves = any(isinstance(n, ast.Attribute) and n.attr == "save_for_backward" for b in bodies for n in ast.walk(b))
        result = self.record(APPLY, call, [*arguments, *keywords.values()], saves=saves if bodies else None)
        backward = self.find_in_class(cls, "backward")
        if result.node is not None and type(backward) is FunctionValue and backward.once_differentiable:
            result.node.slots["once only"] = True
        # backward gets one gradient for each output.
        if type(backward) is FunctionValue and len(backward.node.args.args) == 2 and not backward.node.args.vararg:
            return result
        return Symbol(self.fresh("function", cls.name), result.node, cuts=result.cuts)

    def call_attribute(
        self,
        receiver: Value,
        name: str,
        expression: ast.expr | None,
        arguments: Arguments,
        keywords: Keywords,
        call: ast.AST,
    ) -> Value:
        """Load ``receiver.name`` and call it."""
        one = self.resolve(receiver)
        known = self.symbol_slots.get(getattr(one, "key", None), {})
        if type(one) in (ListCell, DictCell, Symbol) and name not in known:
            return self.call_method(Method(one, name, expression), arguments, keywords, call)
        callee = self.load_attribute(receiver, name, call, expression)
        return self.call_value(callee, arguments, keywords, call)

    def load_attribute(self, receiver: Value, name: str, site: ast.AST, expression: ast.expr | None = None) -> Value:
        raise NotImplementedError

    # -- traversals ------------------------------------------------------------------------------------------------

    def flag(self, operand: Operand | None, default: bool | None) -> bool | None:
        """A retain_graph or create_graph argument: true, false, or None where it is not known."""
        if operand is None:
            return default
        value = self.resolve(operand.value)
        if value is None:
            return default
        if isinstance(value, (bool, int)):
            return bool(value)
        return None

    def backward(self, call: ast.Call, root: Operand, named: Keywords, gradient: str, framework: bool = False) -> None:
        """Any spelling of ``root.backward(**named)``."""
        create = self.flag(named.get("create_graph"), False)
        spelled = named.get("retain_graph") or named.get("retain_variables")
        unknown = "**" in named and not spelled
        retain = None if unknown else self.flag(spelled, create)
        inputs = named.get("inputs")
        value = self.resolve(root.value)
        if type(value) is Symbol and value.node is None:
            value = self.assumed_root(value, call)
        if type(value) is Phi:
            self.fork(
                value.alternatives,
                lambda one: self.backward(call, Operand(root.expression, one), named, gradient, framework),
            )
            return
        if type(value) is TupleValue or type(value) is ListCell:
            pass
        elif plain(value) or type(value) is Instance:
            return
        self.traverse(
            call,
            root.expression,
            value,
            retain=retain,
            create=create,
            inputs=self.input_nodes(inputs.value) if inputs is not None else None,
            gradient_argument=gradient in named,
            flag=spelled.expression if spelled else None,
            framework=framework,
        )

    def assumed_root(self, symbol: Symbol, call: ast.AST) -> Tensor:
        """What is back-propagated is a tensor with a graph, whatever it came from."""
        node = Node("unknown", "argument", self.where(call), self.path, saves=None)
        tensor = Tensor(node, scalar=True)
        slots = self.symbol_slots.setdefault(symbol.key, {})
        self.write(slots, "tensor", tensor)
        return tensor

    def input_nodes(self, value: Value) -> tuple[Node, ...] | None:
        """The tape nodes of the ``inputs`` of a differentiation; None where they are not known."""
        value = self.listed(self.resolve(value))
        if type(value) in (ListCell, TupleValue, Sequence):
            found: list[Node] = []
            for item in _entries(value):
                nodes = self.input_nodes(item)
                if nodes is None:
                    return None
                found += nodes
            return tuple(found)
        if type(value) is Parameters:
            return tuple(value.leaves)
        if type(value) in (Tensor, Phi) or (type(value) is Symbol and value.node is not None):
            return tuple(edge.node for edge in self.edges_of(value)) or None
        return None

    # -- tensors ---------------------------------------------------------------------------------------------------

    def call_tensor(
        self, receiver: Value, name: str, mine: Operand, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        if name == "backward" and isinstance(call, ast.Call):
            named = dict(zip(("gradient", "retain_graph", "create_graph", "inputs"), arguments, strict=False))
            named.update(keywords)
            self.backward(call, mine, named, "gradient")
            return None
        if name in {"detach", "data"} and type(receiver) is Parameters:
            return Tensor()
        in_place = torch_operations.IN_PLACE.get(name)
        if in_place is not None:
            return self.call_in_place(receiver, name, in_place, mine, arguments, keywords, call)
        if name in {"register_hook", "retain_grad", "register_post_accumulate_grad_hook"}:
            if name == "retain_grad" and type(receiver) is Tensor and receiver.node is not None:
                self.write(receiver.node.slots, "retains", True)
            return Symbol(self.fresh("hook"))
        if name in {"to", "type"} and any(self.is_integer_type(a.value) for a in (*arguments, *keywords.values())):
            return Tensor()
        if name == "requires_grad_" or name == "__len__":
            return receiver
        if name in {
            "expand",
            "view",
            "reshape",
            "permute",
            "repeat",
            "size",
            "to",
            "type",
            "unflatten",
            "tile",
            "transpose",
        }:
            arguments, keywords = (), {}
        return self.torch_operation(name, [mine, *arguments], keywords, call)

    def is_integer_type(self, value: Value) -> bool:
        value = self.resolve(value)
        return type(value) is External and value.dotted.rsplit(".", 1)[-1] in torch_operations.INTEGER_TYPES

    def call_in_place(
        self,
        receiver: Value,
        name: str,
        rule: torch_operations.InPlace,
        mine: Operand,
        arguments: Arguments,
        keywords: Keywords,
        call: ast.AST,
    ) -> Value:
        if type(receiver) is Parameters:
            self.change_parameters(receiver, name, mine, arguments, call)
            return receiver
        if name == "requires_grad_":
            requires = (
                self.resolve(arguments[0].value)
                if arguments
                else self.keyword_constant(keywords, "requires_grad", True)
            )
            self.require_grad(receiver, call, requires)
            return receiver
        if name == "detach_":
            self.write(receiver.slots, "node", None)
            return receiver
        if not rule.changes_data:
            return receiver
        operands = [*arguments, *keywords.values()]
        if rule.cuts:
            whole_sources = operands if name == "copy_" else []
            self.change(receiver, "copy" if name == "copy_" else "fill", call, whole_sources, mine.expression)
        else:
            self.change(receiver, rule.operation, call, operands, mine.expression)
        return receiver

    def change_parameters(
        self, receiver: Parameters, name: str, mine: Operand, arguments: Arguments, call: ast.AST
    ) -> None:
        """An in-place method on every parameter of a set."""
        if name == "requires_grad_":
            requires = self.resolve(arguments[0].value) if arguments else True
            for leaf in receiver.leaves:
                self.write(leaf.slots, "requires_grad", requires)
        elif name != "detach_":
            for leaf in receiver.leaves:
                tensor = Tensor(None, leaf.slots["storage"])
                self.change(tensor, "fill", call, [], mine.expression, leaf=leaf)

    # -- modules and optimizers ------------------------------------------------------------------------------------

    def call_torch_method(
        self, receiver: Value, name: str, mine: Operand, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        """A method of ``torch.nn.Module`` (or of an unknown base class)."""
        if name in {"parameters"}:
            return self.parameters_of(receiver, call)
        if name == "named_parameters":
            return self.named_parameters(receiver, call)
        if name in {"zero_grad"}:
            self.zero_grad(call, self.parameters_of(receiver, call))
            return None
        if name == "requires_grad_":
            requires = self.resolve(arguments[0].value) if arguments else True
            for leaf in self.parameters_of(receiver, call).leaves:
                self.write(leaf.slots, "requires_grad", requires)
            return receiver
        if name in {"train", "eval"}:
            mode: Value = name == "train"
            if name == "train" and (arguments or keywords):
                mode = self.resolve(arguments[0].value if arguments else next(iter(keywords.values())).value)
            for module in self.modules_of(receiver):
                self.write(module.slots, "training", mode)
            return receiver
        if name == "modules":
            return Sequence(tuple((ALWAYS, one) for one in self.modules_of(receiver)), exact=True)
        if name == "named_modules":
            pairs = self.named_modules(receiver, set(), "")
            return Sequence(tuple((ALWAYS, TupleValue(pair)) for pair in pairs), exact=True)
        if name == "children":
            return Sequence(tuple((ALWAYS, one) for _, one in self.submodules(receiver)), exact=True)
        if name == "named_children":
            return Sequence(tuple((ALWAYS, TupleValue(pair)) for pair in self.submodules(receiver)), exact=True)
        if name == "apply" and len(arguments) == 1:
            return self.apply_to_modules(receiver, arguments[0].value, call)
        if name in torch_modules.MODULE_METHODS_RETURNING_SELF:
            return receiver
        if name in {"register_buffer", "register_parameter", "add_module", "register_module"} and len(arguments) > 1:
            key = self.resolve(arguments[0].value)
            self.add_child(receiver, key if isinstance(key, str) else f"child {self.serial}", arguments[1].value, name)
            return None
        if name == "forward":
            return self.call_value(receiver, arguments, keywords, call)
        if type(receiver) is TorchModule and name in {
            "append",
            "extend",
            "insert",
            "items",
            "keys",
            "values",
            "update",
            "pop",
        }:
            children = self.resolve(receiver.slots.get("children"))
            if type(children) in (ListCell, DictCell):
                self.call_method(Method(children, name), arguments, keywords, call)
                result = (
                    self.call_method(Method(children, name), arguments, keywords, call)
                    if name in {"items", "keys", "values"}
                    else receiver
                )
                return result
        if name in {
            "state_dict",
            "load_state_dict",
            "buffers",
            "named_buffers",
            "half",
            "extra_repr",
            "register_forward_hook",
        }:
            return Symbol(self.fresh(name))
        if name == "backward" or name == "manual_backward":
            return self.framework_backward(receiver, name, arguments, keywords, call)
        if type(receiver) is Instance and self.is_torch_optimizer(receiver):
            return self.call_optimizer_like(receiver, name, arguments, call)
        symbol = Symbol(("attr", receiver.key, name))
        return self.unknown_call(symbol, arguments, keywords, call)

    def apply_to_modules(self, receiver: Value, function: Value, call: ast.AST) -> Value:
        """``receiver.apply(function)``: it is called with the modules below first.

        https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.apply
        """
        modules = self.modules_of(receiver)
        if len(modules) > MOST_MODULES:
            self.disturb([receiver], call)
            return receiver
        for module in reversed(modules):
            self.call_value(function, [Operand(None, module)], {}, call)
        return receiver

    def is_torch_optimizer(self, instance: Instance) -> bool:
        return any(
            type(b) is External and b.dotted in optimizers.OPTIMIZER_BASES for b in self.linearised(instance.cls)
        )

    def call_optimizer_like(self, receiver: Instance, name: str, arguments: Arguments, call: ast.AST) -> Value:
        if name == "zero_grad":
            self.zero_grad(call, None)
        return Symbol(self.fresh(name))

    def add_child(self, receiver: Value, key: str, value: Value, how: str) -> None:
        if type(receiver) is TorchModule and "children" in receiver.slots:
            children = receiver.slots["children"]
            if type(children) is ListCell:
                self.write(children.slots, "items", (*children.slots["items"], (ALWAYS, value)))
                return
            if type(children) is DictCell:
                self.write(children.slots, ("key", key), value)
                return
        self.write(receiver.slots, key, value)

    def named_parameters(self, receiver: Value, call: ast.AST) -> Value:
        leaves: dict[Node, str] = {}
        whole = self.collect(receiver, call, leaves, set(), "")
        if whole and len(leaves) <= 40:
            pairs = [TupleValue((name, Parameters((leaf,)))) for leaf, name in leaves.items()]
            return Sequence(tuple((ALWAYS, pair) for pair in pairs), exact=True)
        pair = TupleValue((Symbol(self.fresh("parameter name")), Parameters(tuple(leaves), whole)))
        return Sequence(((ALWAYS, pair),), exact=True)

    def call_optimizer(
        self, receiver: Optimizer, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        parameters = merged(receiver.slots["groups"])
        if name in optimizers.STEP_METHODS:
            result: Value = None
            closure = arguments[0].value if arguments else keywords["closure"].value if "closure" in keywords else None
            if closure is not None and not plain(self.resolve(closure)):
                if receiver.name in optimizers.CALLS_CLOSURE_AGAIN:
                    return self.minimised(closure, receiver, parameters, call)
                result = self.call_value(closure, [], {}, call)
            self.step(call, receiver, parameters)
            if name != "step" and self.keyword_constant(keywords, "zero_grad") is True:
                self.zero_grad(call, parameters)
            return result
        if name in optimizers.ZERO_GRAD_METHODS:
            self.zero_grad(call, parameters)
            return None
        if name == "add_param_group" and arguments:
            group = self.parameter_group(arguments[0].value, call)
            self.write(receiver.slots, "groups", (*receiver.slots["groups"], group))
            return None
        if name == "backward" and arguments:
            return self.framework_backward(receiver, name, arguments, keywords, call)
        return Symbol(self.fresh("optimizer", name))

    def minimised(self, closure: Value, optimizer: Optimizer, parameters: Parameters, call: ast.AST) -> Value:
        """``optimizer.step(closure)`` of one that calls it as often as it needs to, with a step after each call."""
        results: list[Value] = []

        def evaluation() -> bool:
            results.append(self.call_value(closure, [], {}, call))
            self.step(call, optimizer, parameters)
            return True

        self.repeated(call, evaluation)
        return results[0] if results else None

    def repeated(self, statement: ast.AST, run: Callable[[], bool]) -> None:
        """Run a loop's body as often as it takes to see what one iteration does to the next."""
        raise NotImplementedError

    def call_super(
        self, receiver: SuperValue, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        if name == "__init__":
            if type(receiver.receiver) is Instance:
                self.base_constructor(receiver.receiver, arguments, keywords, call)
            return None
        if name in {"__setattr__"} and len(arguments) == 2 and isinstance(self.resolve(arguments[0].value), str):
            self.write(receiver.receiver.slots, self.resolve(arguments[0].value), arguments[1].value)
            return None
        if name in {"forward", "__call__"} and type(receiver.receiver) is Instance:
            for base in self.linearised(receiver.receiver.cls):
                if type(base) is External and base.dotted.startswith("torch.nn."):
                    twin = self.torch_twin(receiver.receiver, base.dotted.rsplit(".", 1)[1], call)
                    if twin is not None:
                        return self.call_module(twin, arguments, keywords, call)
        return self.call_torch_method(
            receiver.receiver, name, Operand(None, receiver.receiver), arguments, keywords, call
        )

    def framework_backward(
        self, receiver: Value, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        """``accelerator.backward(loss)`` and its like: the argument is back-propagated."""
        named = dict(keywords)
        root = arguments[0] if arguments else named.pop("loss", None)
        if root is not None and isinstance(call, ast.Call):
            self.backward(call, root, named, "gradient", framework=True)
        return None

    # -- unknown objects -------------------------------------------------------------------------------------------

    def call_symbol(
        self, receiver: Symbol, name: str, mine: Operand, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        operands = [*arguments, *keywords.values()]
        if name in {"backward", "manual_backward"} and isinstance(call, ast.Call):
            if arguments and self.edges_of(arguments[0].value):
                return self.framework_backward(receiver, name, arguments, keywords, call)
            if name == "backward" and not (
                arguments and type(self.resolve(arguments[0].value)) is Symbol and receiver.node is None
            ):
                named = dict(zip(("gradient", "retain_graph", "create_graph", "inputs"), arguments, strict=False))
                named.update(keywords)
                self.backward(call, mine, named, "gradient")
            elif arguments:
                return self.framework_backward(receiver, name, arguments, keywords, call)
            return None
        if receiver.node is not None and name == "detach_":
            self.write(self.symbol_slots.setdefault(receiver.key, {}), "tensor", Tensor())
            return receiver
        if receiver.node is not None and name in torch_operations.ALIASES_DETACHED:
            return self.without_graph("detach", [mine], call)
        if receiver.node is not None and (name in torch_operations.NUMBERS or name in torch_operations.WITHOUT_GRAPH):
            return self.torch_operation(name, [mine], {}, call)
        if (
            receiver.node is not None
            and name in torch_operations.OPERATIONS
            and name not in {"get", "pop", "items", "index"}
        ):
            return self.torch_operation(name, [mine, *arguments], keywords, call)
        key = receiver.key
        if _is_item(key) and name in TENSOR_METHODS:
            self.tape.add(Misuse(self.tape.next_index, self.where(call), self.path, call))
        if name == "requires_grad_":
            return self.symbol_leaf_tensor(receiver, arguments, keywords, call)
        if isinstance(key, tuple) and key[0] == "distribution":
            if name in torch_operations.SAMPLERS:
                return Tensor()
            return self.record(name, call, [mine, *operands], saves=True)
        if name in consumers.METHODS or self.is_logger(name, mine, key):
            return None
        if name in {"parameters", "named_parameters"} and not arguments:
            return self.symbol_parameters(receiver, name, call)
        if name in torch_modules.MODULE_METHODS_RETURNING_SELF and receiver.node is None:
            return receiver
        if name == "detach" and receiver.node is None:
            return Tensor()
        if name in optimizers.ZERO_GRAD_METHODS:
            known = ("params", key) in self.tape.leaves
            self.zero_grad(call, Parameters((self.symbol_leaf(receiver, call),)) if known else None)
            return None
        if name == "scale" and len(operands) == 1 and isinstance(key, tuple) and key[0] == "scaler":
            return self.record("scale", call, operands, saves=True, scalar=True)
        if name == "step":
            return self.step_symbol(receiver, operands, call)
        if name in {"unscale_", "update"} and isinstance(key, tuple) and key[0] == "scaler":
            return None
        if not any(self.edges_of(o.value) for o in operands):
            asks = name in torch_operations.OPERATIONS and all(_is_setting(self.resolve(o.value)) for o in operands)
            if name in PURE_METHODS or asks:
                keys = tuple(key_of(self.resolve(o.value)) for o in operands)
                return Symbol(("method", key, name, *keys), receiver.node)
            for operand in operands:
                self.called_back(operand.value, call)
        member = "attr" if name in FORWARD_METHODS or any(self.edges_of(o.value) for o in operands) else "member"
        return self.unknown_call(Symbol((member, key, name), receiver.node), arguments, keywords, call)

    def is_logger(self, name: str, mine: Operand, key: Hashable) -> bool:
        """Whether a method only looks at what it is given, by its name and its receiver's."""
        if name not in consumers.LOGGER_METHODS:
            return False
        spelled = mine.expression
        last = (
            spelled.attr if isinstance(spelled, ast.Attribute) else spelled.id if isinstance(spelled, ast.Name) else ""
        )
        return root_of(key) == "library" or (last in consumers.LOGGER_RECEIVERS and last != "self")

    def freeze(self, receiver: Symbol, requires: Value, call: ast.AST) -> None:
        """``module.requires_grad_(requires)`` of an unknown module."""
        leaf = self.symbol_leaf(receiver, call)
        self.write(leaf.slots, "requires_grad", requires)

    def symbol_leaf_tensor(self, receiver: Symbol, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        requires = (
            self.resolve(arguments[0].value) if arguments else self.keyword_constant(keywords, "requires_grad", True)
        )
        if requires is False and receiver.node is None:
            self.freeze(receiver, requires, call)
        if receiver.node is not None or ("params", receiver.key) in self.tape.leaves or requires is False:
            return receiver
        tensor = Tensor()
        self.require_grad(tensor, call, requires)
        self.write(self.symbol_slots.setdefault(receiver.key, {}), "tensor", tensor)
        return tensor

    def symbol_parameters(self, receiver: Symbol, name: str, call: ast.AST) -> Value:
        leaf = self.symbol_leaf(receiver, call)
        leaf.assumed = False
        self.symbol_slots.setdefault(("known", receiver.key), {})
        parameters = Parameters((leaf,))
        if name == "parameters":
            return parameters
        return Sequence(((ALWAYS, TupleValue((Symbol(self.fresh("name")), parameters))),), exact=True)

    def step_symbol(self, receiver: Symbol, operands: list[Operand], call: ast.AST) -> Value:
        """``x.step(…)`` of something unknown: a scaler, a scheduler, an optimizer, an environment."""
        first = self.resolve(operands[0].value) if operands else None
        if type(first) is Optimizer:
            self.step(call, first, merged(first.slots["groups"]))
            return None
        key = receiver.key
        if isinstance(key, tuple) and key[0] == "scheduler":
            return None
        if not operands or type(first) is FunctionValue:
            result = self.call_value(first, [], {}, call) if type(first) is FunctionValue else None
            self.step(call, None, None)
            return result
        if isinstance(key, tuple) and key[0] == "scaler":
            self.step(call, None, None)
            return None
        return self.unknown_call(Symbol(("attr", key, "step")), operands, {}, call)

    # -- containers ------------------------------------------------------------------------------------------------

    def call_list(
        self, receiver: ListCell, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        items = receiver.slots["items"]
        if name in ADDING and arguments:
            value = arguments[-1].value if name == "insert" else arguments[0].value
            index = self.resolve(arguments[0].value) if name == "insert" else None
            front = name == "appendleft" or (name == "insert" and index == 0)
            entry = (ALWAYS, value)
            self.write(receiver.slots, "items", (entry, *items) if front else (*items, entry))
            self.note_store(receiver.slots, "items", value, arguments[-1 if name == "insert" else 0].expression)
            return None
        if name in EXTENDING and arguments:
            found, exact = self.elements(arguments[0].value, call)
            self.write(receiver.slots, "items", (*items, *found))
            self.note_store(receiver.slots, "items", arguments[0].value, arguments[0].expression)
            if not exact:
                self.write(receiver.slots, "more", True)
            return None
        if name in {"pop", "popleft"}:
            if not items:
                return Symbol(self.fresh("pop"))
            index = self.resolve(arguments[0].value) if arguments else (0 if name == "popleft" else -1)
            if index in (0, -1):
                self.write(receiver.slots, "items", items[1:] if index == 0 else items[:-1])
                return items[index][1]
            return self.select(receiver, index, call)
        if name == "clear":
            self.write(receiver.slots, "items", ())
            self.write(receiver.slots, "more", False)
            return None
        if name == "copy":
            return ListCell(items, receiver.slots["more"], receiver.kind)
        if name in {"count", "index"}:
            return Symbol(self.fresh(name))
        if name == "reverse":
            self.write(receiver.slots, "items", tuple(reversed(items)))
        return None

    def call_dict(
        self, receiver: DictCell, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        known = [(k[1], v) for k, v in receiver.slots.items() if isinstance(k, tuple) and k[0] == "key"]
        exact = "rest" not in receiver.slots
        if name == "items":
            pairs = [(ALWAYS, TupleValue((k, v))) for k, v in known]
            if not exact:
                pairs.append((ALWAYS, TupleValue((Symbol(self.fresh("key")), receiver.slots["rest"]))))
            return Sequence(tuple(pairs), exact)
        if name == "values":
            values = [(ALWAYS, v) for _, v in known]
            if not exact:
                values.append((ALWAYS, receiver.slots["rest"]))
            return Sequence(tuple(values), exact)
        if name == "keys":
            return Sequence(tuple((ALWAYS, k) for k, _ in known), exact)
        if name in {"get", "setdefault", "pop"} and arguments:
            key = self.resolve(arguments[0].value)
            found = self.select(receiver, key, call)
            default = arguments[1].value if len(arguments) > 1 else None
            if exact and not (known if not plain(key) else ("key", key) in receiver.slots):
                if name == "setdefault":
                    self.write(receiver.slots, ("key", key), default)
                return default
            if name == "setdefault" and not plain(key):
                self.store_item(receiver, key, default, call)
                return default if found is None else found
            return found
        if name == "update":
            for operand in arguments:
                self.update_dict(receiver, operand.value)
            for keyword, operand in keywords.items():
                if keyword == "**":
                    self.update_dict(receiver, operand.value)
                else:
                    self.write(receiver.slots, ("key", keyword), operand.value)
            return None
        if name == "copy":
            copy = DictCell(receiver.factory)
            copy.slots = dict(receiver.slots)
            return copy
        if name == "clear":
            for key in list(receiver.slots):
                from .heap import MISSING

                self.write(receiver.slots, key, MISSING)
            return None
        return Symbol(self.fresh("dict", name))

    def update_dict(self, receiver: DictCell, given: Value) -> None:
        given = self.resolve(given)
        if type(given) is DictCell:
            for key, value in list(given.slots.items()):
                self.write(receiver.slots, key, value)
        elif self.edges_of(given):
            self.write(receiver.slots, "rest", given)
        else:
            self.write(receiver.slots, "rest", Symbol(self.fresh("rest")))

    def call_tuple(self, receiver: Value, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        cls = receiver.cls if type(receiver) is TupleValue else None
        if name == "_replace" and cls is not None:
            fields = cls.namedtuple_fields if isinstance(cls, ClassValue) else cls.fields
            values = [keywords[f].value if f in keywords else v for f, v in zip(fields, receiver.items, strict=False)]
            return TupleValue(tuple(values), cls)
        if isinstance(cls, ClassValue):
            found = self.find_in_class(cls, name)
            if type(found) is FunctionValue:
                return self.call_function(found, [Operand(None, receiver), *arguments], keywords, call)
        return Symbol(self.fresh("tuple", name))

    def call_string(self, receiver: str, name: str, arguments: Arguments, call: ast.AST) -> Value:
        values = [self.resolve(a.value) for a in arguments]
        if name in {"startswith", "endswith", "lower", "upper", "strip", "replace", "split"} and all(
            isinstance(v, str) for v in values
        ):
            result = getattr(receiver, name)(*values)
            if isinstance(result, list):
                return ListCell(tuple((ALWAYS, part) for part in result))
            return result
        return Symbol(("string", receiver, name, *(key_of(v) for v in values)))

    def select(self, container: Value, index: Value, site: ast.AST) -> Value:
        raise NotImplementedError

    def store_item(self, container: Value, index: Value, value: Value, site: ast.AST) -> None:
        raise NotImplementedError


def _is_setting(value: Value) -> bool:
    """Whether this is a number, a name or a type: a size, a dimension, a dtype, but nothing that a network is given."""
    if type(value) in (TupleValue, ListCell):
        return all(_is_setting(item) for item in _entries(value))
    return plain(value) or type(value) is External


def _is_item(key: object) -> bool:
    """Whether a symbol is a number that ``.item()`` made, or was calculated from such numbers."""
    if not isinstance(key, tuple) or not key:
        return False
    if key[0] == "fresh":
        return "item" in key
    return key[0] == "operation" and any(_is_item(part) for part in key[2:])


def merged(groups: tuple[Parameters, ...]) -> Parameters:
    """All parameter groups of an optimizer as one set."""
    leaves: dict[Node, None] = {}
    for group in groups:
        leaves.update(dict.fromkeys(group.leaves))
    return Parameters(tuple(leaves), all(group.whole for group in groups))


__all__ = ["Cut", "Discarded", "Guard", "Methods", "Range", "merged"]
