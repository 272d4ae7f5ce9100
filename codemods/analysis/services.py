"""Objects of training frameworks that a program holds and calls: accelerators, engines, meta-learners.

What they do is in ``knowledge/framework_routines.py`` and ``knowledge/frameworks.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from .guards import ALWAYS, Guard
from .knowledge import framework_routines as routines
from .knowledge import frameworks
from .library import Arguments, Keywords
from .methods import merged
from .statements import Statements
from .tape import Node, Operand
from .values import (
    ClassValue,
    DictCell,
    External,
    FunctionValue,
    Instance,
    ListCell,
    Method,
    Optimizer,
    Phi,
    Sequence,
    SuperValue,
    Symbol,
    Tensor,
    TorchModule,
    TupleValue,
    Value,
)

DEEPEST: Final = 4
DIFFERENTIABLE: Final = frozenset(name.lower() for name in routines.DIFFERENTIABLE_METRICS)


@dataclass(slots=True)
class Service:
    """An object of a framework: its kind and what it works with."""

    kind: str
    name: str = ""
    """Of its class."""
    optimizer: Optimizer | None = None
    creates_graph: bool = True
    process: Value = None
    path: Guard = ALWAYS
    """On which paths it was made."""
    handlers: dict[str, list[Value]] = field(default_factory=dict)
    """What is called at each moment of ``framework_routines.EVENTS``."""
    callbacks: Value = None
    """What a trainer is given as ``callbacks``."""


class Services(Statements):
    """The machine with objects of frameworks."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.services: dict[Hashable, Service] = {}
        self.waiting: list[Service] = []
        """Engines that have a process function and have not been started."""

    # -- making them -----------------------------------------------------------------------------------------------

    def call_external(self, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        maker = MAKERS.get(name)
        if maker is not None:
            return maker(self, name, arguments, keywords, call)
        if name.startswith(routines.METRICS):
            bare = name.rpartition(".")[2]
            if bare[:1].isupper():
                return self.make_service("metric", Service("metric", bare))
            return self.metric_value(bare, arguments, keywords, call)
        if name.rpartition(".")[2] in frameworks.DETACHING_HELPER_NAMES and arguments:
            return self.detached(arguments[0].value, call)
        return super().call_external(name, arguments, keywords, call)

    def make_service(self, kind: str, service: Service) -> Symbol:
        """An object of ``kind`` that has no parameters."""
        symbol = Symbol(("library", "framework", kind, self.fresh()))
        self.services[symbol.key] = service
        return symbol

    def service_of(self, receiver: Value) -> Service | None:
        return self.services.get(receiver.key) if self.services else None

    def unknown_call(
        self, callee: Value, arguments: Arguments, keywords: Keywords, call: ast.AST, key: Hashable = None
    ) -> Value:
        service = self.service_of(callee) if type(callee) is Symbol else None
        if service is not None and service.kind == "metric":
            return self.metric_value(service.name, arguments, keywords, call)
        return super().unknown_call(callee, arguments, keywords, call, key)

    def metric_value(self, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        """The value of one batch, by the metric's class or by its function: ``mean_squared_error``."""
        if name.replace("_", "").lower() in DIFFERENTIABLE:
            return self.record("metric", call, [*arguments, *keywords.values()], saves=True, scalar=True)
        return Symbol(("library", "metric", self.fresh()))

    def classify(self, cls: ClassValue, statement: ast.ClassDef, fields: list[tuple[str, Value]]) -> None:
        super().classify(cls, statement, fields)
        update = cls.slots.get("update")
        if type(update) is FunctionValue and any(
            type(base) is External and is_metric(base.dotted) for base in self.linearised(cls)
        ):
            update.records = False

    # -- their methods ---------------------------------------------------------------------------------------------

    def call_symbol(
        self, receiver: Symbol, name: str, mine: Operand, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        service = self.service_of(receiver)
        kind = service.kind if service is not None else _kind_by_name(mine.expression)
        if kind is not None:
            effect = routines.OBJECT_METHODS.get(kind, {}).get(name)
            if effect is not None:
                return EFFECTS[effect](self, service, arguments, keywords, call)
            if service is not None and name in SERVED.get(kind, ()):
                return self.served(service, receiver, name, arguments, keywords, call)
        key = receiver.key
        if name in frameworks.DETACHING_HELPER_NAMES and arguments and isinstance(key, tuple) and key[0] == "global":
            return self.detached(arguments[0].value, call)
        return super().call_symbol(receiver, name, mine, arguments, keywords, call)

    def call_torch_method(
        self, receiver: Value, name: str, mine: Operand, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        service = self.service_of(receiver) if type(receiver) is not SuperValue else None
        if service is not None and name in SERVED.get(service.kind, ()):
            return self.served(service, receiver, name, arguments, keywords, call)
        return super().call_torch_method(receiver, name, mine, arguments, keywords, call)

    def instance_attribute(self, receiver: Instance, name: str, site: ast.AST) -> Value:
        value = super().instance_attribute(receiver, name, site)
        unknown = type(value) is Symbol and value.key == ("attr", receiver.key, name)
        return Method(receiver, name) if unknown and self.is_served(receiver, name) else value

    def is_served(self, receiver: Instance, name: str) -> bool:
        """Whether a framework gives ``receiver`` the method ``name``."""
        service = self.service_of(receiver)
        return service is not None and name in SERVED.get(service.kind, ())

    def decorated(self, result: Value, function: FunctionValue, decorator: ast.expr) -> Value:
        if self.services and isinstance(decorator, ast.Call) and _is_on(decorator.func):
            receiver = self.resolve(self.evaluate(decorator.func.value))
            service = self.service_of(receiver) if type(receiver) is Symbol else None
            if service is not None:
                _handled(service, decorator.args[0] if decorator.args else None, result)
                return result
        return super().decorated(result, function, decorator)

    def served(
        self,
        service: Service,
        receiver: Value,
        name: str,
        arguments: Arguments,
        keywords: Keywords,
        call: ast.AST,
    ) -> Value:
        """A method of a model that a framework has wrapped, or of a framework's optimizer."""
        if service.kind == "engine":
            return self.call_engine(service, receiver, name, arguments, keywords, call)
        if service.kind == "process":
            return self.handler_taken(service, name, arguments)
        if name == "clone":
            return receiver
        if name in {"adapt", "step"} and isinstance(call, ast.Call):
            return self.differentiate(service, arguments, keywords, call)
        return None

    def call_engine(
        self, service: Service, receiver: Value, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST
    ) -> Value:
        if name == "backward":
            return self.framework_backward(receiver, name, arguments, keywords, call)
        optimizer = service.optimizer
        owned = merged(optimizer.slots["groups"]) if optimizer is not None else None
        if name == "step":
            self.step(call, optimizer, owned)
        if name in {"step", "zero_grad"}:
            self.zero_grad(call, owned)
        return None

    def differentiate(self, service: Service, arguments: Arguments, keywords: Keywords, call: ast.Call) -> Value:
        """An inner step: the loss is differentiated, nothing is left in ``.grad``."""
        loss = arguments[0] if arguments else keywords.get("loss")
        if loss is not None and self.edges_of(loss.value):
            create = service.creates_graph
            given = self.flag(keywords.get("first_order"), None)
            if given is not None:
                create = not given
            retain = self.flag(keywords.get("retain_graph"), create)
            self.traverse(
                call, loss.expression, loss.value, retain=retain, create=create, accumulates=False, framework=True
            )
        return None

    def handler_taken(self, service: Service, name: str, arguments: Arguments) -> Value:
        """``engine.add_event_handler(event, function)``; ``engine.on(event)`` gives a decorator."""
        if name == "add_event_handler" and len(arguments) > 1:
            _handled(service, arguments[0].expression, arguments[1].value)
        return Symbol(("library", "handler", self.fresh()))

    def start(self, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        """``trainer.fit(module)``, ``engine.run(loader)``"""
        return Symbol(self.fresh("started"))

    # -- values ----------------------------------------------------------------------------------------------------

    def detached(self, value: Value, site: ast.AST, depth: int = 0) -> Value:
        """``value`` without its graph, whatever container it is in."""
        value = self.resolve(value)
        kind = type(value)
        if kind is Tensor:
            return self.without_graph("detach", [Operand(None, value)], site)
        if kind is Symbol:
            return value if value.node is None else Symbol(self.fresh("detached"), cuts=value.cuts)
        if depth > DEEPEST:
            return value
        if kind is TupleValue:
            return TupleValue(tuple(self.detached(item, site, depth + 1) for item in value.items), value.cls)
        if kind is ListCell:
            items = tuple((guard, self.detached(item, site, depth + 1)) for guard, item in value.slots["items"])
            return ListCell(items, value.slots["more"], value.kind)
        if kind is Sequence:
            return Sequence(tuple((g, self.detached(item, site, depth + 1)) for g, item in value.items), value.exact)
        if kind is DictCell:
            table = DictCell(value.factory)
            table.slots = {key: self.detached(item, site, depth + 1) for key, item in value.slots.items()}
            return table
        if kind is Phi:
            return self.phi([(guard, self.detached(one, site, depth + 1)) for guard, one in value.alternatives])
        return value

    def optimizers_in(self, value: Value, depth: int = 0) -> list[Optimizer]:
        """All optimizers that ``value`` is or holds, in order."""
        value = self.resolve(value)
        kind = type(value)
        if kind is Optimizer:
            return [value]
        if depth > DEEPEST:
            return []
        inner: list[Value] = []
        if kind is TupleValue:
            inner = list(value.items)
        elif kind is ListCell:
            inner = [item for _, item in value.slots["items"]]
        elif kind is DictCell:
            inner = list(value.slots.values())
        elif kind is Phi:
            inner = [one for _, one in value.alternatives]
        return list(dict.fromkeys(found for one in inner for found in self.optimizers_in(one, depth + 1)))


def is_metric(dotted: str) -> bool:
    """Whether ``dotted`` is the class of a metric."""
    return dotted.startswith(routines.METRICS) and dotted.rpartition(".")[2][:1].isupper()


def _is_on(function: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(function, ast.Attribute) and function.attr == "on"


def _handled(service: Service, event: ast.expr | None, handler: Value) -> None:
    """Note when ``service`` calls ``handler``: at ``Events.X``, ``Events.X(every=2)``, ``Events.X | Events.Y``."""
    if isinstance(event, ast.BinOp):
        _handled(service, event.left, handler)
        _handled(service, event.right, handler)
        return
    named = event.func if isinstance(event, ast.Call) else event
    name = named.attr if isinstance(named, ast.Attribute) else ""
    service.handlers.setdefault(routines.EVENTS.get(name, "batch end"), []).append(handler)


def _kind_by_name(expression: ast.expr | None) -> str | None:
    if isinstance(expression, ast.Name):
        return routines.OBJECT_NAMES.get(expression.id)
    return routines.OBJECT_NAMES.get(expression.attr) if isinstance(expression, ast.Attribute) else None


# -- constructors --------------------------------------------------------------------------------------------------


def _object(machine: Services, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    kind = routines.OBJECTS[name]
    service = Service(kind)
    position = frameworks.PROCESS_FUNCTION_TAKERS.get(name)
    if position is not None and len(arguments) > position:
        service.process, service.path = machine.resolve(arguments[position].value), machine.path
        machine.waiting.append(service)
    elif kind == "trainer" and "callbacks" in keywords:
        service.callbacks = keywords["callbacks"].value
    elif kind == "svi":
        for argument in arguments[:2]:
            machine.called_back(argument.value, call)
    return machine.make_service(kind, service)


def _engine(machine: Services, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    """``deepspeed.initialize(args=…, model=…, optimizer=…, model_parameters=…)``"""
    given = {key: operand.value for key, operand in keywords.items()}
    given |= dict(zip(("args", "model", "optimizer", "model_parameters"), (a.value for a in arguments), strict=False))
    model = machine.resolve(given.get("model", Symbol(machine.fresh("model"))))
    optimizer = machine.resolve(given.get("optimizer"))
    if type(optimizer) is not Optimizer and type(model) in (TorchModule, Instance, Symbol):
        parameters = given.get("model_parameters", model)
        optimizer = machine.make_optimizer("DeepSpeed", [Operand(None, parameters)], {}, call)
    if type(model) in (TorchModule, Instance, Symbol):
        machine.services[model.key] = Service("engine", optimizer=optimizer if type(optimizer) is Optimizer else None)
    rest = (Symbol(machine.fresh("loader")), Symbol(("scheduler", machine.fresh())))
    return TupleValue((model, optimizer, *rest))


def _meta_learner(machine: Services, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    model = machine.resolve(
        arguments[0].value if arguments else keywords["model"].value if "model" in keywords else None
    )
    if type(model) in (TorchModule, Instance, Symbol):
        first_order = machine.flag(keywords.get("first_order"), False)
        machine.services[model.key] = Service("meta", creates_graph=first_order is not True)
    return model


def _inner_loop(machine: Services, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    model = arguments[0].value if arguments else keywords["model"].value if "model" in keywords else None
    tracks = machine.flag(keywords.get("track_higher_grads"), True) is not False
    inner = machine.make_service("inner optimizer", Service("inner optimizer", creates_graph=tracks))
    return inner if name.endswith("get_diff_optim") else TupleValue((model, inner))


def _scaled(machine: Services, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    return machine.record("scale", call, arguments[:1], saves=True, scalar=True)


def _prepared(machine: Services, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    named = [keywords[key] for key in ("models", "optimizers") if key in keywords]
    return _hands_back(machine, None, [*arguments[:2], *named], {}, call)


def _detaching(machine: Services, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    return machine.detached(arguments[0].value, call) if arguments else None


Maker = Callable[[Services, str, Arguments, Keywords, ast.AST], Value]

MAKERS: Final[dict[str, Maker]] = {
    **dict.fromkeys(routines.OBJECTS, _object),
    **dict.fromkeys(routines.ENGINE_MAKERS, _engine),
    **dict.fromkeys(routines.META_LEARNERS, _meta_learner),
    **dict.fromkeys(routines.INNER_LOOPS, _inner_loop),
    **dict.fromkeys(routines.LOSS_SCALERS, _scaled),
    **dict.fromkeys(routines.PREPARERS, _prepared),
    **dict.fromkeys(frameworks.DETACHING_FUNCTIONS, _detaching),
}
SERVED: Final[dict[str, frozenset[str]]] = {
    "engine": frozenset({"backward", "step", "zero_grad"}),
    "meta": frozenset({"clone", "adapt"}),
    "inner optimizer": frozenset({"step", "zero_grad"}),
    "process": frozenset({"add_event_handler", "on"}),
}
"""Methods that a wrapper adds to a model, or means otherwise, by the kind of the service."""

# -- effects of methods --------------------------------------------------------------------------------------------


def _hands_back(
    machine: Services, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST
) -> Value:
    given = [operand for operand in arguments if not isinstance(operand.expression, ast.Starred)]
    if len(given) != len(arguments):
        return ListCell(tuple((ALWAYS, operand.value) for operand in given), more=True)
    return given[0].value if len(given) == 1 else TupleValue(tuple(operand.value for operand in given))


def _detaches(
    machine: Services, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST
) -> Value:
    if not arguments:
        return Symbol(machine.fresh("gathered"))
    return machine.detached(arguments[0].value, call)


def _nothing(
    machine: Services, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST
) -> Value:
    return None


def _number(
    machine: Services, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST
) -> Value:
    return Symbol(("library", "result", machine.fresh()))


def _traverses(
    machine: Services, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST
) -> Value:
    return machine.framework_backward(None, "backward", arguments, keywords, call)


def _starts(
    machine: Services, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST
) -> Value:
    return machine.start(service, arguments, keywords, call)


def _calls(
    machine: Services, service: Service | None, arguments: Arguments, keywords: Keywords, call: ast.AST
) -> Value:
    function = machine.resolve(arguments[0].value) if arguments else None
    if type(function) is not FunctionValue:
        return Symbol(machine.fresh("launched"))
    return machine.call_value(function, arguments[1:], keywords, call)


Effect = Callable[[Services, "Service | None", Arguments, Keywords, ast.AST], Value]

EFFECTS: Final[dict[str, Effect]] = {
    routines.HANDS_BACK: _hands_back,
    routines.DETACHES: _detaches,
    routines.NOTHING: _nothing,
    routines.NUMBER: _number,
    routines.TRAVERSES: _traverses,
    routines.STARTS: _starts,
    routines.CALLS: _calls,
}

__all__ = ["Node", "Service", "Services"]
