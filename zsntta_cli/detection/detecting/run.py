"""The work of `zsntta detect`: images, or cached features, become rows as they are decided."""

import math
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path, set_names
from zsntta_cli.cache.identity import check_same, is_level_known
from zsntta_cli.cache.lacking import missing_features
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.classes.names import notes_on
from zsntta_cli.detection.classes.photos import PhotoClasses, photo_classes
from zsntta_cli.detection.detecting.corrections import Corrected
from zsntta_cli.detection.detecting.request import Request
from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.encoding import Encoded, Encoding, wrong_with
from zsntta_cli.detection.flags import Flag, Flagged, flagged
from zsntta_cli.detection.sources import Scan, batches, check_sources
from zsntta_cli.detection.sources.item import Item, refuse
from zsntta_cli.detection.verdicts import FIELDS, FORMAT, VerdictAnswer, VerdictRow
from zsntta_cli.errors import (
    SettingsError,
    counted,
    first_of,
    short,
)
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import is_tiny

# From features (N, D) of the images that are to be judged.
Decide = Callable[[NDArray[np.float32]], Flagged]

AT_ONCE = 64  # images between two words about them, where they are decided on arrival
_ALIKE, _COMPARED = 1 - 1e-6, 4096  # cosine of texts, and the most classes to be compared


class Batch(NamedTuple):
    """Images and their verdict rows."""

    items: list[Item]
    rows: list[VerdictRow]

    def only(self, which: VerdictAnswer) -> "Batch":
        """The images with one answer; images that could not be read have none."""
        kept = [pair for pair in zip(*self, strict=True) if pair[1]["answer"] == which]
        return Batch([item for item, _ in kept], [row for _, row in kept])


@dataclass(frozen=True)
class DetectRun:
    """A detector and the images that it is to judge."""

    request: Request
    encoding: Encoding
    detector: OnlineDetector
    cached: Features | None = None
    photos: PhotoClasses | None = None  # what the classes were made of, in place of names
    corrected: Corrected | None = None  # what a person said, which is learned and takes effect
    left_out: LeftOut = field(default_factory=LeftOut)  # of folders, as they are looked through

    def batches(self) -> Iterator[Batch]:
        """Rows in the order of the images: all at once in hindsight, else as they are decided.

        Raises:
            DatasetError: a source holds no image. An image that cannot be read is a row with an
                error.
        """
        if self.request.on_arrival:
            self._teach()
            decide, parts = on_arrival(self.detector), self._encoded()
        else:
            decide = in_hindsight(self.detector, self.request.flag)
            parts = iter([list(chain.from_iterable(self._encoded()))])
        examples = 0
        for encoded in parts:
            examples += self._examples_among(encoded)
            if not self.request.on_arrival:
                self._teach(encoded)
            rows = rows_of(encoded, decide, self.encoding.name)
            rows = self.corrected.rows(rows) if self.corrected else rows
            yield Batch([one.item for one in encoded], rows)
        if examples:
            self.encoding.reporter.note(
                f"note: {examples:,} of the images are example photos of the classes as well."
            )

    def _teach(self, encoded: Sequence[Encoded] = ()) -> None:
        if self.corrected:
            self.corrected.teach(self.detector, self.encoding.store, encoded)

    def _examples_among(self, encoded: Sequence[Encoded]) -> int:
        """How many images are photos from which the classes were made."""
        if self.photos is None:
            return 0
        photos = self.photos.photos
        return sum(one.features is not None and one.features.tobytes() in photos for one in encoded)

    def _encoded(self) -> Iterator[list[Encoded]]:
        if self.cached is not None:
            load = partial(refuse, "its features are cached, but not where it is stored")
            named = zip(
                store.read_sample_ids(self.cached.path), self.cached.image_features, strict=True
            )
            encoded = (
                Encoded(Item(name, load), None if (wrong := wrong_with(row)) else row, wrong)
                for name, row in named
            )
            while batch := list(islice(encoded, AT_ONCE)):
                yield batch
            return
        for items in self._items():
            step = AT_ONCE if self.request.on_arrival else len(items)
            for start in range(0, len(items), step):
                part = items[start : start + step]
                yield self.encoding.images(part, "images" if len(part) > AT_ONCE else "")

    def _items(self) -> Iterator[list[Item]]:
        """The images of all sources."""
        scan = Scan(self.left_out, self.request.all_folders)
        yield from filter(None, batches(self.request.sources, scan))
        if again := _said_again(self.left_out.again):
            self.encoding.reporter.note(again)


class RowSink(Protocol):
    """A destination of verdict rows: a file, a page, folders, a terminal."""

    def open(self, run: DetectRun) -> None:  # noqa: ARG002 - most begin with nothing
        """Begin, before the first batch."""
        return

    def take(self, batch: Batch) -> None:
        """Take the next rows."""

    def complete(self) -> None:
        """Take note that all images of the run were taken and none is missing."""
        return

    def close(self) -> None:
        """End; a file that appears as a whole appears now."""
        return


