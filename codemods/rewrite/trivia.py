"""What stands between tokens: white space, comments, continued lines, and parentheses that only group.

All scans start behind a token whose place is known from the syntax tree, so no string is ever taken for code.
"""

from __future__ import annotations

import keyword
import re

_TRIVIA = re.compile(r"(?:[ \t\f\n]|\\\n|#[^\n]*)*")
_SAME_LOGICAL_LINE = re.compile(r"(?:[ \t\f]|\\\n)*")


def skip_trivia(text: str, position: int) -> int:
    """The offset of the next token, inside brackets where a line end means nothing."""
    match = _TRIVIA.match(text, position)
    return match.end() if match is not None else position


def skip_blank(text: str, position: int) -> int:
    """The offset of what comes next on the logical line: a token, a comment or the line end."""
    match = _SAME_LOGICAL_LINE.match(text, position)
    return match.end() if match is not None else position


def line_start(text: str, position: int) -> int:
    """The offset of the first character of the row."""
    return text.rfind("\n", 0, position) + 1


def line_end(text: str, position: int) -> int:
    """The offset of the row's line end, or the end of the text."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def starts_row(text: str, position: int) -> bool:
    """Whether only white space stands before ``position`` on its row."""
    return not text[line_start(text, position) : position].strip(" \t\f")


def is_continued(text: str, row_start: int) -> bool:
    """Whether the row that starts at ``row_start`` goes on with the row above after a backslash."""
    above = text[line_start(text, row_start - 1) : row_start - 1] if row_start > 0 else ""
    is_comment = "#" in above and "'" not in above and '"' not in above
    return above.endswith("\\") and not is_comment


def grouping_end(text: str, start: int, end: int) -> int | None:
    """The offset behind the parentheses that group the expression at ``start:end``; None where it has none of its own.

    A call's parentheses are not its own. Says None when in doubt, after a comment for example.
    """
    closing = skip_trivia(text, end)
    if text[closing : closing + 1] != ")":
        return None
    opening = _before(text, start)
    if opening < 0 or text[opening] != "(" or _has_comment_mark(text, opening):
        return None
    before = _before(text, opening)
    if before < 0:
        return closing + 1
    if _has_comment_mark(text, before):
        return None
    word_start = before + 1
    while word_start > 0 and (text[word_start - 1].isalnum() or text[word_start - 1] == "_"):
        word_start -= 1
    if word := text[word_start : before + 1]:
        is_operator = keyword.iskeyword(word) and word not in ("None", "True", "False")
        return closing + 1 if is_operator else None
    return closing + 1 if text[before] in "=,([{:+-*/%@&|^~<>;" else None


def _before(text: str, position: int) -> int:
    """The offset of the character before ``position`` that is no white space; -1 if there is none."""
    position -= 1
    while position >= 0 and (text[position] in " \t\f\n" or text.startswith("\\\n", position)):
        position -= 1
    return position


def _has_comment_mark(text: str, position: int) -> bool:
    """Whether a ``#`` before ``position`` on its row may have started a comment."""
    return "#" in text[line_start(text, position) : position]
