"""A list of objects, indented: for programs, and for people who read what programs get."""

from __future__ import annotations

import json
from collections.abc import Iterator

from . import Listing
from .shapes import as_object


def render(listing: Listing) -> Iterator[str]:
    yield json.dumps([as_object(finding) for finding in listing.findings], indent=2) + "\n"
