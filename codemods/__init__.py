"""gradmend as a library: find and mend autograd-graph mistakes in PyTorch source.

``scan(source)`` gives findings, ``mend(source)`` the mended source. Importing this package imports nothing heavy; the
analysis is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.project import Project
    from .analysis.source import SourceError
    from .api import FileReport, Mended, mend, mend_file, scan, scan_file
    from .finding import Edit, Finding, Place, Repair, Role, Safety, Severity, Span

__all__ = [
    "Edit",
    "FileReport",
    "Finding",
    "Mended",
    "Place",
    "Project",
    "Repair",
    "Role",
    "Safety",
    "Severity",
    "SourceError",
    "Span",
    "mend",
    "mend_file",
    "scan",
    "scan_file",
]

_HOMES = {
    **dict.fromkeys(("FileReport", "Mended", "mend", "mend_file", "scan", "scan_file"), "api"),
    **dict.fromkeys(("Edit", "Finding", "Place", "Repair", "Role", "Safety", "Severity", "Span"), "finding"),
    "Project": "analysis.project",
    "SourceError": "analysis.errors",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value
