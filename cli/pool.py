"""Many files at once: worker processes, results in the order of the jobs, and a clean end on Ctrl-C.

The pool is imported only when there are files enough to repay its start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from .run import Job, Outcome, process

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.context import BaseContext

FEW = 24
"""Up to so many files one process is sooner done than a pool is started."""
LARGEST_CHUNK = 32


def cores() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def run_all(jobs: Sequence[Job], workers: int | None, tick: Callable[[int], object] = id) -> Iterator[Outcome]:
    """The outcome of each job, in order. ``workers`` None: as many as there are processors, one for few files.

    ``tick`` is told how many files are newly done.
    """
    if workers is None:
        workers = 1 if len(jobs) <= FEW else cores()
    workers = min(workers, len(jobs))
    if workers <= 1:
        for job in jobs:
            yield process(job)
            tick(1)
        return
    yield from _in_processes(jobs, workers, tick)


def _process_chunk(jobs: Sequence[Job]) -> list[Outcome]:
    return [process(job) for job in jobs]


def _live_with_the_parent() -> None:
    """Leave Ctrl-C to the parent, and end when it is killed: nobody else would end a worker that waits for work."""
    import multiprocessing
    import signal
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def outlive() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=outlive, daemon=True).start()


def _in_processes(jobs: Sequence[Job], workers: int, tick: Callable[[int], object]) -> Iterator[Outcome]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    size = max(1, min(LARGEST_CHUNK, len(jobs) // (workers * 8)))
    chunks = [jobs[start : start + size] for start in range(0, len(jobs), size)]
    # A fork shares what is imported already and starts in no time; this process has no threads before the pool's own.
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    context = multiprocessing.get_context(method)
    pool = ProcessPoolExecutor(workers, context, _live_with_the_parent)
    futures: list[Future[list[Outcome]]] = []
    done = 0
    try:
        with suppress(BrokenProcessPool):
            for chunk in chunks:
                futures.append(pool.submit(_process_chunk, chunk))
        with suppress(BrokenProcessPool):
            for future in futures:
                yield from future.result()
                tick(len(chunks[done]))
                done += 1
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    pool.shutdown()
    if done < len(chunks):
        # A worker was killed, for want of memory as a rule. Which file did it shows when each has its own process.
        for job in chunks[done]:
            yield _alone(job, context)
        tick(len(chunks[done]))
        yield from run_all(jobs[(done + 1) * size :], workers, tick)


def _alone(job: Job, context: BaseContext) -> Outcome:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(1, context, _live_with_the_parent) as pool:
        try:
            return pool.submit(_process_chunk, [job]).result()[0]
        except BrokenProcessPool:
            return Outcome(job.path, error="the analysis was killed, probably for want of memory")