def detect_run(
    request: Request, encoding: Encoding, corrected: Corrected | None = None
) -> DetectRun:
    """A new detector for a request, with its images and what a person said of some.

    Raises:
        DatasetError: a named source does not exist. StoreError: features cannot be used.
        EncoderError: the encoder is needed and not available.
    """
    check_sources(request.sources)
    cached = _cached_set(request.set_name, encoding) if request.set_name else None
    photos = photo_classes(request.class_photos, encoding) if request.class_photos else None
    identity = cached.identity if cached else encoding.identity
    if photos:
        names, text, scale, bias = photos.names, photos.classes.features, photos.classes.scale, None
        if cached:
            check_same(cached.path, cached.identity, encoding.identity, then="extract it again")
    else:
        names, text = _named_classes(request, encoding, cached)
        scale, bias = identity.get("logit_scale", math.nan), identity.get("logit_bias")
    is_known = is_level_known(identity) and not photos
    reads_generic = is_known and METHODS[request.method].reads_generic
    generic = _generic_text(encoding, cached) if reads_generic else None
    detector = OnlineDetector(
        text, scale, request.method, class_names=names,
        normalized=bool(cached and cached.normalized), logit_bias=bias,
        generic_text=generic, is_level_known=is_known,
    )  # fmt: skip
    if (note := detector.note) and not is_tiny(encoding.name):  # of which the summary says more
        encoding.reporter.note(f"note: {note}")
    return DetectRun(request, encoding, detector, cached, photos, corrected)


def _named_classes(
    request: Request, encoding: Encoding, cached: Features | None
) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Class names, by default those of the set, and their text features (C, D)."""
    names = request.classes or (cached.class_names if cached else ())
    if not names:
        raise SettingsError(f"'{request.set_name}' has no class names: name them.")
    encoding.reporter.note(f"note: {_listed(names)}.")
    for said in notes_on(request.classes):
        encoding.reporter.note(f"note: {said}")
    text = _text(names, request.template, encoding, cached)
    if alike := _alike(names, text):
        encoding.reporter.note(f"warning: {alike}")
    return names, text


def _listed(names: Sequence[str]) -> str:
    """The classes as they were understood; a name that has a comma stands in quotes."""
    shown = [f"'{short(name)}'" if "," in name else short(name) for name in names]
    quoted = " (in quotes are names with a comma)" if any("," in name for name in names) else ""
    return f"{counted(len(names), 'class', 'classes')}: {first_of(shown)}{quoted}"


def _alike(names: tuple[str, ...], text: NDArray[np.float32]) -> str:
    """A warning about classes with the same text feature; empty if there are none."""
    if len(names) > _COMPARED:
        return ""
    same = np.argwhere(np.triu(text @ text.T, 1) > _ALIKE)
    if not len(same):
        return ""
    first, second = (names[i] for i in same[0])
    more = f", and {len(same) - 1:,} more pairs" if len(same) > 1 else ""
    return f"to this encoder '{short(first)}' and '{short(second)}' are the same words{more}."


def _text(
    names: Sequence[str], template: str, encoding: Encoding, cached: Features | None
) -> NDArray[np.float32]:
    """Text features (C, D) of names, from the set's own file if it has them."""
    if cached is None:
        return encoding.texts(names, template)
    kept = cached.texts.get(template)
    if kept is not None and set(names) <= set(cached.class_names):
        return kept.features[[cached.class_names.index(name) for name in names]]
    text = encoding.texts(names, template)
    check_same(cached.path, cached.identity, encoding.identity, then="extract it again")
    return text


def _generic_text(encoding: Encoding, cached: Features | None) -> NDArray[np.float32] | None:
    """The encoder's generic text (D,); of a cached set what its file has, if it has any."""
    return encoding.generic_text() if cached is None else cached.generic


def _cached_set(name: str, encoding: Encoding) -> Features:
    path = feature_path(encoding.root, encoding.name, name)
    if not path.exists():
        cached_names = tuple(set_names(encoding.root, encoding.name))
        raise missing_features(name, encoding.name, encoding.root, cached_names)
    return store.read(path)


def _said_again(count: int) -> str:
    """A note on images that are given more than once; empty if there are none."""
    if not count:
        return ""
    images, is_judged = ("image is", "it is") if count == 1 else ("images are", "each is")
    return (
        f"note: {count:,} {images} given more than once, by a folder, a name or a link: "
        f"{is_judged} judged once."
    )


def rows_of(encoded: Sequence[Encoded], decide: Decide, encoder_name: str) -> list[VerdictRow]:
    """Rows of images (N,) in their order; one that cannot be read has an error and no verdict."""
    features = [one.features for one in encoded if one.features is not None]
    judged = zip(*decide(np.array(features, np.float32)), strict=True) if features else iter(())
    rows = []
    for one in encoded:
        verdict: dict[str, Any] = {}
        if one.features is not None:
            decided, rank = next(judged)
            verdict = decided.as_row(rank)
        row: dict[str, Any] = dict.fromkeys(FIELDS) | verdict | {
            "format": FORMAT, "source": one.item.source, "content": one.digest.hex() or None,
            "note": one.note or None, "error": one.error or None, "encoder": encoder_name,
        }  # fmt: skip
        rows.append(cast(VerdictRow, row))
    return rows


def in_hindsight(detector: OnlineDetector, flag: Flag) -> Decide:
    """The rule that decides on all images together."""
    return lambda features: flagged(detector.decide_all(features), flag)


def on_arrival(detector: OnlineDetector) -> Decide:
    """The rule that decides on images as they come and learns; ranks are among those so far."""
    so_far: list[float] = []

    def decide(features: NDArray[np.float32]) -> Flagged:
        verdicts, ranks = detector.update(features), []
        for margin in verdicts.margin.tolist():
            insort(so_far, margin)
            ranks.append(len(so_far) - bisect_right(so_far, margin) + 1)
        return verdicts, ranks

    return decide
