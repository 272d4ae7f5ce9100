"""Evaluating expressions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from .builtins import Builtins
from .guards import ALL_OF, ALWAYS, Guard
from .heap import MISSING
from .knowledge import torch_modules, torch_operations
from .library import key_of, plain
from .machine import same_value
from .modules import TABLES
from .tape import Cut, Node, Operand
from .values import (
    BoundMethod,
    ClassValue,
    DictCell,
    External,
    Frame,
    FunctionValue,
    Instance,
    ListCell,
    Method,
    ModuleValue,
    NamedTupleClass,
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

BUILTIN_NAMES: Final = frozenset(dir(builtins))
VIEW_ATTRIBUTES: Final = frozenset({"T", "mT", "H", "mH", "real", "imag"})
ARITHMETIC: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
TENSORS: Final = (Tensor, Parameters)
LONGEST_STRING: Final = 200
NAMED_RESULTS: Final = {"values": 0, "indices": 1}
"""The fields of what ``max(dim)``, ``min(dim)``, ``sort``, ``topk`` and their like return
(https://docs.pytorch.org/docs/stable/generated/torch.max.html)."""


class Expressions(Builtins):
    """The machine with expressions."""

    modules: dict[str, ModuleValue]
    """The project's files that were read so far, by their path."""

    def evaluate(self, expression: ast.expr) -> Value:
        """The value of ``expression``."""
        self.budget -= 1
        handler = HANDLERS.get(type(expression))
        if handler is None:
            return Symbol(self.fresh(type(expression).__name__))
        return handler(self, expression)

    # -- names and attributes --------------------------------------------------------------------------------------

    def name(self, expression: ast.Name) -> Value:
        return self.load_name(expression.id)

    def load_name(self, name: str) -> Value:
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.slots:
                value = frame.slots[name]
                self.note_read(frame.slots, name, value)
                return self.bound(value)
            frame = frame.closure
        found = self.global_name(self.frame.module, name)
        if found is not MISSING:
            return self.bound(found)
        if name in BUILTIN_NAMES:
            return External("builtins." + name)
        return Symbol(("global", self.frame.module.name, name))

    def global_name(self, module: ModuleValue, name: str) -> Value:
        """A global variable of ``module``, or MISSING; an imported module's definition is made now if it is not yet."""
        frame = self.module_frame(module)
        if name not in frame.slots and module.pending:
            self.demand(module, name)
        return frame.slots.get(name, MISSING)

    def demand(self, module: ModuleValue, name: str) -> None:
        """Run the statements of an imported module that bind ``name``."""
        raise NotImplementedError

    def define(self, frame: Frame, statements: list[ast.stmt]) -> None:
        raise NotImplementedError

    def store_name(self, name: str, value: Value, source: ast.expr | None = None) -> None:
        raise NotImplementedError

    def attribute(self, expression: ast.Attribute) -> Value:
        receiver = self.evaluate(expression.value)
        return self.load_attribute(receiver, expression.attr, expression, expression.value)

    def load_attribute(self, receiver: Value, name: str, site: ast.AST, expression: ast.expr | None = None) -> Value:
        receiver = self.resolve(receiver)
        kind = type(receiver)
        if kind is Instance:
            return self.instance_attribute(receiver, name, site)
        if kind is Tensor:
            return self.tensor_attribute(receiver, name, site, expression)
        if kind is Symbol:
            return self.symbol_attribute(receiver, name, site, expression)
        if kind is External:
            return self.project.external_attribute(self, receiver, name)
        if kind is ModuleValue:
            found = self.global_name(receiver, name)
            if found is not MISSING:
                return self.resolve(found)
            inner = self.project.submodule(self, receiver, name)
            return inner if inner is not None else Symbol(("global", receiver.name, name))
        if kind is Phi:
            pairs = [
                (guard, self.load_attribute(one, name, site, expression))
                for guard, one in receiver.alternatives
                if one is not None
            ]
            return self.phi(pairs) if len(pairs) != 1 else pairs[0][1]
        if kind is TupleValue and receiver.cls is not None:
            return self.namedtuple_attribute(receiver, name, expression)
        if kind is TupleValue and name in NAMED_RESULTS and len(receiver.items) > NAMED_RESULTS[name]:
            return self.resolve(receiver.items[NAMED_RESULTS[name]])
        if kind is TorchModule:
            return self.torch_attribute(receiver, name, expression)
        if kind is ClassValue:
            found = self.find_in_class(receiver, name)
            if type(found) is FunctionValue:
                return BoundMethod(found, receiver) if found.kind == "classmethod" else found
            if found is not MISSING:
                return self.resolve(found)
            if name == "apply" and any(
                type(b) is External and b.dotted.endswith("autograd.Function") for b in self.linearised(receiver)
            ):
                return Method(receiver, "apply", expression)
            return Method(receiver, name, expression)
        if kind is SuperValue:
            return self.super_attribute(receiver, name, expression)
        if kind is Parameters:
            return self.parameters_attribute(receiver, name, site, expression)
        if kind is Optimizer and name in {"param_groups", "state", "defaults"}:
            if name == "param_groups":
                table = DictCell()
                table.slots["key", "params"] = ListCell(tuple((ALWAYS, g) for g in receiver.slots["groups"]))
                table.slots["rest"] = Symbol(self.fresh("option"))
                return ListCell(((ALWAYS, table),))
            return Symbol(self.fresh(name))
        return Method(receiver, name, expression)

    def instance_attribute(self, receiver: Instance, name: str, site: ast.AST) -> Value:
        if name in receiver.slots:
            self.note_read(receiver.slots, name, receiver.slots[name])
            return self.bound(receiver.slots[name])
        if name == "__class__":
            return receiver.cls
        found = self.find_in_class(receiver.cls, name)
        if type(found) is FunctionValue:
            if found.kind == "property":
                return self.call_function(found, [Operand(None, receiver)], {}, site)
            if found.kind == "staticmethod":
                return found
            return BoundMethod(found, receiver.cls if found.kind == "classmethod" else receiver)
        if found is not MISSING:
            return self.resolve(found)
        if name == "module":
            return receiver
        if name in TABLES and self.is_module(receiver):
            return self.table_of(receiver, name)
        if name == "training" and self.is_module(receiver):
            return True
        if self.is_module(receiver) or self.has_unknown_base(receiver.cls):
            if self.has_unknown_base(receiver.cls) and name not in MODULE_METHODS:
                return Symbol(("attr", receiver.key, name))
            return Method(receiver, name)
        if self.is_torch_optimizer(receiver):
            return Method(receiver, name)
        return Symbol(("attr", receiver.key, name))

    def super_attribute(self, receiver: SuperValue, name: str, expression: ast.expr | None) -> Value:
        cls = receiver.receiver.cls if type(receiver.receiver) is Instance else receiver.owner
        found = self.find_in_class(cls, name, after=receiver.owner)
        if type(found) is FunctionValue:
            return BoundMethod(found, receiver.receiver)
        if found is not MISSING:
            return found
        return Method(receiver, name, expression)

    def torch_attribute(self, receiver: TorchModule, name: str, expression: ast.expr | None) -> Value:
        if name in receiver.slots and name != "children":
            return self.resolve(receiver.slots[name])
        children = self.resolve(receiver.slots.get("children"))
        if type(children) is DictCell and ("key", name) in children.slots:
            return self.resolve(children.slots["key", name])
        if name in TABLES:
            return self.table_of(receiver, name)
        if name == "module":
            return receiver
        return Method(receiver, name, expression)

    def tensor_attribute(self, receiver: Tensor, name: str, site: ast.AST, expression: ast.expr | None) -> Value:
        if name == "data":
            return self.without_graph("data", [Operand(expression, receiver)], site)
        if name == "grad":
            return self.stored_gradient(receiver, site)
        if name in VIEW_ATTRIBUTES:
            return self.operate("transpose", site, [Operand(expression, receiver)])
        if name == "requires_grad":
            return self.requires_grad(receiver)
        if name == "grad_fn":
            node = receiver.slots["node"]
            return None if node is None else Symbol(("grad_fn", id(node)))
        if name in {"shape", "dtype", "device", "ndim", "is_cuda", "layout", "is_leaf", "itemsize", "nbytes"}:
            return Symbol(("torch", name, id(receiver)))
        return Method(receiver, name, expression)

    def requires_grad(self, tensor: Tensor) -> Value:
        edges = self.edges_of(tensor)
        if not edges:
            return False
        if any(not edge.guard.facts for edge in edges):
            return Symbol(("requires_grad", id(tensor))) if all(edge.node.assumed for edge in edges) else True
        return Symbol(("requires_grad", id(tensor)))

    def stored_gradient(self, tensor: Tensor, site: ast.AST) -> Value:
        """``tensor.grad``"""
        if "grad" in tensor.slots:
            return tensor.slots["grad"]
        node = tensor.slots["node"]
        if not isinstance(node, Node):
            return None if node is None else Symbol(self.fresh("grad"))
        event = self.resolve(node.slots.get("gradient"))
        if event is None:
            return Symbol(("grad", id(node), self.heap.mark()))
        if type(event) is Phi or type(event) is Symbol:
            return Tensor()
        return self.gradient(event, site)

    def parameters_attribute(
        self, receiver: Parameters, name: str, site: ast.AST, expression: ast.expr | None
    ) -> Value:
        if name == "data":
            return Tensor()
        if name == "grad":
            events = {self.resolve(leaf.slots.get("gradient")) for leaf in receiver.leaves}
            if len(events) == 1:
                event = events.pop()
                if event is not None and type(event) not in (Phi, Symbol):
                    gradient = self.gradient(event, site)
                    return GradientOf(receiver, gradient)
            return GradientOf(receiver, Tensor())
        if name == "requires_grad":
            states = {leaf.slots.get("requires_grad", True) for leaf in receiver.leaves}
            return states.pop() if len(states) == 1 else Symbol(self.fresh("requires_grad"))
        if name in {"shape", "dtype", "device", "ndim"}:
            return Symbol(self.fresh(name))
        return Method(receiver, name, expression)

    def namedtuple_attribute(self, receiver: TupleValue, name: str, expression: ast.expr | None) -> Value:
        cls = receiver.cls
        fields = cls.fields if isinstance(cls, NamedTupleClass) else cls.namedtuple_fields if cls else ()
        if name in fields and fields.index(name) < len(receiver.items):
            return self.resolve(receiver.items[fields.index(name)])
        if isinstance(cls, ClassValue):
            found = self.find_in_class(cls, name)
            if type(found) is FunctionValue:
                if found.kind == "property":
                    return self.call_function(found, [Operand(None, receiver)], {}, cls.node)
                return BoundMethod(found, receiver)
        return Method(receiver, name, expression)

    def symbol_attribute(self, receiver: Symbol, name: str, site: ast.AST, expression: ast.expr | None) -> Value:
        slots = self.symbol_slots.get(receiver.key)
        if slots is not None and name in slots:
            self.note_read(slots, name, slots[name])
            return self.resolve(slots[name])
        if receiver.node is not None:
            if name == "data":
                return self.without_graph("data", [Operand(expression, receiver)], site)
            if name in torch_operations.NUMBERS and name not in {"size", "item", "tolist", "names"}:
                return Symbol(("attr", receiver.key, name))
        return Symbol(("attr", receiver.key, name), receiver.node, cuts=receiver.cuts)

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, expression: ast.Call) -> Value:
        function = expression.func
        if isinstance(function, ast.Attribute):
            receiver = self.resolve(self.evaluate(function.value))
            kind = type(receiver)
            if kind is Symbol:
                slots = self.symbol_slots.get(receiver.key)
                if slots is None or function.attr not in slots:
                    arguments, keywords = self.arguments(expression)
                    method = Method(receiver, function.attr, function.value)
                    return self.call_method(method, arguments, keywords, expression)
            callee: Value
            if kind is Phi or kind in (ListCell, DictCell):
                callee = Method(receiver, function.attr, function.value)
            elif kind is GradientOf:
                callee = Method(receiver.gradient, function.attr, function.value)
                self.gradient_call(receiver, function.attr, expression)
            else:
                callee = self.load_attribute(receiver, function.attr, function, function.value)
        else:
            callee = self.evaluate(function)
        arguments, keywords = self.arguments(expression)
        return self.call_value(callee, arguments, keywords, expression)

    def gradient_call(self, gradient: GradientOf, name: str, call: ast.Call) -> None:
        if name == "zero_":
            self.zero_grad(call, gradient.parameters)

    def arguments(self, call: ast.Call) -> tuple[list[Operand], dict[str, Operand]]:
        """The evaluated arguments of a call, stars opened where their contents are known."""
        positional: list[Operand] = []
        for argument in call.args:
            if isinstance(argument, ast.Starred):
                value = self.evaluate(argument.value)
                items, exact = self.elements(value, argument)
                if exact and all(not guard.facts or self.path.implies(guard) for guard, _ in items):
                    positional += [Operand(None, item) for _, item in items]
                else:
                    positional.append(Operand(argument, value))
            else:
                positional.append(Operand(argument, self.evaluate(argument)))
        keywords: dict[str, Operand] = {}
        for keyword in call.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = Operand(keyword.value, value)
                continue
            table = self.resolve(value)
            if type(table) is DictCell:
                for key, item in table.slots.items():
                    if isinstance(key, tuple) and isinstance(key[1], str):
                        keywords[key[1]] = Operand(None, item)
                    else:
                        keywords["**"] = Operand(None, item)
            else:
                keywords["**"] = Operand(keyword.value, value)
        return positional, keywords

    # -- operators -------------------------------------------------------------------------------------------------

    def binary(self, expression: ast.BinOp) -> Value:
        left, right = self.resolve(self.evaluate(expression.left)), self.resolve(self.evaluate(expression.right))
        self.note_plain(expression.left, left)
        self.note_plain(expression.right, right)
        return self.binary_values(
            expression.op, Operand(expression.left, left), Operand(expression.right, right), expression
        )

    def binary_values(self, operator: ast.operator, left: Operand, right: Operand, site: ast.AST) -> Value:
        one, other = left.value, right.value
        if plain(one) and plain(other):
            return self.constant_operation(operator, one, other)
        if type(one) is GradientOf:
            left = Operand(left.expression, one.gradient)
            one = left.value
        if type(other) is GradientOf:
            right = Operand(right.expression, other.gradient)
            other = right.value
        if self.tensor_like(one) or self.tensor_like(other):
            name = torch_operations.BINARY_OPERATORS.get(type(operator).__name__, "add")
            if name in torch_operations.WITHOUT_GRAPH:
                return Tensor()
            operation = None
            if name in torch_operations.WITH_TENSOR and self.tensor_like(other):
                operation = torch_operations.WITH_TENSOR[name]
            scalar = all(plain(v) or type(v) is Symbol or (type(v) is Tensor and v.scalar) for v in (one, other))
            result = self.operate(name, site, [left, right], scalar=scalar, operation=operation)
            if not any(self.certainly_tensor(v) for v in (one, other)):
                return Symbol(self.fresh("operation"), result.node, cuts=result.cuts)
            return result
        if isinstance(operator, (ast.Add, ast.Mult)) and type(one) in (ListCell, TupleValue):
            return self.sequence_operation(operator, one, other)
        if isinstance(operator, ast.Mult) and type(other) is ListCell:
            return self.sequence_operation(operator, other, one)
        above = None
        if (
            type(one) is Symbol
            and one.above is not None
            and isinstance(other, (int, float))
            and isinstance(operator, ast.Add)
        ):
            above = one.above + other
        cuts = self.cuts_of(one) | self.cuts_of(other)
        return Symbol(("operation", type(operator).__name__, key_of(one), key_of(other)), above=above, cuts=cuts)

    def tensor_like(self, value: Value) -> bool:
        kind = type(value)
        if kind in TENSORS:
            return True
        if kind is Phi:
            return any(self.tensor_like(v) for _, v in value.alternatives)
        return kind is Symbol and value.node is not None

    def certainly_tensor(self, value: Value) -> bool:
        kind = type(value)
        if kind is Phi:
            return any(self.certainly_tensor(v) for _, v in value.alternatives)
        if kind is Symbol:
            return value.node is not None and value.node.slots.get("tensor") is True
        return kind in TENSORS

    def constant_operation(self, operator: ast.operator, one: Any, other: Any) -> Value:
        if isinstance(operator, ast.Mod) and isinstance(one, str) and len(one) < LONGEST_STRING:
            try:
                return one % other
            except (TypeError, ValueError, OverflowError):
                return Symbol(("operation", "format", one, key_of(other)))
        function = ARITHMETIC.get(type(operator))
        if function is None:
            return Symbol(("operation", type(operator).__name__, key_of(one), key_of(other)))
        if isinstance(one, (str, bytes)) and isinstance(other, int) and len(one) * max(other, 0) > LONGEST_STRING:
            return Symbol(("operation", type(operator).__name__, key_of(one), key_of(other)))
        try:
            result = function(one, other)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return Symbol(self.fresh("error"))
        if isinstance(result, int) and abs(result) > 1 << 64:
            return Symbol(self.fresh("large"))
        return result

    def sequence_operation(self, operator: ast.operator, one: Value, other: Value) -> Value:
        other = self.resolve(other)
        if isinstance(operator, ast.Mult):
            if isinstance(other, int) and other <= 4 and type(one) is ListCell:
                return ListCell(one.slots["items"] * max(other, 0), one.slots["more"], one.kind)
            if type(one) is ListCell:
                return ListCell(one.slots["items"], True, one.kind)
            return Symbol(self.fresh("repeated"), None)
        if type(one) is TupleValue and type(other) is TupleValue:
            return TupleValue((*one.items, *other.items))
        items, exact = self.elements(one, self.frame.module.tree)
        more, whole = self.elements(other, self.frame.module.tree)
        kind = one.kind if type(one) is ListCell else "tuple"
        return ListCell((*items, *more), not (exact and whole), kind)

    def unary(self, expression: ast.UnaryOp) -> Value:
        value = self.resolve(self.evaluate(expression.operand))
        if isinstance(expression.op, ast.Not):
            return self.negated(value)
        if isinstance(value, (int, float)) and not isinstance(value, str):
            if isinstance(expression.op, ast.USub):
                return -value
            if isinstance(expression.op, ast.UAdd):
                return +value
        if self.tensor_like(value):
            if isinstance(expression.op, ast.Invert):
                return Tensor()
            scalar = type(value) is Tensor and value.scalar
            result = self.operate("neg", expression, [Operand(expression.operand, value)], scalar=scalar)
            return result if self.certainly_tensor(value) else Symbol(self.fresh("neg"), result.node, cuts=result.cuts)
        return Symbol(("unary", type(expression.op).__name__, key_of(value)), cuts=self.cuts_of(value))

    def negated(self, value: Value) -> Value:
        truth = self.truth(value)
        if isinstance(truth, bool):
            return not truth
        if type(value) is Phi:
            return self.phi([(g, self.negated(v)) for g, v in value.alternatives])
        if type(value) is Symbol and isinstance(value.key, tuple) and value.key[0] == "not":
            return Symbol(value.key[1])
        return Symbol(("not", key_of(value)))

    def truth(self, value: Value) -> bool | None:
        """Whether ``value`` is true; None where that depends."""
        value = self.resolve(value)
        kind = type(value)
        if plain(value):
            return bool(value)
        if kind is TupleValue:
            return bool(value.items)
        if kind is ListCell:
            items = value.slots["items"]
            if any(not guard.facts for guard, _ in items):
                return True
            return False if not items and not value.slots["more"] else None
        if kind is DictCell:
            if "rest" in value.slots:
                return None
            return bool(value.slots)
        if kind is Symbol:
            if value.above is not None and value.above > 0:
                return True
            fact = self.path.facts.get(("truth", value.key))
            return fact if isinstance(fact, bool) else None
        if kind in (Tensor, Phi, Parameters, Range, Sequence):
            return None
        if kind is Instance:
            return None if self.find_in_class(value.cls, "__len__") is not MISSING else True
        return True

    def compare(self, expression: ast.Compare) -> Value:
        left = self.resolve(self.evaluate(expression.left))
        results: list[Value] = []
        for operator, right_expression in zip(expression.ops, expression.comparators, strict=True):
            right = self.resolve(self.evaluate(right_expression))
            results.append(self.compare_values(operator, left, right, expression))
            left = right
        if len(results) == 1:
            return results[0]
        if all(isinstance(r, bool) for r in results):
            return all(results)
        if any(r is False for r in results):
            return False
        return Symbol(("compare", *(key_of(r) for r in results)))

    def compare_values(self, operator: ast.cmpop, left: Value, right: Value, site: ast.AST) -> Value:
        if type(left) is Phi:
            return self.phi([(g, self.compare_values(operator, v, right, site)) for g, v in left.alternatives])
        if type(right) is Phi:
            return self.phi([(g, self.compare_values(operator, left, v, site)) for g, v in right.alternatives])
        if isinstance(operator, (ast.Is, ast.IsNot)):
            return self.identity(left, right, isinstance(operator, ast.IsNot))
        if isinstance(operator, (ast.In, ast.NotIn)):
            return self.membership(left, right, isinstance(operator, ast.NotIn))
        function = COMPARISONS[type(operator)]
        if plain(left) and plain(right):
            try:
                return bool(function(left, right))
            except TypeError:
                return Symbol(self.fresh("compare"))
        if self.tensor_like(left) or self.tensor_like(right):
            return Tensor(None, scalar=all(plain(v) or getattr(v, "scalar", False) for v in (left, right)))
        bounded = self.bounded(operator, left, right)
        if bounded is not None:
            return bounded
        if isinstance(operator, (ast.Eq, ast.NotEq)) and plain(right) and right is not None and type(left) is Symbol:
            known = self.path.facts.get(("value", left.key), MISSING)
            equal: Value = Symbol(("equal", left.key, right)) if known is MISSING else known == right
            return self.negated(equal) if isinstance(operator, ast.NotEq) else equal
        if isinstance(operator, ast.NotEq):
            return Symbol(("not", ("compare", "Eq", key_of(left), key_of(right))))
        return Symbol(("compare", type(operator).__name__, key_of(left), key_of(right)))

    def bounded(self, operator: ast.cmpop, left: Value, right: Value) -> bool | None:
        """A comparison with a counter that is known to be at least ``above``."""
        if type(left) is Symbol and left.above is not None and isinstance(right, (int, float)):
            if isinstance(operator, (ast.Eq, ast.LtE)) and right < left.above:
                return False
            if isinstance(operator, ast.Lt) and right <= left.above:
                return False
            if isinstance(operator, ast.NotEq) and right < left.above:
                return True
            if isinstance(operator, ast.Gt) and right < left.above:
                return True
            if isinstance(operator, ast.GtE) and right <= left.above:
                return True
        if type(right) is Symbol and right.above is not None and isinstance(left, (int, float)):
            mirrored = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}.get(
                type(operator), type(operator)
            )
            return self.bounded(mirrored(), right, left)
        return None

    def identity(self, left: Value, right: Value, negate: bool) -> Value:
        if right is None or left is None:
            other = left if right is None else right
            if other is None:
                return not negate
            if type(other) is not Symbol:
                return negate
            test = Symbol(("is none", other.key))
            known = self.path.facts.get(("truth", test.key))
            if isinstance(known, bool):
                return known is not negate
            return self.negated(test) if negate else test
        if plain(left) and plain(right):
            return (left is right or left == right) is not negate
        if type(left) is not Symbol and type(right) is not Symbol:
            return (left is right or same_value(left, right)) is not negate
        test = Symbol(("is", key_of(left), key_of(right)))
        return self.negated(test) if negate else test

    def membership(self, item: Value, container: Value, negate: bool) -> Value:
        container = self.resolve(container)
        verdict: bool | None = None
        if isinstance(container, str) and isinstance(item, str):
            verdict = item in container
        elif type(container) in (TupleValue, ListCell) and plain(item):
            items, exact = self.elements(container, self.frame.module.tree)
            values = [self.resolve(v) for _, v in items]
            if any(plain(v) and v == item for v in values):
                verdict = True
            elif exact and all(plain(v) for v in values):
                verdict = False
        elif type(container) is DictCell and plain(item):
            if ("key", item) in container.slots:
                verdict = True
            elif "rest" not in container.slots:
                verdict = False
        elif type(container) is Sequence and container.exact and plain(item):
            values = [self.resolve(v) for _, v in container.items]
            if all(plain(v) for v in values):
                verdict = item in values
        elif type(container) in (TupleValue, ListCell) and type(item) in (Symbol, External):
            items, exact = self.elements(container, self.frame.module.tree)
            values = [self.resolve(v) for _, v in items]
            if exact and all(plain(v) and v is not None for v in values):
                return self.one_of(item, values, negate)
        if verdict is not None:
            return verdict is not negate
        test = Symbol(("in", key_of(item), key_of(container), self.serial if type(container) is not Symbol else 0))
        return self.negated(test) if negate else test

    def one_of(self, item: Value, values: list[Value], negate: bool) -> Value:
        """Whether ``item`` is one of some constants: the same as ``item == values[0] or …``."""
        tests = [self.compare_values(ast.Eq(), item, value, self.frame.module.tree) for value in values]
        truths = [self.truth(test) for test in tests]
        if True in truths:
            return not negate
        left = [test for test, truth in zip(tests, truths, strict=True) if truth is None]
        if not left:
            return negate
        test = Symbol(("one of", tuple(key_of(one) for one in left)))
        return self.negated(test) if negate else test

    def boolean(self, expression: ast.BoolOp) -> Value:
        """``a and b``: what Python gives, path by path."""
        conjunction = isinstance(expression.op, ast.And)
        value = self.resolve(self.evaluate(expression.values[0]))
        for following in expression.values[1:]:
            truth = self.truth(value)
            if truth is (not conjunction):
                return value
            if truth is conjunction:
                value = self.resolve(self.evaluate(following))
                continue
            cases = self.condition(value)
            if cases is None:
                other = self.resolve(self.evaluate(following))
                value = self.either(value, other, conjunction)
                continue
            true, false = cases
            stays, goes_on = (false, true) if conjunction else (true, false)
            held = value
            value = self.fork(
                [(goes_on, following), (stays, None)],
                partial(self.continued, held),
            )
            value = self.resolve(value)
        return value

    def continued(self, held: Value, following: ast.expr | None) -> Value:
        return held if following is None else self.resolve(self.evaluate(following))

    def either(self, value: Value, other: Value, conjunction: bool) -> Value:
        word = "and" if conjunction else "or"
        edges = (*self.edges_of(value), *self.edges_of(other))
        node = self.merge_node(edges) if edges else None
        return Symbol((word, key_of(value), key_of(other)), node)

    def condition(self, value: Value) -> tuple[Guard, Guard] | None:
        """The guards under which ``value`` is true and false; None where they cannot be told apart."""
        value = self.resolve(value)
        if type(value) is Symbol:
            return facts_of(value.key)
        if type(value) is Phi:
            true: list[Guard] = []
            false: list[Guard] = []
            for guard, alternative in value.alternatives:
                verdict = self.truth_on(guard, alternative)
                if verdict is not None:
                    (true if verdict else false).append(guard)
                elif type(alternative) is Symbol:
                    yes, no = facts_of(alternative.key)
                    true += [both for both in [guard.meet(yes)] if both is not None]
                    false += [both for both in [guard.meet(no)] if both is not None]
                else:
                    return None
            if len(true) == 1 and len(false) == 1:
                return true[0], false[0]
            if len(true) == 1:
                return self.with_rest(true[0])
            if len(false) == 1:
                positive, negative = self.with_rest(false[0])
                return negative, positive
        return None

    def truth_on(self, guard: Guard, value: Value) -> bool | None:
        """Whether ``value`` is true where ``guard`` holds."""
        path = self.path
        self.path = path.meet(guard) or path
        truth = self.truth(value)
        self.path = path
        return truth

    def with_rest(self, guard: Guard) -> tuple[Guard, Guard]:
        """``guard`` and what stands for all other paths."""
        if len(guard.facts) == 1:
            key, fact = next(iter(guard.facts.items()))
            if isinstance(fact, bool):
                return guard, Guard({key: not fact})
        together = frozenset(guard.facts.items())
        return Guard({**guard.facts, (ALL_OF, together): True}), Guard.not_all(together)

    def conditional(self, expression: ast.IfExp) -> Value:
        test = self.evaluate(expression.test)
        truth = self.truth(test)
        if truth is not None:
            return self.evaluate(expression.body if truth else expression.orelse)
        true, false = self.split(test)
        return self.fork([(true, expression.body), (false, expression.orelse)], self.evaluate)

    def split(self, test: Value) -> tuple[Guard, Guard]:
        """The guards of the two sides of a branch on ``test``."""
        cases = self.condition(test)
        if cases is not None:
            return cases
        key = ("truth", self.fresh("condition"))
        return Guard({key: True}), Guard({key: False})

    # -- containers ------------------------------------------------------------------------------------------------

    def tuple_(self, expression: ast.Tuple) -> Value:
        if any(isinstance(element, ast.Starred) for element in expression.elts):
            items, exact = self.starred(expression.elts)
            if exact:
                return TupleValue(tuple(value for _, value in items))
            return ListCell(tuple(items), more=True, kind="tuple")
        return TupleValue(tuple([self.evaluate(element) for element in expression.elts]))

    def list_(self, expression: ast.List | ast.Set) -> Value:
        items, exact = self.starred(expression.elts)
        return ListCell(tuple(items), more=not exact, kind="set" if isinstance(expression, ast.Set) else "list")

    def starred(self, elements: list[ast.expr]) -> tuple[list[tuple[Guard, Value]], bool]:
        items: list[tuple[Guard, Value]] = []
        exact = True
        for element in elements:
            if isinstance(element, ast.Starred):
                found, whole = self.elements(self.evaluate(element.value), element)
                items += found
                exact = exact and whole
            else:
                items.append((ALWAYS, self.evaluate(element)))
        return items, exact

    def dict_(self, expression: ast.Dict) -> Value:
        table = DictCell()
        for key_expression, value_expression in zip(expression.keys, expression.values, strict=True):
            value = self.evaluate(value_expression)
            if key_expression is None:
                self.update_dict(table, value)
            else:
                self.store_item(table, self.evaluate(key_expression), value, expression)
        return table

    def subscript(self, expression: ast.Subscript) -> Value:
        container = self.resolve(self.evaluate(expression.value))
        if isinstance(expression.slice, ast.Slice):
            return self.slice_of(container, expression)
        index = self.resolve(self.evaluate(expression.slice))
        if self.tensor_like(container) and type(container) is not Phi:
            result = self.indexed(Operand(expression.value, container), index, expression)
            if type(container) is Symbol:
                return Symbol(("item", container.key, key_of(index)), result.node, cuts=container.cuts)
            return result
        return self.select(container, index, expression)

    def slice_of(self, container: Value, expression: ast.Subscript) -> Value:
        bounds = expression.slice
        assert isinstance(bounds, ast.Slice)
        lower = self.resolve(self.evaluate(bounds.lower)) if bounds.lower else None
        upper = self.resolve(self.evaluate(bounds.upper)) if bounds.upper else None
        kind = type(container)
        numbers = all(v is None or isinstance(v, int) for v in (lower, upper)) and bounds.step is None
        if kind is TupleValue and numbers:
            return TupleValue(container.items[lower:upper])
        if kind in (ListCell, Sequence):
            items = container.slots["items"] if kind is ListCell else container.items
            more = container.slots["more"] if kind is ListCell else not container.exact
            if numbers and not more:
                return ListCell(items[lower:upper], False, getattr(container, "kind", "list"))
            return ListCell(items, True, getattr(container, "kind", "list"))
        if kind is TorchModule:
            return container
        if self.tensor_like(container):
            view = torch_operations.OPERATIONS["getitem"]
            result = self.operate("slice", expression, [Operand(expression.value, container)], operation=view)
            return Symbol(self.fresh("slice"), result.node) if kind is Symbol else result
        if isinstance(container, str) and numbers:
            return container[lower:upper]
        return Symbol(("slice", key_of(container), key_of(lower), key_of(upper)))

    def indexed(self, tensor: Operand, index: Value, site: ast.AST) -> Tensor:
        """``tensor[index]``: a view where numbers and slices are the index, a copy where tensors or lists are."""
        advanced = is_advanced(index)
        if advanced is None:
            return self.record("select", site, [tensor], saves=None)
        operation = torch_operations.OPERATIONS["getitem_advanced" if advanced else "getitem"]
        return self.operate("select", site, [tensor], operation=operation)

    def select(self, container: Value, index: Value, site: ast.AST) -> Value:
        """``container[index]``"""
        container = self.resolve(container)
        kind = type(container)
        if kind is Phi:
            pairs = [(g, self.select(v, index, site)) for g, v in container.alternatives if v is not None]
            return self.phi(pairs) if len(pairs) != 1 else pairs[0][1]
        if kind is TupleValue:
            return self.select_from([(ALWAYS, v) for v in container.items], False, index)
        if kind is ListCell:
            self.note_read(container.slots, "items", container)
            return self.select_from(container.slots["items"], container.slots["more"], index)
        if kind is Sequence:
            return self.select_from(container.items, not container.exact, index)
        if kind is DictCell:
            return self.select_key(container, index, site)
        if kind is TorchModule:
            children = self.resolve(container.slots.get("children"))
            if type(children) in (ListCell, DictCell):
                return self.select(children, index, site)
        if kind is Instance:
            if "children" in container.slots:
                return self.select(container.slots["children"], index, site)
            found = self.find_in_class(container.cls, "__getitem__")
            if type(found) is FunctionValue:
                return self.call_function(found, [Operand(None, container), Operand(None, index)], {}, site)
        if kind is Tensor:
            return self.indexed(Operand(None, container), index, site)
        if kind is Symbol:
            return Symbol(("item", container.key, key_of(index)), container.node, cuts=container.cuts)
        if kind is External or kind is ClassValue:
            return container
        if isinstance(container, str) and isinstance(index, int) and -len(container) <= index < len(container):
            return container[index]
        return Symbol(self.fresh("item"))

    def select_from(self, items: tuple[tuple[Guard, Value], ...] | list[Any], more: bool, index: Value) -> Value:
        items = list(items)
        if isinstance(index, int):
            unconditional = all(not guard.facts or self.path.implies(guard) for guard, _ in items)
            if -len(items) <= index < len(items) and (unconditional or index >= 0):
                if index < 0 or unconditional:
                    return self.resolve(items[index][1])
                return self.resolve(items[index][1])
            if items and index < 0:
                return self.last_of(items)
            return Symbol(self.fresh("index"), None) if not items else self.blur(items)
        if not items:
            return Symbol(self.fresh("index"))
        key = ("value", key_of(index))
        above = index.above if type(index) is Symbol else None
        pairs = []
        for position, (guard, value) in enumerate(items):
            if above is not None and position < above and len(items) > above:
                continue
            both = guard.also(key, position)
            if both is not None:
                pairs.append((both, value))
        return self.phi(pairs) if len(pairs) > 1 else self.resolve(pairs[0][1]) if pairs else self.blur(items)

    def last_of(self, items: list[tuple[Guard, Value]]) -> Value:
        """The last element of a list some of whose elements are there on some paths only."""
        pairs: list[tuple[Guard, Value]] = []
        absent = ALWAYS
        for guard, value in reversed(items):
            both = absent.meet(guard)
            if both is not None:
                pairs.append((both, value))
            if not guard.facts:
                break
            if len(guard.facts) == 1:
                key, fact = next(iter(guard.facts.items()))
                if isinstance(fact, bool):
                    following = absent.also(key, not fact)
                    if following is None:
                        break
                    absent = following
        return self.phi(pairs) if len(pairs) > 1 else pairs[0][1]

    def select_key(self, table: DictCell, key: Value, site: ast.AST) -> Value:
        if plain(key):
            if ("key", key) in table.slots:
                self.note_read(table.slots, ("key", key), table)
                return self.resolve(table.slots["key", key])
            if table.factory is not None:
                value = self.call_value(table.factory, [], {}, site)
                self.write(table.slots, ("key", key), value)
                return value
            if "rest" in table.slots:
                return self.resolve(table.slots["rest"])
            return Symbol(self.fresh("missing key"))
        named = ("key", ("symbol", key_of(key)))
        if named in table.slots:
            return self.resolve(table.slots[named])
        if "rest" in table.slots:
            return self.resolve(table.slots["rest"])
        known = [v for k, v in table.slots.items() if isinstance(k, tuple) and k[0] == "key"]
        if not known:
            if table.factory is not None:
                value = self.call_value(table.factory, [], {}, site)
                self.write(table.slots, named, value)
                return value
            return Symbol(self.fresh("missing key"))
        name = ("value", key_of(key))
        pairs = [(Guard({name: k[1]}), v) for k, v in table.slots.items() if isinstance(k, tuple) and k[0] == "key"]
        return self.phi(pairs) if len(pairs) > 1 else self.resolve(pairs[0][1])

    def store_item(
        self, container: Value, index: Value, value: Value, site: ast.AST, source: ast.expr | None = None
    ) -> None:
        """``container[index] = value``"""
        container = self.resolve(container)
        kind = type(container)
        if kind is DictCell:
            _, module = self.tables.get(id(container.slots), (None, None))
            if module is not None and isinstance(index, str):
                self.store_attribute(module, index, value, site, source)
            elif module is not None:
                self.disturb([module], site)
            slot = ("key", index) if plain(index) else ("key", ("symbol", key_of(index)))
            self.write(container.slots, slot, value)
            self.note_store(container.slots, slot, value, source)
        elif kind is ListCell:
            items = container.slots["items"]
            self.note_store(container.slots, "items", value, source)
            if isinstance(index, int) and -len(items) <= index < len(items):
                position = index % len(items)
                self.write(container.slots, "items", (*items[:position], (ALWAYS, value), *items[position + 1 :]))
            elif items:
                key = ("value", key_of(index))
                changed = tuple(
                    (guard, self.phi([(Guard({key: position}), value), (Guard({key: ("not", position)}), old)]))
                    for position, (guard, old) in enumerate(items)
                )
                self.write(container.slots, "items", changed)
            else:
                self.write(container.slots, "items", ((ALWAYS, value),))
                self.write(container.slots, "more", True)
        elif kind is Tensor:
            target = site.value if isinstance(site, ast.Subscript) else None
            self.change(container, "setitem", site, [Operand(source, value)], target)
        elif kind is Instance:
            found = self.find_in_class(container.cls, "__setitem__")
            if type(found) is FunctionValue:
                self.call_function(
                    found, [Operand(None, container), Operand(None, index), Operand(None, value)], {}, site
                )
        elif kind is Symbol:
            slots = self.symbol_slots.setdefault(container.key, {})
            self.write(slots, ("item", key_of(index)), value)
            self.escape(value, site, "store")
        elif kind is Phi:
            for _, alternative in self.alternatives(container):
                self.store_item(alternative, index, value, site, source)

    def store_attribute(
        self, receiver: Value, name: str, value: Value, site: ast.AST, source: ast.expr | None = None
    ) -> None:
        """``receiver.name = value``"""
        receiver = self.resolve(receiver)
        kind = type(receiver)
        if kind is Instance:
            setter = self.find_in_class(receiver.cls, name + ".setter")
            if type(setter) is FunctionValue:
                self.call_function(setter, [Operand(None, receiver), Operand(None, value)], {}, site)
                return
            if self.find_in_class(receiver.cls, "__setattr__") is not MISSING:
                value = self.stored_elsewhere(value, site)
            self.write(receiver.slots, name, value)
            self.note_store(receiver.slots, name, value, source)
        elif kind is TorchModule or kind is ClassValue:
            self.write(receiver.slots, name, value)
            self.note_store(receiver.slots, name, value, source)
        elif kind is ModuleValue:
            self.write(self.module_frame(receiver).slots, name, value)
        elif kind is Symbol:
            slots = self.symbol_slots.setdefault(receiver.key, {})
            self.write(slots, name, value)
            self.note_store(slots, name, value, source)
            self.escape(value, site, "store")
        elif kind is Tensor:
            self.store_tensor_attribute(receiver, name, value, site)
        elif kind is Parameters:
            self.store_parameters_attribute(receiver, name, value, site)
        elif kind is Phi:
            for _, alternative in self.alternatives(receiver):
                self.store_attribute(alternative, name, value, site, source)

    def store_tensor_attribute(self, receiver: Tensor, name: str, value: Value, site: ast.AST) -> None:
        if name == "requires_grad":
            self.require_grad(receiver, site, self.resolve(value))
        elif name == "grad":
            node = receiver.slots["node"]
            if isinstance(node, Node) and value is None:
                self.zero_grad(site, Parameters((node,))) if node.kind == "leaf" else None
                self.write(node.slots, "gradient", None)
            elif isinstance(node, Node):
                self.write(receiver.slots, "grad", value)

    def store_parameters_attribute(self, receiver: Parameters, name: str, value: Value, site: ast.AST) -> None:
        if name == "requires_grad":
            for leaf in receiver.leaves:
                self.write(leaf.slots, "requires_grad", self.resolve(value))
        elif name == "grad" and value is None:
            self.zero_grad(site, receiver)

    # -- comprehensions and the rest -------------------------------------------------------------------------------

    def comprehension(self, expression: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        results: list[tuple[Guard, Value]] = []
        exact = self.generate(
            expression.generators,
            0,
            ALWAYS,
            lambda guard: results.append((guard, self.evaluate(expression.elt))),
            expression,
        )
        if isinstance(expression, ast.GeneratorExp):
            return Sequence(tuple(results), exact)
        return ListCell(tuple(results), more=not exact, kind="set" if isinstance(expression, ast.SetComp) else "list")

    def dict_comprehension(self, expression: ast.DictComp) -> Value:
        table = DictCell()

        def add(guard: Guard) -> None:
            key = self.resolve(self.evaluate(expression.key))
            value = self.evaluate(expression.value)
            if guard.facts:
                value = self.phi([(guard, value), (Guard({("absent", *map(str, guard.facts)): True}), None)])
            slot = ("key", key) if plain(key) else ("key", ("symbol", key_of(key)))
            table.slots[slot] = value

        exact = self.generate(expression.generators, 0, ALWAYS, add, expression)
        if not exact:
            values = [v for k, v in table.slots.items()]
            table.slots["rest"] = values[-1] if values else Symbol(self.fresh("rest"))
        return table

    def generate(
        self,
        generators: list[ast.comprehension],
        depth: int,
        guard: Guard,
        add: Callable[[Guard], None],
        expression: ast.expr,
    ) -> bool:
        """Run the loops of a comprehension in a scope of their own; true where all elements are known."""
        if depth == len(generators):
            add(guard)
            return True
        generator = generators[depth]
        if depth == 0:
            scope = Frame(self.frame.function, self.frame.module, self.frame, self.frame.caller, self.frame.call)
            scope.depth = self.frame.depth
            scope.scope_of = self.frame
            scope.statement = self.frame.statement
            scope.arguments = self.frame.arguments
            scope.caller_loops = self.frame.caller_loops
            scope.caller_statement = self.frame.caller_statement
            source = self.evaluate(generator.iter)
            outer, self.frame = self.frame, scope
            try:
                return self.generate_from(source, generators, depth, guard, add, expression)
            finally:
                self.frame = outer
        return self.generate_from(self.evaluate(generator.iter), generators, depth, guard, add, expression)

    def generate_from(
        self,
        source: Value,
        generators: list[ast.comprehension],
        depth: int,
        guard: Guard,
        add: Callable[[Guard], None],
        expression: ast.expr,
    ) -> bool:
        generator = generators[depth]
        items, exact = self.elements(source, generator.iter)
        if len(items) > 12 and not (exact and self.are_modules(items)):
            self.disturb([item for _, item in items[3:-1]], expression)
            items, exact = [*items[:3], items[-1]], False
        base, loops = self.path, self.loops
        loop = self.new_loop(expression, exact)
        for number, (inner, item) in enumerate(items):
            both = guard.meet(inner)
            path = base.meet(inner)
            if both is None or path is None:
                continue
            self.path = path
            self.loops = (*loops, (loop, number))
            self.assign(generator.target, item)
            for condition in generator.ifs:
                test = self.evaluate(condition)
                verdict = self.truth(test)
                if verdict is False:
                    both = None
                    break
                if verdict is None:
                    true, _ = self.split(test)
                    narrowed = both.meet(true)
                    path = self.path.meet(true)
                    if narrowed is None or path is None:
                        both = None
                        break
                    both, self.path = narrowed, path
                    exact = False
            if both is not None and not self.generate(generators, depth + 1, both, add, expression):
                exact = False
            self.path = base
        self.loops = loops
        return exact

    def new_loop(self, statement: ast.AST, exact: bool) -> Any:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, source: ast.expr | None = None) -> None:
        raise NotImplementedError

    def lambda_(self, expression: ast.Lambda) -> Value:
        return FunctionValue(
            expression,
            self.frame.module,
            self.frame,
            "<lambda>",
            defaults=tuple(self.evaluate(d) for d in expression.args.defaults),
            keyword_defaults={
                a.arg: self.evaluate(d)
                for a, d in zip(expression.args.kwonlyargs, expression.args.kw_defaults, strict=True)
                if d is not None
            },
        )

    def formatted(self, expression: ast.JoinedStr) -> Value:
        parts: list[Any] = []
        for part in expression.values:
            if isinstance(part, ast.FormattedValue):
                value = self.resolve(self.evaluate(part.value))
                parts.append(str(value) if plain(value) and part.format_spec is None else None)
                if parts[-1] is None:
                    parts[-1] = key_of(value)
            elif isinstance(part, ast.Constant):
                parts.append(part.value)
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        return Symbol(("format", *parts))

    def named(self, expression: ast.NamedExpr) -> Value:
        value = self.evaluate(expression.value)
        self.assign(expression.target, value, expression.value)
        return value

    def awaited(self, expression: ast.Await | ast.YieldFrom | ast.Starred) -> Value:
        value = self.evaluate(expression.value)
        if isinstance(expression, ast.YieldFrom) and self.frame.yielded is not None:
            items, _ = self.elements(value, expression)
            self.frame.yielded += items
        return value

    def yielded(self, expression: ast.Yield) -> Value:
        value = self.evaluate(expression.value) if expression.value is not None else None
        frame: Frame | None = self.frame
        while frame is not None and frame.yielded is None:
            frame = frame.closure
        if frame is not None and frame.yielded is not None and len(frame.yielded) < 16:
            frame.yielded.append((ALWAYS, value))
        return Symbol(self.fresh("sent"))

    def constant(self, expression: ast.Constant) -> Value:
        value = expression.value
        if isinstance(value, complex) or value is Ellipsis:
            return Symbol(("constant", repr(value)))
        return value


