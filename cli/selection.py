"""Which rules count for which file, from ``select``, ``ignore`` and the per-file ignores, of the file and of the line.

The more specific word wins (``--select GM101 --ignore GM1`` keeps GM101), of two alike the command line's, of two alike
there the ``ignore``: Ruff's order. Where everything counts the answer is None, and the rules are not even imported.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .config import ConfigError, Settings
from .ignores import verdict


class Words(NamedTuple):
    """What the command line says about rules."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


class Selection:
    """The rules for each file; remembers what it has resolved."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._of_settings: dict[Settings, frozenset[str] | None] = {}
        self._codes: dict[str, frozenset[str]] = {}

    def rules(self, path: str, settings: Settings) -> frozenset[str] | None:
        """The codes that count in ``path``, None for all. Raises ConfigError."""
        if settings not in self._of_settings:
            self._of_settings[settings] = self._chosen(settings)
        chosen = self._of_settings[settings]
        for glob, words in settings.per_file_ignores:
            negated = glob.startswith("!")
            folder = os.path.abspath(settings.folder)
            if bool(verdict((glob.removeprefix("!"),), folder, os.path.abspath(path), False)) != negated:
                ignored = frozenset[str]().union(*(self._resolve(word, settings.source) for word in words))
                chosen = (self._all() if chosen is None else chosen) - ignored
        return chosen

    def _all(self) -> frozenset[str]:
        return self._resolve("ALL", None)

    def _chosen(self, settings: Settings) -> frozenset[str] | None:
        line = self._words
        base = line.select or settings.select or ("ALL",)
        layers: list[tuple[tuple[str, ...], bool, int]] = [
            (settings.ignore, False, 0),
            (line.extend_select, True, 1),
            (line.ignore, False, 1),
            (base, True, 1 if line.select else 0),
        ]
        if not line.select:
            layers.append((settings.extend_select, True, 0))
        if base == ("ALL",) and not settings.ignore and not line.ignore:
            return None
        votes: dict[str, tuple[int, int, bool]] = {}
        for words, wanted, layer in layers:
            for word in words:
                codes = self._resolve(word, settings.source)
                vote = (-len(codes), layer, not wanted)
                for code in codes:
                    votes[code] = max(vote, votes.get(code, vote))
        return frozenset(code for code, (_, _, unwanted) in votes.items() if not unwanted)

    def _resolve(self, word: str, source: str | None) -> frozenset[str]:
        if word not in self._codes:
            from gradmend.codemods.registry import UnknownRule, resolve

            try:
                self._codes[word] = resolve(word)
            except UnknownRule as unknown:
                where = f" (in {source})" if source else ""
                near = f'; did you mean "{unknown.suggestion}"?' if unknown.suggestion else ""
                message = f'no rule, prefix or name "{word}"{where}{near} (`gradmend rules` lists all)'
                raise ConfigError(message) from unknown
        return self._codes[word]
