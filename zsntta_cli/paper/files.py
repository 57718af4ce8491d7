"""The feature files that runs need: which are there, which are missing or not of whole sets."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_header
from zsntta_cli.datasets.names import DATASET, SetName, noise_name
from zsntta_cli.errors import StoreError
from zsntta_cli.paper.wanted import is_timed
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.simulation.runs import RunSettings

Needed = tuple[str, str]  # the folder of an encoder, the name of a set or of a noise pool


def needed(run: RunSettings) -> list[Needed]:
    """The feature files of a run, ID set first; none of one that is timed."""
    if is_timed(run):
        return []
    noise = noise_name(run.stream.noise) if run.stream.noise != NO_NOISE else None
    return [(run.encoder, name) for name in (run.id_set, run.ood_set, noise) if name]


def there(root: Path, runs: Iterable[RunSettings]) -> set[Needed]:
    """Those files of some runs that are there."""
    every = dict.fromkeys(one for run in runs for one in needed(run))
    return {one for one in every if feature_path(root, *one).exists()}


def missing(root: Path, runs: Sequence[RunSettings]) -> dict[str, list[str]]:
    """What is not there, by the folder of its encoder: ID sets, OOD sets and noise as they come."""
    known = there(root, runs)
    absent: dict[str, list[str]] = {}
    for folder, name in dict.fromkeys(one for run in runs for one in needed(run)):
        if (folder, name) not in known:
            absent.setdefault(folder, []).append(name)
    return absent


def runnable(root: Path, runs: Sequence[RunSettings]) -> list[RunSettings]:
    """The runs whose feature files are all there."""
    known = there(root, runs)
    return [run for run in runs if all(one in known for one in needed(run))]


def cut_sets(root: Path, runs: Iterable[RunSettings]) -> Mapping[str, tuple[int, int]]:
    """Sets whose features are of fewer images than the paper's: these, and how many there are."""
    cut = {}
    for folder, name in sorted(there(root, runs)):
        if SetName.parse(name).kind != DATASET:
            continue
        try:
            images = read_header(feature_path(root, folder, name)).images
        except StoreError:  # the run itself says it better
            continue
        if images < (whole := datasets.known(name).images) - 1:  # NINCO: 5,878 or 5,879
            cut[name] = (images, whole)
    return cut
