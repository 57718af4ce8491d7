"""Notes that a reader of a run's numbers has to know, before it starts and in its record.

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
from zsntta_cli.errors import ZsnttaError, counted, first_of, short
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import MoreText
from zsntta_cli.settings import NATURAL, NO_NOISE, ood_share
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library, Sources, generic_of
from zsntta_cli.simulation.stream import stream_sizes

_SHOWN = 3  # names in a note
OFFLINE = "offline"  # the kind of a note by which a method is a reference, and no rival
UNDECIDED = "undecided"  # the kind of a note that tables without accuracies have no use for
OTHER_IMAGES = "images"  # the kind of a note on a set that is not the published one, by its count
MIX = "mix"  # the kind of a note on the share of noise that two sets have by their sizes
LACKING = "lacking"  # the kind of a note on images that a list names and a set does not have
REPEATED = "again"  # the kind of a note on a set whose images are shown again

# Kinds of notes on sets: how several make one sentence, and what it says of each.
_OF_SETS = {
    REPEATED: (
        "Sets that are smaller than the streams need are shown again: {}.",
        "'{note.about}' up to {note.weight:.2f} times",
    ),
    OTHER_IMAGES: (
        "Sets that are not the published ones, by their counts: {}.",
        "'{note.about}' ({note.weight:,.0f} images)",
    ),
    LACKING: (
        "Images that lists name and sets lack are left out: {}.",
        "{note.weight:,.0f} of {note.about}",
    ),
    MIX: ("Noise in natural mixes: {}.", "{note.about} {note.weight:.1%}"),
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
            sources = described.sources(run)
        except ZsnttaError:  # the run itself says it better
            continue
        notes += run_notes(run, sources)
    return [f"note: {text}" for text in strongest(notes)]


def strongest(notes: Iterable[RunNote], without: Sequence[str] = ()) -> list[str]:
    """The texts of notes, the strongest of each kind and subject, except the kinds `without`.

    Their order does not depend on the order of the runs.
    """
    cases: dict[tuple[str, str], RunNote] = {}
    for note in sorted(notes, key=attrgetter("weight", "text")):
        cases[note.kind, note.about] = note
    texts: list[str] = []
    on_sets: dict[str, list[RunNote]] = {}
    for _, note in sorted(cases.items()):
        if note.kind in _OF_SETS:
            on_sets.setdefault(note.kind, []).append(note)
        elif note.kind not in without:
            texts.append(note.text)
    for kind, (sentence, part) in _OF_SETS.items():
        of_kind = on_sets.get(kind, [])
        if len(of_kind) > 1:
            texts.append(sentence.format(", ".join(part.format(note=note) for note in of_kind)))
        elif of_kind:
            texts.append(of_kind[0].text)
    return texts


def run_notes(run: RunSettings, sources: Sources) -> Iterator[RunNote]:
    """The notes of a run on its sets."""
    stream, name, method = run.stream, run.method, METHODS[run.method]
    n_id, n_ood, n_noise = sources.sizes
    listed = sources.listed
    wanted, _, tests, injected = stream_sizes(stream, n_id, n_ood, len(listed) if listed else None)
    again = "'{}' is smaller than the streams need: its images are shown up to {:.2f} times."
    if listed and listed.lacking:
        many, pair = len(listed.lacking), f"'{run.ood_set}' with '{run.id_set}'"
        text = (
            f"The list of {pair} names {counted(many, 'image')} that the set lacks, and the stream "
            f"goes without: {first_of(listed.lacking, _SHOWN)}."
        )
        yield RunNote(LACKING, pair, text, float(many))
    if n_ood and wanted > n_ood and (listed or stream.ood_fill == "repeat"):
        ood_set, times = str(run.ood_set), wanted / n_ood
        yield RunNote(REPEATED, ood_set, again.format(ood_set, times), times)
    if n_ood and wanted > n_ood and stream.ood_fill == "cap" and not listed:
        share, asked = f"{n_ood / (n_id + n_ood):.1%}", f"{ood_share(stream.ratio):.0%}"
        text = f"'{run.ood_set}' is too small for {asked} noise: the stream has {share}."
        yield RunNote("capped", f"{run.ood_set} {asked}", text)
    if n_ood and stream.ratio == NATURAL:
        noise_share = n_ood / (n_id + n_ood)
        text = f"The natural mix of '{run.id_set}' and '{run.ood_set}' has {noise_share:.1%} noise."
        yield RunNote(MIX, f"{run.id_set} and {run.ood_set}", text, noise_share)
    if n_noise and injected > n_noise:
        pool, times = noise_name(stream.noise), injected / n_noise
        yield RunNote(REPEATED, pool, again.format(pool, times), times)
    for set_name, images in ((run.id_set, n_id), (run.ood_set, n_ood)):
        if set_name and (count := miscounted(set_name, images)):
            text = f"'{set_name}' is not the published set: it has {count}."
            yield RunNote(OTHER_IMAGES, set_name, text, float(images))
    if model := foreign_model(run.encoder, sources.id_set.identity):
        text = f"the features in {run.encoder}/ are of {short(model)}: the folder was copied."
        yield RunNote("encoder", run.encoder, text)
    common = overlap(sources.id_set, sources.ood_set) if sources.ood_set else ""
    if common:
        pair = f"'{run.id_set}' and '{run.ood_set}'"
        text = f"{pair} {common}: what is right for one counts as wrong for the other."
        yield RunNote("overlap", pair, text)
    if method.offline:
        text = f"{name} sees the whole stream before it decides: a reference, no online method."
        yield RunNote(OFFLINE, name, text)
    if not method.decides:
        text = f"{name} gives a score and no decision: it is judged in the table of --report ood."
        yield RunNote(UNDECIDED, name, text)
    has_texts = run.prompt in sources.id_set.texts
    more = (generic_of(sources.id_set, run.prompt) if has_texts else None) or MoreText()
    if phrase := run.options.note(more.generic is not None, more.is_level_known):
        yield RunNote("method", name, f"{name} {phrase}.")
    items = tests + injected
    if 0 < items <= (first := run.options.warm_up):
        injects = "noise" in method.defaults  # by itself; then it enters its threshold
        rule = f"'zs-clip --noise {stream.noise if injects else NO_NOISE}'"
        text = (
            f"{name} decides as {'zs-clip' if stream.noise == NO_NOISE else rule} does throughout: "
            f"a stream of {items:,} items ends before its detector decides, after {first:,} items "
            f"({run.options.warm_up_by})."
        )
        if injected and injects:
            text += (
                f" {injected:,} of them are injected noise: in its threshold they weigh as much as "
                f"the stream's own images."
            )
        yield RunNote("warm-up", name, text, float(-items))
