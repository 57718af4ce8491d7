"""The order in which several workers take runs: each stays with the sets that it has read."""

from collections.abc import Collection, Sequence
from typing import Any

from zsntta_cli.simulation.runs import RunSettings

_WORTH = 4  # runs for which a process reads sets that another one has read


class RunQueue:
    """Runs that several processes take one after the other; the counts are in shared memory.

    Reading and scoring a set costs as much as some runs on it. So each process stays with the sets
    that it has read while there are runs on them, and helps with another process's set only if
    enough runs are left to be worth reading it again.
    """

    def __init__(self, runs: Sequence[RunSettings], processes: Any) -> None:
        by_sets: dict[tuple[str, str, str | None], list[RunSettings]] = {}
        for run in runs:
            by_sets.setdefault((run.encoder, run.id_set, run.ood_set), []).append(run)
        self._runs = list(by_sets.values())
        self._id_sets = [sets[:2] for sets in by_sets]
        self._begun = processes.Array("q", len(by_sets))  # runs that were taken, by sets
        self._finished = processes.Value("q", 0)

    def take(self, last: int | None) -> tuple[RunSettings, int] | None:
        """The next run and its sets' place, given the last run's place; None if none is left."""
        with self._begun.get_lock():
            begun = self._begun[:]
            id_sets_read = {
                id_set for id_set, count in zip(self._id_sets, begun, strict=True) if count
            }
            fits = [
                self._fit(place, begun[place], last, id_sets_read) for place in range(len(begun))
            ]
            place = fits.index(max(fits))
            if fits[place] < (0, 0):
                return None
            self._begun[place] += 1
            return self._runs[place][begun[place]], place

    def _fit(
        self, place: int, begun: int, last: int | None, id_sets_read: Collection[tuple[str, str]]
    ) -> tuple[int, int]:
        """How well the runs on some sets suit a process, and how many wait; below 0: not at all.

        4: it has read the sets; 3: it has read the ID set; 2: no process has read that ID set yet,
        so processes spread out; 1: another process has read it; 0: another process works on these
        sets.
        """
        waiting, id_set = len(self._runs[place]) - begun, self._id_sets[place]
        if not waiting or (begun and place != last and waiting < _WORTH):
            return -1, waiting
        if begun:
            return (4 if place == last else 0), waiting
        if last is not None and id_set == self._id_sets[last]:
            return 3, waiting
        return (1 if id_set in id_sets_read else 2), waiting

    @property
    def finished(self) -> int:
        """How many runs are finished."""
        return int(self._finished.value)

    def mark_finished(self) -> None:
        """Mark one more run as finished."""
        with self._finished.get_lock():
            self._finished.value += 1

    def __enter__(self) -> "RunQueue":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop the queue if an error ended a process: the others begin no other run."""
        if kind:
            with self._begun.get_lock():
                self._begun[:] = [len(runs) for runs in self._runs]
