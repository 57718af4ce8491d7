"""What `zsntta detect` does: images, or features that are cached, to rows as they are decided."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import FeatureSet, difference
from zsntta_cli.cache.folder import feature_path, set_names
from zsntta_cli.cache.hdf5 import read_features, read_sample_ids
from zsntta_cli.detection.encoding.encoding import Encoded, Encoding
from zsntta_cli.detection.online import OnlineDetector
from zsntta_cli.detection.runs.deciding import Arrivals, in_hindsight, matrix
from zsntta_cli.detection.runs.request import Request
from zsntta_cli.detection.runs.rows import Row
from zsntta_cli.detection.sources import batches
from zsntta_cli.detection.sources.item import Item, refuse
from zsntta_cli.errors import DatasetError, MissingFeatures, SettingsError, StoreError, short

_ALIKE, _COMPARED = 1 - 1e-6, 4096  # cosine of texts, and the most classes to be compared
_AT_ONCE = 64  # images between two words about them, where they are decided on arrival


class Batch(NamedTuple):
    """Images and what is said of them."""

    items: list[Item]
    rows: list[Row]


@dataclass(frozen=True)
class Detection:
    """A detector and the images that it is to see."""

    request: Request
    encoding: Encoding
    detector: OnlineDetector
    cached: FeatureSet | None = None

    def batches(self) -> Iterator[Batch]:
        """Rows in the order of the images: all at once in hindsight, else as they are decided.

        Raises:
            DatasetError: a source that holds no image; what cannot be read is a row.
        """
        request, name = self.request, self.encoding.name
        if request.on_arrival:
            arrivals = Arrivals(self.detector, request.flag, name)
            for encoded in self._encoded():
                for start in range(0, len(encoded), _AT_ONCE):
                    some = encoded[start : start + _AT_ONCE]
                    yield Batch([one.item for one in some], arrivals.rows(some))
            return
        clean = self._clean()
        everything = [one for encoded in self._encoded() for one in encoded]
        rows = in_hindsight(everything, self.detector, request.flag, request.seed, name, clean)
        yield Batch([one.item for one in everything], rows)

    def _encoded(self) -> Iterator[list[Encoded]]:
        if self.cached is not None:
            yield _of_set(self.cached)
            return
        for items in batches(self.request.sources, self.request.fps):
            step = _AT_ONCE if self.request.on_arrival else len(items)
            for start in range(0, len(items), max(step, 1)):
                some = items[start : start + step]
                yield self.encoding.images(some, "images" if len(some) > _AT_ONCE else "")

    def _clean(self) -> NDArray[np.float32] | None:
        """Features (M, D) of the images known to be clean."""
        if self.request.clean is None:
            return None
        items = [item for some in batches([str(self.request.clean)], 1) for item in some]
        found = matrix(self.encoding.images(items, "clean images"), 1)
        if not len(found):
            raise DatasetError(f"not one image of {self.request.clean} could be read.")
        return found


def detection(request: Request, encoding: Encoding) -> Detection:
    """A detector that has seen nothing, on what is asked for.

    Raises:
        DatasetError: what is named is not there. StoreError: features that cannot be used.
        EncoderError: the encoder is needed and cannot be had.
    """
    request.check_sources()
    cached = _cached(request, encoding) if request.set_name else None
    names = request.classes or (cached.class_names if cached else ())
    if not names:
        raise SettingsError(f"'{request.set_name}' has no class names: name them.")
    text = _text(names, request.template, encoding, cached)
    if alike := _alike(names, text):
        encoding.reporter.note(f"warning: {alike}")
    identity = cached.identity if cached else encoding.identity
    detector = OnlineDetector(
        text, identity.get("logit_scale", math.nan), request.method, class_names=names,
        normalized=bool(cached and cached.normalized), logit_bias=identity.get("logit_bias"),
        score=request.score,
    )  # fmt: skip
    detector.identity = identity
    return Detection(request, encoding, detector, cached)


def _alike(names: tuple[str, ...], text: NDArray[np.float32]) -> str:
    """What to say of classes that this encoder has one and the same text feature for."""
    if len(names) > _COMPARED:
        return ""
    same = np.argwhere(np.triu(text @ text.T, 1) > _ALIKE)
    if not len(same):
        return ""
    one, other = (names[i] for i in same[0])
    more = f", and {len(same) - 1:,} more pairs" if len(same) > 1 else ""
    return f"to this encoder '{short(one)}' and '{short(other)}' are the same words{more}."


def _text(
    names: tuple[str, ...], template: str, encoding: Encoding, cached: FeatureSet | None
) -> NDArray[np.float32]:
    """Text features (C, D) of the classes, from the set's own file where it has them."""
    known = cached.text_features.get(template) if cached else None
    if cached is None:
        return encoding.texts(names, template)
    if known is not None and set(names) <= set(cached.class_names):
        return known[[cached.class_names.index(name) for name in names]]
    found = encoding.texts(names, template)
    if other := difference(cached.identity, encoding.identity):
        raise StoreError(
            f"{cached.path} is of another encoder than this is now ({other.key}: {other.one}, "
            f"now {other.other})",
            remedy="extract-again",
        )
    return found


def _cached(request: Request, encoding: Encoding) -> FeatureSet:
    name = request.set_name or ""
    path = feature_path(encoding.root, encoding.name, name)
    if not path.exists():
        there = tuple(set_names(encoding.root, encoding.name))
        raise MissingFeatures(name, encoding.name, str(encoding.root), there)
    return read_features(path)


def _of_set(cached: FeatureSet) -> list[Encoded]:
    load = partial(refuse, "its features are cached, and not where it lies")
    features = cached.image_features
    return [
        Encoded(Item(source, load), row)
        for source, row in zip(read_sample_ids(cached.path), features, strict=True)
    ]
