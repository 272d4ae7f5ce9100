"""The shortest list of differences between two sequences of lines.

``difflib`` looks for long equal blocks, and where lines repeat it aligns the wrong ones: a repair of three lines
can come out as a rewrite of thousands. The algorithm here is the greedy one of E. W. Myers, "An O(ND) Difference
Algorithm and Its Variations" (Algorithmica 1, 1986); its work grows with the number of differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

Difference = tuple[int, int, int, int]
"""Old start and end, new start and end of lines that differ, from 0."""

_MOST_CHANGED_LINES = 500
_MOST_STEPS = 2_000_000


def differences(old: Sequence[str], new: Sequence[str]) -> list[Difference]:
    """Where the sequences differ, in order; between two differences at least one line is equal.

    Beyond some hundred changed lines the result is still right, but need not be the shortest.
    """
    # Most of a file stays as it is, and needs no search.
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    kept = _kept_lines(inner_old, inner_new)
    if kept is None:
        matcher = SequenceMatcher(None, inner_old, inner_new)
        found = [codes[1:] for codes in matcher.get_opcodes() if codes[0] != "equal"]
    else:
        found = _between(kept, len(inner_old), len(inner_new))
    return [(low + head, high + head, new_low + head, new_high + head) for low, high, new_low, new_high in found]


def _between(kept: Sequence[tuple[int, int]], old_length: int, new_length: int) -> list[Difference]:
    found: list[Difference] = []
    low = new_low = 0
    for high, new_high in (*kept, (old_length, new_length)):
        if (low, new_low) != (high, new_high):
            found.append((low, high, new_low, new_high))
        low, new_low = high + 1, new_high + 1
    return found


def _kept_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]] | None:
    """The pairs of lines that stay, as old and new index in order; None if that takes too much work."""
    old_length, new_length = len(old), len(new)
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    steps = 0
    for changed in range(min(old_length + new_length, _MOST_CHANGED_LINES) + 1):
        history.append(dict(furthest))
        for diagonal in range(-changed, changed + 1, 2):
            x = _entry(furthest, diagonal, changed)
            y = x - diagonal
            if x > old_length or y > new_length:
                furthest[diagonal] = x
                continue
            start = x
            while x < old_length and y < new_length and old[x] == new[y]:
                x += 1
                y += 1
            steps += x - start + 1
            furthest[diagonal] = x
            if x >= old_length and y >= new_length:
                return _walk_back(history, old_length, new_length)
        if steps > _MOST_STEPS:
            return None
    return None


def _comes_from_insertion(furthest: dict[int, int], diagonal: int, changed: int) -> bool:
    return diagonal == -changed or (diagonal != changed and furthest[diagonal - 1] < furthest[diagonal + 1])


def _entry(furthest: dict[int, int], diagonal: int, changed: int) -> int:
    """How far one gets on a diagonal by one more insertion or deletion."""
    if _comes_from_insertion(furthest, diagonal, changed):
        return furthest[diagonal + 1]
    return furthest[diagonal - 1] + 1


def _walk_back(history: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for changed in range(len(history) - 1, -1, -1):
        furthest = history[changed]
        diagonal = x - y
        entry = _entry(furthest, diagonal, changed) if changed else 0
        while x > entry:
            x, y = x - 1, y - 1
            kept.append((x, y))
        if _comes_from_insertion(furthest, diagonal, changed):
            y -= 1
        else:
            x -= 1
    kept.reverse()
    return kept
