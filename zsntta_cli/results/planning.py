"""What some runs come to before any is run: which are kept, and which lack features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.lacking import missing_text
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.errors import StoreError, ZsnttaError
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.simulation.digests import Foreseen
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library

NeededFile = tuple[str, str]  # the folder of an encoder, the name of a set or of a noise pool


def needed_files(run: RunSettings) -> list[NeededFile]:
    """The feature files of a run's images: its ID set, its OOD set, its injected noise."""
    pool = noise_name(run.stream.noise) if run.stream.noise != NO_NOISE else None
    sets = filter(None, (run.id_set, run.ood_set, pool))
    return [(run.encoder, name) for name in sets]


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
    missing: dict[str, dict[str, None]] = {}
    reasons: dict[str, ZsnttaError] = {}
    foreseen, library, lacking = Foreseen(root), Library(root), 0
    for run in (run for run in runs if run not in kept):
        absent = [file for file in needed_files(run) if not feature_path(root, *file).exists()]
        for folder, name in absent:
            missing.setdefault(folder, {})[name] = None
        if not absent and foreseen.digests(run) is None:
            reason = _reason(root, library, run)
            reasons[str(reason)] = reason
        lacking += bool(absent) or foreseen.digests(run) is None
    names = {folder: list(sets) for folder, sets in missing.items()}
    to_run = len(runs) - len(kept) - lacking
    return Foresight(len(kept), to_run, lacking, names, list(reasons.values()))


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
