"""Running a file on the abstract tape: which code is entered, with what, and in which order."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from .callers import scripts_importing
from .drivers import Drivers
from .guards import ALWAYS
from .heap import MISSING
from .machine import TooComplex
from .project import Project
from .syntax import TRIGGERS, Syntax
from .tape import Escape, Operand, Tape
from .values import (
    BoundMethod,
    ClassValue,
    Frame,
    FunctionValue,
    Imported,
    ModuleValue,
    Symbol,
    TupleValue,
    Value,
)

BUDGET: Final = 80_000
"""Tape steps (expressions, statements, recorded operations) for one entry point."""
SCRIPT_BUDGET: Final = 30_000
"""Tape steps for another file that may call what is analysed."""
DEFINITION_BUDGET: Final = 5_000
"""Tape steps for making one definition of an imported module."""
ENTRY_NAMES: Final = frozenset({"main"})
"""Functions that start a program: nobody back-propagates what they return."""


@dataclass(eq=False, slots=True)
class Run:
    """One entry point's tape."""

    entry: str
    tape: Tape
    entries: frozenset[ast.AST] = frozenset()
    complete: bool = True
    """Whether it was followed to its end: what never happens on a tape that was cut off may happen after the cut."""
    script: str = ""
    """The other file that was run, "" where it is the analysed one."""


@dataclass(slots=True)
class Analysis:
    """All tapes of a file; ``cut`` names the entry points that were too complex to follow to the end."""

    runs: list[Run] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)


