"""Kept runs as the page needs them: each once, light, of the rules of today, in a fixed order."""

import functools
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.methods import method_place
from zsntta_cli.results.curves import Curves, drawable_curves
from zsntta_cli.results.frame import Stream
from zsntta_cli.results.kept import Kept, KeptItems
from zsntta_cli.settings import StreamSettings
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.revision import revision
from zsntta_cli.simulation.runs import RunSettings

Words = NDArray[np.uint64]


class Bits(NamedTuple):
    """A bit for each test sample of a stream, 64 to a word."""

    known: Words  # ID samples that are called clean and classified right
    noise: Words  # OOD samples that are called noise


@dataclass(frozen=True, eq=False)
class Entry:
    """One run."""

    record: Record
    given: Curves  # as they were kept
    bits: Bits | None  # where its items were kept

    @functools.cached_property
    def drawable(self) -> Curves:
        """Those of its curves that can be drawn."""
        return drawable_curves(self.given)


@dataclass(frozen=True)
class Taken:
    """The runs of a page, and how many it leaves out."""

    entries: tuple[Entry, ...]
    unfinished: int  # stopped by Ctrl-C
    outdated: int  # of other rules or another revision of the method


class Spot(NamedTuple):
    """A stream but for its seed: what is ranked together saw the same samples."""

    stream: Stream
    ratio: float
    ood_set: str  # empty for a clean stream


def taken(kept: Iterable[Kept]) -> Taken:
    """The runs to show; of two that are the same run, the one made last."""
    found: dict[Hashable, Entry] = {}
    unfinished = outdated = 0
    current = functools.lru_cache(maxsize=None)(revision)
    for one in kept:
        record = one.record
        if record.unfinished:
            unfinished += 1
        elif record.revision != (current(record.settings.method) or ""):
            outdated += 1
        else:
            key = (record.settings, tuple(sorted(record.digests.items())))
            found[key] = _later(Entry(record, one.curves, _bits(one.items)), found.get(key))
    entries = tuple(sorted(found.values(), key=_place))
    return Taken(entries, unfinished, outdated)


def _later(one: Entry, other: Entry | None) -> Entry:
    """The run that was made last, with the items of either."""
    if other is None:
        return one
    first, last = sorted((one, other), key=lambda entry: (entry.record.created, str(entry.record)))
    return Entry(last.record, last.given, last.bits or first.bits)


def _bits(items: KeptItems | None) -> Bits | None:
    if items is None:
        return None
    return Bits(_words(items.is_right & ~items.is_noise), _words(items.is_right & items.is_noise))


def _words(flags: NDArray[np.bool_]) -> Words:
    words = np.zeros(-(-len(flags) // 64), np.uint64)
    packed = np.packbits(flags)
    words.view(np.uint8)[: len(packed)] = packed
    return words


def _place(entry: Entry) -> tuple[Any, ...]:
    """Where a run stands: by set, encoder, ratio, method, settings, seed; never by its time."""
    settings = entry.record.settings
    values = [str(value) for value in all_settings(settings).values()]
    return (
        set_place(settings.id_set), settings.encoder, settings.stream.ratio,
        set_place(settings.ood_set or ""), method_place(settings.method),
        settings.stream.seed, settings.prompt, values, sorted(entry.record.digests.items()),
    )  # fmt: skip


def all_settings(settings: RunSettings) -> dict[str, Any]:
    """Settings of the stream, the threshold and the method by name, as `RunSettings.flat` has."""
    return {**vars(settings.stream), **vars(settings.threshold), **vars(settings.options)}


def set_place(name: str) -> tuple[int, str]:
    """Sets in the order of the catalogue, then all others by name."""
    return _catalogue().get(name.partition(":")[0], len(CATALOGUE)), name


@functools.cache
def _catalogue() -> dict[str, int]:
    return {name: i for i, name in enumerate(CATALOGUE)}


def spots(entries: Sequence[Entry]) -> list[Spot]:
    """The spot of each run. Features of one name with other digests make other spots."""
    records = [entry.record for entry in entries]
    ids = [_of_set(record, record.settings.id_set) for record in records]
    oods = [_of_set(record, record.settings.ood_set or "") for record in records]
    texts = [(*i, r.settings.prompt, _text(r)) for i, r in zip(ids, records, strict=True)]
    id_number, ood_number, text_number = _numbered(ids), _numbered(oods), _numbered(texts)
    return [
        Spot(
            Stream(
                i[0], i[1], (id_number[i], text_number[t], ood_number[o]), _kind(r.settings.stream)
            ),
            r.settings.stream.ratio,
            o[1],
        )
        for r, i, t, o in zip(records, ids, texts, oods, strict=True)
    ]


_Key = tuple[str, ...]  # names, and a digest last


def _of_set(record: Record, name: str) -> _Key:
    return record.settings.encoder, name, record.digests.get(name, "")


def _text(record: Record) -> str:
    return record.digests.get(f"text/{record.settings.id_set}", "")


def _numbered(keys: Sequence[_Key]) -> dict[_Key, int]:
    """A number for the digest of each key, among keys of the same names: most runs have 0."""
    counts, met = Counter(keys), Counter[_Key]()
    numbers = {}
    for key in sorted(counts, key=lambda key: (-counts[key], key)):
        numbers[key] = met[key[:-1]]
        met[key[:-1]] += 1
    return numbers


_KIND = ("order", "ood_fill", "rounded_odds", "limit")  # ratio and seed apart, and injection


def _kind(stream: StreamSettings) -> tuple[tuple[str, Any], ...]:
    """What makes a stream another one; injected items do not: the test samples stay the same."""
    values = {name: getattr(stream, name) for name in _KIND}
    odds = stream.ratio / (1 - stream.ratio)
    if round(odds, 2) == odds:
        values["rounded_odds"] = False  # nothing to round
    if not stream.ratio:
        values["ood_fill"] = StreamSettings.ood_fill
    return tuple((k, v) for k, v in values.items() if v != getattr(StreamSettings, k))  # defaults
