"""Executing statements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from .expressions import Expressions, facts_of
from .functions import FunctionTarget
from .guards import ALWAYS, Guard
from .heap import MISSING, Delta
from .knowledge import grad_modes, torch_operations
from .library import key_of, plain
from .tape import Boundary, Carried, Discarded, Edge, Loop, Node, Operand
from .values import (
    ClassValue,
    DictCell,
    External,
    Frame,
    FunctionValue,
    Instance,
    ListCell,
    Method,
    NamedTupleClass,
    Parameters,
    Partial,
    Phi,
    Sequence,
    Symbol,
    Tensor,
    TupleValue,
    Value,
)

DEEP: Final = 2
"""Inside so many loops, later iterations of the outer ones run the inner ones once: what two of them show is known."""
MOST_TURNS: Final = 4
"""A loop over a collection of known length runs all of it up to this many elements."""
IGNORED_DECORATORS: Final = frozenset(
    {
        "functools.wraps", "functools.lru_cache", "functools.cache", "abc.abstractmethod", "typing.overload",
        "torch.jit.script", "torch.jit.export", "torch.jit.ignore", "torch.jit.unused", "torch.compile",
        "typing.override", "typing.final", "torch.autograd.function.once_differentiable", "builtins.staticmethod",
        "dataclasses.dataclass",
    }
)  # fmt: skip


@dataclass(slots=True)
class LoopTarget:
    """Where ``break`` and ``continue`` go."""

    mark: int
    nesting: int
    iteration_mark: int = 0
    breaks: list[tuple[Guard, Delta]] = field(default_factory=list)
    continues: list[tuple[Guard, Delta]] = field(default_factory=list)


class Statements(Expressions):
    """The machine with statements."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.dead: set[int] = set()

    def block(self, statements: Seq[ast.stmt]) -> bool:
        """Run ``statements``; false where nothing gets past them."""
        frame = self.frame
        for statement in statements:
            self.budget -= 1
            if self.budget < self.floor:
                self.spend(0)
            frame.statement = statement
            handler = STATEMENTS.get(type(statement))
            if handler is not None and not handler(self, statement):
                return False
        return True

    # -- simple statements -----------------------------------------------------------------------------------------

    def expression_statement(self, statement: ast.Expr) -> bool:
        value = self.evaluate(statement.value)
        call = statement.value
        if isinstance(call, ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "detach" and not call.args:
                self.discarded(statement, call.func.value)
            if (
                type(value) is TupleValue
                and len(value.items) == 3
                and value.items[0] == External("gradmend.mode")
                and value.items[2]
            ):
                self.recording = value.items[1]
            if _exits(call):
                return False
        return True

    def discarded(self, statement: ast.Expr, receiver: ast.expr) -> None:
        budget = self.budget
        value = self.evaluate(receiver) if isinstance(receiver, (ast.Name, ast.Attribute, ast.Subscript)) else None
        self.budget = budget
        edges = self.edges_of(value)
        if edges:
            self.tape.add(Discarded(self.tape.next_index, self.where(statement), self.path, statement, receiver, edges))

    def assignment(self, statement: ast.Assign) -> bool:
        value = self.evaluate(statement.value)
        for target in statement.targets:
            self.assign(target, value, statement.value)
        return True

    def annotated(self, statement: ast.AnnAssign) -> bool:
        if statement.value is not None:
            self.assign(statement.target, self.evaluate(statement.value), statement.value)
        return True

    def assign(self, target: ast.expr, value: Value, source: ast.expr | None = None) -> None:
        """``target = value``"""
        if isinstance(target, ast.Name):
            self.store_name(target.id, value, source)
        elif isinstance(target, ast.Attribute):
            receiver = self.evaluate(target.value)
            if target.attr == "data":
                self.store_data(receiver, value, target)
            else:
                self.store_attribute(receiver, target.attr, value, target, source)
        elif isinstance(target, ast.Subscript):
            container = self.evaluate(target.value)
            index = None if isinstance(target.slice, ast.Slice) else self.resolve(self.evaluate(target.slice))
            if isinstance(target.slice, ast.Slice):
                index = Symbol(self.fresh("slice"))
            self.store_item(container, index, value, target, source)
        elif isinstance(target, (ast.Tuple, ast.List)):
            elements = source.elts if isinstance(source, (ast.Tuple, ast.List)) else None
            self.unpack(target.elts, value, target, elements)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)

    def store_data(self, receiver: Value, value: Value, target: ast.AST) -> None:
        """``x.data = …``: new memory, no version is counted up."""

    def store_name(self, name: str, value: Value, source: ast.expr | None = None) -> None:
        frame = self.frame
        if name in frame.globals_declared:
            owner: Frame | None = frame.closure
            while owner is not None and name not in owner.slots:
                owner = owner.closure
            frame = owner or self.module_frame(frame.module)
        self.write(frame.slots, name, value)
        self.note_store(frame.slots, name, value, source)

    def unpack(
        self, targets: list[ast.expr], value: Value, site: ast.AST, sources: list[ast.expr] | None = None
    ) -> None:
        value = self.resolve(value)
        if type(value) is Phi:
            columns = [self.unpacked(one, len(targets), site) for _, one in value.alternatives]
            guards = [guard for guard, _ in value.alternatives]
            for position, target in enumerate(targets):
                self.assign(target, self.phi(list(zip(guards, [c[position] for c in columns], strict=True))))
            return
        star = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if star is not None:
            items, _ = self.elements(value, site)
            behind = len(targets) - star - 1
            values = [v for _, v in items]
            for position, target in enumerate(targets[:star]):
                self.assign(target, values[position] if position < len(values) else Symbol(self.fresh("unpacked")))
            middle = items[star : len(items) - behind] if behind else items[star:]
            self.assign(targets[star], ListCell(tuple(middle)))
            for position, target in enumerate(targets[star + 1 :]):
                index = len(values) - behind + position
                self.assign(target, values[index] if 0 <= index < len(values) else Symbol(self.fresh("unpacked")))
            return
        if sources is None or len(sources) != len(targets) or any(isinstance(s, ast.Starred) for s in sources):
            for target, part in zip(targets, self.unpacked(value, len(targets), site), strict=True):
                self.assign(target, part)
            return
        for target, part, source in zip(targets, self.unpacked(value, len(targets), site), sources, strict=True):
            self.assign(target, part, source)

    def unpacked(self, value: Value, count: int, site: ast.AST) -> list[Value]:
        value = self.resolve(value)
        kind = type(value)
        if kind is Symbol:
            return [
                Symbol(("item", value.key, ("constant", index)), value.node, cuts=value.cuts) for index in range(count)
            ]
        if kind is Tensor:
            return [self.operate("select", site, [Operand(None, value)]) for _ in range(count)]
        items, exact = self.elements(value, site)
        values = [v for _, v in items]
        if len(values) == count:
            return values
        if not values:
            return [Symbol(self.fresh("unpacked")) for _ in range(count)]
        if exact:
            return [values[i] if i < len(values) else Symbol(self.fresh("unpacked")) for i in range(count)]
        return [values[min(i, len(values) - 1)] for i in range(count)]

    def augmented(self, statement: ast.AugAssign) -> bool:
        target = statement.target
        current = self.resolve(self.evaluate(_loaded(target)))
        right = self.resolve(self.evaluate(statement.value))
        value = self.augmented_value(statement, current, right)
        self.assign(target, value, statement.value)
        self.note_plain(statement.value, right)
        return True

    def augmented_value(self, statement: ast.AugAssign, current: Value, right: Value) -> Value:
        if type(current) is Phi and any(type(v) in (Tensor, ListCell) for _, v in current.alternatives):
            return self.fork(
                current.alternatives, lambda one: self.augmented_value(statement, self.resolve(one), right)
            )
        target = statement.target
        if type(current) is Tensor and type(statement.op).__name__ in torch_operations.AUGMENTED_OPERATORS:
            name = torch_operations.IN_PLACE[
                torch_operations.AUGMENTED_OPERATORS[type(statement.op).__name__]
            ].operation
            self.change(current, name, statement, [Operand(statement.value, right)], target)
            return current
        if type(current) is Parameters:
            self.change_parameters(
                current, "add_", Operand(target, current), [Operand(statement.value, right)], statement
            )
            return current
        if type(current) is ListCell and isinstance(statement.op, ast.Add):
            items, exact = self.elements(right, statement)
            self.write(current.slots, "items", (*current.slots["items"], *items))
            self.note_store(current.slots, "items", right, statement.value)
            if not exact:
                self.write(current.slots, "more", True)
            return current
        return self.binary_values(statement.op, Operand(target, current), Operand(statement.value, right), statement)

    def delete(self, statement: ast.Delete) -> bool:
        for target in statement.targets:
            if isinstance(target, ast.Name) and target.id in self.frame.slots:
                self.write(self.frame.slots, target.id, MISSING)
            elif isinstance(target, ast.Attribute):
                receiver = self.resolve(self.evaluate(target.value))
                if type(receiver) is Instance and target.attr in receiver.slots:
                    self.write(receiver.slots, target.attr, MISSING)
            elif isinstance(target, ast.Subscript):
                self.delete_item(target)
        return True

    def delete_item(self, target: ast.Subscript) -> None:
        container = self.resolve(self.evaluate(target.value))
        index = None if isinstance(target.slice, ast.Slice) else self.resolve(self.evaluate(target.slice))
        if type(container) is ListCell:
            items = container.slots["items"]
            if isinstance(index, int) and -len(items) <= index < len(items):
                position = index % len(items)
                self.write(container.slots, "items", (*items[:position], *items[position + 1 :]))
            elif isinstance(target.slice, ast.Slice):
                self.write(container.slots, "items", ())
        elif type(container) is DictCell and plain(index) and ("key", index) in container.slots:
            self.write(container.slots, ("key", index), MISSING)

    def global_(self, statement: ast.Global | ast.Nonlocal) -> bool:
        self.frame.globals_declared.update(statement.names)
        return True

    # -- leaving ---------------------------------------------------------------------------------------------------

    def return_(self, statement: ast.Return) -> bool:
        value = self.evaluate(statement.value) if statement.value is not None else None
        target = self.function_target
        if target is None:
            return False
        if self.nesting == target.nesting and target.direct is None and self.loop_target is None:
            target.direct = (self.path, value)
        else:
            target.returns.append((self.path, self.heap.delta(target.mark), value))
        return False

    def break_(self, statement: ast.Break) -> bool:
        target = self.loop_target
        if target is not None:
            target.breaks.append((self.path, self.heap.delta(target.mark)))
        return False

    def continue_(self, statement: ast.Continue) -> bool:
        target = self.loop_target
        if target is not None:
            target.continues.append((self.path, self.heap.delta(target.iteration_mark)))
        return False

    def raise_(self, statement: ast.Raise) -> bool:
        return False

    def assert_(self, statement: ast.Assert) -> bool:
        test = self.evaluate(statement.test)
        if self.truth(test) is None:
            true, _ = self.split(test)
            narrowed = self.path.meet(true)
            if narrowed is not None:
                self.path = narrowed
        return True

    # -- branches --------------------------------------------------------------------------------------------------

    def if_(self, statement: ast.If) -> bool:
        test = self.evaluate(statement.test)
        truth = self.truth(test)
        if truth is not None:
            return self.block(statement.body if truth else statement.orelse)
        true, false = self.split(test)
        return self.branches(
            [(true, lambda: self.block(statement.body)), (false, lambda: self.block(statement.orelse))]
        )

    def branches(self, arms: list[tuple[Guard, Callable[[], bool]]]) -> bool:
        """Run exclusive arms, each from the same start, and go on from all that get to their end."""
        base, mark = self.path, self.heap.mark()
        recording = self.recording
        outcomes: list[tuple[Guard, Delta]] = []
        self.nesting += 1
        for guard, run in arms:
            path = base.meet(guard)
            if path is None:
                continue
            self.path = path
            if run():
                outcomes.append((self.path, self.heap.delta(mark)))
            self.heap.undo(mark)
        self.nesting -= 1
        self.path = base
        self.recording = recording
        if not outcomes:
            return False
        self.join(base, outcomes)
        return True

    def match(self, statement: ast.Match) -> bool:
        subject = self.evaluate(statement.subject)
        arms: list[tuple[Guard, Callable[[], bool]]] = []
        rest = ALWAYS
        certain = False
        for case in statement.cases:
            test = self.matches(subject, case)
            if test is False:
                continue
            if test is True:
                arms.append((rest, partial(self.run_case, case, subject)))
                certain = True
                break
            true, false = facts_of(("case", key_of(subject), ast.dump(case.pattern)))
            arms.append((rest.meet(true) or rest, partial(self.run_case, case, subject)))
            rest = rest.meet(false) or rest
        if not certain:
            arms.append((rest, lambda: True))
        if len(arms) == 1:
            return arms[0][1]()
        return self.branches(arms)

    def matches(self, subject: Value, case: ast.match_case) -> bool | None:
        pattern = case.pattern
        if case.guard is None and isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            return True
        if isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant) and plain(subject):
            return bool(pattern.value.value == subject) and (True if case.guard is None else None)
        return None

    def run_case(self, case: ast.match_case, subject: Value) -> bool:
        for node in ast.walk(case.pattern):
            if isinstance(node, ast.MatchAs) and node.name:
                value = subject if node is case.pattern else Symbol(self.fresh("matched"))
                self.store_name(node.name, value)
        if case.guard is not None:
            self.evaluate(case.guard)
        return self.block(case.body)

    def try_(self, statement: ast.Try | ast.TryStar) -> bool:
        name = ("raised", id(statement), self.fresh())
        if not statement.handlers:
            falls = self.block([*statement.body, *statement.orelse])
            after = self.block(statement.finalbody)
            return falls and after
        arms: list[tuple[Guard, Callable[[], bool]]] = [
            (Guard({name: None}), lambda: self.block([*statement.body, *statement.orelse]))
        ]
        for position, handler in enumerate(statement.handlers):
            if _imports_only(statement.body) and not _imports_only(handler.body):
                continue
            arms.append((Guard({name: position}), partial(self.handle, handler)))
        falls = self.branches(arms) if len(arms) > 1 else arms[0][1]()
        if statement.finalbody:
            return self.block(statement.finalbody) and falls
        return falls

    def handle(self, handler: ast.ExceptHandler) -> bool:
        if handler.name:
            self.store_name(handler.name, Symbol(self.fresh("exception")))
        return self.block(handler.body)

    def with_(self, statement: ast.With | ast.AsyncWith) -> bool:
        recording, copies = self.recording, self.saves_copies
        for item in statement.items:
            manager = self.resolve(self.evaluate(item.context_expr))
            self.saves_copies = self.saves_copies or _saves_copies(manager, item.context_expr)
            mode = self.mode_of(manager)
            if mode is not None and mode != "neutral":
                self.recording = mode
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self.entered_value(manager, item.context_expr))
        falls = self.block(statement.body)
        self.recording, self.saves_copies = recording, copies
        return falls

    def mode_of(self, manager: Value) -> Value:
        """The recording mode that a context manager sets; None where it sets none."""
        if type(manager) is TupleValue and len(manager.items) == 3 and manager.items[0] == External("gradmend.mode"):
            return manager.items[1]
        if type(manager) is External and manager.dotted in grad_modes.RECORDING_OFF:
            return False
        if type(manager) is Phi:
            pairs = []
            for guard, one in manager.alternatives:
                mode = self.mode_of(one)
                pairs.append((guard, self.recording if mode is None or mode == "neutral" else mode))
            return self.phi(pairs)
        return None

    def entered_value(self, manager: Value, expression: ast.expr) -> Value:
        if type(manager) is Instance:
            found = self.find_in_class(manager.cls, "__enter__")
            if type(found) is FunctionValue:
                return self.call_function(found, [Operand(None, manager)], {}, expression)
            return manager
        if type(manager) is Symbol:
            return Symbol(("entered", manager.key))
        return manager

    # -- loops -----------------------------------------------------------------------------------------------------

    def for_(self, statement: ast.For | ast.AsyncFor) -> bool:
        items, exact = self.elements(self.evaluate(statement.iter), statement.iter)
        left_out: list[tuple[Guard, Value]] = []
        if len(items) > MOST_TURNS and not (exact and self.are_modules(items)):
            left_out = items[2:-1]
            items, exact = [*items[:2], items[-1]] if exact else items[:3], False
        if not exact and self.is_deep_again():
            items = items[:1]
        turns = [(guard, lambda item=item: self.turn(statement, item)) for guard, item in items]
        falls = self.loop(statement, turns, exact, statement.orelse)
        self.disturb([item for _, item in left_out], statement)
        return falls

    def turn(self, statement: ast.For | ast.AsyncFor, item: Value) -> bool:
        self.assign(statement.target, item)
        return self.block(statement.body)

    def while_(self, statement: ast.While) -> bool:
        endless = isinstance(statement.test, ast.Constant) and bool(statement.test.value)

        def turn() -> bool:
            if not endless:
                test = self.evaluate(statement.test)
                truth = self.truth(test)
                if truth is False:
                    return self.break_(ast.Break())
                if truth is None:
                    true, _ = self.split(test)
                    narrowed = self.path.meet(true)
                    if narrowed is not None:
                        self.path = narrowed
            return self.block(statement.body)

        return self.loop(statement, [(ALWAYS, turn)] * (1 if self.is_deep_again() else 2), False, statement.orelse)

    def is_deep_again(self) -> bool:
        """Whether this is a later iteration of loops around, like the one before it, with nothing new to show."""
        return len(self.loops) >= DEEP and any(turn for loop, turn in self.loops if not loop.exact)

    def new_loop(self, statement: ast.AST, exact: bool) -> Loop:
        return Loop(statement, self.frame, exact)

    def loop(
        self,
        statement: ast.AST,
        turns: Seq[tuple[Guard, Callable[[], bool]]],
        exact: bool,
        orelse: Seq[ast.stmt] = (),
    ) -> bool:
        """Run ``turns`` one after the other, the state carried over; false where nothing gets past the loop."""
        loop = self.new_loop(statement, exact)
        outer, loops, base = self.loop_target, self.loops, self.path
        target = LoopTarget(self.heap.mark(), self.nesting)
        self.loop_target = target
        falls = True
        for number, (guard, run) in enumerate(turns):
            self.loops = (*loops, (loop, number))
            if not guard.facts or self.path.implies(guard):
                falls = self.iteration(target, run)
            elif self.path.compatible(guard):
                falls = self.sometimes(target, guard, run)
            else:
                continue
            self.boundary(loop, number, target.iteration_mark)
            if not falls:
                break
            if not exact:
                self.widen(loop, number, target.iteration_mark)
        self.loops = loops
        self.loop_target = outer
        if falls and orelse:
            falls = self.block(orelse)
        if target.breaks:
            outcomes = list(target.breaks)
            if falls:
                outcomes.append((self.path, self.heap.delta(target.mark)))
            self.heap.undo(target.mark)
            self.join(base, outcomes)
            return True
        if not falls and not exact and not isinstance(statement, ast.While):
            self.heap.undo(target.mark)
            self.path = base.also(("no turn", id(statement)), True) or base
            return True
        return falls

    def repeated(self, statement: ast.AST, run: Callable[[], bool]) -> None:
        self.loop(statement, [(ALWAYS, run)] * 2, False)

    def iteration(self, target: LoopTarget, run: Callable[[], bool]) -> bool:
        target.iteration_mark = self.heap.mark()
        target.continues = []
        base = self.path
        falls = run()
        if target.continues:
            outcomes = list(target.continues)
            if falls:
                outcomes.append((self.path, self.heap.delta(target.iteration_mark)))
            self.heap.undo(target.iteration_mark)
            self.join(base, outcomes)
            return True
        return falls

    def sometimes(self, target: LoopTarget, guard: Guard, run: Callable[[], bool]) -> bool:
        """An iteration over an element that is there on some paths only."""
        base, mark = self.path, self.heap.mark()
        path = base.meet(guard)
        if path is None:
            return True
        self.path = path
        self.nesting += 1
        falls = self.iteration(target, run)
        self.nesting -= 1
        outcomes = [(self.path, self.heap.delta(mark))] if falls else []
        self.heap.undo(mark)
        key, fact = next(iter(guard.beyond(base).facts.items()))
        skipped = base.also(key, (not fact) if isinstance(fact, bool) else ("not", fact))
        if skipped is not None:
            outcomes.append((skipped, Delta({})))
        self.join(base, outcomes)
        target.iteration_mark = mark
        return True

    def boundary(self, loop: Loop, number: int, mark: int) -> None:
        """Note what an iteration leaves behind that carries a graph."""
        carried: list[Carried] = []
        seen: set[tuple[int, Any]] = set()
        for entry in self.heap.trail[mark:]:
            name = (id(entry.slots), entry.key)
            if name in seen or id(entry.slots) in self.dead or entry.key in INTERNAL_KEYS:
                continue
            seen.add(name)
            value = entry.slots.get(entry.key, MISSING)
            edges = self.slot_edges(value)
            if edges:
                last = next(e for e in reversed(self.heap.trail) if e.slots is entry.slots and e.key == entry.key)
                carried.append(Carried(entry.slots, entry.key, value, entry.old, last.where, edges))
        self.tape.add(
            Boundary(self.tape.next_index, self.where(loop.statement), self.path, loop, number, tuple(carried))
        )

    def slot_edges(self, value: Any) -> tuple[Edge, ...]:
        if isinstance(value, Node):
            return () if value.kind == "leaf" else (Edge(ALWAYS, value),)
        if type(value) is tuple:
            return self.guarded_edges(value, 0) if value and isinstance(value[0], tuple) else ()
        if value is MISSING:
            return ()
        return tuple(edge for edge in self.edges_of(value) if edge.node.kind != "leaf")

    def widen(self, loop: Loop, number: int, mark: int) -> None:
        """Counters and growing lists go on beyond what two iterations show."""
        first: dict[tuple[int, Any], Any] = {}
        for entry in self.heap.trail[mark:]:
            first.setdefault((id(entry.slots), entry.key), entry)
        for entry in first.values():
            old, new = entry.old, entry.slots.get(entry.key, MISSING)
            if _is_number(old) and _is_number(new) and old != new:
                above = new if new > old else None
                key = ("counter", id(entry.slots), entry.key, id(loop), number)
                self.write(entry.slots, entry.key, Symbol(key, above=above))
            elif entry.key == "items" and type(old) is tuple and type(new) is tuple and len(new) > len(old):
                self.write(entry.slots, "more", True)

    # -- definitions -----------------------------------------------------------------------------------------------

    def function_definition(self, statement: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        self.store_name(statement.name, self.make_function(statement, None))
        return True

    def make_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassValue | None) -> Value:
        spec = node.args
        function = FunctionValue(
            node,
            self.frame.module,
            self.frame,
            node.name,
            owner,
            tuple(self.evaluate(default) for default in spec.defaults),
            {
                argument.arg: self.evaluate(default)
                for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
                if default is not None
            },
        )
        result: Value = function
        for decorator in reversed(node.decorator_list):
            result = self.decorated(result, function, decorator)
        return result

    def decorated(self, result: Value, function: FunctionValue, decorator: ast.expr) -> Value:
        if isinstance(decorator, ast.Attribute) and decorator.attr in {"setter", "getter", "deleter"}:
            function.name = f"{function.name}.{decorator.attr}"
            return result
        called = isinstance(decorator, ast.Call)
        value = self.resolve(self.evaluate(decorator.func if isinstance(decorator, ast.Call) else decorator))
        if type(value) is External:
            name = value.dotted
            bare = name.rsplit(".", 1)[-1]
            if bare in {"property", "cached_property"}:
                function.kind = "property"
                return result
            if name in {"builtins.staticmethod", "builtins.classmethod"}:
                function.kind = bare
                return result
            if name in grad_modes.RECORDING_OFF or name in grad_modes.RECORDING_ON or name in grad_modes.TAKES_MODE:
                mode = self.resolve(self.evaluate(decorator)) if called else name in grad_modes.RECORDING_ON
                state = mode.items[1] if type(mode) is TupleValue else mode
                function.records = state if isinstance(state, bool) else None
                return result
            if name in grad_modes.ONCE_DIFFERENTIABLE:
                function.once_differentiable = True
                return result
            if name in IGNORED_DECORATORS or name.startswith(("torch.cuda.amp.custom_", "torch.amp.custom_", "numba.")):
                return result
            function.wrapped = True
            return result
        if type(value) is FunctionValue:
            callee: Value = value
            if isinstance(decorator, ast.Call):
                arguments, keywords = self.arguments(decorator)
                callee = self.call_value(value, arguments, keywords, decorator)
            made = self.resolve(self.call_value(callee, [Operand(None, result)], {}, decorator))
            return made if type(made) in (FunctionValue, Partial, ClassValue) else result
        function.wrapped = True
        return result

    def class_definition(self, statement: ast.ClassDef) -> bool:
        bases = tuple(
            self.resolve(self.evaluate(base)) for base in statement.bases if not isinstance(base, ast.Starred)
        )
        cls = ClassValue(statement, self.frame.module, statement.name, bases, {})
        scope = Frame(self.frame.function, self.frame.module, self.frame, self.frame.caller, self.frame.call)
        scope.depth = self.frame.depth
        scope.statement = statement
        outer, self.frame = self.frame, scope
        fields: list[tuple[str, Value]] = []
        try:
            for inner in statement.body:
                if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self.frame = outer
                    made = self.make_function(inner, cls)
                    self.frame = scope
                    name = made.name if type(made) is FunctionValue and "." in made.name else inner.name
                    scope.slots[name] = made
                else:
                    self.block([inner])
                    if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                        fields.append((inner.target.id, scope.slots.get(inner.target.id, MISSING)))
        finally:
            self.frame = outer
        cls.slots.update(scope.slots)
        self.classify(cls, statement, fields)
        self.store_name(statement.name, cls)
        return True

    def classify(self, cls: ClassValue, statement: ast.ClassDef, fields: list[tuple[str, Value]]) -> None:
        """Recognise dataclasses and named tuples."""
        if any(type(b) is External and b.dotted.endswith("NamedTuple") for b in cls.bases):
            cls.is_namedtuple = True
            cls.namedtuple_fields = tuple(name for name, _ in fields)
        for base in cls.bases:
            if isinstance(base, NamedTupleClass):
                cls.is_namedtuple, cls.namedtuple_fields = True, base.fields
        decorators = [d.func if isinstance(d, ast.Call) else d for d in statement.decorator_list]
        if any(ast.unparse(d).rsplit(".", 1)[-1] == "dataclass" for d in decorators):
            inherited = [f for b in cls.bases if type(b) is ClassValue for f in b.dataclass_fields or ()]
            cls.dataclass_fields = (*inherited, *((name, _field_default(value)) for name, value in fields))

    def import_(self, statement: ast.Import) -> bool:
        for alias in statement.names:
            self.project.import_module(self, alias.name, alias.asname)
        return True

    def import_from(self, statement: ast.ImportFrom) -> bool:
        self.project.import_from(self, statement)
        return True