class Interpreter(Drivers):
    """The whole abstract interpreter."""

    def __init__(self, project: Project, budget: int = BUDGET) -> None:
        super().__init__(project, budget)
        self.modules = {}
        self.executed: set[ast.AST] = set()
        self.calling_back: list[ast.AST] = []
        self.central: dict[ast.AST, bool] = {}
        self.reaching: frozenset[str] = frozenset()
        self.reached: set[tuple[str, str]] | None = None
        """The functions that a script runs, by file and name; None while none is run."""

    # -- hooks of the layers below ---------------------------------------------------------------------------------

    def entered(self, function: FunctionValue) -> None:
        self.executed.add(function.node)
        if self.reached is not None:
            self.reached.add((os.path.abspath(function.module.filename), function.name))

    def is_central(self, function: FunctionValue) -> bool:
        known = self.central.get(function.node)
        if known is None:
            known = self.central[function.node] = (
                function.name in self.reaching or self.project.syntax.mentions(function.node)[1]
            )
        return known

    def finished(self, frame: Frame) -> None:
        super().finished(frame)
        if not any(held is frame for held in self.held_frames()):
            self.dead.add(id(frame.slots))

    def called_back(self, value: Value, call: ast.AST) -> None:
        value = self.resolve(value)
        function = value.function if type(value) is BoundMethod else value
        if type(function) is not FunctionValue or function.node in self.calling_back or len(self.calling_back) > 2:
            return
        if isinstance(function.node, ast.Lambda):
            return
        self.calling_back.append(function.node)
        try:
            self.call_value(value, [], {}, call)
        finally:
            self.calling_back.pop()

    def module_frame(self, module: ModuleValue) -> Frame:
        if module.frame is None:
            module.frame = Frame(None, module, None)
            module.pending = binding_statements(module.tree.body)
        return module.frame

    def imported(self, value: Imported) -> Value:
        seen: list[Imported] = []
        one: Value = value
        while type(one) is Imported:
            if one in seen:
                return Symbol(("global", one.module.filename, one.name))
            seen.append(one)
            if not one.known:
                one.known = True
                one.value = self.project.member(self, one.module, one.name)
            one = one.value
        return self.resolve(one)

    def demand(self, module: ModuleValue, name: str) -> None:
        pending, frame = module.pending, self.module_frame(module)
        assert pending is not None
        statements = pending.pop(name, None)
        if statements is not None:
            self.define(frame, statements)
            return
        stars = pending.get("*", [])
        while stars and name not in frame.slots:
            self.define(frame, [stars.pop(0)])

    def define(self, frame: Frame, statements: list[ast.stmt]) -> None:
        """Run definitions of an imported module, outside of all branches and loops, with steps of their own."""
        state = (
            self.heap.trail,
            self.path,
            self.loops,
            self.recording,
            self.function_target,
            self.loop_target,
            self.nesting,
            self.budget,
            self.floor,
            self.frame,
        )
        self.heap.trail, self.path, self.loops, self.recording = [], ALWAYS, (), True
        self.function_target, self.loop_target, self.nesting = None, None, 0
        self.budget, self.floor = DEFINITION_BUDGET, 0
        self.frame = frame
        try:
            self.block(statements)
        except TooComplex:
            pass
        finally:
            (
                self.heap.trail,
                self.path,
                self.loops,
                self.recording,
                self.function_target,
                self.loop_target,
                self.nesting,
                self.budget,
                self.floor,
                self.frame,
            ) = state

    # -- entry points ----------------------------------------------------------------------------------------------

    def analyse(self, tree: ast.Module, filename: str, ended: Callable[[Run], None] = lambda run: None) -> Analysis:
        """Run the file's top level, then every function worth running that was not reached.

        ``ended`` is called after each run, while the state that it left is still there.
        """
        analysis = Analysis()
        module = ModuleValue("__main__", filename, tree)
        self.modules[filename] = module
        module.frame = frame = Frame(None, module, None)
        frame.slots["__name__"] = "__main__"
        self.frame = frame
        worth = Worth(tree, self.project.syntax)
        self.reaching = worth.reaching
        whole = self.guarded(analysis, "the top level", lambda: self.block(tree.body))
        if not whole:
            self.restore(frame)
        analysis.runs.append(Run("the top level", self.tape, frozenset(self.executed), complete=whole))
        ended(analysis.runs[-1])
        mark = self.heap.mark()
        shared = self.tape.leaves
        for path in self.scripts(filename, worth, frame):
            self.restore(frame)
            self.tape = Tape(shared)
            before, driven = set(self.executed), set(self.driven)
            self.reached = set()
            whole = self.guarded(Analysis(), path, lambda path=path: self.script(path), SCRIPT_BUDGET)
            self.project.reached[path] = frozenset(self.reached) if whole else frozenset()
            self.reached = None
            if whole and ((self.executed - before) & worth.nodes or self.driven != driven):
                analysis.runs.append(Run(path, self.tape, frozenset(self.executed - before), script=path))
                ended(analysis.runs[-1])
            else:
                self.executed, self.driven = before, driven
            self.heap.undo(mark)
        for name, call in chain(self.drivable(frame), self.roots(tree, frame, worth)):
            self.restore(frame)
            self.tape = Tape(shared)
            before = set(self.executed)
            whole = self.guarded(analysis, name, call)
            analysis.runs.append(Run(name, self.tape, frozenset(self.executed - before), complete=whole))
            ended(analysis.runs[-1])
            self.heap.undo(mark)
        return analysis

    def scripts(self, filename: str, worth: Worth, frame: Frame) -> Iterator[str]:
        """Other files to run because they call what this file defines and does not call itself."""
        if worth.nodes <= self.executed and next(self.drivable(frame), None) is None:
            return
        self.modules[os.path.abspath(filename)] = self.modules[filename]
        own = os.path.abspath(filename)
        for path in scripts_importing(self.project, filename):
            if worth.nodes <= self.executed and next(self.drivable(frame), None) is None:
                return
            known = self.project.reached.get(path)
            if known is None or any((own, name) in known for name in worth.names):
                yield path

    def script(self, path: str) -> None:
        """Run another file of the project from its top, and its ``main`` if it does not run that itself."""
        source = self.project.source(path)
        if source is None:
            return
        self.reaching |= Worth(source.tree, self.project.syntax, self.reaching).reaching
        module = ModuleValue("__main__", path, source.tree)
        self.modules[path] = module
        module.frame = self.frame = frame = Frame(None, module, None)
        frame.slots["__name__"] = "__main__"
        self.block(source.tree.body)
        main = frame.slots.get("main")
        if type(main) is FunctionValue and main.node not in self.executed:
            self.call_function(main, [], {}, main.node)

    def guarded(self, analysis: Analysis, name: str, run: object, budget: int = BUDGET) -> bool:
        """Run one entry point within its budget."""
        self.budget = budget
        self.waiting = []
        try:
            run()  # type: ignore[operator]
            self.start_waiting()
        except TooComplex:
            analysis.cut.append(name)
            return False
        except RecursionError:
            analysis.cut.append(name)
            return False
        return True

    def restore(self, frame: Frame) -> None:
        self.frame = frame
        self.path, self.loops, self.recording = ALWAYS, (), True
        self.function_target, self.loop_target, self.nesting = None, None, 0
        self.calling_back = []
        self.budget = BUDGET

    def roots(self, tree: ast.Module, frame: Frame, worth: Worth) -> Iterator[tuple[str, object]]:
        """Functions and methods that are worth running and have not been: callers before callees."""
        for wanted in (True, False):
            for name, node, owner in worth.candidates:
                if node in self.executed or worth.mentioned(name) is wanted:
                    continue
                if owner is None:
                    function = frame.slots.get(name)
                    if type(function) is FunctionValue and function.node is node:
                        yield name, lambda function=function: self.enter(function, None)
                else:
                    cls = frame.slots.get(owner)
                    if type(cls) is ClassValue:
                        function = cls.slots.get(name)
                        if type(function) is FunctionValue and function.node is node:
                            yield (
                                f"{owner}.{name}",
                                lambda function=function, cls=cls: self.enter(function, cls),
                            )

    def enter(self, function: FunctionValue, cls: ClassValue | None) -> None:
        """Call an entry point with unknown arguments; what it returns goes to an unknown caller."""
        arguments: list[Operand] = []
        if cls is not None and function.kind != "staticmethod":
            receiver: Value = cls
            if function.kind != "classmethod":
                receiver = self.new_instance(cls)
            arguments = [Operand(None, receiver)]
        self.executed.add(function.node)
        self.frame.statement = None
        result = self.call_function(function, arguments, {}, function.node)
        if function.name not in ENTRY_NAMES:
            self.escape(result, function.node, "return")

    def new_instance(self, cls: ClassValue) -> Value:
        """An object as its constructor leaves it."""
        if cls.is_namedtuple:
            return TupleValue(tuple(Symbol(self.fresh("field")) for _ in cls.namedtuple_fields), cls)
        instance = self.make_instance(cls, ("self", id(cls.node)))
        found = self.find_in_class(cls, "__init__")
        if type(found) is FunctionValue:
            self.call_function(found, [Operand(None, instance)], {}, cls.node)
        else:
            self.base_constructor(instance, [], {}, cls.node)
        return instance


