"""From options to outcomes: find the files, do the work on each, say what could not be done."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from .across import Across
from .config import ConfigError, Configuration, Settings
from .discover import Discovery, File, discover, tree_of
from .ignores import is_excluded_anywhere
from .options import Options
from .pool import run_all
from .printable import printable_name
from .progress import Progress
from .run import Job, Outcome, process_bytes
from .selection import Selection
from .terminal import Talk

if TYPE_CHECKING:
    from .wanted import Wanted


class Survey:
    """The outcomes of one run, in order, and whether anything could not be done."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        """Those of the first path; they decide about what is one for a run, like the output format."""
        self.outcomes: list[Outcome] = []
        self.files: dict[str, File] = {}
        self.jobs: dict[str, Job] = {}
        self.failed: dict[str, str] = {}
        """Files that could not be analysed, and why."""
        self.looked_at = 0


def find(options: Options, talk: Talk) -> tuple[Discovery, Settings]:
    """The files, and the settings that hold for the run as a whole; says what was not looked at."""
    configuration = options.configuration()
    found = discover(options.paths, configuration)
    for path, reason in found.errors.items():
        talk.error(f"{printable_name(path)}: {reason}")
    for path, kept in found.torn.items():
        talk.warn(f"{printable_name(path)}: a run was killed while writing it; its old bytes are in {kept}")
    if found.links_out:
        shown = ", ".join(printable_name(path) for path in found.links_out[:3])
        more = f" and {len(found.links_out) - 3} more" if len(found.links_out) > 3 else ""
        talk.warn(f"links that lead out of the tree are not followed: {shown}{more}")
    first = options.paths[0] if options.paths else os.curdir
    return found, configuration.of(first if os.path.isdir(first) else os.path.dirname(first) or os.curdir)


def survey(options: Options, talk: Talk, mend: bool = False, gather: bool = True) -> Survey:
    """Look at everything that ``options`` name. Raises ConfigError.

    With ``gather``, each finding is in the outcome of the file that it is about; without, where it was seen.
    """
    if options.is_stdin:
        return _survey_stdin(options, talk, mend)
    found, settings = find(options, talk)
    result = Survey(settings)
    result.failed = dict(found.errors)
    selection = options.selection()
    if not found.files and not found.errors:
        talk.warn("no Python files or notebooks found here")
    wanted = _wanted(options, found.files)
    files = [file for file in found.files if wanted is None or file.path in wanted]
    if found.files and not files:
        talk.say(f"No Python file or notebook here has changed since {options.since}.")
    jobs = [
        _job(file, selection.rules(file.path, file.settings), mend, wanted[file.path] if wanted else None)
        for file in files
    ]
    result.files = {file.path: file for file in files}
    result.jobs = {job.path: job for job in jobs}
    result.looked_at = len(files)
    across = _across(found.files, options.configuration(), selection)
    with Progress(len(jobs), talk) as progress:
        outcomes = list(run_all(jobs, options.jobs, progress.advance))
    _collect(across.settled(outcomes, result.jobs) if mend else outcomes, result, talk)
    if gather:
        _gather(across, result, talk)
    if options.baseline is not None:
        _tell_stale(options.baseline, result, talk)
    return result


def _wanted(options: Options, files: Sequence[File]) -> dict[str, Wanted] | None:
    """Path → what is asked for there; files that are not asked about at all are missing. None: everything."""
    if options.since is None and options.baseline is None:
        return None
    from .wanted import Wanted

    wanted = {file.path: Wanted() for file in files}
    if options.since is not None:
        from .since import changed_rows

        wanted = {path: Wanted(rows) for path, rows in changed_rows(list(wanted), options.since).items()}
    if options.baseline is not None:
        from .baseline import Baseline

        baseline = Baseline.read(options.baseline)
        wanted = {path: Wanted(asked.changed, baseline.known(path), options.baseline) for path, asked in wanted.items()}
    return wanted


def _tell_stale(baseline: str, result: Survey, talk: Talk) -> None:
    from .baseline import Baseline

    matched = {outcome.path: len(outcome.known) for outcome in result.outcomes if outcome.error is None}
    stale = Baseline.read(baseline).stale(matched)
    if stale:
        entries = "1 entry of the baseline matches" if stale == 1 else f"{stale} entries of the baseline match"
        talk.warn(f"{entries} nothing any more; `gradmend check --write-baseline {baseline}` renews it")


def _across(files: Iterable[File], configuration: Configuration, selection: Selection) -> Across:
    settings = {file.path: file.settings for file in files}

    def rules(path: str) -> frozenset[str] | None:
        own = settings.get(path) or configuration.of(os.path.dirname(path) or os.curdir)
        return frozenset() if is_excluded_anywhere(path, own) and path not in settings else selection.rules(path, own)

    return Across(settings, rules)


def _gather(across: Across, result: Survey, talk: Talk) -> None:
    result.outcomes = across.gathered(result.outcomes)
    if across.outside:
        names = ", ".join(printable_name(path) for path in sorted(across.outside))
        talk.warn(f"a repair would change {names}, which is not among the files given: give it, too")


def _job(file: File, rules: frozenset[str] | None, mend: bool, wanted: Wanted | None = None) -> Job:
    settings = file.settings
    return Job(file.path, file.named, rules, mend, settings.unsafe, settings.accumulate_with, wanted)


def _survey_stdin(options: Options, talk: Talk, mend: bool) -> Survey:
    if options.since is not None or options.baseline is not None:
        raise ConfigError("--since and --baseline are about files, not about standard input")
    name = options.stdin_filename or "-"
    configuration, selection = options.configuration(), options.selection()
    settings = configuration.of(os.path.dirname(name) or os.curdir)
    file = File(name, True, tree_of(name, os.path.dirname(name)), settings)
    raw = sys.stdin.buffer.read()
    job = _job(file, selection.rules(name, settings), mend)
    result = Survey(settings)
    result.files = {name: file}
    result.looked_at = 1
    across = _across([file], configuration, selection)
    outcomes = [process_bytes(job, raw)]
    _collect(across.settled(outcomes, {name: job}) if mend else outcomes, result, talk)
    _gather(across, result, talk)
    if not result.failed and result.outcomes[0].raw is None:
        result.outcomes = [Outcome(name, raw=raw)]
    return result


def _collect(outcomes: Iterable[Outcome], result: Survey, talk: Talk) -> None:
    for outcome in outcomes:
        if outcome.error is not None:
            talk.error(f"{printable_name(outcome.path)}: {outcome.error}")
            result.failed[outcome.path] = outcome.error
        for note in outcome.notes:
            talk.warn(f"{printable_name(outcome.path)}: {note}")
        result.outcomes.append(outcome)
