"""The samples: each does the harm that its rule names under PyTorch, and gradmend ends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradmend import codemods
from gradmend.codemods import registry
from tests import runtime

FOLDER = Path(__file__).parent.parent / "samples"
Harm = Callable[[bytes], bool]


def crashes(message: str) -> Harm:
    """PyTorch ends the run with this message."""
    return lambda source: message in (runtime.run_source(source).error or "")


def keeps_graphs(source: bytes) -> bool:
    """What the run returns keeps autograd nodes alive."""
    return runtime.run_source(source).graph > 0


def trains_nothing(weight: bytes) -> Harm:
    """The term with this weight leaves no trace: without it, the very same model is trained."""

    def harm(source: bytes) -> bool:
        lines = source.splitlines(keepends=True)
        without = [weight + b" = 0.0\n" if line.startswith(weight + b" = ") else line for line in lines]
        assert without != lines
        return runtime.run_source(source).values == runtime.run_source(b"".join(without)).values

    return harm


def holds_bytes(limit: int) -> Harm:
    """Autograd holds more than this at once for backward passes."""
    return lambda source: runtime.run_source(source, count_saved=True).saved > limit


def ends_above(limit: float) -> Harm:
    """The last loss of the history that the run returns is still above this."""

    def harm(source: bytes) -> bool:
        history = runtime.run_source(source).values
        assert isinstance(history, list)
        return bool(history[-1] > limit)

    return harm


def says(words: bytes) -> Harm:
    """Nothing happens in the run: the words are what is too much."""
    return lambda source: words in source


def without_effect(statement: bytes) -> Harm:
    """The line with this statement might as well not be there."""

    def harm(source: bytes) -> bool:
        lines = source.splitlines(keepends=True)
        without = [line for line in lines if statement not in line]
        assert without != lines
        return runtime.run_source(source).values == runtime.run_source(b"".join(without)).values

    return harm


SECOND_TIME = crashes("Trying to backward through the graph a second time")
IN_PLACE = crashes("has been modified by an inplace operation")

HARMS: dict[str, Harm] = {
    "accumulated_loss": keeps_graphs,
    "carried_hidden_state": SECOND_TIME,
    "detached_derivative": trains_nothing(b"FORCE_WEIGHT"),
    "discarded_detach": without_effect(b"next_q.detach()"),
    "inplace_on_graph": IN_PLACE,
    "loop_invariant_graph": SECOND_TIME,
    "missing_create_graph": crashes("does not require grad and does not have a grad_fn"),
    "missing_retain_graph": SECOND_TIME,
    "missing_zero_grad": ends_above(0.1),
    "needless_retain_graph": holds_bytes(200_000),
    "redundant_retain_graph": says(b"retain_graph"),
    "retain_for_create": trains_nothing(b"PENALTY_WEIGHT"),
    "step_between_backwards": IN_PLACE,
    "undetached_fake": SECOND_TIME,
}
REPORTED_ONLY = {"full_hessian"}
ABOUT_COMMENTS = {"unused_suppression"}
"""Rules that no run can show."""


def _source(name: str) -> bytes:
    return (FOLDER / f"{name}.py").read_bytes()


def _mend(name: str) -> bytes:
    """The sample with its safe repairs, or with the unsafe ones where no safe one applies."""
    original = _source(name)
    mended = codemods.mend(original, f"{name}.py").source
    return mended if mended != original else codemods.mend(original, f"{name}.py", unsafe=True).source


def test_every_sample_has_its_test() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == HARMS.keys() | REPORTED_ONLY


def test_every_rule_has_its_sample() -> None:
    assert {rule.name.replace("-", "_") for rule in registry.RULES} <= HARMS.keys() | REPORTED_ONLY | ABOUT_COMMENTS


@pytest.mark.parametrize("name", HARMS)
def test_harm_is_there_before(name: str) -> None:
    assert HARMS[name](_source(name))


@pytest.mark.parametrize("name", HARMS)
def test_harm_is_gone_after(name: str) -> None:
    mended = _mend(name)
    assert mended != _source(name), "nothing was mended"
    assert runtime.run_source(mended).error is None
    assert not HARMS[name](mended)


@pytest.mark.parametrize("name", [*HARMS, *REPORTED_ONLY])
def test_only_the_mistake_it_is_named_for_is_found(name: str) -> None:
    found = {finding.name.replace("-", "_") for finding in codemods.scan(_source(name), f"{name}.py")}
    assert found == {name}


@pytest.mark.parametrize("name", REPORTED_ONLY)
def test_reported_sample_is_left_alone(name: str) -> None:
    assert codemods.mend(_source(name), f"{name}.py", unsafe=True).source == _source(name)


def test_redundant_flag_changes_no_number() -> None:
    before = runtime.run_source(_source("redundant_retain_graph"))
    assert runtime.run_source(_mend("redundant_retain_graph")).values == before.values
