"""Edits as one libcst transformer pass: a second way to the text that ``splice`` gives, for checking one by the other.

The only module that imports libcst at its top; import it where an edit is due, not before.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst
from libcst.metadata import CodePosition, CodeRange, MetadataWrapper, WhitespaceInclusivePositionProvider

from ..analysis.matching import parse as python_tree
from .edits import LineTable, TextEdit, ordered
from .regions import Change, changed, regions_of, shifted

# Python starts to count the indentation anew at a form feed, libcst does not.
_FORM_FEED_BEFORE_CODE = re.compile(r"^[ \t]*\f[ \t\f]*(?<=\f)(?=[ \t]*[^\s#])", re.MULTILINE)

_DEEPEST = 2000
"""Levels of the syntax tree; libcst's parser overflows the stack of the process somewhere beyond 3000."""

_Statement = libcst.SimpleStatementLine | libcst.BaseCompoundStatement
_Replacement = libcst.BaseExpression | libcst.FlattenSentinel[_Statement] | libcst.RemovalSentinel


class RewriteError(ValueError):
    """libcst cannot read the source, or what the edits make of it; the message says which and why."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A node that can be replaced, and what it stands in."""

    node: libcst.BaseExpression | _Statement
    start: int
    end: int
    indentation: str
    """Of the block that the node stands in."""
    statements: tuple[_Candidate, ...]
    """The statements that it stands in, from the outside in."""

    def holds(self, start: int, end: int) -> bool:
        """Whether a stretch lies in the node, its borders included."""
        return self.start <= start and end <= self.end


@dataclass(frozen=True, slots=True)
class _Choice:
    """A node, the edits that it takes, and what comes in its place."""

    candidate: _Candidate
    changes: tuple[Change, ...]
    replacement: _Replacement


def rewrite(text: str, edits: Iterable[TextEdit]) -> str:
    """``text`` with all edits applied: each made by replacing the smallest expression or statement that holds it.

    ``text`` has ``\\n`` line ends, as ``Source.text``. Where no smaller node will do, the top-level statement is the
    node, or the module. Raises ``RewriteError``, ``EditConflict`` on overlap, and ``IndexError`` for a span outside
    the text.
    """
    table = LineTable(text)
    changes = [Change(*table.offsets(edit.span), edit.content) for edit in ordered(edits)]
    pieces: list[str] = []
    position = 0
    try:
        # libcst takes its time, and most of a file has no edit.
        for start, end in regions_of(_python_tree(text), text, table, changes):
            members = [change for change in changes if start <= change.start and change.end <= end]
            members = [change for change in members if change.start < end or change.start == len(text)]
            pieces += (text[position:start], _rewritten(text[start:end], shifted(members, start)))
            position = end
    except RewriteError:
        # A statement that makes sense only together with what stands around it.
        return _checked(changed(text, changes))
    pieces.append(text[position:])
    return "".join(pieces)


def _rewritten(text: str, changes: Sequence[Change]) -> str:
    """As ``rewrite`` for a text that is parsed as a whole."""
    if _FORM_FEED_BEFORE_CODE.search(text):
        return _checked(changed(text, changes))
    module = parse(text)
    pieces: list[str] = []
    position = 0
    try:
        choices = _Chooser(text, module, changes).choose()
        if choices is None:
            return _checked(changed(text, changes))
        replacer = _Replacer({id(choice.candidate.node): choice.replacement for choice in choices})
        writer = _Writer(text, module)
        for statement in writer.outermost(choice.candidate for choice in choices):
            pieces += (text[position : statement.start], writer.code(statement, statement.node.visit(replacer)))
            position = statement.end
    except (*_MISPLACED, _NotKeptError, RecursionError):
        # The last: libcst has read what is nested so deeply that it cannot walk it.
        return _checked(changed(text, changes))
    pieces.append(text[position:])
    return "".join(pieces)


_MISPLACED = (libcst.CSTValidationError, libcst.CSTLogicError, AttributeError, TypeError)
"""What libcst's nodes raise when they are made anew around an expression that may not stand where the old one stood."""


class _NotKeptError(Exception):
    """libcst does not write a statement as it read it."""


def _checked(text: str) -> str:
    """``text``, which the whole module becomes; ``RewriteError`` if libcst does not read it."""
    parse(_FORM_FEED_BEFORE_CODE.sub("", text))
    return text


def parse(text: str) -> libcst.Module:
    """``text`` as libcst reads it; ``RewriteError`` where it, or Python, does not."""
    if _is_deeper(_python_tree(text), _DEEPEST):
        raise RewriteError("the source is nested too deeply for libcst")
    try:
        return libcst.parse_module(text)
    except libcst.ParserSyntaxError as error:
        raise RewriteError(f"libcst cannot parse this: {error.message}") from None
    except RecursionError:
        raise RewriteError("the source is nested too deeply for libcst") from None


