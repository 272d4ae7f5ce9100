"""Where strings stand in a JSON text, so that they can be changed without writing the rest anew."""

from __future__ import annotations

import json
import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}]+")
_NEXT_BRACKET = re.compile(r'(?:"[^"\\]*(?:\\.[^"\\]*)*"|[^"\[\]{}])*([\[\]{}])', re.DOTALL)
_CHARACTERS = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)

JsonPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class JsonString:
    """The inside of one JSON string: its text as written and the offsets of that, the quotes excluded."""

    raw: str
    start: int
    end: int

    def boundaries(self) -> list[int]:
        """The offset in ``raw`` of each character that the string stands for, and of its end."""
        if "\\" not in self.raw:
            return list(range(len(self.raw) + 1))
        return [*(match.start() for match in _CHARACTERS.finditer(self.raw)), len(self.raw)]


@dataclass(frozen=True, slots=True)
class JsonText:
    """A value that is one string or a list of strings."""

    strings: tuple[JsonString, ...]
    is_list: bool
    start: int
    """Offset of the value's first character, a quote or a bracket."""


def escaped(content: str, ascii_only: bool) -> str:
    """``content`` as the inside of a JSON string."""
    return json.dumps(content, ensure_ascii=ascii_only)[1:-1]


def find_texts(text: str, wanted: AbstractSet[JsonPath]) -> dict[JsonPath, JsonText]:
    """The strings at the wanted paths of ``text``, which must be JSON that ``json.loads`` has accepted."""
    finder = _Finder(text, wanted)
    finder.read_value(_space(text, 1 if text.startswith("\ufeff") else 0), ())
    return finder.found


def _space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match is not None else position


class _Finder:
    def __init__(self, text: str, wanted: AbstractSet[JsonPath]) -> None:
        self._text = text
        self._wanted = wanted
        self._on_the_way = {path[:length] for path in wanted for length in range(len(path))}
        self.found: dict[JsonPath, JsonText] = {}

    def read_value(self, position: int, path: JsonPath) -> int:
        """Read the value at ``position`` and give the offset behind it."""
        opening = self._text[position]
        if path in self._wanted:
            return self._read_wanted(position, path)
        if path in self._on_the_way and opening == "{":
            return self._read_object(position, path)
        if path in self._on_the_way and opening == "[":
            return self._read_list(position, path)
        return self._skip(position)

    def _read_object(self, position: int, path: JsonPath) -> int:
        text = self._text
        position = _space(text, position + 1)
        while text[position] != "}":
            if text[position] == ",":
                position = _space(text, position + 1)
            end = self._skip(position)
            inner = (*path, json.loads(text[position:end]))
            # Of two equal keys the last one counts.
            self.found = {known: value for known, value in self.found.items() if known[: len(inner)] != inner}
            position = _space(text, _space(text, end) + 1)
            position = _space(text, self.read_value(position, inner))
        return position + 1

    def _read_list(self, position: int, path: JsonPath) -> int:
        text = self._text
        position = _space(text, position + 1)
        index = 0
        while text[position] != "]":
            if text[position] == ",":
                position = _space(text, position + 1)
            position = _space(text, self.read_value(position, (*path, index)))
            index += 1
        return position + 1

    def _read_wanted(self, position: int, path: JsonPath) -> int:
        text = self._text
        strings: list[JsonString] = []
        start = position
        is_list = text[position] == "["
        end = self._skip(position)
        if is_list:
            position = _space(text, position + 1)
        while position < end and (match := _STRING.match(text, position)) is not None:
            strings.append(JsonString(match.group(1), match.start(1), match.end(1)))
            position = _space(text, match.end())
            if text[position : position + 1] == ",":
                position = _space(text, position + 1)
        self.found[path] = JsonText(tuple(strings), is_list, start)
        return end

    def _skip(self, position: int) -> int:
        text = self._text
        if text[position] == '"':
            match = _STRING.match(text, position)
        elif text[position] not in "[{":
            match = _SCALAR.match(text, position)
        else:
            depth = 0
            while True:
                match = _NEXT_BRACKET.match(text, position)
                assert match is not None
                depth += 1 if match.group(1) in "[{" else -1
                position = match.end()
                if depth == 0:
                    return position
        assert match is not None
        return match.end()
