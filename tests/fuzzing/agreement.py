"""What gradmend says of a training script against what PyTorch does with it.

``python -m tests.fuzzing.agreement KIND FIRST LAST`` tries scripts of `tests.fuzzing.grammar` and shows every
disagreement.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gradmend import codemods
from gradmend.codemods import Finding
from gradmend.codemods.finding import Safety
from tests.fuzzing.grammar import KINDS, program
from tests.fuzzing.observer import Observation, observe
from tests.runtime import same

CRASHES: Final = (
    "Trying to backward through the graph a second time",
    "modified by an inplace operation",
    "is being used in an in-place operation",
)
CRASHING: Final = {"GM101", "GM103", "GM305", "GM401", "GM403"}
LEAKS: Final = {"GM101", "GM102", "GM103"}
GRADIENTS: Final = {"GM201", "GM202", "GM301", "GM302", "GM306", "GM402"}
"""Rules whose repairs change gradients: it is what they are for."""


@dataclass(frozen=True)
class Disagreement:
    """One thing that gradmend and PyTorch see differently."""

    kind: str
    detail: str


def _crashes(observation: Observation) -> bool:
    return any(message in (observation.error or "") for message in CRASHES)


def claims_crash(finding: Finding) -> bool:
    if finding.code in CRASHING:
        return finding.severity == "error"
    return finding.severity == "error" and finding.code in ("GM201", "GM102") and "free" in finding.message


def disagreements(source: str, seen: Counter[str]) -> Iterator[Disagreement]:
    """Everything about which they disagree in one script; ``seen`` counts what was compared."""
    before = observe(source)
    seen["scripts"] += 1
    if before.error is not None and not _crashes(before):
        seen["other error: " + before.error[:40]] += 1
    found = codemods.scan(source)
    for finding in found:
        seen[finding.code] += 1
    claims = [finding for finding in found if claims_crash(finding)]
    if _crashes(before):
        seen["crash"] += 1
        if not any(finding.severity == "error" for finding in found):
            yield Disagreement("crash missed", f"{sorted({f.code for f in found})} line {before.line}: {before.error}")
    elif before.error is None:
        if claims:
            yield Disagreement("crash claimed", _listed(claims))
        growing = [name for name in before.growing if not name.startswith("whole")]
        leaks = [finding for finding in found if finding.code in LEAKS]
        if growing:
            seen["growing"] += 1
            if not leaks:
                yield Disagreement("leak missed", str(growing))
        elif any(finding.code == "GM102" for finding in leaks):
            yield Disagreement("leak claimed", _listed(leaks))
        yield from _flags(source, before, found, seen)
    yield from _repairs(source, before, seen)


def _listed(findings: list[Finding] | tuple[Finding, ...]) -> str:
    return "; ".join(f"{f.code} line {f.span.row}: {f.message}" for f in findings)


def _flags(source: str, before: Observation, found: list[Finding], seen: Counter[str]) -> Iterator[Disagreement]:
    kept = codemods.mend(source).source.count("retain_graph=True")
    for match in re.finditer(r"(, )?retain_graph=True", source):
        row = source.count("\n", 0, match.start()) + 1
        without = observe(source[: match.start()] + source[match.end() :])
        needless = without.error is None and same(without.steps, before.steps) and same(without.values, before.values)
        told = [f for f in found if f.span.row == row and f.code in ("GM303", "GM304")]
        seen["needless flag" if needless else "needed flag"] += 1
        if needless and kept:
            yield Disagreement("flag missed", f"line {row}")
        if told and not needless:
            yield Disagreement("flag claimed", f"line {row} {without.error}")


def _repairs(source: str, before: Observation, seen: Counter[str]) -> Iterator[Disagreement]:
    mended = codemods.mend(source)
    if codemods.mend(mended.source).source != mended.source:
        yield Disagreement("not idempotent", "")
    if any(f.repair is not None and f.repair.safety is Safety.SAFE for f in mended.left):
        yield Disagreement("safe repair left", _listed(mended.left))
    codes = sorted({finding.code for finding in mended.applied})
    if mended.source == source:
        return
    seen["mended"] += 1
    after = observe(mended.source)
    yield from _behaviour(source, before, after, mended.left, set(codes), mended.source)
    if len(codes) > 1:
        seen["orders"] += 1
        for order in itertools.islice(itertools.permutations(codes), 6):
            current = source
            for _ in range(3):
                for code in order:
                    current = codemods.mend(current, select=frozenset({code})).source
            if current != mended.source:
                yield Disagreement("order matters", f"{order}\n--- all\n{mended.source}\n--- one by one\n{current}")
                break


def _behaviour(
    source: str, before: Observation, after: Observation, left: tuple[Finding, ...], codes: set[str], text: str
) -> Iterator[Disagreement]:
    if after.error is not None and before.error is None:
        yield Disagreement("repair breaks", f"{codes} line {after.line}: {after.error}\n{text}")
    elif after.error is not None and not any(finding.severity == "error" for finding in left) and _crashes(after):
        yield Disagreement("repair leaves crash", f"{codes} line {after.line}: {after.error}\n{text}")
    compared = min(len(before.steps), len(after.steps))
    if "GM101" in codes:
        # Later iterations walked back into earlier ones: only the first is to stay the same.
        before, after = (observe(one.replace("STEPS = 4\n", "STEPS = 1\n")) for one in (source, text))
        compared = min(len(before.steps), len(after.steps))
    if codes & GRADIENTS:
        # The stepped network keeps its gradients until the other one has taken its changed step.
        compared = 0
        if codes & GRADIENTS == {"GM201"}:
            compared = next((i for i, (one, _) in enumerate(before.steps) if one == 0), len(before.steps))
            compared = min(compared, len(after.steps))
    for number in range(compared):
        if not same(before.steps[number], after.steps[number]):
            yield Disagreement("repair changes gradient", f"{codes} step {number} of {compared}\n{text}")
            break
    else:
        if before.error is None and after.error is None and not codes & {*GRADIENTS, "GM101"}:
            if len(before.steps) != len(after.steps):
                yield Disagreement("repair changes steps", f"{codes}\n{text}")
            names = before.values.keys() & after.values.keys()
            changed = [name for name in sorted(names) if not same(before.values[name], after.values[name])]
            if changed:
                yield Disagreement("repair changes value", f"{codes} {changed}\n{text}")


def main(kind: str, first: int, last: int) -> None:
    seen: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for seed in range(first, last):
        source = program(kind, seed)
        for one in disagreements(source, seen):
            kinds[one.kind] += 1
            print(f"##### {kind} {seed}: {one.kind}: {one.detail}")
            print(source, flush=True)
    print(kind, last - first, dict(kinds))
    for what, count in sorted(seen.items()):
        print(f"    {count:5} {what}")


if __name__ == "__main__":
    for chosen in KINDS if sys.argv[1] == "all" else [sys.argv[1]]:
        main(chosen, int(sys.argv[2]), int(sys.argv[3]))
