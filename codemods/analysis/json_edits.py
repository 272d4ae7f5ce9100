"""Changes in a text that is kept in JSON as one string or as a list of strings, made in the JSON text."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from .json_text import JsonText, escaped

Change = tuple[int, int, str]
"""Start offset, end offset, what stands there from now on."""

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


def changes_in_json(
    json_text: str, place: JsonText, text: str, changes: list[Change], ascii_only: bool
) -> list[Change]:
    """Changes of ``text``, which is kept at ``place``, as changes of ``json_text``.

    ``changes`` are in order and apart from each other. In a list every new line becomes a string of its own, as Jupyter
    writes it, and only the strings that a change touches are written anew, what stays of them as it was.
    """
    boundaries = [string.boundaries() for string in place.strings]
    if not place.is_list:
        (string,), (offsets,) = place.strings, boundaries
        return [
            (string.start + offsets[start], string.start + offsets[end], escaped(content, ascii_only))
            for start, end, content in changes
        ]
    starts = [0]
    for offsets in boundaries:
        starts.append(starts[-1] + len(offsets) - 1)
    result: list[Change] = []
    for first, last, members in _by_strings(starts, changes):
        strings = _Strings(_separator(json_text, place))
        position = starts[first]
        for start, end, content in [*members, (starts[last + 1], starts[last + 1], "")]:
            for index in range(first, last + 1):
                low, high = max(position, starts[index]), min(start, starts[index + 1])
                if low >= high:
                    continue
                string = place.strings[index]
                if low == starts[index] and index > first:
                    strings.begin(json_text[place.strings[index - 1].end + 1 : string.start - 1])
                raw = string.raw[boundaries[index][low - starts[index]] : boundaries[index][high - starts[index]]]
                strings.add(raw, text[high - 1] == "\n")
            for line in _LINES.findall(content):
                strings.add(escaped(line, ascii_only), line.endswith("\n"))
            position = end
        result.append(_rewritten(json_text, place, first, last, strings.written()))
    return result


class _Strings:
    """The strings of a list as they come together."""

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self._strings: list[tuple[str, str]] = [("", "")]
        self._line_is_over = False

    def begin(self, separator: str) -> None:
        """What follows is a string of its own, with the separator that stood before it."""
        self._strings.append((separator, ""))
        self._line_is_over = False

    def add(self, raw: str, ends_line: bool) -> None:
        """Go on with ``raw``, in a new string if the line before it is over."""
        if self._line_is_over:
            self.begin(self._separator)
        separator, before = self._strings[-1]
        self._strings[-1] = (separator, before + raw)
        self._line_is_over = ends_line

    def written(self) -> str:
        """All of it as JSON without the outermost separators."""
        filled = [(separator, raw) for separator, raw in self._strings if raw]
        return "".join(f'{separator if index else ""}"{raw}"' for index, (separator, raw) in enumerate(filled))


def _by_strings(starts: list[int], changes: list[Change]) -> list[tuple[int, int, list[Change]]]:
    """The changes grouped by the strings that they touch: first string, last string, changes."""
    last = len(starts) - 2
    groups: list[tuple[int, int, list[Change]]] = []
    for change in changes:
        start, end, _ = change
        first = min(bisect_right(starts, start) - 1, last)
        final = max(first, bisect_left(starts, end) - 1)
        # Neighbours too, since strings that go may take the separator on either side with them.
        if groups and first <= groups[-1][1] + 1:
            before = groups.pop()
            groups.append((before[0], max(final, before[1]), [*before[2], change]))
        else:
            groups.append((first, final, [change]))
    return groups


def _separator(json_text: str, place: JsonText) -> str:
    """What stands between two strings of the list."""
    strings = place.strings
    if len(strings) > 1:
        return json_text[strings[0].end + 1 : strings[1].start - 1]
    return "," + json_text[place.start + 1 : strings[0].start - 1]


def _rewritten(json_text: str, place: JsonText, first: int, last: int, written: str) -> Change:
    strings = place.strings
    start, end = strings[first].start - 1, strings[last].end + 1
    if not written:
        # A separator goes along with strings that leave nothing.
        if first > 0:
            start = strings[first - 1].end + 1
        elif last + 1 < len(strings):
            end = strings[last + 1].start - 1
    return start, end, written
