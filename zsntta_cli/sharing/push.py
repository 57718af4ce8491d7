"""Publishing feature files at a place: copies without private data, with an index and a card."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import datasets
from zsntta_cli.addresses import MissingAtStore
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.accuracy import zero_shots
from zsntta_cli.cache.features import FeatureSet, names_a_folder, public_identity
from zsntta_cli.cache.folder import find
from zsntta_cli.datasets.images import numbered
from zsntta_cli.datasets.names import DATASET, WORDS, SetName
from zsntta_cli.errors import MissingFeatures, StoreError, short
from zsntta_cli.files import scratch_folder, write_whole, writing
from zsntta_cli.progress import Reporter
from zsntta_cli.settings.prompts import set_of
from zsntta_cli.sharing.card import card
from zsntta_cli.sharing.index import INDEX, Index, IndexEntry, local_entry, path_of, read_index
from zsntta_cli.sharing.stores import FeaturePlace

CARD = "README.md"
OWN = "MIT"  # of images that this project draws, and of its word lists
NOT_KNOWN = "not known"
_FREE = ("MIT", "BSD", "CC0", "CC BY")  # first words of licences that let anybody pass copies on
_BLOCK = 2**16  # rows
_NAMED = 6  # sets in an error


@dataclass(frozen=True)
class PushPlan:
    """The sets to publish, and the features folder that they are in."""

    root: Path
    names: Sequence[str] = ()  # empty: all sets
    encoder: str | None = None
    without_ids: bool = False  # sample ids, which are mostly file names, become numbers
    may: bool = False  # the user has read the terms that do not allow this to everybody
    overwrite: bool = False  # replace other features of the same name


@dataclass(frozen=True)
class Published:
    """The result of publishing one feature file."""

    path: str  # at the place
    entry: IndexEntry
    is_new: bool  # False: the place had it already

    @property
    def line(self) -> str:
        """The result in one line."""
        return f"{self.path}: {self.entry.size / 2**20:,.1f} MiB" + ", there already" * (
            not self.is_new
        )


def licence_of(name: str, kind: str = DATASET) -> str:
    """The short name of the licence of a set's images or words."""
    parsed = SetName.parse(name)
    if kind == WORDS:
        return OWN if set_of(parsed.bare) else NOT_KNOWN
    if kind != DATASET:  # noise images
        return OWN
    entry = datasets.CATALOGUE.get(parsed.base)
    return entry.licence if entry and entry.licence else NOT_KNOWN


def is_free(licence: str) -> bool:
    """Whether a licence lets anybody pass copies on, by its first words."""
    return licence.startswith(_FREE)


def files_to_push(plan: PushPlan) -> list[Path]:
    """Find the feature files of a plan.

    Raises:
        StoreError: there are none, or the terms of some do not let everybody pass them on.
    """
    paths = find(plan.root, plan.names, plan.encoder)
    if not paths:
        raise MissingFeatures("any set", plan.encoder or "", str(plan.root))
    licences = {path.stem: licence_of(path.stem, hdf5.read_header(path).kind) for path in paths}
    bound = [name for name, licence in licences.items() if not is_free(licence)]
    if bound and not plan.may:
        shown = ", ".join(f"{name} ({licences[name]})" for name in bound[:_NAMED])
        more = f" and {len(bound) - _NAMED} more" * (len(bound) > _NAMED)
        raise StoreError(
            f"the terms of {shown}{more} do not say that everybody may pass features on: read "
            f"them, and add --i-may if you may, or choose with --set."
        )
    return paths


def push(store: FeaturePlace, plan: PushPlan, reporter: Reporter) -> Iterator[Published]:
    """Publish feature files beside those that a place has already.

    Raises:
        StoreError: the place has other features of this name, or the upload fails.
    """
    paths = files_to_push(plan)
    index = _index_there(store)
    with scratch_folder(plan.root) as staging:
        new, published = dict[str, IndexEntry](), list[Published]()
        for path in paths:
            place = path_of(path.parent.name, path.stem)
            if (entry := index.files.get(place)) and _is_same(path, entry, plan):
                published.append(Published(place, entry, is_new=False))
                continue
            copy = staging / place
            _write_copy(path, copy, plan)
            licence = licence_of(path.stem, hdf5.read_header(path).kind)
            new[place] = local_entry(copy, licence, zero_shots(path), not plan.without_ids)
            published.append(Published(place, new[place], is_new=True))
        if new:
            index = index.with_files(new)
            write_whole(staging / INDEX, index.to_json().encode())
            write_whole(staging / CARD, card(store.address, index).encode())
            with reporter.waiting(lambda: f"publishing to {store.address}"):
                store.publish(staging)
    yield from published


def _index_there(store: FeaturePlace) -> Index:
    try:
        return read_index(store)
    except MissingAtStore:
        return Index()


def _is_same(path: Path, there: IndexEntry, plan: PushPlan) -> bool:
    """Whether a place has these features with all their prompts, and no ids that must go.

    Raises:
        StoreError: the place has other features of this name.
    """
    header = hdf5.read_header(path)
    texts = dict(zip(header.templates, header.text_digests, strict=True))
    texts_there = dict(zip(there.header.templates, there.header.text_digests, strict=True))
    shared = {*texts} & {*texts_there}
    is_other = header.digest != there.digest or any(texts[t] != texts_there[t] for t in shared)
    if is_other and not plan.overwrite:
        raise StoreError(
            f"{path.parent.name}/{path.name} is there already with other features: add --overwrite "
            f"to replace it, or push to another address."
        )
    tells_too_much = plan.without_ids and there.has_ids
    return not is_other and not tells_too_much and {*texts} <= {*texts_there}


def _write_copy(path: Path, copy: Path, plan: PushPlan) -> None:
    """Write a feature file anew, as HDF5 leaves the bytes of what it deletes in the file."""
    features, ids = hdf5.read_features(path), hdf5.read_sample_ids(path)
    if not plan.without_ids and (telling := [name for name in ids if names_a_folder(name)]):
        raise StoreError(
            f"{path} has sample ids with folders of this machine ('{short(telling[0])}'): add "
            f"--without-ids, and they become numbers."
        )
    with writing(copy):
        copy.parent.mkdir(parents=True, exist_ok=True)
    hdf5.write_features(
        copy, kind=features.kind, name=path.stem, encoder=public_identity(features.identity),
        source=_public_source(features.source, plan.without_ids), blocks=_blocks(features),
        labels=features.labels,
        sample_ids=numbered(len(ids)) if plan.without_ids else ids,
        class_names=features.class_names, texts=features.texts(), normalized=features.normalized,
        machine=features.machine, created=features.created,
    )  # fmt: skip


def _public_source(source: Mapping[str, Any], without_ids: bool) -> dict[str, Any]:
    """A source as it is published; without ids, it only says how many images were left out."""
    skipped = source.get("skipped")
    hidden = {"skipped": numbered(len(skipped))} if isinstance(skipped, list) else {}
    return {**source, **(hidden if without_ids else {})}


def _blocks(features: FeatureSet) -> Iterator[NDArray[np.floating]]:
    rows = features.image_features
    starts = range(0, max(len(rows), 1), _BLOCK)  # word lists have one block without rows
    return (rows[start : start + _BLOCK] for start in starts)
