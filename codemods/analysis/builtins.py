"""Python's builtin functions on abstract values, and iteration."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from .guards import ALWAYS, Guard
from .heap import MISSING
from .knowledge import torch_modules, torch_operations
from .library import Arguments, Handler, Keywords, Library, _entries, key_of, plain
from .methods import TENSOR_METHODS, Methods
from .tape import Cut, Edge, Operand
from .values import (
    BoundMethod,
    ClassValue,
    DictCell,
    External,
    Frame,
    FunctionValue,
    Instance,
    ListCell,
    NamedTupleClass,
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

MOST_UNROLLED: Final = 4
"""Collections of known length up to this are iterated element by element; longer ones by their first two."""
Items = list[tuple[Guard, Value]]
TENSOR_ATTRIBUTES: Final = TENSOR_METHODS | {"grad", "grad_fn", "requires_grad", "is_leaf", "device", "dtype", "ndim"}
CONVERSIONS: Final[dict[str, Callable[[float], float]]] = {
    "float": float,
    "int": int,
    "round": round,
    "abs": abs,
    "bool": bool,
}


class Builtins(Methods):
    """The machine with builtins."""

    # -- iteration -------------------------------------------------------------------------------------------------

    def elements(self, value: Value, site: ast.AST) -> tuple[Items, bool]:
        """What iterating over ``value`` gives, and whether that is all and no more."""
        value = self.resolve(value)
        kind = type(value)
        if kind is TupleValue:
            return [(ALWAYS, item) for item in value.items], True
        if kind is ListCell:
            self.note_read(value.slots, "items", value)
            return list(value.slots["items"]), not value.slots["more"]
        if kind is Sequence:
            return list(value.items), value.exact
        if kind is DictCell:
            keys: Items = [(ALWAYS, k[1]) for k in value.slots if isinstance(k, tuple) and k[0] == "key"]
            if "rest" in value.slots:
                return [*keys, (ALWAYS, Symbol(self.fresh("key")))], False
            return keys, True
        if kind is Range:
            return self.range_elements(value)
        if kind is Parameters:
            return [(ALWAYS, value)], True
        if kind is Tensor:
            parts = [self.operate("select", site, [Operand(None, value)]) for _ in range(2)]
            return [(ALWAYS, part) for part in parts], False
        if kind is TorchModule:
            children = self.resolve(value.slots.get("children"))
            if type(children) in (ListCell, DictCell):
                return self.elements(children, site)
        if kind is Instance:
            return self.instance_elements(value, site)
        if isinstance(value, str) and len(value) <= MOST_UNROLLED:
            return [(ALWAYS, letter) for letter in value], True
        if kind is Symbol:
            key = self.fresh("item", value.key)
            return [(ALWAYS, Symbol(("item", key, turn), value.node)) for turn in range(2)], False
        if kind is Phi:
            return self.phi_elements(value, site)
        key = self.fresh("item")
        return [(ALWAYS, Symbol(("item", key, turn))) for turn in range(2)], False

    def phi_elements(self, value: Phi, site: ast.AST) -> tuple[Items, bool]:
        found: Items = []
        exact = True
        for guard, alternative in value.alternatives:
            if alternative is None or not guard.compatible(self.path):
                continue
            items, whole = self.elements(alternative, site)
            exact = exact and whole
            for inner, item in items:
                both = guard.meet(inner)
                if both is not None:
                    found.append((both, item))
        return found, exact

    def instance_elements(self, value: Instance, site: ast.AST) -> tuple[Items, bool]:
        if "children" in value.slots:
            return self.elements(value.slots["children"], site)
        for name in ("__iter__", "__next__"):
            found = self.find_in_class(value.cls, name)
            if type(found) is FunctionValue:
                result = self.resolve(self.call_function(found, [Operand(None, value)], {}, site))
                if result is not value:
                    if name == "__next__":
                        return [(ALWAYS, result)], False
                    return self.elements(result, site)
        found = self.find_in_class(value.cls, "__getitem__")
        if type(found) is FunctionValue:
            items: Items = []
            for turn in range(2):
                index = Symbol(self.fresh("index", turn))
                items.append(
                    (ALWAYS, self.call_function(found, [Operand(None, value), Operand(None, index)], {}, site))
                )
            return items, False
        key = self.fresh("item", value.key)
        return [(ALWAYS, Symbol(("item", key, turn))) for turn in range(2)], False

    def range_elements(self, value: Range) -> tuple[Items, bool]:
        start, stop, step = value.start, value.stop, value.step
        known = all(isinstance(bound, int) for bound in (start, stop, step)) and step != 0
        if known:
            numbers = range(start, stop, step)
            if len(numbers) <= 2:
                return [(ALWAYS, number) for number in numbers], True
        first = start if isinstance(start, int) else Symbol(("first", value.key))
        above = start + 1 if isinstance(start, int) and isinstance(step, int) and step > 0 else None
        later = Symbol(("later", self.fresh(value.key)), above=above)
        return [(ALWAYS, first), (ALWAYS, later)], False

    def store_attribute(
        self, receiver: Value, name: str, value: Value, site: ast.AST, source: ast.expr | None = None
    ) -> None:
        raise NotImplementedError

    # -- dispatch --------------------------------------------------------------------------------------------------

    def call_builtin(self, name: str, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        handler = BUILTINS.get(name)
        if handler is not None:
            return handler(self, arguments, keywords, call)
        keys = tuple(key_of(self.resolve(a.value)) for a in arguments)
        cuts: frozenset[Cut] = frozenset()
        if name in {"float", "int", "round", "abs", "bool"} and arguments:
            return self.as_number(name, arguments, call)
        cuts = self.argument_cuts(arguments)
        return Symbol(("builtin", name, *keys), cuts=cuts)

    def as_number(self, name: str, arguments: Arguments, call: ast.AST) -> Value:
        given = self.resolve(arguments[0].value)
        if isinstance(given, (int, float, bool)) and not isinstance(given, str):
            try:
                return CONVERSIONS[name](given)
            except (OverflowError, ValueError):
                return Symbol(self.fresh(name))
        if type(given) is Tensor and name == "abs":
            return self.operate("abs", call, [arguments[0]])
        cuts = self.cuts_of(given)
        edges = self.edges_of(given)
        if edges:
            cuts = cuts | {self.cut("item", call, edges)}
        if type(given) is Symbol and given.node is None:
            return Symbol(("builtin", name, given.key), above=given.above, cuts=cuts)
        return Symbol(self.fresh(name), cuts=cuts)

    def instance_test(self, given: Value, test: Callable[[Value], bool | None], what: str) -> Value:
        """The truth of ``test(given)``, path by path; None means unknown."""
        pairs: Items = []
        for guard, value in self.alternatives(given):
            verdict = test(value)
            pairs.append((guard, Symbol(("test", what, key_of(value))) if verdict is None else verdict))
        return self.phi(pairs) if len(pairs) > 1 else pairs[0][1]

    def is_instance(self, value: Value, cls: Value) -> bool | None:
        """Whether ``isinstance(value, cls)``; None where that is not known."""
        cls = self.resolve(cls)
        if type(cls) is TupleValue:
            verdicts = [self.is_instance(value, one) for one in cls.items]
            if True in verdicts:
                return True
            return None if None in verdicts else False
        kind = type(value)
        if kind is Symbol:
            return None
        if type(cls) is ClassValue:
            if kind is Instance:
                return any(base is cls for base in self.linearised(value.cls)) or (
                    None if self.has_unknown_base(value.cls) else False
                )
            if kind is TupleValue and value.cls is not None:
                return value.cls is cls
            return False
        if type(cls) is External:
            return _is_library_instance(self, value, cls.dotted)
        return None


def _is_library_instance(machine: Builtins, value: Value, dotted: str) -> bool | None:
    bare = dotted.rsplit(".", 1)[-1]
    kind = type(value)
    if dotted.startswith("builtins."):
        if kind in (ListCell, TupleValue, DictCell):
            actual = {"ListCell": getattr(value, "kind", ""), "TupleValue": "tuple", "DictCell": "dict"}[kind.__name__]
            return actual == bare
        if plain(value):
            builtin = {"int": int, "float": float, "str": str, "bool": bool, "bytes": bytes}.get(bare)
            return isinstance(value, builtin) if builtin else False
        return False
    if bare in {"Tensor", "Variable", "FloatTensor"}:
        return kind in (Tensor, Parameters)
    if kind is TorchModule:
        return True if bare == "Module" else value.name == bare
    if kind is Instance:
        for base in machine.linearised(value.cls):
            if type(base) is External and base.dotted.rsplit(".", 1)[-1] == bare:
                return True
        if bare == "Module":
            return machine.is_module(value)
        return None if machine.has_unknown_base(value.cls) else False
    if plain(value) and bare in {"Number", "Real"}:
        return isinstance(value, (int, float))
    if bare in {"Mapping", "OrderedDict", "MutableMapping", "defaultdict"}:
        return kind is DictCell
    if bare in {"Iterable", "Sequence"}:
        return kind in (ListCell, TupleValue)
    if kind in (Tensor, Parameters, ListCell, TupleValue, DictCell) or plain(value):
        return False
    return None


# -- the functions -------------------------------------------------------------------------------------------------


def _len(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    given = machine.resolve(arguments[0].value) if arguments else None
    if type(given) is TupleValue:
        return len(given.items)
    if type(given) in (ListCell, Sequence):
        items, exact = machine.elements(given, call)
        if exact and all(not guard.facts or machine.path.implies(guard) for guard, _ in items):
            return len(items)
        return Symbol(machine.fresh("len"), above=sum(1 for g, _ in items if not g.facts) or None)
    if type(given) is DictCell and "rest" not in given.slots:
        return len(given.slots)
    if type(given) is TorchModule and "children" in given.slots:
        return _len(machine, [Operand(None, given.slots["children"])], {}, call)
    if isinstance(given, str):
        return len(given)
    return Symbol(("builtin", "len", key_of(given)))


def _range(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    values = [machine.resolve(a.value) for a in arguments]
    start, stop, step = 0, None, 1
    if len(values) == 1:
        stop = values[0]
    elif len(values) >= 2:
        start, stop = values[0], values[1]
        step = values[2] if len(values) > 2 else 1
    return Range(start, stop, step, tuple(key_of(v) for v in values))


def _zip(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    if len(arguments) == 1 and isinstance(arguments[0].expression, ast.Starred):
        rows, exact = machine.elements(arguments[0].value, call)
        columns = [machine.elements(row, call)[0] for _, row in rows]
        items = [
            (ALWAYS, ListCell(tuple(column[index] for column in columns if index < len(column)), kind="tuple"))
            for index in range(min((len(c) for c in columns), default=0))
        ]
        return Sequence(tuple(items), exact=True)
    columns, exact = [], True
    for argument in arguments:
        items, whole = machine.elements(argument.value, call)
        columns.append(items)
        exact = exact and whole
    rows = []
    for row in zip(*columns, strict=False):
        guard: Guard | None = ALWAYS
        for inner, _ in row:
            guard = guard.meet(inner) if guard is not None else None
        if guard is not None:
            rows.append((guard, TupleValue(tuple(value for _, value in row))))
    return Sequence(tuple(rows), exact)


def _enumerate(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    items, exact = machine.elements(arguments[0].value, call) if arguments else ([], True)
    start = (
        machine.resolve(arguments[1].value) if len(arguments) > 1 else machine.keyword_constant(keywords, "start", 0)
    )
    rows: Items = []
    for position, (guard, value) in enumerate(items):
        if not isinstance(start, int):
            number: Value = Symbol(machine.fresh("index"))
        elif exact or position == 0:
            number = start + position
        else:
            number = Symbol(machine.fresh("index"), above=start + position)
        rows.append((guard, TupleValue((number, value))))
    return Sequence(tuple(rows), exact)


def _reversed(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    items, exact = machine.elements(arguments[0].value, call) if arguments else ([], True)
    return Sequence(tuple(reversed(items)), exact)


def _list_of(kind: str) -> Handler:
    def run(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        if not arguments:
            return ListCell((), kind=kind) if kind != "tuple" else TupleValue(())
        given = machine.resolve(arguments[0].value)
        if type(given) is Symbol and kind != "list":
            return Symbol(("builtin", kind, given.key), given.node)
        items, exact = machine.elements(given, call)
        if kind == "tuple" and exact and all(not guard.facts for guard, _ in items):
            return TupleValue(tuple(value for _, value in items))
        return ListCell(tuple(items), more=not exact, kind=kind)

    return run


def _dict(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    table = DictCell()
    if arguments:
        given = machine.resolve(arguments[0].value)
        if type(given) is DictCell:
            table.slots.update(given.slots)
        else:
            items, _ = machine.elements(given, call)
            for _, item in items:
                pair = machine.resolve(item)
                entries = _entries(pair) if type(pair) in (TupleValue, ListCell) else []
                if len(entries) == 2:
                    machine.store_item(table, entries[0], entries[1], call)
                else:
                    table.slots["rest"] = Symbol(machine.fresh("rest"))
    for keyword, operand in keywords.items():
        if keyword == "**":
            machine.update_dict(table, operand.value)
        else:
            table.slots["key", keyword] = operand.value
    return table


def _sum(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    if not arguments:
        return 0
    items, exact = machine.elements(arguments[0].value, call)
    values = [machine.resolve(value) for _, value in items]
    start = (
        machine.resolve(arguments[1].value) if len(arguments) > 1 else machine.keyword_constant(keywords, "start", 0)
    )
    if exact and all(isinstance(v, (int, float)) for v in values) and isinstance(start, (int, float)):
        return sum(values, start)
    tensors = any(type(v) in (Tensor, Parameters) for v in values) or type(start) is Tensor
    operands = [
        Operand(arguments[0].expression, machine.phi([(g, v), (_rest(g), 0)]) if g.facts else v) for g, v in items
    ]
    if type(start) is Tensor:
        operands.append(Operand(arguments[1].expression if len(arguments) > 1 else None, start))
    if tensors or any(machine.edges_of(v) for v in values):
        scalar = all(type(v) is Tensor and v.scalar for v in values if not plain(v))
        result = machine.record("sum", call, operands, saves=False, scalar=scalar)
        if not tensors:
            return Symbol(machine.fresh("sum"), result.node, cuts=result.cuts)
        return result
    return Symbol(machine.fresh("sum"), cuts=machine.argument_cuts([Operand(None, v) for v in values]))


def _rest(guard: Guard) -> Guard:
    key, value = next(iter(guard.facts.items()))
    return Guard({key: (not value) if isinstance(value, bool) else ("not", value)})


def _extreme(name: str) -> Handler:
    def run(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        values = [machine.resolve(a.value) for a in arguments]
        if len(values) > 1 and all(isinstance(v, (int, float)) for v in values):
            return max(values) if name == "max" else min(values)
        edges: list[Edge] = [e for v in values for e in machine.edges_of(v)]
        if edges:
            return machine.record(name, call, list(arguments), saves=False, scalar=True)
        return Symbol(("builtin", name, *(key_of(v) for v in values)), cuts=machine.argument_cuts(arguments))

    return run


def _isinstance(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    if len(arguments) < 2:
        return Symbol(machine.fresh("isinstance"))
    given, cls = machine.resolve(arguments[0].value), arguments[1].value
    return machine.instance_test(
        given, lambda value: machine.is_instance(value, cls), str(key_of(machine.resolve(cls)))
    )


def _hasattr(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    name = machine.resolve(arguments[1].value) if len(arguments) > 1 else None
    given = machine.resolve(arguments[0].value) if arguments else None
    if not isinstance(name, str):
        return Symbol(machine.fresh("hasattr"))

    return machine.instance_test(given, lambda value: _has_attribute(machine, value, name), f"hasattr {name}")


def _has_attribute(machine: Builtins, value: Value, name: str) -> bool | None:
    if type(value) is Instance:
        if name in value.slots or machine.find_in_class(value.cls, name) is not MISSING:
            return True
        if machine.is_module(value) and name in torch_modules.MODULE_METHODS:
            return True
        unknown = machine.has_unknown_base(value.cls) or machine.find_in_class(value.cls, "__getattr__") is not MISSING
        return None if unknown else False
    if type(value) is TorchModule:
        return name in value.slots or name == "weight" or name in torch_modules.MODULE_METHODS
    if type(value) is Tensor:
        return name in TENSOR_ATTRIBUTES or name in torch_operations.OPERATIONS or name in torch_operations.IN_PLACE
    if type(value) in (ListCell, DictCell, TupleValue):
        return name in {"__len__", "__iter__", "items", "keys"} and (type(value) is DictCell or name.startswith("__"))
    if plain(value):
        return hasattr(value, name)
    return None


def _callable(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    def test(value: Value) -> bool | None:
        if type(value) in (FunctionValue, BoundMethod, ClassValue, TorchModule, Partial):
            return True
        return False if plain(value) or type(value) in (Tensor, ListCell, DictCell, TupleValue) else None

    given = machine.resolve(arguments[0].value) if arguments else None
    return machine.instance_test(given, test, "callable")


def _getattr(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    name = machine.resolve(arguments[1].value) if len(arguments) > 1 else None
    if isinstance(name, str):
        given = machine.resolve(arguments[0].value)
        known = type(given) in (Instance, TorchModule)
        if len(arguments) > 2 and known and _has_attribute(machine, given, name) is False:
            return arguments[2].value
        return machine.load_attribute(given, name, call, arguments[0].expression)
    return machine.unknown_call(Symbol(machine.fresh("getattr")), arguments, {}, call)


def _setattr(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    if len(arguments) == 3:
        name = machine.resolve(arguments[1].value)
        if isinstance(name, str):
            machine.store_attribute(arguments[0].value, name, arguments[2].value, call)
    return None


def _map(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    if len(arguments) < 2:
        return Symbol(machine.fresh("map"))
    rows = machine.resolve(_zip(machine, arguments[1:], {}, call))
    results: Items = []
    for guard, row in rows.items:
        values = [Operand(None, value) for value in row.items]
        results.append((guard, machine.call_value(arguments[0].value, values, {}, call)))
    return Sequence(tuple(results), rows.exact)


def _filter(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    items, exact = machine.elements(arguments[1].value, call) if len(arguments) > 1 else ([], True)
    if any(type(value) is Parameters for _, value in items):
        kept: Items = []
        for guard, value in items:
            if type(value) is Parameters:
                trained = tuple(leaf for leaf in value.leaves if leaf.slots.get("requires_grad") is not False)
                kept.append((guard, Parameters(trained, value.whole)))
        return Sequence(tuple(kept), exact)
    return Sequence(tuple(items), exact=False)


def _sorted(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    items, exact = machine.elements(arguments[0].value, call) if arguments else ([], True)
    return ListCell(tuple(items), more=not exact)


def _iter(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    return arguments[0].value if arguments else Symbol(machine.fresh("iter"))


def _next(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    given = machine.resolve(arguments[0].value) if arguments else None
    if type(given) is Symbol:
        return Symbol(machine.fresh("next", given.key), given.node)
    items, _ = machine.elements(given, call)
    first = machine.resolve(items[0][1]) if items else None
    if type(first) is Symbol or not items:
        return Symbol(machine.fresh("next"), first.node if first is not None else None)
    if type(first) is Tensor and first.node is None:
        return Tensor()
    if type(first) is TupleValue and not machine.edges_of(first):
        return TupleValue(tuple(Symbol(machine.fresh("next")) for _ in first.items), first.cls)
    return first


def _super(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    function = machine.frame.function
    frame: Frame | None = machine.frame
    while frame is not None and (function is None or function.owner is None):
        frame = frame.closure
        function = frame.function if frame is not None else None
    if frame is None or function is None or function.owner is None or isinstance(function.node, ast.Lambda):
        return Symbol(machine.fresh("super"))
    parameters = [*function.node.args.posonlyargs, *function.node.args.args]
    receiver = frame.slots.get(parameters[0].arg) if parameters else None
    return SuperValue(function.owner, receiver)


def _nothing(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    return None


def _str(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    given = machine.resolve(arguments[0].value) if arguments else ""
    if plain(given):
        return str(given)
    return Symbol(("builtin", "str", key_of(given)))


def _type(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    given = machine.resolve(arguments[0].value) if arguments else None
    if type(given) is Instance:
        return given.cls
    if type(given) is TupleValue and given.cls is not None:
        return given.cls
    if plain(given):
        return External(f"builtins.{type(given).__name__}")
    names = {ListCell: "list", TupleValue: "tuple", DictCell: "dict"}
    if type(given) in names:
        return External("builtins." + names[type(given)])
    if type(given) is Tensor:
        return External("torch.Tensor")
    return Symbol(("builtin", "type", key_of(given)))


def _any_all(name: str) -> Handler:
    def run(machine: Library, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
        items, exact = machine.elements(arguments[0].value, call) if arguments else ([], True)
        values = [machine.resolve(value) for _, value in items]
        if exact and all(isinstance(v, bool) for v in values):
            return any(values) if name == "any" else all(values)
        return Symbol(machine.fresh(name))

    return run


def _bool(machine: Builtins, arguments: Arguments, keywords: Keywords, call: ast.AST) -> Value:
    given = machine.resolve(arguments[0].value) if arguments else False
    if plain(given):
        return bool(given)
    return Symbol(("builtin", "bool", key_of(given)))


BUILTINS: Final[dict[str, Callable[[Builtins, Arguments, Keywords, ast.AST], Value]]] = {
    "len": _len,
    "range": _range,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "list": _list_of("list"),
    "set": _list_of("set"),
    "frozenset": _list_of("set"),
    "tuple": _list_of("tuple"),
    "dict": _dict,
    "sum": _sum,
    "max": _extreme("max"),
    "min": _extreme("min"),
    "isinstance": _isinstance,
    "hasattr": _hasattr,
    "callable": _callable,
    "getattr": _getattr,
    "setattr": _setattr,
    "map": _map,
    "filter": _filter,
    "sorted": _sorted,
    "iter": _iter,
    "next": _next,
    "super": _super,
    "print": _nothing,
    "str": _str,
    "repr": _str,
    "type": _type,
    "any": _any_all("any"),
    "all": _any_all("all"),
    "bool": _bool,
}

__all__ = ["BoundMethod", "Builtins", "NamedTupleClass"]
