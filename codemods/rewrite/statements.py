"""Builders of edits on statements: insert, remove, move.

Lines are given without the indentation of the place; what they have of their own is kept below it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ..analysis.source import Source
from .blocks import Block, block_of
from .edits import EditRefused, TextEdit
from .reindent import Line, fresh_lines, moved_lines
from .trivia import is_continued, line_end, line_start, skip_blank, starts_row

_Runs = Sequence[tuple[Block, list[int]]]
"""Blocks, and in each the indices of some of its statements in order."""


def insert_before(source: Source, statement: ast.stmt, lines: Sequence[str]) -> tuple[TextEdit, ...]:
    """Edits that put ``lines`` directly before a statement, above its decorators, as statements of the same block.

    A block on the line of its header becomes one of its own lines. Raises ``EditRefused`` for an ``elif``, and for a
    statement whose line goes on with the line above after a backslash.
    """
    return _insert_before(source, statement, fresh_lines(lines))


def insert_after(source: Source, statement: ast.stmt, lines: Sequence[str]) -> tuple[TextEdit, ...]:
    """Edits that put ``lines`` behind a statement and its comment; otherwise as ``insert_before``.

    Comments that are indented deeper than a compound statement still belong to it.
    """
    return _insert_after(source, statement, fresh_lines(lines))


def remove_statement(source: Source, statement: ast.stmt) -> tuple[TextEdit, ...]:
    """Edits that take a statement away with the comment on its line; ``pass`` stays where its block would be empty.

    Errors as ``insert_before``.
    """
    return remove_statements(source, (statement,))


def remove_statements(source: Source, statements: Iterable[ast.stmt]) -> tuple[TextEdit, ...]:
    """As ``remove_statement`` for several, which together may be all of a block."""
    return _remove(source, _by_block(source, statements), {})


def move_statements(
    source: Source,
    statements: Sequence[ast.stmt],
    *,
    before: ast.stmt | None = None,
    after: ast.stmt | None = None,
) -> tuple[TextEdit, ...]:
    """Edits that take statements away and put them, in the order given, before or after another statement.

    They are indented as the new place is, the inside of strings aside. A comment above goes along if all statements up
    to the next empty line do. Errors as ``insert_before``, and ``EditRefused`` for a place inside what is moved.
    """
    target = before if before is not None else after
    if target is None or (before is not None and after is not None):
        raise ValueError("exactly one of before and after says where the statements go")
    inside: ast.AST | None = target
    while inside is not None:
        if any(inside is statement for statement in statements):
            raise EditRefused(f"line {target.lineno}: statements cannot be moved into themselves")
        inside = source.parent(inside)
    block = block_of(source, target)
    first, last = block.line_of(block.index(target))
    if any(member is moved for member in block.statements[first : last + 1] for moved in statements):
        raise EditRefused(f"line {target.lineno}: statements of one line cannot change places")
    runs = _by_block(source, statements)
    comments = _comments_above(source, runs)
    lines: list[Line] = []
    for statement in statements:
        lines.extend(_text_of(source, statement, comments))
    removal = _remove(source, runs, comments)
    insert = _insert_before if before is not None else _insert_after
    return _merged(source, removal, insert(source, target, lines))


def _insert_before(source: Source, statement: ast.stmt, lines: Sequence[Line]) -> tuple[TextEdit, ...]:
    block = block_of(source, statement)
    index = block.index(statement)
    if block.shares_line_with_next(index - 1):
        return (*_opened(source, block), *_break_line(source, block, index - 1, lines))
    if block.is_inline and index == 0:
        indentation = block.indentation
        start, end = block.header_end, block.start(0)
        return (_edit(source, start, end, f"\n{_laid_out(lines, indentation)}\n{indentation}"),)
    start = _row_of_its_own(source, block, index)
    return (_edit(source, start, start, _laid_out(lines, _indentation(source, block, index)) + "\n"),)


def _insert_after(source: Source, statement: ast.stmt, lines: Sequence[Line]) -> tuple[TextEdit, ...]:
    block = block_of(source, statement)
    index = block.index(statement)
    _refuse_elif(source, statement)
    if block.shares_line_with_next(index):
        edits = _break_line(source, block, index, lines)
    else:
        indentation = _indentation(source, block, index)
        end = _end_with_comments(source, statement, block.line_end(index), indentation)
        edits = (_edit(source, end, end, f"\n{_laid_out(lines, indentation)}"),)
    return (*_opened(source, block), *edits)


def _opened(source: Source, block: Block) -> tuple[TextEdit, ...]:
    """The edit that gives a block on the row of its header rows of its own."""
    if not block.is_inline:
        return ()
    return (_edit(source, block.header_end, block.start(0), f"\n{block.indentation}"),)


def _break_line(source: Source, block: Block, index: int, lines: Sequence[Line]) -> tuple[TextEdit, ...]:
    """Put lines between two statements that share one."""
    indentation = _indentation(source, block, index)
    content = f"\n{_laid_out(lines, indentation)}\n{indentation}"
    return (_edit(source, block.end(index), block.start(index + 1), content),)


def _remove(source: Source, runs: _Runs, comments: dict[int, int]) -> tuple[TextEdit, ...]:
    """Remove the statements; ``comments`` has the start of the comment that goes along, by the id of the statement."""
    edits: list[TextEdit] = []
    for block, indices in runs:
        gone = set(indices)
        if len(gone) == len(block.statements) and not block.may_be_empty:
            kept = indices[0]
            gone.remove(kept)
            end = block.end(kept)
            if block.line_of(kept) == (kept, kept):
                end = len(source.text[: block.line_end(kept)].rstrip(" \t\f"))
            edits.append(_edit(source, block.start(kept), end, "pass"))
            if (above := comments.get(id(block.statements[kept]))) is not None:
                edits.append(_edit(source, above, _row_of_its_own(source, block, kept), ""))
        for first, last in sorted({block.line_of(index) for index in gone}):
            members = [index for index in range(first, last + 1) if index in gone]
            if len(members) == last - first + 1 and not (block.is_inline and first == 0):
                start = comments.get(id(block.statements[first]), _row_of_its_own(source, block, first))
                end = min(line_end(source.text, block.line_end(last)) + 1, len(source.text))
                end = _end_with_gap(source, start, end)
                edits.append(_edit(source, start, end, ""))
                continue
            edits.extend(_remove_from_line(source, block, last, members))
    return tuple(edits)


def _end_with_gap(source: Source, start: int, end: int) -> int:
    """The end of rows that go, with as many empty rows below as there are above: of two gaps the wider one stays."""
    text = source.text
    cell = _cell_at(source, start)
    above, below = start, end
    while above > 0 and below < len(text) and _cell_at(source, below) == cell:
        row_above, row_below = line_start(text, above - 1), line_end(text, below)
        if text[row_above:above].strip() or text[below:row_below].strip() or _cell_at(source, row_above) != cell:
            break
        above, below = row_above, min(row_below + 1, len(text))
    return below


def _cell_at(source: Source, offset: int) -> int | None:
    return source.locate(source.table.span(offset, offset))[0]


def _merged(source: Source, removal: Sequence[TextEdit], insertion: Sequence[TextEdit]) -> tuple[TextEdit, ...]:
    """Both together, also where the row goes behind which the new rows come: the last of a loop moved out of it."""
    text = source.text
    edits = list(removal)
    for new in insertion:
        place = source.table.offset(new.span.row, new.span.column)
        for index, gone in enumerate(edits):
            start, end = source.table.offsets(gone.span)
            ends_file = place == end == len(text) and not text.endswith("\n")
            if (
                not gone.content
                and new.content.startswith("\n")
                and (start < place < end or (ends_file and start < end))
            ):
                edits[index] = TextEdit(gone.span, new.content[1:] + text[place:end])
                break
        else:
            edits.append(new)
    return tuple(edits)


def _remove_from_line(source: Source, block: Block, last: int, members: Sequence[int]) -> Iterable[TextEdit]:
    position = 0
    while position < len(members):
        final = position
        while final + 1 < len(members) and members[final + 1] == members[final] + 1:
            final += 1
        if members[final] < last:
            yield _edit(source, block.start(members[position]), block.start(members[final] + 1), "")
        else:
            yield _edit(source, block.end(members[position] - 1), block.end(members[final]), "")
        position = final + 1


def _by_block(source: Source, statements: Iterable[ast.stmt]) -> list[tuple[Block, list[int]]]:
    """The statements as blocks and the indices in them, both in order."""
    blocks: dict[int, tuple[Block, set[int]]] = {}
    for statement in statements:
        _refuse_elif(source, statement)
        block = block_of(source, statement)
        blocks.setdefault(id(block.statements), (block, set()))[1].add(block.index(statement))
    return [(block, sorted(indices)) for block, indices in blocks.values()]


def _text_of(source: Source, statement: ast.stmt, comments: dict[int, int]) -> list[Line]:
    block = block_of(source, statement)
    index = block.index(statement)
    start, end = block.start(index), block.end(index)
    alone = not block.shares_line_with_next(index) and not block.shares_line_with_next(index - 1)
    if alone:
        # With its comment, without a semicolon that separates nothing.
        behind = skip_blank(source.text, end)
        if source.text[behind : behind + 1] == ";":
            behind = skip_blank(source.text, behind + 1)
        comment = source.text[behind : block.line_end(index)].rstrip()
        above = comments.get(id(statement))
        indentation = _indentation(source, block, index)
        return moved_lines(
            source.text[above:start].lstrip(" \t\f") if above is not None else "",
            source.text[start:end],
            f"  {comment}" if comment.startswith("#") else "",
            indentation,
        )
    return moved_lines("", source.text[start:end], "", _indentation(source, block, index))


def _comments_above(source: Source, runs: _Runs) -> dict[int, int]:
    """By the id of a statement, the offset where the comment starts that moves along with it."""
    starts: dict[int, int] = {}
    for block, indices in runs:
        for index in indices:
            if index - 1 in indices or (block.is_inline and index == 0) or block.shares_line_with_next(index - 1):
                continue
            final = index
            while final + 1 in indices:
                final += 1
            below = line_end(source.text, block.line_end(final)) + 1
            ends_paragraph = final + 1 == len(block.statements) or _starts_empty_row(source.text, below)
            start = _row_of_its_own(source, block, index)
            top = _top_of_comment(source, start, _indentation(source, block, index))
            if ends_paragraph and 0 < top < start:
                starts[id(block.statements[index])] = top
    return starts


def _starts_empty_row(text: str, position: int) -> bool:
    return not text[position : line_end(text, position)].strip(" \t\f")


def _top_of_comment(source: Source, start: int, indentation: str) -> int:
    """The start of the rows of comment that end above ``start``."""
    top = start
    while top > 0:
        above = line_start(source.text, top - 1)
        row = source.text[above : top - 1]
        if not row.startswith(f"{indentation}#"):
            break
        top = above
    return top


def _end_with_comments(source: Source, statement: ast.stmt, end: int, indentation: str) -> int:
    """The end of the rows of a compound statement, with comments below that are indented deeper than it."""
    if not hasattr(statement, "body") and not isinstance(statement, ast.Match):
        return end
    text = source.text
    position = end
    while position < len(text):
        position += 1
        row = text[position : line_end(text, position)]
        content = row.lstrip(" \t\f")
        position += len(row)
        if content and not (content.startswith("#") and len(row) - len(content) > len(indentation)):
            break
        if content:
            end = position
    return end


def _row_of_its_own(source: Source, block: Block, index: int) -> int:
    """Where the row of a statement starts that stands first on it."""
    statement = block.statements[index]
    _refuse_elif(source, statement)
    start = block.start(index)
    row_start = line_start(source.text, start)
    if not starts_row(source.text, start) or is_continued(source.text, row_start):
        raise EditRefused(f"line {statement.lineno}: the statement's line goes on with the line above")
    return row_start


def _refuse_elif(source: Source, statement: ast.stmt) -> None:
    if isinstance(statement, ast.If) and source.text.startswith("elif", source.offsets(statement)[0]):
        raise EditRefused(f"line {statement.lineno}: nothing can stand before an elif, and no elif on its own")


def _indentation(source: Source, block: Block, index: int) -> str:
    if block.is_inline:
        return block.indentation
    first, _ = block.line_of(index)
    return source.indentation(source.table.position(_row_of_its_own(source, block, first))[0])


def _laid_out(lines: Sequence[Line], indentation: str) -> str:
    return "\n".join(line.text if line.is_fixed or not line.text else indentation + line.text for line in lines)


def _edit(source: Source, start: int, end: int, content: str) -> TextEdit:
    return TextEdit(source.table.span(start, end), content)
