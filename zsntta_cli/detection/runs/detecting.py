"""What `zsntta detect` does: images, or features that are cached, to rows as they are decided."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import FeatureSet, difference
from zsntta_cli.cache.folder import feature_path, set_names
from zsntta_cli.cache.hdf5 import read_features, read_sample_ids
from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.encoding import Encoded, Encoding
from zsntta_cli.detection.runs.answers import Interview
from zsntta_cli.detection.runs.deciding import RowMaker, in_hindsight, matrix, on_arrival
from zsntta_cli.detection.runs.flags import Ranking
from zsntta_cli.detection.runs.request import Request
from zsntta_cli.detection.sources import batches
from zsntta_cli.detection.sources.item import Item, refuse
from zsntta_cli.detection.verdicts import VerdictAnswer, VerdictRow
from zsntta_cli.errors import DatasetError, MissingFeatures, SettingsError, StoreError, short

AT_ONCE = 64  # images between two words about them, where they are decided on arrival
_ALIKE, _COMPARED = 1 - 1e-6, 4096  # cosine of texts, and the most classes to be compared


class Batch(NamedTuple):
    """Images and what is said of them."""

    items: list[Item]
    rows: list[VerdictRow]

    def only(self, which: VerdictAnswer) -> "Batch":
        """The images of one answer; what could not be read has none."""
        kept = [pair for pair in zip(*self, strict=True) if pair[1]["answer"] == which]
        return Batch([item for item, _ in kept], [row for _, row in kept])


@dataclass(frozen=True)
class DetectRun:
    """A detector and the images that it is to see."""

    request: Request
    encoding: Encoding
    detector: OnlineDetector
    cached: FeatureSet | None = None
    interview: Interview | None = None  # which asks about images, in hindsight

    def batches(self) -> Iterator[Batch]:
        """Rows in the order of the images: all at once in hindsight, else as they are decided.

        Raises:
            DatasetError: a source that holds no image; what cannot be read is a row.
        """
        rule = self.request.rule
        if self.request.on_arrival:
            decide, parts = on_arrival(self.detector, rule.flag, Ranking()), self._encoded()
        else:
            decide = in_hindsight(self.detector, rule.flag, rule.seed, self._clean())
            parts = iter([list(chain.from_iterable(self._encoded()))])
        maker = RowMaker(decide, self.encoding.name, self.interview)
        for encoded in parts:
            yield Batch([one.item for one in encoded], maker.rows(encoded))

    def _encoded(self) -> Iterator[list[Encoded]]:
        if self.cached is not None:
            path, features = self.cached.path, self.cached.image_features
            load = partial(refuse, "its features are cached, and not where it lies")
            named = zip(read_sample_ids(path), features, strict=True)
            encoded = [Encoded(Item(name, load), row) for name, row in named]
            for start in range(0, len(encoded), AT_ONCE):
                yield encoded[start : start + AT_ONCE]
            return
        for items in batches(self.request.images.sources, self.request.images.fps):
            step = AT_ONCE if self.request.on_arrival else len(items)
            for start in range(0, len(items), step):
                part = items[start : start + step]
                yield self.encoding.images(part, "images" if len(part) > AT_ONCE else "")

    def _clean(self) -> NDArray[np.float32] | None:
        """Features (M, D) of the images known to be clean."""
        path = self.request.rule.clean
        if path is None:
            return None
        items = list(chain.from_iterable(batches([str(path)], 1)))
        features = matrix(self.encoding.images(items, "clean images"))
        if not len(features):
            raise DatasetError(f"not one image of {path} could be read.")
        return features


class RowSink(Protocol):
    """Where verdict rows go: a file, a page, folders, a terminal."""

    def open(self, run: DetectRun) -> None:  # noqa: ARG002 - most begin with nothing
        """Begin, before the first batch."""
        return

    def take(self, batch: Batch) -> None:
        """Take the next rows."""

    def close(self) -> None:
        """End: what appears as a whole appears now."""
        return


def detect_run(request: Request, encoding: Encoding) -> DetectRun:
    """A detector that has seen nothing, on what is asked for.

    Raises:
        DatasetError: what is named is not there. StoreError: features that cannot be used.
        EncoderError: the encoder is needed and cannot be had.
    """
    request.check_sources()
    set_name = request.images.set_name
    cached = _cached_set(set_name, encoding) if set_name else None
    names = request.classes or (cached.class_names if cached else ())
    if not names:
        raise SettingsError(f"'{set_name}' has no class names: name them.")
    text = _text(names, request.template, encoding, cached)
    if alike := _alike(names, text):
        encoding.reporter.note(f"warning: {alike}")
    identity = cached.identity if cached else encoding.identity
    detector = OnlineDetector(
        text, identity.get("logit_scale", math.nan), request.rule.method, class_names=names,
        normalized=bool(cached and cached.normalized), logit_bias=identity.get("logit_bias"),
        score=request.rule.score,
    )  # fmt: skip
    detector.identity = identity
    return DetectRun(request, encoding, detector, cached)


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
    if cached is None:
        return encoding.texts(names, template)
    kept = cached.text_features.get(template)
    if kept is not None and set(names) <= set(cached.class_names):
        return kept[[cached.class_names.index(name) for name in names]]
    text = encoding.texts(names, template)
    if other := difference(cached.identity, encoding.identity):
        raise StoreError(
            f"{cached.path} is of another encoder than this is now ({other.key}: {other.one}, "
            f"now {other.other})",
            remedy="extract-again",
        )
    return text


def _cached_set(name: str, encoding: Encoding) -> FeatureSet:
    path = feature_path(encoding.root, encoding.name, name)
    if not path.exists():
        others = tuple(set_names(encoding.root, encoding.name))
        raise MissingFeatures(name, encoding.name, str(encoding.root), others)
    return read_features(path)
