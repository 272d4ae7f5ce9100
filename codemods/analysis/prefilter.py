"""Which files can hold a mistake at all, decided on raw bytes.

Most files cannot and are never parsed, unless another file needs a definition from them.
"""

from __future__ import annotations

import re
from typing import Final

TRAVERSAL: Final = re.compile(
    rb"backward\s*\(|autograd\.grad|retain_graph|create_graph|import\s+grad\b"
    rb"|autograd\s+import\s*(?:\([^)]*|[^\n]*)\b(?:grad|backward)\b"
)
"""Every spelling of a traversal ends in one of these: ``loss.backward()``, ``manual_backward``,
``torch.autograd.grad``, ``from torch.autograd import Variable, grad``; the flags stand for helpers that hide the
call."""
FRAMEWORK: Final = re.compile(
    rb"def\s+(?:training_step|compute_loss|compute_objectives|fit_batch|get_loss|handle_batch"
    rb"|(?:before|after)_(?:batch|pred|loss|backward|step))\b"
)
"""Losses that a framework back-propagates, and callbacks that see them: 2 in 1000 public files that would be left out.
"""
LIBRARIES: Final = re.compile(rb"torch|lightning|transformers|fastai")
"""What a file names that works with tensors, directly or through a framework."""
FED_BACK: Final = re.compile(rb"\b(\w+)\)*\s*=\s*[\w.]+\([^()\n=]*\b\1\b\s*\)")
"""A state that a call returns and takes: loops that never traverse keep its graph too."""
SUPPRESSION: Final = b"gradmend:"
"""What every suppression holds."""
NUMBER: Final = re.compile(rb"\.item\(\)|\.numpy\(\)")


def may_matter(raw: bytes, filename: str) -> bool:
    """Whether ``raw`` has to be parsed: it can hold a mistake, or holds a suppression, which may serve nothing."""
    return SUPPRESSION in raw or may_go_wrong(raw)


def may_go_wrong(raw: bytes) -> bool:
    """Whether ``raw`` can hold a mistake that it shows by itself: a traversal, or a loop that feeds a state back."""
    if not LIBRARIES.search(raw):
        return False
    if TRAVERSAL.search(raw) or FRAMEWORK.search(raw):
        return True
    return b"for " in raw and b"no_grad" not in raw and bool(NUMBER.search(raw)) and bool(FED_BACK.search(raw))
