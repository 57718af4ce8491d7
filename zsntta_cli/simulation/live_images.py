"""The images of a stream: those that its feature files were made from, found again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import features, hdf5
from zsntta_cli.cache.features import FeatureSet
from zsntta_cli.datasets.images import ImageSet, limited
from zsntta_cli.datasets.names import SetName
from zsntta_cli.datasets.noise import noise_images
from zsntta_cli.errors import DatasetError, StoreError
from zsntta_cli.settings import LiveSettings
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream


@dataclass(frozen=True)
class _Items:
    """Read item t of a stream."""

    stream: Stream
    sets: dict[int, ImageSet]  # by kind

    def __call__(self, t: int) -> Image.Image:
        return self.sets[int(self.stream.kind[t])].read(int(self.stream.row[t]))


def stream_images(
    stream: Stream, sources: Sources, settings: LiveSettings, image_size: int
) -> ImageSet:
    """Image t of the set is item t of the stream.

    Raises:
        DatasetError: images that cannot be found, or are not those of the features.
    """
    present = {ID: sources.id_set, OOD: sources.ood_set, NOISE: sources.noise}
    sets = {
        kind: _with_features(source, settings, image_size)
        for kind, source in present.items()
        if source is not None
    }
    ids = [
        sets[kind].sample_ids[row]
        for kind, row in zip(stream.kind.tolist(), stream.row.tolist(), strict=True)
    ]
    nothing = np.full(len(stream), -1, np.int32)  # of labels: none of a method's business
    return ImageSet(sources.id_set.name, _Items(stream, sets), nothing, ids)


def _with_features(source: FeatureSet, settings: LiveSettings, image_size: int) -> ImageSet:
    """The images that have features, in the order of these."""
    images = _found(source, settings, image_size)
    made_from = {k: v for k, v in source.source.items() if k not in ("skipped", "split")}
    if images.identity() != made_from:
        raise DatasetError(
            f"the images of '{source.name}' are not those that {source.path} was made from",
            remedy="extract-again",
        )
    if not {"skipped", "split"} & source.source.keys():
        return images
    known = set(hdf5.read_sample_ids(source.path))
    rows = np.array([i for i, name in enumerate(images.sample_ids) if name in known])
    return _picked(images, rows)


def _picked(images: ImageSet, rows: NDArray[np.int64]) -> ImageSet:
    read = images.read
    return replace(
        images,
        read=lambda i: read(int(rows[i])),
        labels=images.labels[rows],
        sample_ids=[images.sample_ids[i] for i in rows.tolist()],
    )


def _found(source: FeatureSet, settings: LiveSettings, image_size: int) -> ImageSet:
    if source.kind == features.NOISE:
        noise = SetName.parse(source.name).bare
        return noise_images(noise, source.source.get("images") or len(source), image_size)
    if "imported" in source.source:
        raise StoreError(
            f"{source.path} was imported: a live method needs the images, so extract them here."
        )
    name = source.source["split"]["of"] if "split" in source.source else source.name
    spec = _spec(name, settings.datasets)
    return limited(datasets.load_images(spec, Path(settings.data_root)), source.source.get("limit"))


def _spec(name: str, given: Sequence[str]) -> str:
    """How the images of a set are named: as they were given, or by the known set's name."""
    for spec in given:
        if str(SetName.parse(spec)) == name:
            return spec
    if SetName.parse(name).base not in datasets.CATALOGUE:
        raise StoreError(
            f"a live method needs the images of '{name}', and it is not known where they are",
            remedy="say-where",
        )
    return name
