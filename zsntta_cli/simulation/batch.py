"""Many runs, in order, in one process or several."""

import functools
import itertools
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.progress import Reporter, Silent
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import LiveFactory, Simulator


def run_one(
    root: Path, runs: Sequence[RunSettings], live: LiveFactory, reporter: Reporter
) -> Replay:
    """The only run, with its items and, of a live method, the gradients of its samples.

    Raises:
        SettingsError: there are several.
    """
    if len(runs) != 1:
        raise SettingsError(f"scores are those of one run, and these options make {len(runs)}.")
    with reporter.waiting(lambda: _named(runs[0])):
        return Simulator(root, live).replay(runs[0], analyse=True)


def run_all(
    root: Path,
    runs: Sequence[RunSettings],
    jobs: int = 1,
    live: LiveFactory | None = None,
    reporter: Reporter | None = None,
) -> list[Record]:
    """All runs, in order, on `jobs` processes; the results do not depend on their number.

    A live run that Ctrl-C stopped is the last one.

    Raises:
        SettingsError: no process at all, or several for live methods.
    """
    if jobs < 1:
        raise SettingsError(f"jobs is {jobs}, must be 1 or more.")
    is_live = any(METHODS[run.method].live for run in runs)
    if is_live and jobs > 1:
        raise SettingsError("live methods take the whole machine: jobs must be 1.")
    if jobs == 1 or len(runs) < 2:
        return _run_some(root, runs, live, reporter)
    pairs = [
        list(some)
        for _, some in itertools.groupby(runs, lambda run: (run.encoder, run.id_set, run.ood_set))
    ]
    pieces = 1 if len(pairs) >= jobs else jobs
    chunks = [pair[i::pieces] for pair in pairs for i in range(min(pieces, len(pair)))]
    with ProcessPoolExecutor(
        min(jobs, len(chunks)), multiprocessing.get_context("spawn")
    ) as workers:
        done = workers.map(functools.partial(_run_some, root), chunks)
        by_run = {record.settings: record for records in done for record in records}
    return [by_run[run] for run in runs]


def _run_some(
    root: Path,
    runs: Sequence[RunSettings],
    live: LiveFactory | None = None,
    reporter: Reporter | None = None,
) -> list[Record]:
    simulator = Simulator(root, live)
    records: list[Record] = []
    with (reporter or Silent()).waiting(lambda: _progress(runs, len(records))):
        for settings in runs:
            records.append(simulator.run(settings))
            if records[-1].unfinished:
                break
    return records


def _progress(runs: Sequence[RunSettings], done: int) -> str:
    now = _named(runs[min(done, len(runs) - 1)])
    return f"run {done + 1:,} of {len(runs):,}: {now}"


def _named(run: RunSettings) -> str:
    against = f" against {run.ood_set}" if run.ood_set else ""
    return f"{run.method} on {run.id_set}{against} at {run.stream.ratio:.4g}"
