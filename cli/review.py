"""``gradmend review``: one finding, one question, as in ``git add -p``."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from .keys import Keys
from .listing import counted, exit_status
from .options import Command, Options, shared
from .printable import printable_name
from .status import ERROR
from .survey import Survey, survey

if TYPE_CHECKING:
    from gradmend.codemods.finding import Finding

    from .review_file import FileReview
    from .review_screen import Look
    from .terminal import Talk


@click.command("review", cls=Command)
@shared
@click.option("--plain", is_flag=True, help="Sentences for drawings, answers with Enter: for screen readers.")
def command(options: Options, plain: bool) -> int:
    """Decide on each repair in PATHS, one question at a time.

    Shows the source, the order of events on the tape, and the repair; safe and unsafe ones, labelled. What you accept
    is analysed again at once and written when its file is left. q and Ctrl-C keep it. ? lists the keys.
    """
    from .terminal import is_terminal

    talk = options.talk()
    if options.is_stdin or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        talk.error("review needs a terminal: `gradmend diff` shows the repairs, `gradmend fix --yes` applies them")
        return ERROR
    result = survey(options, talk, gather=False)
    session = Session(result, talk, _look(options, plain))
    with Keys(lines=plain) as keys:
        interrupted = session.run(keys)
    session.sum_up()
    if interrupted:
        raise click.Abort
    return exit_status(tuple(session.left), result, options)


def _look(options: Options, plain: bool) -> Look:
    from .review_screen import Look
    from .terminal import Paint, wants_color, width

    encoding = (sys.stdout.encoding or "").lower()
    return Look(width(), Paint(wants_color(options.color) and not plain), plain, encoding.startswith("utf"))


class Session:
    """The review of all files, one after the other."""

    def __init__(self, result: Survey, talk: Talk, look: Look) -> None:
        self._result = result
        self._talk = talk
        self._look = look
        self._todo = [outcome for outcome in result.outcomes if outcome.findings]
        self._seen = 0
        self._tally: Counter[str] = Counter()
        self._written: set[str] = set()
        self.left: list[Finding] = []
        """Findings that stand at the end."""

    def run(self, keys: Keys) -> bool:
        """Ask until all is decided; True where Ctrl-C ended it."""
        from .questions import Questions
        from .review_file import FileReview, RefusedError
        from .run import read_regular

        while self._todo:
            outcome = self._todo.pop(0)
            try:
                review = FileReview(self._result.jobs[outcome.path], read_regular(outcome.path))
            except (OSError, RefusedError) as error:
                self._fail(outcome.path, str(error))
                continue
            goes_on = interrupted = False
            try:
                goes_on = Questions(review, keys, self._look, self._position).ask()
            except KeyboardInterrupt:
                interrupted = True
            self._leave(review)
            if not goes_on:
                self.left += [finding for later in self._todo for finding in later.findings]
                return interrupted
        return False

    def _position(self, review: FileReview) -> str:
        state = review.state
        gone = self._seen + len(state.tally) - state.tally.count("skipped")
        total = gone + len(state.findings) + sum(len(outcome.findings) for outcome in self._todo)
        return f"{gone + state.position + 1} of {total}"

    def _leave(self, review: FileReview) -> None:
        """Write what was accepted."""
        from .fix import write_changes
        from .patch import Change
        from .run import forget_project

        state = review.state
        changes = [Change(review.path, review.original, state.text)] if state.text != review.original else []
        changes += [Change(path, old, new) for path, old, new in state.others if old != new]
        written = write_changes(changes, self._result, self._talk)
        forget_project()
        self.left += state.findings
        self._seen += len(state.tally) - state.tally.count("skipped") + len(state.findings)
        if len(written) == len(changes):
            self._written |= {change.path for change in written}
            self._tally.update(state.tally)
        else:
            self._tally.update(word for word in state.tally if word == "skipped")

    def _fail(self, path: str, reason: str) -> None:
        self._talk.error(f"{printable_name(path)}: {reason}")
        self._result.failed[path] = reason

    def sum_up(self) -> None:
        """What came of it all."""
        words = ("applied", "edited", "suppressed", "skipped")
        parts = [f"{self._tally[word]} {word}" for word in words if self._tally[word]]
        undecided = len(self.left) - self._tally["skipped"]
        if undecided > 0:
            parts.append(f"{undecided} left undecided")
        if not parts:
            if self._result.looked_at:
                self._talk.say(f"No findings in {counted(self._result.looked_at, 'file')}.")
            return
        files = f" in {counted(len(self._written), 'file')}; `git diff` shows them" if self._written else ""
        self._talk.say(f"{', '.join(parts)}{files}.")