class GradientOf:
    """``p.grad`` for every parameter of a set at once."""

    __slots__ = ("gradient", "parameters")

    def __init__(self, parameters: Parameters, gradient: Tensor) -> None:
        self.parameters = parameters
        self.gradient = gradient


def is_advanced(index: Value) -> bool | None:
    """Whether a subscript picks by tensors or lists, which copies; None where that is not known.

    Source: https://docs.pytorch.org/docs/stable/tensor_view.html and NumPy's rules for indexing.
    """
    kind = type(index)
    if kind is TupleValue:
        parts = [is_advanced(part) for part in index.items]
        return True if True in parts else None if None in parts else False
    if kind is Tensor:
        # A single integer in a tensor counts as a number.
        return None if index.scalar else True
    if kind is ListCell or isinstance(index, bool):
        return True
    if index is None or isinstance(index, int):
        return False
    if kind is Symbol and isinstance(index.key, tuple):
        counts = index.above is not None or index.key[0] in {"first", "later"}
        return False if counts or "Slice" in index.key or index.key == ("constant", "Ellipsis") else None
    return None


def facts_of(key: Any) -> tuple[Guard, Guard]:
    """The guards of a condition and of its opposite."""
    if isinstance(key, tuple) and key and key[0] == "not":
        true, false = facts_of(key[1])
        return false, true
    if isinstance(key, tuple) and len(key) == 3 and key[0] == "equal":
        return (
            Guard({("truth", key): True, ("value", key[1]): key[2]}),
            Guard({("truth", key): False}),
        )
    if isinstance(key, tuple) and len(key) == 2 and key[0] == "one of":
        none = {fact: value for test in key[1] for fact, value in facts_of(test)[1].facts.items()}
        some = Guard.not_all(frozenset(none.items()))
        return some.also(("truth", key), True) or some, Guard({**none, ("truth", key): False})
    return Guard({("truth", key): True}), Guard({("truth", key): False})


