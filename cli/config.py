"""Settings from ``[tool.gradmend]`` in pyproject.toml, or from gradmend.toml: the nearest to each file, as with Ruff.

A key that is not known is an error with a suggestion: a misspelt ``exclude`` must not rewrite what it should protect.
Nothing in a configuration names a program to run or a file to write: it may come from a repository nobody has vetted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .printable import printable_name

CONFIG_NAMES = (".gradmend.toml", "gradmend.toml", "pyproject.toml")
FORMATS = ("full", "concise", "json", "json-lines", "sarif", "github", "gitlab", "junit")
SEVERITIES = ("note", "warning", "error")


class ConfigError(Exception):
    """A configuration that cannot be used; the text says where and what to write instead."""


class Settings(NamedTuple):
    """What one configuration says; the field names are the keys, with ``-`` for ``_``."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unsafe: bool = False
    accumulate_with: str | None = None
    fail_on: str = "note"
    output_format: str = "full"
    line_excludes: tuple[str, ...] = ()
    """From the command line, hence relative to the working folder."""
    source: str | None = None
    """The file these settings come from."""
    folder: str = "."
    """What the globs are relative to."""


ALIASES = {"unsafe-fixes": "unsafe"}
"""Ruff's spellings, taken too."""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError('a list of texts, as in ["GM101"]')


def _words(value: object) -> tuple[str, ...]:
    return _split(_texts([value] if isinstance(value, str) else value))


def _split(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for value in values for word in value.replace(",", " ").split())


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def _table(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if isinstance(value, dict):
        return tuple((str(glob), _words(words)) for glob, words in value.items())
    raise ValueError('a table of globs, as in {"tests/*" = ["GM101"]}')


def _one_of(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value in choices:
            return str(value)
        raise ValueError(" or ".join(f'"{choice}"' for choice in choices))

    return read


READERS: Mapping[str, Callable[[object], object]] = {
    "select": _words,
    "extend-select": _words,
    "ignore": _words,
    "exclude": _texts,
    "extend-exclude": _texts,
    "force-exclude": _truth,
    "respect-gitignore": _truth,
    "per-file-ignores": _table,
    "unsafe": _truth,
    "accumulate-with": _one_of("item", "detach"),
    "fail-on": _one_of(*SEVERITIES),
    "output-format": _one_of(*FORMATS),
}


def did_you_mean(word: str, known: tuple[str, ...]) -> str:
    """A suggestion in words, or nothing where no known word is near."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return f'; did you mean "{close[0]}"?' if close else ""


def read_table(table: Mapping[str, Any], where: str, into: Settings) -> Settings:
    """``into`` with what ``table`` says; ConfigError names ``where``."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        known = ALIASES.get(key, key)
        if known not in READERS:
            raise ConfigError(f'{where}: there is no key "{key}"{did_you_mean(key, (*READERS, *ALIASES))}')
        try:
            values[known.replace("-", "_")] = READERS[known](value)
        except ValueError as wanted:
            raise ConfigError(f'{where}: "{key}" must be {wanted}') from None
    return into._replace(**values)


def parsed(text: bytes) -> dict[str, Any]:
    """TOML as a table; ValueError for whatever is none."""
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_file(path: str) -> Settings | None:
    """The settings in ``path``, or None where it is a pyproject.toml that does not speak of gradmend."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    whole = not os.path.basename(path).startswith("pyproject")
    if not whole and b"gradmend" not in raw:
        return None
    try:
        table: Any = parsed(raw)
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    where = path
    if not whole:
        tools = table.get("tool")
        table = tools.get("gradmend") if isinstance(tools, dict) else None
        where = f"{path}: [tool.gradmend]"
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table")
    folder = os.path.dirname(path) or "."
    return read_table(table, where, Settings(source=path, folder=folder))


class Configuration:
    """The settings of each folder: the nearest configuration, with what the command line says on top."""

    def __init__(self, override: Callable[[Settings], Settings], fixed: Settings | None = None) -> None:
        """``fixed`` (from ``--config FILE`` or ``--isolated``) stands for whatever a folder would say."""
        self._override = override
        self._fixed = override(fixed) if fixed is not None else None
        self._of: dict[str, Settings] = {}

    def of(self, folder: str) -> Settings:
        """The settings for files in ``folder``; ConfigError where its configuration is wrong."""
        if self._fixed is not None:
            return self._fixed
        known = self._of.get(folder)
        if known is None:
            known = self._of[folder] = self._find(folder)
        return known

    def _find(self, folder: str) -> Settings:
        for name in CONFIG_NAMES:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                settings = read_file(os.path.normpath(path))
                if settings is not None:
                    return self._override(settings)
        parent = os.path.dirname(os.path.abspath(folder))
        if parent == os.path.abspath(folder):
            return self._override(Settings())
        return self.of(parent)


def as_toml(settings: Settings) -> str:
    """What ``--show-settings`` prints: the settings in the words that set them."""
    import json

    lines = [f"# from {printable_name(settings.source)}" if settings.source else "# no configuration file"]
    for name, value in settings._asdict().items():
        key = name.replace("_", "-")
        if key not in READERS or value is None:
            continue
        if key == "per-file-ignores":
            pairs = (f"{json.dumps(glob)} = {json.dumps(list(words))}" for glob, words in value)
            lines.append(f"{key} = {{{', '.join(pairs)}}}")
        else:
            lines.append(f"{key} = {json.dumps(list(value) if isinstance(value, tuple) else value)}")
    return "\n".join(lines)