def _python_tree(text: str) -> ast.Module:
    try:
        return python_tree(text)
    except SyntaxError as error:
        raise RewriteError(f"line {error.lineno} does not parse: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise RewriteError("Python does not parse this") from None


def _is_deeper(tree: ast.AST, limit: int) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(limit):
        level = [inner for outer in level for inner in ast.iter_child_nodes(outer)]
        if not level:
            return False
    return True


class _Replacer(libcst.CSTTransformer):
    """Puts each replacement in the place of its node."""

    def __init__(self, replacements: Mapping[int, _Replacement]) -> None:
        super().__init__()
        self._replacements = replacements

    def on_visit(self, node: libcst.CSTNode) -> bool:
        return id(node) not in self._replacements

    def on_leave(  # type: ignore[override]
        self, original_node: libcst.CSTNode, updated_node: libcst.CSTNode
    ) -> libcst.CSTNode | _Replacement:
        return self._replacements.get(id(original_node), updated_node)


class _ExplicitIndentation(libcst.CSTTransformer):
    """Writes down in each block the indentation that it has by default."""

    def __init__(self, default: str) -> None:
        super().__init__()
        self._default = default

    def leave_IndentedBlock(  # noqa: N802
        self, original_node: libcst.IndentedBlock, updated_node: libcst.IndentedBlock
    ) -> libcst.IndentedBlock:
        return updated_node if updated_node.indent is not None else updated_node.with_changes(indent=self._default)

    def leave_Match(self, original_node: libcst.Match, updated_node: libcst.Match) -> libcst.Match:  # noqa: N802
        return updated_node if updated_node.indent is not None else updated_node.with_changes(indent=self._default)


class _Writer:
    """Writes changed statements as text.

    Whole modules are not written, since libcst does not keep every source: ``except (A, B) :`` loses its space.
    """

    def __init__(self, text: str, module: libcst.Module) -> None:
        self._text = text
        self._module = module.with_changes(header=(), footer=(), has_trailing_newline=True)
        self._kept: dict[tuple[int, int], bool] = {}

    def outermost(self, candidates: Iterable[_Candidate]) -> list[_Candidate]:
        """For the candidates the outermost statements that libcst writes as they were, in the order of the text.

        Raises ``_NotKeptError`` where there is none.
        """
        found: dict[int, _Candidate] = {}
        for candidate in candidates:
            holders = (*candidate.statements, *((candidate,) if isinstance(candidate.node, _Statement) else ()))
            chosen = next((holder for holder in holders if self._is_kept(holder)), None)
            if chosen is None:
                raise _NotKeptError
            found[chosen.start] = chosen
        return [found[start] for start in sorted(found)]

    def code(self, place: _Candidate, written: object) -> str:
        """``written``, which is put in the place of a statement, as text."""
        statements: list[_Statement] = []
        if isinstance(written, _Statement):
            statements = [written]
        elif isinstance(written, libcst.FlattenSentinel):
            statements = [statement for statement in written if isinstance(statement, _Statement)]
        if not statements:
            return ""
        if not place.indentation:
            code = self._module.with_changes(body=statements).code
        else:
            block = libcst.IndentedBlock(statements, indent=place.indentation)
            wrapper = libcst.If(libcst.Name("_"), block)
            code = self._module.with_changes(body=[wrapper]).code.removeprefix("if _:\n")
        # The last row of the file may have no line end.
        return code if self._text[place.start : place.end].endswith("\n") else code.removesuffix("\n")

    def _is_kept(self, statement: _Candidate) -> bool:
        place = (statement.start, statement.end)
        if place not in self._kept:
            text = self._text[statement.start : statement.end]
            self._kept[place] = self.code(statement, statement.node) == text
        return self._kept[place]


class _Chooser:
    """Finds for all edits the nodes to replace."""

    def __init__(self, text: str, module: libcst.Module, changes: Sequence[Change]) -> None:
        self._text = text
        self._table = LineTable(text)
        self._module = module
        self._changes = changes
        # The tree was parsed a moment ago, so that no node stands in it twice.
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self._ranges: Mapping[libcst.CSTNode, CodeRange] = wrapper.resolve(WhitespaceInclusivePositionProvider)

    def choose(self) -> list[_Choice] | None:
        """The nodes, apart from each other; None if only the whole module will do."""
        choices: list[_Choice] = []
        for change in self._changes:
            if any(change in choice.changes for choice in choices):
                continue
            candidates = list(self._candidates(self._module, change, "", ()))
            candidates.sort(key=lambda candidate: candidate.end - candidate.start)
            for candidate in candidates:
                absorbed = [
                    choice for choice in choices if candidate.holds(choice.candidate.start, choice.candidate.end)
                ]
                others = [choice for choice in choices if choice not in absorbed]
                choice = self._try(candidate, {taken for choice in others for taken in choice.changes})
                if choice is not None and all(change in choice.changes for gone in absorbed for change in gone.changes):
                    choices = [*others, choice]
                    break
            else:
                return None
        return choices

    def _candidates(
        self, node: libcst.CSTNode, change: Change, indentation: str, statements: tuple[_Candidate, ...]
    ) -> Iterator[_Candidate]:
        """The expressions and statements below ``node`` that hold the edit."""
        is_block = isinstance(node, libcst.Module | libcst.IndentedBlock)
        if isinstance(node, libcst.IndentedBlock | libcst.Match):
            indentation += self._module.default_indent if node.indent is None else node.indent
        for child in self._children_near(node, change):
            place = self._ranges.get(child)
            if place is None:
                continue
            start = self._offset(place.start)
            end = self._offset(place.end)
            if not start <= change.start <= change.end <= end:
                continue
            inner = statements
            if is_block and isinstance(child, _Statement):
                candidate = _Candidate(child, start, end, indentation, statements)
                inner = (*statements, candidate)
                yield candidate
            elif isinstance(child, libcst.BaseExpression) and not isinstance(node, libcst.ConcatenatedString):
                yield _Candidate(child, start, end, indentation, statements)
            yield from self._candidates(child, change, indentation, inner)

    def _children_near(self, node: libcst.CSTNode, change: Change) -> Sequence[libcst.CSTNode]:
        """The children of ``node`` that may hold the edit: of the many statements of a block only the near ones."""
        if not isinstance(node, libcst.Module | libcst.IndentedBlock):
            return node.children
        row = self._table.position(change.start)[0]
        body: Sequence[libcst.CSTNode] = node.body
        first = bisect_left(body, row, key=lambda statement: self._ranges[statement].end.line)
        return body[first : first + 3]

    def _offset(self, position: CodePosition) -> int:
        # libcst counts a line end behind a last line that has none.
        if position.line > len(self._table.starts):
            return len(self._text)
        return min(self._table.starts[position.line - 1] + position.column, len(self._text))

    def _try(self, candidate: _Candidate, taken: set[Change]) -> _Choice | None:
        """The replacement of a candidate by itself with its edits made; None if that is no such node."""
        changes: list[Change] = []
        for change in self._changes:
            if candidate.holds(change.start, change.end):
                if change not in taken:
                    changes.append(change)
            elif change.start < candidate.end and candidate.start < change.end:
                return None
        code = changed(self._text[candidate.start : candidate.end], shifted(changes, candidate.start))
        replacement: _Replacement | None
        if isinstance(candidate.node, libcst.BaseExpression):
            replacement = self._expression(code, candidate.indentation)
        else:
            replacement = self._statements(code, candidate)
        return None if replacement is None else _Choice(candidate, tuple(changes), replacement)

    def _expression(self, code: str, indentation: str) -> libcst.BaseExpression | None:
        """``code`` as an expression inside a block of this indentation, which its further rows have too."""
        # The line end that would end the statement is none of the expression.
        body = None if code.endswith("\n") else self._block(indentation + code, indentation)
        if body is None or len(body) != 1:
            return None
        line = body[0]
        if not isinstance(line, libcst.SimpleStatementLine) or len(line.body) != 1 or line.leading_lines:
            return None
        statement, trailing = line.body[0], line.trailing_whitespace
        if not isinstance(statement, libcst.Expr) or isinstance(statement.semicolon, libcst.Semicolon):
            return None
        if trailing.whitespace.value or trailing.comment is not None:
            return None
        return statement.value

    def _statements(self, code: str, candidate: _Candidate) -> _Replacement | None:
        """``code`` as whole rows of statements; their number may have changed."""
        if code.endswith("\n") != self._text[candidate.start : candidate.end].endswith("\n"):
            # The end of the file would gain or lose its line end, which is the module's affair.
            return None
        if not code:
            return libcst.RemoveFromParent()
        body = self._block(code, candidate.indentation)
        return None if body is None else libcst.FlattenSentinel(body)

    def _block(self, code: str, indentation: str) -> Sequence[_Statement] | None:
        """The statements of the rows ``code`` of a block; None if they do not parse or a comment ends them."""
        # Comments before the first statement of a module or block belong to the header, hence the pass.
        head = f"if 1:\n{indentation}pass\n" if indentation else "pass\n"
        try:
            module = libcst.parse_module(head + code, self._module.config_for_parsing)
        except libcst.ParserSyntaxError:
            return None
        if module.header or module.footer or module.code != head + code:
            # The last: libcst drops a line end before a parameter's comma, for one.
            return None
        if module.default_indent != self._module.default_indent:
            # It is the first that a text has; a block that has it must say so elsewhere.
            module = module.visit(_ExplicitIndentation(module.default_indent))
        if not indentation:
            return _line_statements(module.body)
        if len(module.body) != 1:
            return None
        wrapper = module.body[0]
        if not isinstance(wrapper, libcst.If) or wrapper.orelse is not None:
            return None
        block = wrapper.body
        if not isinstance(block, libcst.IndentedBlock) or block.footer:
            return None
        return _line_statements(block.body)


def _line_statements(body: Sequence[libcst.BaseStatement]) -> Sequence[_Statement]:
    """All but the first of the statements."""
    return [statement for statement in body[1:] if isinstance(statement, _Statement)]
