"""The user's editor on a copy of a text."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile

AT_LINE = {"code": "--goto", "subl": "", "zed": ""}
"""Editors that take ``file:line`` instead of ``+line``, and the option before it."""


class EditorError(Exception):
    """No edited text came back; the text says why."""


def command() -> list[str]:
    """The editor's words, from VISUAL, EDITOR or what there is."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("notepad" if os.name == "nt" else "vi")
    return shlex.split(chosen, posix=os.name != "nt")


def edited(raw: bytes, path: str, row: int) -> bytes:
    """``raw`` as the user leaves it, opened at ``row``. Raises EditorError.

    The editor gets a copy under the file's own name, for its colours and its title.
    """
    words = command()
    with tempfile.TemporaryDirectory(prefix="gradmend-") as folder:
        copy = os.path.join(folder, os.path.basename(path) or "stdin.py")
        with open(copy, "wb") as file:
            file.write(raw)
        try:
            status = subprocess.run([*words, *_at(words[0], copy, row)], check=False).returncode
        except (OSError, IndexError) as error:
            raise EditorError(f"the editor cannot be run ({' '.join(words)}: {error}); set VISUAL or EDITOR") from None
        if status:
            raise EditorError(f"the editor ended with status {status}; its text is not taken")
        with open(copy, "rb") as file:
            return file.read()


def _at(program: str, copy: str, row: int) -> list[str]:
    name = os.path.basename(program).removesuffix(".exe")
    if name in AT_LINE:
        return [word for word in (AT_LINE[name], f"{copy}:{row}") if word]
    return [copy] if name == "notepad" else [f"+{row}", copy]
