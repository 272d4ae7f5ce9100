"""Calling the project's own functions and classes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .guards import ALWAYS, Guard
from .heap import MISSING, Delta
from .machine import TooComplex
from .modules import Modules
from .tape import Node, Operand
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
    Partial,
    Phi,
    Sequence,
    Symbol,
    TorchModule,
    TupleValue,
    Value,
)

if TYPE_CHECKING:
    from .project import Project

CALL_BUDGET: Final = 8_000
"""Tape steps for one call of a function from which no traversal is reached."""
LEFT_TO_CALLER: Final = 8
"""This fraction of a function's budget stays for what it does after a call, however much the call takes."""
DEEPEST_CALL: Final = 24
MOST_RECURSION: Final = 2


@dataclass(slots=True)
class FunctionTarget:
    """Where ``return`` goes."""

    mark: int
    base: Guard
    nesting: int
    returns: list[tuple[Guard, Delta, Value]] = field(default_factory=list)
    direct: tuple[Guard, Value] | None = None


class Functions(Modules):
    """The machine with calls of project code."""

    def __init__(self, project: Project, budget: int) -> None:
        super().__init__(project, budget)
        self.unfinished: dict[ast.AST, int] = {}
        """Functions that took more than they could have, with how much that was."""

    function_target: FunctionTarget | None = None
    loop_target: Any = None
    nesting = 0

    def block(self, statements: Seq[ast.stmt]) -> bool:
        raise NotImplementedError

    def evaluate(self, expression: ast.expr) -> Value:
        raise NotImplementedError

    def call_external(self, name: str, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST) -> Value:
        raise NotImplementedError

    def call_method(
        self, method: Method, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> Value:
        raise NotImplementedError

    # -- any callee ------------------------------------------------------------------------------------------------

    def call_value(self, callee: Value, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST) -> Value:
        """``callee(*arguments, **keywords)``"""
        self.spend()
        callee = self.resolve(callee)
        kind = type(callee)
        if kind is FunctionValue:
            return self.call_function(callee, arguments, keywords, call)
        if kind is BoundMethod:
            receiver = Operand(None, callee.receiver)
            return self.call_function(callee.function, [receiver, *arguments], keywords, call)
        if kind is External:
            return self.call_external(callee.dotted, arguments, keywords, call)
        if kind is Method:
            return self.call_method(callee, arguments, keywords, call)
        if kind is TorchModule:
            return self.call_module(callee, arguments, keywords, call)
        if kind is Instance:
            return self.call_instance(callee, arguments, keywords, call)
        if kind is ClassValue:
            return self.instantiate(callee, arguments, keywords, call)
        if kind is Partial:
            given = [Operand(None, value) for value in callee.arguments]
            named = {name: Operand(None, value) for name, value in callee.keywords.items()}
            return self.call_value(callee.function, [*given, *arguments], {**named, **keywords}, call)
        if kind is NamedTupleClass:
            return self.make_namedtuple(callee, callee.fields, {}, arguments, keywords)
        if kind is Phi:
            return self.fork(callee.alternatives, lambda one: self.call_value(one, arguments, keywords, call))
        return self.unknown_call(callee, arguments, keywords, call)

    def fork(self, pairs: Seq[tuple[Guard, Value]], run: Callable[[Value], Value]) -> Value:
        """Do ``run`` for each of the exclusive alternatives on its path, and go on from all of them at once."""
        base, mark = self.path, self.heap.mark()
        outcomes: list[tuple[Guard, Delta]] = []
        results: list[tuple[Guard, Value]] = []
        self.nesting += 1
        for guard, value in pairs:
            path = base.meet(guard)
            if path is None:
                continue
            self.path = path
            result = run(value)
            outcomes.append((self.path, self.heap.delta(mark)))
            results.append((self.path.beyond(base), result))
            self.heap.undo(mark)
        self.nesting -= 1
        self.path = base
        if not outcomes:
            return Symbol(self.fresh("unreachable"))
        self.join(base, outcomes)
        return results[0][1] if len(results) == 1 else self.phi(results)

    # -- functions -------------------------------------------------------------------------------------------------

    def call_function(
        self, function: FunctionValue, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> Value:
        """Run ``function`` in a new frame."""
        if self.too_deep(function):
            return self.unknown_call(Symbol(("function", id(function.node))), arguments, keywords, call)
        frame = Frame(function, function.module, function.closure, self.frame, call)
        frame.caller_loops = self.loops
        frame.arguments = [*arguments, *keywords.values()]
        for operand in frame.arguments:
            self.note_plain(operand.expression, self.resolve(operand.value))
        self.bind(function, frame, list(arguments), dict(keywords))
        self.entered(function)
        recording = self.recording
        if function.records is not None:
            self.recording = function.records
        try:
            if self.is_central(function):
                result = self.run_body(frame, function.node)
            else:
                result = self.run_within(CALL_BUDGET, frame, function, arguments, keywords, call)
        finally:
            self.recording = recording
        if function.wrapped:
            return self.unknown_call(Symbol(self.fresh("decorated")), [Operand(None, result)], {}, call)
        return result

    def run_within(
        self,
        steps: int,
        frame: Frame,
        function: FunctionValue,
        arguments: Seq[Operand],
        keywords: dict[str, Operand],
        call: ast.AST,
    ) -> Value:
        """Run a function that is not what the file is about, for at most ``steps``; where that is not enough, its call
        is one of which nothing is known."""
        floor, mark, events = self.floor, self.heap.mark(), len(self.tape.events)
        left = self.budget - floor
        given = min(steps, left - left // LEFT_TO_CALLER)
        tried = self.unfinished.get(function.node, 0)
        if given <= tried or given < min(steps, 2 * tried):
            return self.unfinished_call(function, arguments, keywords, call)
        state = (self.path, self.loops, self.nesting)
        self.floor = self.budget - given
        own = self.floor > floor
        try:
            return self.run_body(frame, function.node)
        except TooComplex:
            if not own:
                raise
            self.heap.undo(mark)
            del self.tape.events[events:]
            self.path, self.loops, self.nesting = state
            self.floor = floor
            self.unfinished[function.node] = given
            return self.unfinished_call(function, arguments, keywords, call)
        finally:
            self.floor = floor

    def unfinished_call(
        self, function: FunctionValue, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> Value:
        if function.name == "__init__" and arguments and type(arguments[0].value) is Instance:
            arguments[0].value.slots["unfinished"] = True
        return self.unknown_call(Symbol(("function", id(function.node))), arguments, keywords, call)

    def is_central(self, function: FunctionValue) -> bool:
        """Whether traversals are made in ``function`` or below it: it may take the whole budget."""
        return True

    def entered(self, function: FunctionValue) -> None:
        """Called whenever a function is run."""

    def too_deep(self, function: FunctionValue) -> bool:
        if self.frame.depth >= DEEPEST_CALL:
            return True
        same = 0
        frame: Frame | None = self.frame
        while frame is not None:
            if frame.function is not None and frame.function.node is function.node:
                same += 1
            frame = frame.caller
        return same >= MOST_RECURSION

    def run_body(self, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Value:
        caller, target, loop_target = self.frame, self.function_target, self.loop_target
        base = self.path
        self.frame = frame
        self.loop_target = None
        own = FunctionTarget(self.heap.mark(), base, self.nesting)
        self.function_target = own
        generator = not isinstance(node, ast.Lambda) and self.project.syntax.yields(node)
        if generator:
            frame.yielded = []
        try:
            if isinstance(node, ast.Lambda):
                return self.evaluate(node.body)
            falls = self.block(node.body)
            result = self.returned(own, falls)
        finally:
            self.frame, self.function_target, self.loop_target = caller, target, loop_target
            self.finished(frame)
        if generator:
            return Sequence(tuple(frame.yielded or ()), exact=False)
        return result

    def finished(self, frame: Frame) -> None:
        """Called when a frame ends."""
        frame.returned = True

    def returned(self, target: FunctionTarget, falls: bool) -> Value:
        """The value that a function gives back, with the paths that return joined."""
        if not target.returns:
            if target.direct is not None:
                self.path, value = target.direct
                return value
            if not falls:
                self.path = target.base
                return Symbol(self.fresh("raised"))
            return None
        outcomes = list(target.returns)
        if target.direct is not None:
            outcomes.append((target.direct[0], self.heap.delta(target.mark), target.direct[1]))
        elif falls:
            outcomes.append((self.path, self.heap.delta(target.mark), None))
        self.heap.undo(target.mark)
        base = target.base
        pairs = [(path.beyond(base), value) for path, _, value in outcomes]
        self.join(base, [(path, delta) for path, delta, _ in outcomes])
        return pairs[0][1] if len(pairs) == 1 else self.phi(pairs)

    def bind(
        self, function: FunctionValue, frame: Frame, arguments: list[Operand], keywords: dict[str, Operand]
    ) -> None:
        """Put the arguments into the frame's variables."""
        spec = function.node.args
        slots = frame.slots
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        rest: list[tuple[Guard, Value]] = []
        unknown_rest = False
        for index, operand in enumerate(arguments):
            if isinstance(operand.expression, ast.Starred):
                unknown_rest = True
                items, _ = self.elements(operand.value, operand.expression)
                for position, name in enumerate(names[index:]):
                    if items and name not in slots:
                        slots[name] = items[min(position, len(items) - 1)][1]
                rest += items[max(0, len(names) - index) :]
                continue
            if unknown_rest:
                continue
            if index < len(names):
                slots[names[index]] = operand.value
            else:
                rest.append((ALWAYS, operand.value))
        extra = DictCell()
        keyword_names = {a.arg for a in spec.kwonlyargs} | set(names)
        for name, operand in keywords.items():
            if name == "**":
                extra.slots["rest"] = operand.value
            elif name in keyword_names:
                slots[name] = operand.value
            else:
                extra.slots["key", name] = operand.value
        defaults = function.defaults
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            if name not in slots:
                slots[name] = Symbol(self.fresh("argument", name)) if unknown_rest or "**" in keywords else default
        for argument in spec.kwonlyargs:
            if argument.arg not in slots:
                default = (function.keyword_defaults or {}).get(argument.arg, MISSING)
                slots[argument.arg] = self.parameter_symbol(function, argument.arg) if default is MISSING else default
        for name in names:
            if name not in slots:
                slots[name] = self.parameter_symbol(function, name)
        if spec.vararg:
            slots[spec.vararg.arg] = (
                ListCell(tuple(rest), more=True, kind="tuple")
                if unknown_rest
                else TupleValue(tuple(v for _, v in rest))
            )
        if spec.kwarg:
            slots[spec.kwarg.arg] = extra

    def parameter_symbol(self, function: FunctionValue, name: str) -> Symbol:
        return Symbol(("param", id(function.node), name))

    # -- classes ---------------------------------------------------------------------------------------------------

    def linearised(self, cls: ClassValue, seen: set[int] | None = None) -> list[Value]:
        """``cls`` and its bases, in the order in which attributes are looked up (depth first, good enough)."""
        seen = seen if seen is not None else set()
        if id(cls) in seen:
            return []
        seen.add(id(cls))
        order: list[Value] = [cls]
        for base in cls.bases:
            if type(base) is ClassValue:
                order += self.linearised(base, seen)
            else:
                order.append(base)
        return order

    def find_in_class(self, cls: ClassValue, name: str, after: ClassValue | None = None) -> Value:
        """The class attribute ``name``, or MISSING; ``after`` starts behind that class (``super()``)."""
        order = self.linearised(cls)
        if after is not None and after in order:
            order = order[order.index(after) + 1 :]
        for one in order:
            if type(one) is ClassValue and name in one.slots:
                return one.slots[name]
        return MISSING

    def is_module(self, value: Value) -> bool:
        if type(value) is TorchModule:
            return True
        return type(value) is Instance and self.is_module_class(value.cls)

    def is_module_class(self, cls: ClassValue) -> bool:
        order = self.linearised(cls)
        return any(type(b) is External and b.dotted in MODULE_BASES for b in order) or (
            self.has_unknown_base(cls) and self.find_in_class(cls, "forward") is not MISSING
        )

    def has_unknown_base(self, cls: Value) -> bool:
        """Whether attributes of ``cls`` may come from code that cannot be seen."""
        return any(
            type(base) is Symbol or (type(base) is External and base.dotted not in KNOWN_BASES)
            for base in self.linearised(cls)
        )

    def call_instance(
        self, instance: Instance, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> Value:
        for name in ("__call__", "forward"):
            found = self.find_in_class(instance.cls, name)
            if name == "forward" and name in instance.slots:
                return self.call_value(instance.slots[name], arguments, keywords, call)
            if type(found) is FunctionValue:
                return self.call_function(found, [Operand(None, instance), *arguments], keywords, call)
        base = next((b for b in self.linearised(instance.cls) if type(b) is External), None)
        if base is not None and base.dotted.startswith("torch.nn.") and base.dotted not in MODULE_BASES:
            twin = self.torch_twin(instance, base.dotted.rsplit(".", 1)[1], call)
            if twin is not None:
                return self.call_module(twin, arguments, keywords, call)
        return self.unknown_call(Symbol(instance.key), arguments, keywords, call)

    def torch_twin(self, instance: Instance, name: str, call: ast.AST) -> TorchModule | None:
        """``instance`` seen as the torch module that its class derives from (``class Mine(nn.Linear)``)."""
        from .knowledge.torch_modules import MODULES

        if name not in MODULES:
            return None
        twin = TorchModule(name, instance.key)
        twin.slots = instance.slots
        if name in {"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}:
            twin.slots.setdefault("children", ListCell(()))
        return twin

    def instantiate(
        self, cls: ClassValue, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> Value:
        """``cls(*arguments)``"""
        if cls.is_namedtuple:
            return self.make_namedtuple(cls, cls.namedtuple_fields, cls.slots, arguments, keywords)
        instance = self.make_instance(cls, self.fresh("instance", cls.name))
        if cls.dataclass_fields is not None:
            self.fill_dataclass(instance, cls, arguments, keywords, call)
            return instance
        found = self.find_in_class(cls, "__init__")
        if type(found) is FunctionValue:
            self.call_function(found, [Operand(None, instance), *arguments], keywords, call)
        else:
            self.base_constructor(instance, arguments, keywords, call)
        return instance

    def base_constructor(
        self, instance: Instance, arguments: Seq[Operand], keywords: dict[str, Operand], call: ast.AST
    ) -> None:
        """The effect of the constructor of a torch base class, as far as it is known."""
        from .knowledge.torch_modules import MODULES

        for base in self.linearised(instance.cls):
            if type(base) is External and base.dotted.startswith("torch.nn."):
                name = base.dotted.rsplit(".", 1)[1]
                if name in MODULES and base.dotted not in MODULE_BASES:
                    made = self.make_module(name, arguments, keywords, call)
                    for key, value in made.slots.items():
                        self.write(instance.slots, key, value)
                return

    def fill_dataclass(
        self,
        instance: Instance,
        cls: ClassValue,
        arguments: Seq[Operand],
        keywords: dict[str, Operand],
        call: ast.AST,
    ) -> None:
        fields = cls.dataclass_fields or ()
        for index, (name, default) in enumerate(fields):
            if index < len(arguments):
                value = arguments[index].value
            elif name in keywords:
                value = keywords[name].value
            elif default is MISSING:
                value = Symbol(("attr", instance.key, name))
            elif type(default) is Partial:
                value = self.call_value(default.function, [], {}, call)
            else:
                value = default
            self.write(instance.slots, name, value)
        found = self.find_in_class(cls, "__post_init__")
        if type(found) is FunctionValue:
            self.call_function(found, [Operand(None, instance)], {}, call)

    def make_namedtuple(
        self,
        cls: ClassValue | NamedTupleClass,
        fields: tuple[str, ...],
        defaults: dict[Any, Value],
        arguments: Seq[Operand],
        keywords: dict[str, Operand],
    ) -> Value:
        if len(arguments) == 1 and isinstance(arguments[0].expression, ast.Starred):
            items, _ = self.elements(arguments[0].value, arguments[0].expression)
            pool = [item for _, item in items]
            values = [pool[i] if i < len(pool) else Symbol(self.fresh("field")) for i in range(len(fields))]
            return TupleValue(tuple(values), cls)
        values = []
        for index, name in enumerate(fields):
            if index < len(arguments):
                values.append(arguments[index].value)
            elif name in keywords:
                values.append(keywords[name].value)
            else:
                values.append(defaults.get(name, Symbol(self.fresh("field", name))))
        return TupleValue(tuple(values), cls)

    def module_frame(self, module: ModuleValue) -> Frame:
        """The global variables of ``module``, its definitions made."""
        raise NotImplementedError


MODULE_BASES: Final = frozenset({"torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"})
KNOWN_BASES: Final = MODULE_BASES | {
    "builtins.object",
    "builtins.Exception",
    "builtins.dict",
    "builtins.list",
    "abc.ABC",
    "typing.Generic",
    "typing.Protocol",
    "enum.Enum",
    "enum.IntEnum",
    "torch.utils.data.Dataset",
    "torch.utils.data.IterableDataset",
    "torch.autograd.Function",
    "torch.optim.Optimizer",
    "torch.optim.optimizer.Optimizer",
}

__all__ = ["Functions", "Hashable", "Node"]
