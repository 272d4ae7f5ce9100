"""``--baseline FILE``: the findings that an old code base starts with, so that only new ones are shown.

The file is JSON, sorted, one finding a line: made to be committed and to merge well. File names in it are relative to
the folder it lies in.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .config import ConfigError
from .wanted import Fingerprint, fingerprint

if TYPE_CHECKING:
    from .survey import Survey

VERSION = 1
MOST_ALIKE = 1_000_000
"""More findings than this no line of a file can have; a baseline that says so is not ours."""


class Baseline:
    """What a baseline file holds."""

    def __init__(self, path: str, known: Mapping[str, tuple[Fingerprint, ...]]) -> None:
        self._folder = os.path.dirname(os.path.realpath(path))
        self._known = known

    @classmethod
    def read(cls, path: str) -> Baseline:
        """Raises ConfigError where ``path`` is not a baseline."""
        try:
            with open(path, encoding="utf-8") as file:
                content: Any = json.load(file)
            if content["version"] != VERSION:
                raise ConfigError(f"{path}: version {content['version']}, which this gradmend cannot read")
            known: dict[str, list[Fingerprint]] = {}
            for entry in content["findings"]:
                if entry["count"] > MOST_ALIKE:
                    raise ValueError("no file has so many findings")
                known.setdefault(entry["filename"], []).extend([(entry["code"], entry["line"])] * entry["count"])
        except OSError as error:
            hint = "; `gradmend check --write-baseline` makes it" if isinstance(error, FileNotFoundError) else ""
            raise ConfigError(f"{path}: {(error.strerror or str(error)).lower()}{hint}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ConfigError(f"{path}: not a baseline; `gradmend check --write-baseline` makes one") from None
        return cls(path, {name: tuple(entries) for name, entries in known.items()})

    def known(self, path: str) -> tuple[Fingerprint, ...]:
        """The findings in ``path`` that are to be left out."""
        return self._known.get(_name(path, self._folder), ())

    def stale(self, matched: Mapping[str, int]) -> int:
        """How many entries are of no more use, given how many matched in each file looked at."""
        seen = {_name(path, self._folder): count for path, count in matched.items()}
        stale = 0
        for name, entries in self._known.items():
            if name in seen:
                stale += len(entries) - seen[name]
            elif not os.path.lexists(os.path.join(self._folder, name)):
                stale += len(entries)
        return stale


def _name(path: str, folder: str) -> str:
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return os.path.relpath(real, folder).replace(os.sep, "/")


def as_text(result: Survey, path: str) -> str:
    """The content of a baseline at ``path`` that holds all findings of ``result``."""
    from .report.texts import Texts

    folder = os.path.dirname(os.path.realpath(path))
    counts: Counter[tuple[str, str, str]] = Counter()
    for outcome in result.outcomes:
        texts = Texts()
        if outcome.raw is not None:
            texts.add(outcome.path, outcome.raw)
        for finding in (*outcome.findings, *outcome.known):
            code, line = fingerprint(finding, texts.lines)
            counts[_name(finding.filename, folder), code, line] += 1
    entries = ",\n".join(
        "  " + json.dumps({"filename": filename, "code": code, "line": line, "count": count})
        for (filename, code, line), count in sorted(counts.items())
    )
    return f'{{"version": {VERSION}, "findings": [\n{entries}\n]}}\n'