INTERNAL_KEYS: Final = frozenset({"version", "grads", "gradient", "requires_grad", "more", "groups"})


def _saves_copies(manager: Value, expression: ast.expr) -> bool:
    """Whether operations in ``with manager:`` may save copies: AMP casts what they get, hooks store it elsewhere."""
    if type(manager) is Phi:
        return any(_saves_copies(one, expression) for _, one in manager.alternatives)
    if type(manager) is Symbol and isinstance(manager.key, tuple) and manager.key[0] == "autocast":
        return True
    return any(word in ast.unparse(expression) for word in ("autocast", "saved_tensors", "save_on_cpu"))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _field_default(value: Value) -> Value:
    """The default of a dataclass field; a :class:`Partial` where a factory makes it."""
    return value


def _loaded(target: ast.expr) -> ast.expr:
    return target


def _exits(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in {"exit", "quit"}
    return (
        isinstance(function, ast.Attribute)
        and function.attr in {"exit", "_exit"}
        and (isinstance(function.value, ast.Name) and function.value.id in {"sys", "os"})
    )


def _imports_only(body: list[ast.stmt]) -> bool:
    return all(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in body)


STATEMENTS: Final[dict[type[ast.stmt], Callable[[Any, Any], bool]]] = {
    ast.Expr: Statements.expression_statement,
    ast.Assign: Statements.assignment,
    ast.AnnAssign: Statements.annotated,
    ast.AugAssign: Statements.augmented,
    ast.Delete: Statements.delete,
    ast.Global: Statements.global_,
    ast.Nonlocal: Statements.global_,
    ast.Return: Statements.return_,
    ast.Break: Statements.break_,
    ast.Continue: Statements.continue_,
    ast.Raise: Statements.raise_,
    ast.Assert: Statements.assert_,
    ast.If: Statements.if_,
    ast.Match: Statements.match,
    ast.Try: Statements.try_,
    ast.TryStar: Statements.try_,
    ast.With: Statements.with_,
    ast.AsyncWith: Statements.with_,
    ast.For: Statements.for_,
    ast.AsyncFor: Statements.for_,
    ast.While: Statements.while_,
    ast.FunctionDef: Statements.function_definition,
    ast.AsyncFunctionDef: Statements.function_definition,
    ast.ClassDef: Statements.class_definition,
    ast.Import: Statements.import_,
    ast.ImportFrom: Statements.import_from,
}

__all__ = ["FunctionTarget", "Method", "Sequence", "Statements"]
