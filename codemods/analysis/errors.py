"""What goes wrong with a file, in words for people."""

from __future__ import annotations


class SourceError(Exception):
    """A file cannot be analysed or written; ``message`` says why and what to do, without the file's name."""

    def __init__(self, filename: str, message: str) -> None:
        super().__init__(filename, message)
        self.filename = filename
        self.message = message

    def __str__(self) -> str:
        return self.message
