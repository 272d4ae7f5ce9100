"""The console script.

Nothing is imported here that a clean file in a hook does not need: the start-up is most of such a run.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line on ``sys.argv`` and leave with its exit status."""
    from .app import app

    # A process that ends soon need not look for rubbish; the analysis does where it leaves much of it.
    gc.disable()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by whoever called.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A file name or a source line may hold what the terminal's encoding lacks; that must not end the run.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    app.main(prog_name="gradmend")


if __name__ == "__main__":
    main()
