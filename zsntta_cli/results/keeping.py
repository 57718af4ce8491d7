"""Take results from the store where it has them, and keep new ones as soon as they are computed.

Also what some runs come to before any is run: which are kept, and which lack features.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.lacking import missing_text
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.errors import StoreError, ZsnttaError
from zsntta_cli.methods import METHODS
from zsntta_cli.progress import Reporter
from zsntta_cli.results import store_path
from zsntta_cli.results.store import NoLocks, RecordStore, check_locks
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.simulation.record import Record, Replay
from zsntta_cli.simulation.runs import RunSettings, revision, run_key
from zsntta_cli.simulation.sources import Foreseen, Library

NeededFile = tuple[str, str]  # the folder of an encoder, the name of a set or of a noise pool


@dataclass(frozen=True)
class Keeping:
    """Where results are kept, and how."""

    path: Path
    fresh: bool = False  # run again what is there
    gradients: bool = False  # keep those of clean and noisy samples, too, of live methods
    required: bool = True  # or go on without, where nothing can be written
    command: str = ""  # that asks for the runs, for their records to say
    again: frozenset[str] = frozenset()  # when records were made whose runs are to be run again

    @classmethod
    def beside(
        cls, root: Path, path: Path | None = None, fresh: bool = False, command: str = ""
    ) -> "Keeping":
        """Keep results in the file that is named, or else in one beside the features in `root`."""
        required = path is not None
        return cls(store_path(root, path), fresh, required=required, command=command)


def kept_before(
    root: Path, runs: Sequence[RunSettings], keeping: Keeping
) -> dict[RunSettings, Record]:
    """The runs whose results on the features that are now under `root` the store has.

    There are none where the store cannot be locked, and so not be read.

    Raises:
        StoreError: the store cannot be read.
    """
    if keeping.fresh or not keeping.path.exists():
        return {}
    foreseen, by_key = Foreseen(root), dict[str, RunSettings]()
    for run in runs:
        digests, revised = foreseen.digests(run), revision(run.method)
        if digests is not None and revised is not None:  # else it could not be found again
            by_key[run_key(run, digests, revised)] = run
    try:
        with RecordStore(keeping.path) as store:
            found = store.find(list(by_key))
    except NoLocks:
        return {}
    return {
        by_key[key]: record
        for key, record in found.items()
        # A default that has changed since is in no key, but in the settings.
        if record.settings == by_key[key]
        and ("gradients" in record.curves or not _needs_gradients(by_key[key], keeping))
        and record.created not in keeping.again
    }


def _needs_gradients(run: RunSettings, keeping: Keeping) -> bool:
    return keeping.gradients and METHODS[run.method].live


def judged(replay: Replay, keeping: Keeping | None) -> Record:
    """The record of a run, with its curves."""
    return replay.record(keeping.command if keeping else "")


def _is_to_keep(run: Record, keeping: Keeping | None) -> bool:
    """Whether a run was finished, can be found again, and has a place to be kept in."""
    is_found = revision(run.settings.method) is not None
    return keeping is not None and not run.unfinished and is_found


class Keeper:
    """Keep each run when it is finished, in a transaction of its own."""

    def __init__(self, keeping: Keeping | None) -> None:
        """Open a store that is named; a store beside the features is made with the first result.

        Raises:
            StoreError: the store that is named cannot be opened.
        """
        self._keeping = keeping
        self._store: RecordStore | None = None
        self.problem, self._is_told = "", False  # why something is not kept
        if keeping is None:
            return
        try:
            check_locks(keeping.path)
            if keeping.required:
                self._store = RecordStore(keeping.path, create=True)
        except NoLocks as error:  # told before hours of runs
            self.problem = str(error)

    def keep(self, replay: Replay) -> Record:
        """The record of a run, which is kept if the run was finished and can be found again."""
        return self.add(judged(replay, self._keeping))

    def add(self, record: Record) -> Record:
        """The record of a run that was judged, maybe elsewhere; it is kept as `keep` does."""
        if _is_to_keep(record, self._keeping):
            assert self._keeping is not None
            try:
                self._store = self._store or RecordStore(self._keeping.path, create=True)
                self._store.add([record])
            except StoreError as error:  # the result is worth more than its place
                self.problem = str(error)
        return record

    def tell_problem(self, reporter: Reporter) -> None:
        """Report once why results are not kept."""
        if self.problem and not self._is_told:
            self._is_told = True
            reporter.note(f"note: results are not kept: {self.problem}")

    def __enter__(self) -> "Keeper":
        return self

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()


# What some runs come to before any is run.


def needed_files(runs: Iterable[RunSettings]) -> list[NeededFile]:
    """The feature files of the images of some runs, each once: ID, OOD set, injected noise."""
    files: dict[NeededFile, None] = {}
    for run in runs:
        pool = noise_name(run.stream.noise) if run.stream.noise != NO_NOISE else None
        for name in filter(None, (run.id_set, run.ood_set, pool)):
            files[run.encoder, name] = None
    return list(files)


def missing_files(root: Path, runs: Sequence[RunSettings]) -> dict[str, list[str]]:
    """The sets and noise pools without a feature file, in order, by the folder of their encoder."""
    missing: dict[str, list[str]] = {}
    for folder, name in needed_files(runs):
        if not feature_path(root, folder, name).exists():
            missing.setdefault(folder, []).append(name)
    return missing


@dataclass(frozen=True)
class Foresight:
    """Counts of some runs, and what those that cannot be run lack."""

    kept: int
    to_run: int
    lacking: int
    missing: Mapping[str, Sequence[str]]  # sets without features, by the folder of their encoder
    reasons: Sequence[ZsnttaError]  # why runs that have all their files cannot be, each once


def foresee(root: Path, runs: Sequence[RunSettings], keeping: Keeping) -> Foresight:
    """What some different runs come to; nothing is run or written.

    Raises:
        StoreError: the store cannot be read.
    """
    kept = kept_before(root, runs, keeping)
    others = [run for run in runs if run not in kept]
    missing = missing_files(root, others)
    reasons: dict[str, ZsnttaError] = {}
    foreseen, library, lacking = Foreseen(root), Library(root), 0
    for run in others:
        if any(name in missing.get(folder, ()) for folder, name in needed_files([run])):
            lacking += 1
        elif foreseen.digests(run) is None:
            lacking += 1
            reason = _reason(root, library, run)
            reasons[str(reason)] = reason
    to_run = len(others) - lacking
    return Foresight(len(kept), to_run, lacking, missing, list(reasons.values()))


def _reason(root: Path, library: Library, run: RunSettings) -> ZsnttaError:
    """Why a run that has all its files cannot be computed."""
    try:
        header = store.read(feature_path(root, run.encoder, run.id_set), rows=False)
        if run.prompt not in header.texts:
            limit = header.source.get("limit")
            return missing_text(
                run.prompt, run.id_set, tuple(header.texts), limit, run.encoder, root
            )
        library.more_text(run)
        library.sources(run)
    except ZsnttaError as error:
        return error
    return StoreError(f"{run.method} on '{run.id_set}' cannot be run on these features.")
