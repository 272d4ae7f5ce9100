"""What only IPython understands, set aside so that the rest of a cell parses, row by row.

Facts: IPython's ``core/inputtransformer2.py`` (line magics, ``!`` and ``?`` escapes, ``name?``, assignment from a magic
or from the shell, cell magics) and ``core/magics/execution.py`` (which magics run their argument as Python).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from ..rewrite.edits import LineTable

PYTHON_CELL_MAGICS = frozenset(
    {"capture", "debug", "ipytest", "memit", "prun", "pyinstrument", "scalene", "snakeviz", "time", "timeit", "wandb"}
)
"""Cell magics whose body runs as Python in the notebook's own namespace; any other body is another program."""

_CELL_MAGIC = re.compile(r"[ \t]*%%([A-Za-z_]\w*)")
_MAY_HAVE_MAGIC = re.compile(r"^[ \t\f]*[%!?]|\?[ \t]*$|=[ \t]*[%!]", re.MULTILINE)
_ESCAPE = re.compile(r"([ \t\f]*)(?:%(?=[A-Za-z_%])|!|\?|(?=[%\w.*\[\]]+\?{1,2}[ \t]*$))")
_TIMED = re.compile(r"([ \t\f]*)%time[ \t]+(?=\S)")
_ASSIGNMENT = re.compile(r"([ \t\f]*[^=!<>%\s#'\"(][^=!<>%#'\"(]*=[ \t]*)(?:!|%[A-Za-z_])")
_CONTINUED = re.compile(r"\\[ \t]*$")
# What decides whether the next row starts a statement: strings, comments, brackets, continued lines.
_TOKEN = re.compile(
    r"""
    (?P<triple>'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z))
    |(?P<string>'(?:[^\\'\n]|\\.)*'?|"(?:[^\\"\n]|\\.)*"?)
    |(?P<comment>\#[^\n]*)
    |(?P<open>[(\[{])|(?P<close>[)\]}])
    |(?P<joined>\\\n)
    |(?P<newline>\n)
    """,
    re.VERBOSE | re.DOTALL,
)


def set_aside(text: str, parse: Callable[[str], ast.Module]) -> tuple[str, frozenset[int]]:
    """``text`` of a cell, ``\\n`` line ends, as Python, and the rows (from 1) that differ from what was written.

    The number of rows stays. A row that IPython alone understands becomes empty, or ``pass`` where it is indented,
    since it may be all that a block has. ``%time statement`` keeps its statement, ``name = !command`` its name.
    """
    lines = text.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if (magic := _CELL_MAGIC.match(lines[first])) is not None:
        if magic.group(1) not in PYTHON_CELL_MAGICS:
            return "\n" * (len(lines) - 1), frozenset(range(1, len(lines) + 1))
        lines[first] = ""
        body, rows = set_aside("\n".join(lines), parse)
        return body, rows | {first + 1}
    if _MAY_HAVE_MAGIC.search(text) is None or _parses(text, parse):
        # A row that starts with % may well go on with the expression of the row above.
        return text, frozenset()
    changed: set[int] = set()
    starts = LineTable(text).starts
    row = 1
    while row <= len(lines):
        # Rows are judged one statement after the other: what is set aside must not open a bracket for the rest.
        replacement = _replacement(lines[row - 1])
        if replacement is None:
            row += _rows_of_statement(text, starts[row - 1])
            continue
        continued = _CONTINUED.search(lines[row - 1]) is not None
        lines[row - 1] = replacement
        changed.add(row)
        row += 1
        while continued and row <= len(lines):
            continued = _CONTINUED.search(lines[row - 1]) is not None
            lines[row - 1] = ""
            changed.add(row)
            row += 1
    return "\n".join(lines), frozenset(changed)


def _parses(text: str, parse: Callable[[str], ast.Module]) -> bool:
    try:
        parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _replacement(line: str) -> str | None:
    """What stands for a row that starts a statement; None if the row is Python as far as one can see."""
    if (timed := _TIMED.match(line)) is not None:
        return timed.group(1) + line[timed.end() :]
    if (escape := _ESCAPE.match(line)) is not None:
        indentation = escape.group(1)
        return f"{indentation}pass" if indentation else ""
    if (assignment := _ASSIGNMENT.match(line)) is not None:
        return f"{assignment.group(1)}get_ipython()"
    return None


def _rows_of_statement(text: str, start: int) -> int:
    """How many rows the logical line has that starts at offset ``start``."""
    depth = 0
    rows = 1
    for token in _TOKEN.finditer(text, start):
        kind = token.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
        elif kind == "newline" and depth == 0:
            break
        rows += token.group().count("\n")
    return rows
