"""Data, to stdout or to ``--output-file``."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from .options import Options


def output(pieces: Iterable[str], options: Options) -> None:
    """Write text, piece by piece."""
    if options.output_file is None:
        for piece in pieces:
            click.echo(piece, nl=False, color=True)
        return
    output_bytes("".join(pieces).encode("utf-8", "surrogateescape"), options)


def output_bytes(data: bytes, options: Options) -> None:
    """Write bytes as they are: a patch or a source must not be recoded."""
    if options.output_file is None:
        stream = sys.stdout.buffer
        stream.write(data)
        stream.flush()
        return
    try:
        with open(options.output_file, "wb") as file:
            file.write(data)
    except OSError as error:
        raise click.UsageError(f"--output-file {options.output_file}: {error.strerror}") from None
