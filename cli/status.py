"""What the process leaves with, the same for every command."""

from __future__ import annotations

CLEAN = 0
"""Nothing found, or all of it mended."""
FINDINGS = 1
"""Findings, a diff, or findings left."""
ERROR = 2
"""A wrong call, or a file that could not be analysed or written; every other file is done."""
INTERRUPTED = 130
"""Ctrl-C."""