MODULE_METHODS: Final = torch_modules.MODULE_METHODS | {"backward", "manual_backward"}
"""What a module's or a framework's base class has."""

HANDLERS: Final[dict[type[ast.expr], Callable[[Any, Any], Value]]] = {
    ast.Name: Expressions.name,
    ast.Constant: Expressions.constant,
    ast.Attribute: Expressions.attribute,
    ast.Call: Expressions.call,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.Compare: Expressions.compare,
    ast.BoolOp: Expressions.boolean,
    ast.IfExp: Expressions.conditional,
    ast.Tuple: Expressions.tuple_,
    ast.List: Expressions.list_,
    ast.Set: Expressions.list_,
    ast.Dict: Expressions.dict_,
    ast.Subscript: Expressions.subscript,
    ast.ListComp: Expressions.comprehension,
    ast.SetComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension,
    ast.DictComp: Expressions.dict_comprehension,
    ast.Lambda: Expressions.lambda_,
    ast.JoinedStr: Expressions.formatted,
    ast.NamedExpr: Expressions.named,
    ast.Await: Expressions.awaited,
    ast.YieldFrom: Expressions.awaited,
    ast.Starred: Expressions.awaited,
    ast.Yield: Expressions.yielded,
}

__all__ = ["Cut", "Expressions", "GradientOf", "facts_of"]
