"""One module for each output format, each with ``render(listing) -> Iterator[str]``; imported when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

    from .texts import Texts


@dataclass(frozen=True, slots=True)
class Listing:
    """What a format may show."""

    findings: tuple[Finding, ...]
    """Sorted by file and place."""
    texts: Texts
    """The sources that the findings speak of."""
    color: bool = False
    unsafe: bool = False
    """Whether the reader has asked for unsafe repairs: says which flags a hint must name."""
    ignored: tuple[Finding, ...] = ()
    """Suppressed by a comment in the source."""
    known: tuple[Finding, ...] = ()
    """Held by the baseline."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Files that could not be analysed, and why."""


class Format(Protocol):
    """What each module of this package is."""

    def render(self, listing: Listing) -> Iterator[str]:
        """The listing in pieces of text, each with its own line end."""
        ...


def render(name: str, listing: Listing) -> Iterator[str]:
    """``listing`` in the format called ``name``."""
    module: Format = import_module(f".{name.replace('-', '_')}", __name__)
    return module.render(listing)