class Worth:
    """Which functions of a file are worth running: those from which a traversal can be reached."""

    def __init__(self, tree: ast.Module, syntax: Syntax, known: frozenset[str] = frozenset()) -> None:
        """``known``: names of other files' functions that reach one."""
        self.candidates: list[tuple[str, ast.AST, str | None]] = []
        names: dict[str, set[str]] = {}
        direct: set[str] = set()
        functions: list[tuple[str, ast.AST, str | None]] = []
        for node, owner in functions_of(tree):
            functions.append((node.name, node, owner))
            mentioned, triggered = syntax.mentions(node)
            names.setdefault(node.name, set()).update(mentioned)
            if triggered:
                direct.add(node.name)
        self.names = names
        reaching = direct | known | _traversals_by_other_names(tree)
        changed = True
        while changed:
            changed = False
            for name, used in names.items():
                if name not in reaching and used & reaching:
                    reaching.add(name)
                    changed = True
        if not reaching:
            reaching = {node.name for node, _ in functions_of(tree) if feeds_back(node)}
            for name, used in names.items():
                if used & reaching:
                    reaching = reaching | {name}
        self.reaching = frozenset(reaching)
        self._mentioned = {m for name, others in names.items() for m in others if m != name}
        self.candidates = sorted(
            ((n, node, o) for n, node, o in functions if n in reaching and not n.startswith("__")),
            key=lambda entry: (entry[0] not in ENTRY_NAMES,),
        )
        self.nodes: Final = frozenset(node for _, node, _ in self.candidates)

    def mentioned(self, name: str) -> bool:
        """Whether another function of the file uses that name."""
        return name in self._mentioned


def functions_of(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str | None]]:
    """Module-level functions and methods of module-level classes, with the class's name."""
    stack: list[tuple[list[ast.stmt], str | None]] = [(tree.body, None)]
    while stack:
        body, owner = stack.pop()
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield statement, owner
            elif isinstance(statement, ast.ClassDef) and owner is None:
                stack.append((statement.body, statement.name))
            elif isinstance(statement, (ast.If, ast.Try, ast.With)):
                stack.append((statement.body, owner))


def _traversals_by_other_names(tree: ast.Module) -> set[str]:
    """``go`` for ``from torch.autograd import backward as go``"""
    return {
        alias.asname
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom) and statement.module == "torch.autograd"
        for alias in statement.names
        if alias.asname is not None and alias.name in TRIGGERS
    }


def feeds_back(function: ast.AST) -> bool:
    """Whether a loop of the function gives a call what the same call gave back an iteration before."""
    for loop in ast.walk(function):
        if not isinstance(loop, (ast.For, ast.While)):
            continue
        for statement in ast.walk(loop):
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
                targets = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                given = {n.id for a in statement.value.args for n in ast.walk(a) if isinstance(n, ast.Name)}
                if targets & given and len(targets) > 1:
                    return True
    return False


def binding_statements(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """For every name that a module's top level binds, the statements that do; star imports under ``*``."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in body:
        for name in bound_names(statement):
            found.setdefault(name, []).append(statement)
    return found


def bound_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a top-level statement binds; loops and ``with`` are programs, not definitions."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or (
                alias.name if isinstance(statement, ast.ImportFrom) else alias.name.partition(".")[0]
            )
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id
    elif isinstance(statement, (ast.If, ast.Try)):
        inner = [*statement.body, *statement.orelse]
        if isinstance(statement, ast.Try):
            inner += [one for handler in statement.handlers for one in handler.body]
        for one in inner:
            yield from bound_names(one)


__all__ = ["MISSING", "Analysis", "Escape", "Interpreter", "Run"]
