"""Notes that a reader of a run's numbers has to know, before it starts and in its record.

A note depends only on the sizes of the run's sets and on its settings. If several runs need the
same note, the strongest case is shown, so that many runs give few lines.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.datasets import miscounted
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.errors import ZsnttaError
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.settings.ratios import NATURAL, ood_share
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.stream import ood_count, stream_sizes

OFFLINE = "offline"  # the kind of a note by which a method is a reference, and no rival
UNDECIDED = "undecided"  # the kind of a note that tables without accuracies have no use for
OTHER_IMAGES = "images"  # the kind of a note on a set that is not the published one, by its count
MIX = "mix"  # the kind of a note on the share of noise that two sets have by their sizes
REPEATED = "again"  # the kind of a note on a set whose images are shown again


@dataclass(frozen=True)
class RunNote:
    """A note on a run."""

    kind: str
    about: str  # the method or the set
    text: str  # a sentence
    weight: float = 0  # how strong a case of its kind it is


@dataclass(frozen=True)
class SetSizes:
    """The sizes of a run's sets: images of the ID set, OOD set, injected noise; classes, dims."""

    id_images: int
    ood_images: int
    noise_images: int
    classes: int
    dim: int


def notes_before(root: Path, runs: Sequence[RunSettings]) -> list[str]:
    """The notes on runs that have not started, as lines; none for sets that are missing."""
    header = functools.cache(
        lambda encoder, name: store.read(feature_path(root, encoder, name), rows=False)
    )

    def images(run: RunSettings, name: str | None) -> int:
        return len(header(run.encoder, name)) if name else 0

    notes: list[RunNote] = []
    for run in runs:
        noise = noise_name(run.stream.noise) if run.stream.noise != NO_NOISE else None
        try:
            id_set = header(run.encoder, run.id_set)
            counts = len(id_set), images(run, run.ood_set), images(run, noise)
        except ZsnttaError:  # the run itself says it better
            continue
        notes += run_notes(run, SetSizes(*counts, len(id_set.class_names), id_set.dim))
    return [f"note: {text}" for text in strongest(notes)]


def strongest(notes: Iterable[RunNote], without: Sequence[str] = ()) -> list[str]:
    """The texts of notes, the strongest of each kind and subject, except the kinds `without`.

    Their order does not depend on the order of the runs.
    """
    cases: dict[tuple[str, str], RunNote] = {}
    for note in notes:
        place = note.kind, note.about
        if place not in cases or _strength(note) > _strength(cases[place]):
            cases[place] = note
    texts = [cases[place].text for place in sorted(cases) if place[0] not in (*without, *_OF_SETS)]
    for kind, one_sentence in _OF_SETS.items():
        texts += one_sentence([cases[place] for place in sorted(cases) if place[0] == kind])
    return texts


def _repeated_sets(notes: Sequence[RunNote]) -> list[str]:
    """One sentence on all sets whose images occur more than once."""
    if len(notes) < 2:
        return [note.text for note in notes]
    sets = ", ".join(f"'{note.about}' up to {note.weight:.2f} times" for note in notes)
    return [f"Sets that are smaller than the streams need are shown again: {sets}."]


def _other_sets(notes: Sequence[RunNote]) -> list[str]:
    """One sentence on all sets that differ from the published ones."""
    if len(notes) < 2:
        return [note.text for note in notes]
    sets = ", ".join(f"'{note.about}' ({note.weight:,.0f} images)" for note in notes)
    return [f"Sets that are not the published ones, by their counts: {sets}."]


def _mixes(notes: Sequence[RunNote]) -> list[str]:
    """One sentence on the shares of all streams with the natural ratio."""
    if len(notes) < 2:
        return [note.text for note in notes]
    mixes = ", ".join(f"{note.about} {note.weight:.1%}" for note in notes)
    return [f"Noise in natural mixes: {mixes}."]


# Kinds of notes on sets, and how several of a kind make one sentence.
_OF_SETS = {REPEATED: _repeated_sets, OTHER_IMAGES: _other_sets, MIX: _mixes}


def _strength(note: RunNote) -> tuple[float, str]:
    return note.weight, note.text


def run_notes(run: RunSettings, sizes: SetSizes) -> Iterator[RunNote]:
    """The notes of a run on sets of these sizes."""
    stream, n_ood = run.stream, sizes.ood_images
    wanted = ood_count(stream, sizes.id_images, n_ood)
    tests, injected = stream_sizes(stream, sizes.id_images, n_ood)
    if n_ood and wanted > n_ood and stream.ood_fill == "repeat":
        yield _repeated(str(run.ood_set), wanted / n_ood)
    if n_ood and wanted > n_ood and stream.ood_fill == "cap":
        share, asked = f"{n_ood / (sizes.id_images + n_ood):.1%}", f"{ood_share(stream.ratio):.0%}"
        text = f"'{run.ood_set}' is too small for {asked} noise: the stream has {share}."
        yield RunNote("capped", f"{run.ood_set} {asked}", text)
    if n_ood and stream.ratio == NATURAL:
        noise_share = n_ood / (sizes.id_images + n_ood)
        text = f"The natural mix of '{run.id_set}' and '{run.ood_set}' has {noise_share:.1%} noise."
        yield RunNote(MIX, f"{run.id_set} and {run.ood_set}", text, noise_share)
    if sizes.noise_images and injected > sizes.noise_images:
        yield _repeated(noise_name(stream.noise), injected / sizes.noise_images)
    for name, images in ((run.id_set, sizes.id_images), (run.ood_set, n_ood)):
        if name and (count := miscounted(name, images)):
            text = f"'{name}' is not the published set: it has {count}."
            yield RunNote(OTHER_IMAGES, name, text, images)
    yield from _of_method(run, sizes, tests, injected)


def _of_method(run: RunSettings, sizes: SetSizes, tests: int, injected: int) -> Iterator[RunNote]:
    name, method = run.method, METHODS[run.method]
    if method.offline:
        text = f"{name} sees the whole stream before it decides: a reference, no online method."
        yield RunNote(OFFLINE, name, text)
    if not method.decides:
        text = f"{name} gives a score and no decision: it is judged in the table of --report ood."
        yield RunNote(UNDECIDED, name, text)
    if phrase := run.options.note(sizes.classes, sizes.dim):
        yield RunNote("method", name, f"{name} {phrase}.", sizes.classes)
    items = tests + injected
    if 0 < items <= (first := run.options.warm_up):
        text = (
            f"{name} decides as {_warm_up_rule(run)} does throughout: a stream of {items:,} items "
            f"ends before its detector decides, after {first:,} items ({run.options.warm_up_by})."
        )
        if injected and "noise" in method.defaults:
            text += (
                f" {injected:,} of them are injected noise: in its threshold they weigh as much as "
                f"the stream's own images."
            )
        yield RunNote("warm-up", name, text, -items)


def _warm_up_rule(run: RunSettings) -> str:
    """The run of ZS-CLIP whose decisions are those of a method's warm-up.

    Injected noise enters the threshold of methods that inject it by themselves, and of ZS-CLIP.
    """
    if run.stream.noise == NO_NOISE:
        return "zs-clip"
    noise = run.stream.noise if "noise" in METHODS[run.method].defaults else NO_NOISE
    return f"'zs-clip --noise {noise}'"


def _repeated(name: str, times: float) -> RunNote:
    text = (
        f"'{name}' is smaller than the streams need: its images are shown up to {times:.2f} times."
    )
    return RunNote(REPEATED, name, text, times)
