"""Running classes as their framework would: its hooks in their order, in its loops, with its traversals.

Which hook is called when is in ``knowledge/framework_routines.py``, what each is asked for in
``knowledge/frameworks.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from .expressions import MODULE_METHODS
from .guards import ALWAYS
from .heap import MISSING
from .knowledge import framework_routines as routines
from .knowledge.framework_routines import Routine
from .knowledge.frameworks import HOOKS, TOGGLES_GRADIENT, Hook
from .library import Arguments, Keywords, plain
from .methods import merged
from .services import Service, Services
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
    Optimizer,
    Parameters,
    Phi,
    SuperValue,
    Symbol,
    Tensor,
    TupleValue,
    Value,
)

BY_CLASS: Final[dict[str, Routine]] = {name: routine for routine in routines.ROUTINES for name in routine.class_names}
BY_HOOK: Final[dict[tuple[frozenset[str], str], Hook]] = {(hook.class_names, hook.method): hook for hook in HOOKS}
LIGHTNING_METHODS: Final = (
    frozenset(
        {
            "optimizers",
            "lr_schedulers",
            "log",
            "log_dict",
            "print",
            "manual_backward",
            "save_hyperparameters",
            "clip_gradients",
        }
    )
    | TOGGLES_GRADIENT.keys()
)


class FrameworkCall(ast.Call):
    """A call that the framework makes and that stands in no source; it has the place of what it works on."""


class Drivers(Services):
    """The machine with frameworks that call the program."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.driven: set[ast.AST] = set()
        """Classes and process functions that were run as their framework runs them."""
        self.routines: dict[ClassValue, Routine | None] = {}
        self.configured: dict[int, list[Optimizer]] = {}
        """The optimizers of a driven object."""
        self.made_calls: dict[tuple[ast.AST, str], FrameworkCall] = {}
        self.companions: list[Instance] = []
        """The callbacks of the object that is driven."""
        self.results: list[Value] = []
        """What the hooks of the present epoch returned, without graph."""

    def new_instance(self, cls: ClassValue) -> Value:
        raise NotImplementedError

    # -- which classes ---------------------------------------------------------------------------------------------

    def routine_of(self, cls: ClassValue) -> Routine | None:
        """How a framework runs ``cls``; None where none does."""
        if cls not in self.routines:
            self.routines[cls] = next((r for base in self.linearised(cls) if (r := _routine(base)) is not None), None)
        return self.routines[cls]

    def drivable(self, frame: Frame) -> Iterator[tuple[str, Callable[[], object]]]:
        """The classes of a module that its framework runs and that have not been run, as entry points."""
        for name, cls in list(frame.slots.items()):
            if type(cls) is not ClassValue or cls.module is not frame.module or cls.node in self.driven:
                continue
            routine = self.routine_of(cls)
            if routine is not None and self.has_hooks(cls, routine):
                yield name, partial(self.drive_new, cls, routine, frame)

    def drive_new(self, cls: ClassValue, routine: Routine, frame: Frame) -> None:
        """Drive an object of ``cls``, with all callbacks that its file defines."""
        beside = [
            one for one in frame.slots.values() if type(one) is ClassValue and _derives(self.linearised(one), routine)
        ]
        self.drive(self.new_instance(cls), routine, [self.new_instance(one) for one in beside])

    def has_hooks(self, cls: ClassValue, routine: Routine) -> bool:
        called = [*routine.batch, *(name for names in routine.inherited.values() for name in names)]
        return any(self.find_in_class(cls, name) is not MISSING for name in called)

    def has_unknown_base(self, cls: Value) -> bool:
        routine = self.routine_of(cls) if type(cls) is ClassValue else None
        if routine is None or not routine.is_module:
            return super().has_unknown_base(cls)
        return any(type(base) is Symbol for base in self.linearised(cls) if _routine(base) is None)

    def is_module(self, value: Value) -> bool:
        if super().is_module(value):
            return True
        routine = self.routine_of(value.cls) if type(value) is Instance else None
        return routine is not None and routine.is_module

    # -- what the framework gives the object -----------------------------------------------------------------------

    def instance_attribute(self, receiver: Instance, name: str, site: ast.AST) -> Value:
        value = super().instance_attribute(receiver, name, site)
        if type(value) is not Method or value.receiver is not receiver:
            return value
        # A module's methods are known by their names; the framework's attributes may be anything.
        routine = self.routine_of(receiver.cls)
        if routine is None or (routine.is_module and name in MODULE_METHODS) or self.is_served(receiver, name):
            return value
        return Symbol(("attr", receiver.key, name))

    def is_served(self, receiver: Instance, name: str) -> bool:
        if super().is_served(receiver, name):
            return True
        routine = self.routine_of(receiver.cls)
        if routine is None:
            return False
        return name in routine.starters | routine.losses or (routine.optimizers != "" and name in LIGHTNING_METHODS)

    def call_torch_method(
        self, receiver: Value, name: str, mine: Operand, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        routine = self.routine_of(receiver.cls) if type(receiver) is Instance else None
        if routine is not None:
            if name in routine.starters:
                self.drive(receiver, routine)
                return None
            if routine.optimizers and name in LIGHTNING_METHODS:
                return self.lightning_method(receiver, name, arguments, keywords, call)
            if name in routine.losses:
                return self.given_loss(receiver, keywords.get("return_outputs"), call)
        return super().call_torch_method(receiver, name, mine, arguments, keywords, call)

    def lightning_method(
        self, receiver: Instance, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        optimizers = self.configured.get(id(receiver), [])
        if name == "manual_backward":
            return self.framework_backward(receiver, name, arguments, keywords, call)
        if name == "optimizers" and optimizers:
            return optimizers[0] if len(optimizers) == 1 else ListCell(tuple((ALWAYS, one) for one in optimizers))
        if name in {"optimizers", "lr_schedulers"}:
            return Symbol(("scheduler", self.fresh()) if name == "lr_schedulers" else self.fresh("optimizers"))
        if name == "toggle_optimizer" and arguments:
            self.toggle(receiver, arguments[0].value, call)
        elif name == "untoggle_optimizer":
            self.untoggle(receiver)
        elif name in {"freeze", "unfreeze"}:
            for leaf in self.parameters_of(receiver, call).leaves:
                self.write(leaf.slots, "requires_grad", TOGGLES_GRADIENT[name])
        return None

    def toggle(self, receiver: Instance, chosen: Value, site: ast.AST) -> None:
        """Only the parameters of one optimizer require a gradient."""
        optimizer = self.resolve(chosen)
        if isinstance(optimizer, int) and optimizer < len(self.configured.get(id(receiver), [])):
            optimizer = self.configured[id(receiver)][optimizer]
        if type(optimizer) is not Optimizer:
            return
        kept = set(self.owned(merged(optimizer.slots["groups"])))
        for other in self.configured.get(id(receiver), []):
            for leaf in self.owned(merged(other.slots["groups"])):
                if leaf not in kept and "toggled" not in leaf.slots:
                    self.write(leaf.slots, "toggled", leaf.slots["requires_grad"])
                    self.write(leaf.slots, "requires_grad", False)

    def untoggle(self, receiver: Instance) -> None:
        for other in self.configured.get(id(receiver), []):
            for leaf in self.owned(merged(other.slots["groups"])):
                if "toggled" in leaf.slots:
                    self.write(leaf.slots, "requires_grad", leaf.slots["toggled"])
                    self.write(leaf.slots, "toggled", MISSING)

    def start(self, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        for operand in (*arguments, *keywords.values()):
            given = self.resolve(operand.value)
            routine = self.routine_of(given.cls) if type(given) is Instance else None
            if routine is not None:
                callbacks, _ = self.elements(service.callbacks, call) if service is not None else ([], True)
                self.drive(given, routine, [callback for _, callback in callbacks])
        if service is not None and service in self.waiting:
            self.waiting.remove(service)
            self.process(service)
        return Symbol(self.fresh("started"))

    def start_waiting(self) -> None:
        """Run the engines that nothing has started: that may be done elsewhere."""
        waiting, self.waiting = self.waiting, []
        for service in waiting:
            self.path = service.path
            self.process(service)

    def held_frames(self) -> Iterator[Frame]:
        """The frames whose variables a waiting engine still uses."""
        for service in self.waiting:
            if type(service.process) in (FunctionValue, BoundMethod):
                frame: Frame | None = _function(service.process).closure
                while frame is not None:
                    yield frame
                    frame = frame.closure

    def call_super(
        self, receiver: SuperValue, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        instance = receiver.receiver
        routine = self.routine_of(instance.cls) if type(instance) is Instance else None
        if routine is not None and name in routine.inherited:
            given = [Operand(None, operand.value) for operand in arguments]
            return self.inherited(instance, routine, name, given)
        return super().call_super(receiver, name, arguments, keywords, call)

    def base_constructor(self, instance: Instance, arguments: Arguments, keywords: Keywords, call: ast.AST) -> None:
        routine = self.routine_of(instance.cls)
        if routine is not None:
            given = dict(zip(routine.keeps, arguments, strict=False))
            given.update((name, keywords[name]) for name in routine.keeps if name in keywords)
            for name, operand in given.items():
                self.write(instance.slots, name, operand.value)
        super().base_constructor(instance, arguments, keywords, call)

    def given_loss(self, instance: Instance, with_outputs: Operand | None, call: ast.AST) -> Value:
        """The loss that the framework computes itself, of a model that is not seen."""
        leaf = self.symbol_leaf(Symbol(("attr", instance.key, "model")), call)
        weights = Operand(None, Parameters((leaf,)))
        loss = self.record("loss", call, [weights], saves=True, scalar=True)
        outputs = self.flag(with_outputs, False)
        if outputs is None:
            return Symbol(self.fresh("loss"))
        return TupleValue((loss, Symbol(self.fresh("outputs")))) if outputs else loss

    # -- running ---------------------------------------------------------------------------------------------------

    def drive(self, instance: Value, routine: Routine, callbacks: Iterable[Value] = ()) -> None:
        """Run all hooks of ``instance`` for two epochs of two batches each."""
        if type(instance) is not Instance or instance.cls.node in self.driven:
            return
        self.driven.add(instance.cls.node)
        self.frame.statement = None
        given = [self.resolve(callback) for callback in callbacks]
        self.companions = [
            one for one in given if type(one) is Instance and _derives(self.linearised(one.cls), routine)
        ]
        for name in routine.setup:
            self.hook(instance, routine, name)
        if routine.optimizers:
            configured = self.hook(instance, routine, routine.optimizers)
            self.configured[id(instance)] = self.optimizers_in(configured)
        node = instance.cls.node
        lasting = self.is_called(instance, (*routine.epoch_start, *routine.epoch_end))

        def epoch() -> bool:
            self.results = []
            self.hooks(instance, routine, routine.epoch_start)
            self.loop(self.made(node, "batches"), self.batches(instance, routine, routine.batch), False)
            self.hooks(instance, routine, routine.epoch_end)
            return True

        self.loop(self.made(node, "epochs"), [(ALWAYS, epoch)] * (2 if lasting else 1), False)
        if self.is_called(instance, (*routine.evaluation, *routine.evaluation_end)):
            self.evaluated(instance, routine)

    def evaluated(self, instance: Instance, routine: Routine) -> None:
        recording, self.recording = self.recording, False
        self.results = []
        for name in routine.evaluation:
            if self.is_called(instance, (name,)):
                self.loop(self.made(instance.cls.node, name), self.batches(instance, routine, (name,)), False)
        self.hooks(instance, routine, routine.evaluation_end)
        self.recording = recording

    def is_called(self, instance: Instance, names: tuple[str, ...]) -> bool:
        return any(self.find_in_class(instance.cls, name) is not MISSING for name in names)

    def batches(
        self, instance: Instance, routine: Routine, names: tuple[str, ...]
    ) -> list[tuple[Any, Callable[[], bool]]]:
        def turn(number: int) -> bool:
            self.frame.statement = None
            counter = Symbol(self.fresh("batch"), above=number) if number else 0
            given: dict[str, Value] = dict.fromkeys(routines.COUNTER_PARAMETERS, counter)
            chosen = self.chosen_by_index(instance, routine, names)
            for index in range(len(self.configured[id(instance)]) if chosen else 1):
                if chosen:
                    self.toggle(instance, index, instance.cls.node)
                    given.update(dict.fromkeys(routines.OPTIMIZER_PARAMETERS, index))
                self.provide(instance, routine)
                self.hooks(instance, routine, names, given)
                if chosen:
                    self.untoggle(instance)
            return True

        return [(ALWAYS, partial(turn, number)) for number in range(2)]

    def chosen_by_index(self, instance: Instance, routine: Routine, names: tuple[str, ...]) -> bool:
        """Whether the hook is called for each optimizer in turn."""
        if len(self.configured.get(id(instance), ())) < 2:
            return False
        found = [self.find_in_class(instance.cls, name) for name in names if not name.startswith("@")]
        return any(
            argument.arg in routines.OPTIMIZER_PARAMETERS
            for function in found
            if type(function) is FunctionValue
            for argument in function.node.args.args
        )

    def hooks(
        self, instance: Instance, routine: Routine, names: tuple[str, ...], given: dict[str, Value] | None = None
    ) -> Value:
        """Call hooks one after the other; each may take what the one before returned."""
        result: Value = None
        passed = dict(given or {})
        for name in names:
            if name.startswith("@"):
                learner = self.symbol_slots.get(("attr", instance.key, "learn"), {})
                self.back_propagate(instance, name[1:], learner.get(name[1:]), instance.cls.node)
                continue
            for companion in self.companions:
                self.companion_hook(companion, instance, name, passed)
            returned = self.hook(instance, routine, name, passed)
            if returned is not None:
                result = returned
                passed.update(dict.fromkeys(routines.RESULT_PARAMETERS, result))
                self.results.append(self.detached(result, instance.cls.node))
        return result

    def hook(self, instance: Instance, routine: Routine, name: str, given: dict[str, Value] | None = None) -> Value:
        """Call one hook with what it asks for, and do with its result what the framework does."""
        found = self.find_in_class(instance.cls, name)
        if type(found) is not FunctionValue:
            return self.inherited(instance, routine, name, []) if name in routine.inherited else None
        kept = {key: instance.slots[key] for key in routine.keeps if key in instance.slots}
        arguments = [Operand(None, instance), *self.hook_arguments(found, {**kept, **(given or {})})]
        result = self.call_function(found, arguments, {}, self.made(found.node, name))
        self.frame.statement = None
        hook = BY_HOOK.get((routine.class_names, name))
        if hook is None or not hook.traverses_result or self.recording is False:
            return result
        if hook.unless and self.load_attribute(instance, hook.unless, found.node) is False:
            return self.handed_on(result, hook, found.node)
        # The losses of several optimizers come from one method, and are told apart.
        index = next((v for k, v in (given or {}).items() if k in routines.OPTIMIZER_PARAMETERS), None)
        self.back_propagate(instance, name, _loss(self, result, hook.result_key), found.node, index)
        return self.handed_on(result, hook, found.node)

    def companion_hook(self, companion: Instance, instance: Instance, name: str, given: dict[str, Value]) -> None:
        """Call a callback's hook; its first parameters are the trainer and what it trains."""
        found = self.find_in_class(companion.cls, name)
        if type(found) is FunctionValue:
            trainer = Symbol(("library", "trainer", id(instance)))
            first = [argument.arg for argument in found.node.args.args[1:3]]
            passed = {**given, **dict(zip(first, (trainer, instance), strict=False))}
            arguments = [Operand(None, companion), *self.hook_arguments(found, passed)]
            self.call_function(found, arguments, {}, self.made(found.node, name))
            self.frame.statement = None

    def handed_on(self, result: Value, hook: Hook, site: ast.AST) -> Value:
        """What the hooks to come are given of ``result``: the loss without its graph, beside it whatever it was."""
        result = self.resolve(result)
        if type(result) is Phi:
            return self.phi([(guard, self.handed_on(one, hook, site)) for guard, one in result.alternatives])
        if type(result) is not DictCell:
            return self.detached(result, site)
        table = DictCell(result.factory)
        table.slots = dict(result.slots)
        key = ("key", hook.result_key)
        if key in table.slots:
            table.slots[key] = self.detached(table.slots[key], site)
        return table

    def hook_arguments(self, function: FunctionValue, given: dict[str, Value]) -> list[Operand]:
        """Arguments for the parameters without default behind ``self``: those that last, the batch's, the results."""
        spec = function.node.args
        names = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
        wanted = names[1 : len(names) - len(spec.defaults)]
        taken = [name for name in names[1:] if name in given] if spec.defaults else []
        arguments: list[Operand] = []
        for name in names[1 : max([len(wanted), *(names.index(n) for n in taken)], default=0) + 1]:
            if name in given:
                value: Value = given[name]
            elif name in routines.RESULT_PARAMETERS and self.results:
                value = ListCell(tuple((ALWAYS, one) for one in self.results), more=True)
            elif name in routines.LASTING_PARAMETERS:
                value = self.parameter_symbol(function, name)
            else:
                value = Symbol(self.fresh("batch", name))
            arguments.append(Operand(None, value))
        return arguments

    def inherited(self, instance: Instance, routine: Routine, name: str, arguments: list[Operand]) -> Value:
        """The framework's own version of a hook."""
        result: Value = None
        given: dict[str, Value] = {}
        for inner in routine.inherited[name]:
            found = self.find_in_class(instance.cls, inner)
            if type(found) is FunctionValue and arguments:
                spec = [argument.arg for argument in found.node.args.args[1:]]
                given |= {
                    key: value
                    for key, value in zip(spec, (a.value for a in arguments), strict=False)
                    if key not in given
                }
            result = self.hook(instance, routine, inner, given)
            given |= dict.fromkeys(routines.RESULT_PARAMETERS, result)
        return self.detached(result, instance.cls.node)

    def provide(self, instance: Instance, routine: Routine) -> None:
        """Give a callback the learner's prediction and loss for a batch."""
        if not routine.provided:
            return
        learner = Symbol(("attr", instance.key, "learn"))
        site = self.made(instance.cls.node, "learner")
        leaf = self.symbol_leaf(learner, site)
        node = Node("operation", "learner", self.where(site), self.path, self.leaf_edges(leaf), saves=True)
        *_, kept, copied = routine.provided
        values: dict[str, Value] = dict.fromkeys(routine.provided, Tensor(node, scalar=True))
        values[copied] = self.operate("clone", site, [Operand(None, values[kept])], scalar=True)
        slots = self.symbol_slots.setdefault(learner.key, {})
        for name, value in values.items():
            self.write(slots, name, value)
            self.write(instance.slots, name, value)

    def back_propagate(
        self, instance: Instance, name: str, loss: Value, node: ast.AST, index: int | None = None
    ) -> None:
        """The framework's traversal, with its optimizers (or the one numbered ``index``) around it."""
        loss = self.resolve(loss)
        if type(loss) is Phi:
            self.fork(loss.alternatives, lambda one: self.back_propagate(instance, name, one, node, index))
            return
        if plain(loss) or type(loss) in (Instance, DictCell):
            return
        call = self.made(node, name if index is None else f"{name}{index}")
        optimizers = self.configured.get(id(instance), [])
        optimizers = optimizers if index is None else [optimizers[index]]
        groups = [(one, merged(one.slots["groups"])) for one in optimizers]
        if not groups:
            self.zero_grad(call, None)
        for _, parameters in groups:
            self.zero_grad(call, parameters)
        self.backward(call, Operand(None, loss), {}, "gradient", framework=True)
        if not groups:
            self.step(call, None, None)
        for optimizer, parameters in groups:
            self.step(call, optimizer, parameters)

    def process(self, service: Service) -> None:
        """An engine's process function, called once for every batch; its result is kept until the next one."""
        function = service.process
        if type(function) not in (FunctionValue, BoundMethod) or _function(function).node in self.driven:
            return
        node = _function(function).node
        self.driven.add(node)
        engine = Symbol(("library", "engine", id(node)))
        state = self.symbol_slots.setdefault(("attr", engine.key, "state"), {})

        def handle(moment: str) -> None:
            for handler in service.handlers.get(moment, ()):
                self.call_value(handler, [Operand(None, engine)], {}, self.made(node, "handler"))

        def turn() -> bool:
            handle("batch start")
            arguments = [Operand(None, engine), Operand(None, Symbol(self.fresh("batch")))]
            self.write(state, "output", self.call_value(function, arguments, {}, self.made(node, "process")))
            handle("batch end")
            return True

        def epoch() -> bool:
            handle("epoch start")
            self.repeated(self.made(node, "engine"), turn)
            handle("epoch end")
            return True

        handle("start")
        lasting = service.handlers.keys() & {"epoch start", "epoch end"}
        self.loop(self.made(node, "epochs"), [(ALWAYS, epoch)] * (2 if lasting else 1), False)
        handle("end")

    def made(self, node: ast.AST, name: str) -> FrameworkCall:
        """The call that a framework makes of a hook, or with its result; always the same one."""
        known = self.made_calls.get((node, name))
        if known is None:
            site = _last_result(node)
            known = FrameworkCall(func=ast.Name(id=name, ctx=ast.Load()), args=[], keywords=[])
            for part in (known, known.func):
                ast.copy_location(part, site)
            if site is node and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                # The name alone: a definition may be hundreds of lines long.
                word = {ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def ", ast.ClassDef: "class "}[type(node)]
                for part in (known, known.func):
                    part.end_lineno = node.lineno
                    part.end_col_offset = node.col_offset + len(word) + len(node.name.encode())
            self.made_calls[node, name] = known
        return known


def _routine(base: Value) -> Routine | None:
    if type(base) is External:
        return BY_CLASS.get(base.dotted) or BY_CLASS.get(base.dotted.rpartition(".")[2])
    if type(base) is Symbol and isinstance(base.key, tuple) and base.key[0] == "global":
        return BY_CLASS.get(str(base.key[2]))
    return None


def _derives(bases: list[Value], routine: Routine) -> bool:
    """Whether a class with these bases is one of a routine's callbacks."""
    return any(type(base) is External and base.dotted in routine.companions for base in bases)


def _function(value: Value) -> FunctionValue:
    function: FunctionValue = value.function if type(value) is BoundMethod else value
    return function


def _loss(machine: Drivers, result: Value, key: str) -> Value:
    """The loss in what a hook returned: it, an entry of it, or its first item."""
    result = machine.resolve(result)
    if type(result) is Phi:
        return machine.phi([(guard, _loss(machine, one, key)) for guard, one in result.alternatives])
    if type(result) is DictCell:
        return result.slots.get(("key", key))
    if type(result) is TupleValue:
        return result.items[0] if result.items else None
    return result


def _last_result(node: ast.AST) -> ast.AST:
    """The expression that a function returns last; itself where it returns none."""
    found: ast.AST = node
    stack: list[ast.AST] = (
        list(ast.iter_child_nodes(node)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    )
    for inner in stack:
        if isinstance(inner, ast.Return) and inner.value is not None and not isinstance(inner.value, ast.Constant):
            found = inner.value if getattr(found, "lineno", 0) <= inner.lineno else found
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(inner))
    return found


__all__ = ["Drivers", "FrameworkCall"]
