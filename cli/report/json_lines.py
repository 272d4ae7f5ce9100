"""One object a line: for programs that read as the lines come."""

from __future__ import annotations

import json
from collections.abc import Iterator

from . import Listing
from .shapes import as_object


def render(listing: Listing) -> Iterator[str]:
    for finding in listing.findings:
        yield json.dumps(as_object(finding)) + "\n"
