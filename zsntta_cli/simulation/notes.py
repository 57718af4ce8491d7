"""What is worth knowing of runs before they start, told by the sizes of their sets alone."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

from zsntta_cli.cache.features import Header
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_header
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.errors import ZsnttaError
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.stream import ood_count, stream_sizes

Note = tuple[str, str, str, float]  # its kind, what it is about, its words, how much of it


def notes(root: Path, runs: Sequence[RunSettings]) -> list[str]:
    """A line for each thing to know, the strongest case of it; nothing of sets that are missing."""
    header = functools.cache(lambda encoder, name: read_header(feature_path(root, encoder, name)))

    def size(run: RunSettings, name: str | None) -> int:
        return header(run.encoder, name).images if name else 0

    strongest: dict[tuple[str, str], tuple[float, str]] = {}
    for run in runs:
        try:
            noise = noise_name(run.stream.noise) if run.stream.noise != NO_NOISE else None
            sizes = size(run, run.id_set), size(run, run.ood_set), size(run, noise)
            of_run = list(_of_run(run, header(run.encoder, run.id_set), sizes))
        except ZsnttaError:  # the run itself says it better
            continue
        for kind, about, text, much in of_run:
            strongest[kind, about] = max((much, text), strongest.get((kind, about), (much, text)))
    return [f"note: {text}" for _, text in strongest.values()]


def _of_run(run: RunSettings, id_set: Header, sizes: tuple[int, int, int]) -> Iterator[Note]:
    stream, (n_id, n_ood, n_noise) = run.stream, sizes
    wanted, (tests, injected) = ood_count(stream, n_id), stream_sizes(stream, n_id, n_ood)
    if n_ood and wanted > n_ood and stream.ood_fill == "repeat":
        yield _again(str(run.ood_set), wanted / n_ood)
    if n_ood and wanted > n_ood and stream.ood_fill == "cap":
        share, asked = f"{n_ood / (n_id + n_ood):.1%}", f"{stream.ratio:.0%}"
        text = f"'{run.ood_set}' is too small for {asked} noise: the stream has {share}."
        yield "capped", f"{run.ood_set} {asked}", text, 0
    if n_noise and injected > n_noise:
        yield _again(noise_name(stream.noise), injected / n_noise)
    yield from _of_method(run, id_set, tests + injected)


def _of_method(run: RunSettings, id_set: Header, items: int) -> Iterator[Note]:
    name, method = run.method, METHODS[run.method]
    if method.offline:
        text = f"{name} sees the whole stream before it decides: a reference, no online method."
        yield "offline", name, text, 0
    for phrase in method.notes(run.options, id_set.classes, id_set.dim):
        yield "method", name, f"{name} {phrase}.", id_set.classes
    warm_up = method.warm_up
    if 0 < items <= (first := warm_up.items(run.options)):
        text = (
            f"{name} decides as {warm_up.teacher} does throughout: a stream of {items:,} items "
            f"ends before its detector decides, after {first:,} items ({warm_up.settings})."
        )
        yield "warm-up", name, text, -items


def _again(name: str, times: float) -> Note:
    text = (
        f"'{name}' is smaller than the streams need: its images are shown up to {times:.2f} times."
    )
    return "again", name, text, times
