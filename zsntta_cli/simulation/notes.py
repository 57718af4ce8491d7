"""Notes that a reader of a run's numbers must know, before it starts and in its record.

A note depends only on the sizes of the run's sets and on its settings. If several runs need the
same note, the strongest case is shown, so that many runs give few lines.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from zsntta_cli.cache.identity import foreign_model, overlap
from zsntta_cli.datasets import miscounted
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.errors import ZsnttaError, counted, first_of
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import MoreText
from zsntta_cli.settings import NATURAL, NO_NOISE, ood_share
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library, Sources
from zsntta_cli.simulation.stream import OOD

OFFLINE = "offline"  # the kind of a note by which a method is a reference, and no rival
UNDECIDED = "undecided"  # the kind of a note that tables without accuracies have no use for
OTHER_IMAGES = "images"  # the kind of a note on a set that is not the published one, by its count

# Kinds of notes on sets: how several make one sentence, and what it says of each.
_OF_SETS = {
    "again": (
        "Sets that are smaller than the streams need are shown again: {}.",
        "'{note.about}' up to {note.weight:.2f} times",
    ),
    OTHER_IMAGES: (
        "Sets whose number of images is not the published one: {}.",
        "'{note.about}' ({note.weight:,.0f} images)",
    ),
    "mix": ("Noise in natural mixes: {}.", "{note.about} {note.weight:.1%}"),
}


@dataclass(frozen=True)
class RunNote:
    """A note on a run."""

    kind: str
    about: str  # the method or the set
    text: str  # a sentence
    weight: float = 0.0  # how strong a case of its kind it is


def notes_before(root: Path, runs: Sequence[RunSettings]) -> list[str]:
    """The notes on runs that have not started, as lines; none for runs that will fail."""
    described, notes = Library(root, rows=False), list[RunNote]()
    for run in runs:
        try:
            notes += run_notes(described.sources(run))
        except ZsnttaError:  # the run itself says it better
            continue
    return [f"note: {text}" for text in strongest(notes)]


def strongest(notes: Iterable[RunNote], without: Sequence[str] = ()) -> list[str]:
    """The texts of notes, the strongest of each kind and subject, except the kinds `without`.

    Their order does not depend on the order of the runs.
    """
    cases: dict[tuple[str, str], RunNote] = {}
    for note in sorted(notes, key=attrgetter("weight", "text")):
        cases[note.kind, note.about] = note
    texts, on_sets = list[str](), dict[str, list[RunNote]]()
    for (kind, _), note in sorted(cases.items()):
        if kind in _OF_SETS:
            on_sets.setdefault(kind, []).append(note)
        elif kind not in without:
            texts.append(note.text)
    for kind, notes_on_sets in on_sets.items():
        text, (sentence, part) = notes_on_sets[0].text, _OF_SETS[kind]
        if len(notes_on_sets) > 1:
            text = sentence.format(", ".join(part.format(note=note) for note in notes_on_sets))
        texts.append(text)
    return texts


def run_notes(sources: Sources) -> Iterator[RunNote]:
    """The notes of a run."""
    run, listed, (n_id, n_ood, n_noise) = sources.run, sources.listed, sources.sizes
    stream, pair = run.stream, f"'{run.id_set}' and '{run.ood_set}'"
    mix = n_ood / max(n_id + n_ood, 1)
    sizes = stream.sizes(n_id, n_ood, len(listed.rows) if listed else None)
    if listed and listed.lacking:
        lacking, listing = len(listed.lacking), f"'{run.ood_set}' with '{run.id_set}'"
        yield RunNote(
            "lacking", listing,
            f"The list for {listing} names {counted(lacking, 'image')} that the set lacks, so the "
            f"stream leaves them out: {first_of(listed.lacking, 3)}.", float(lacking),
        )  # fmt: skip
    if sizes.wanted > sizes.ood:
        asked = f"{ood_share(stream.ratio):.0%}"
        text = f"'{run.ood_set}' is too small for {asked} noise: the stream has {mix:.1%}."
        yield RunNote("capped", f"{run.ood_set} {asked}", text)
    pool = noise_name(stream.noise), sizes.injected, n_noise
    for small, needed, images in ((run.ood_set, sizes.ood, n_ood), pool):
        if small and images and needed > images:
            text = f"its images are shown up to {needed / images:.2f} times."
            text = f"'{small}' is smaller than the streams need: {text}"
            yield RunNote("again", small, text, needed / images)
    if n_ood and stream.ratio == NATURAL:
        text = f"The natural mix of {pair} has {mix:.1%} noise."
        yield RunNote("mix", f"{run.id_set} and {run.ood_set}", text, mix)
    for set_name, images in ((run.id_set, n_id), (run.ood_set, n_ood)):
        if set_name and (count := miscounted(set_name, images)):
            text = f"'{set_name}' is not the published set: it has {count}."
            yield RunNote(OTHER_IMAGES, set_name, text, float(images))
    if model := foreign_model(sources.id_set):
        text = f"the features in {run.encoder}/ were made with {model}: was the folder copied?"
        yield RunNote("encoder", run.encoder, text)
    if n_ood and (common := overlap(sources.id_set, sources.files[OOD])):
        text = f"{pair} {common}: what is right for one counts as wrong for the other."
        yield RunNote("overlap", pair, text)
    yield from _on_method(sources, sizes.tests + sizes.injected)


def _on_method(sources: Sources, items: int) -> Iterator[RunNote]:
    """The notes on the method of a run, whose stream has that many items."""
    run, name, options = sources.run, sources.run.method, sources.run.options
    method, noise, more = METHODS[name], run.stream.noise, sources.more or MoreText()
    if method.offline:
        text = f"{name} sees the whole stream before it decides: a reference, not an online method."
        yield RunNote(OFFLINE, name, text)
    if not method.decides:
        text = f"{name} gives a score but no decision: --report ood shows how well it ranks."
        yield RunNote(UNDECIDED, name, text)
    if phrase := options.note(more.generic is not None, more.is_level_known):
        yield RunNote("method", name, f"{name} {phrase}.")
    if 0 < items <= (first := options.warm_up):
        injects = noise != NO_NOISE and "noise" in method.defaults  # by itself
        rule = f"'zs-clip --noise {noise}'" if injects else "zs-clip"
        text = (
            f"{name} decides as {rule} does throughout: a stream of {items:,} items ends before "
            f"its detector decides, after {first:,} items ({options.warm_up_by})."
        )
        yield RunNote("warm-up", name, text, float(-items))
