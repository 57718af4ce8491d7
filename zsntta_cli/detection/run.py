"""The work of `zsntta detect`: images, or cached features, become rows as they are decided."""

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path, set_names
from zsntta_cli.cache.identity import check_same
from zsntta_cli.cache.lacking import missing_features
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets import default_prompt
from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.corrections import Corrected
from zsntta_cli.detection.detector import Detector, facts_of
from zsntta_cli.detection.encoding import Encoding
from zsntta_cli.detection.inputs import checked_settings
from zsntta_cli.detection.names import names_of, notes_on
from zsntta_cli.detection.sources import PIPE, Photo, check_sources, photos_of
from zsntta_cli.detection.verdicts import FIELDS, FORMAT, Flag, Row, parsed_flag
from zsntta_cli.encoders.text import generic_text, prompt_features
from zsntta_cli.errors import SettingsError, counted, first_of, short
from zsntta_cli.settings import is_tiny
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, prompt_template

AT_ONCE = 64  # images between two words about them, where they are decided on arrival
_ALIKE, _COMPARED = 1 - 1e-6, 4096  # cosine of texts, and the most classes to be compared


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to judge: which images, which classes, and how to decide."""

    sources: tuple[str, ...] = ()
    set_name: str | None = None  # a cached set in place of images
    all_folders: bool = False  # hidden ones, and those of systems and tools, too
    classes: tuple[str, ...] = ()  # none: those of the set, or of the photos
    class_photos: Path | None = None  # examples of the classes: a folder a class
    prompt: str | None = None
    method: str = "cull"
    settings: Mapping[str, Any] = field(default_factory=dict)  # the method's, but its defaults
    flag: Flag = None

    def __post_init__(self) -> None:
        both = "both images and a cached set are named: name only one of them."
        check(not (self.sources and self.set_name), both)
        check(
            bool(self.sources or self.set_name),
            "specify images: files, folders, archives, lists, '-', or --cached SET.",
        )
        checked_settings(self.method, self.settings)
        if self.prompt is not None:
            prompt_template(self.prompt)
        if self.classes or not (self.set_name or self.class_photos):
            names_of(self.classes)
        check(
            parsed_flag(self.flag) is None or not self.on_arrival,
            "the number of images is not known on arrival: omit --flag, or name a folder.",
        )

    @property
    def on_arrival(self) -> bool:
        """Whether images are decided as they come, in order, and not in hindsight."""
        return PIPE in self.sources


@dataclass(frozen=True)
class DetectRun:
    """A detector and the images that it is to judge."""

    request: Request
    encoding: Encoding
    detector: Detector
    cached: Features | None = None
    corrected: Corrected | None = None  # what a person said, which is learned and takes effect
    left_out: LeftOut = field(default_factory=LeftOut)  # of folders, as they are looked through

    def batches(self) -> Iterator[tuple[list[Photo], list[Row]]]:
        """Images and their rows, in order: all at once in hindsight, else as they are decided.

        An image that cannot be read is a row with an error.

        Raises:
            DatasetError: a source has no image.
        """
        margins, parts = list[float](), self._photos()
        on_arrival, detector = self.request.on_arrival, self.detector
        if on_arrival and self.corrected:
            self.corrected.teach(detector, self.encoding)
        for photos in parts if on_arrival else [list(chain.from_iterable(parts))]:
            features = [photo.features for photo in photos if photo.features is not None]
            if not on_arrival and self.corrected:
                self.corrected.teach(detector, self.encoding, photos)
            verdicts: list[Row] = []
            if features:
                stacked = np.array(features, np.float32)
                if on_arrival:
                    verdicts = detector.update(stacked).rows()
                    rank_so_far(verdicts, margins)
                else:
                    verdicts = detector.decide_all(stacked, self.request.flag).rows()
            rows = rows_of(photos, verdicts, self.encoding.name)
            if self.corrected:
                self.corrected.apply(rows, detector.names)
            yield photos, rows

    def _photos(self) -> Iterator[list[Photo]]:
        """The images with their features: all of a source, or some that came on arrival."""
        if self.cached is not None:
            names = store.read_sample_ids(self.cached.path)
            photos = [Photo(name, _not_here) for name in names]
            for photo, row in zip(photos, self.cached.image_features, strict=True):
                photo.take(row)
            yield photos
            return
        for photos in photos_of(self.request.sources, self.left_out, self.request.all_folders):
            step = AT_ONCE if self.request.on_arrival else max(len(photos), 1)
            for start in range(0, len(photos), step):
                part = photos[start : start + step]
                self.encoding.encode(part, "images" if len(part) > AT_ONCE else "")
                yield part
        if again := self.left_out.again:
            self.encoding.reporter.note(
                f"note: {counted(again, 'image')} given more than once, by folder, name or link: "
                f"judged only once."
            )


def detect_run(
    request: Request, encoding: Encoding, corrected: Corrected | None = None
) -> DetectRun:
    """A new detector for a request, with its images and a person's corrections of some.

    Raises:
        DatasetError: a named source does not exist. StoreError: features cannot be used.
        EncoderError: the encoder is needed and not available.
    """
    check_sources(request.sources)
    cached, of_encoder = None, dict[str, Any]()
    if name := request.set_name:
        path = feature_path(encoding.root, encoding.name, name)
        if not path.exists():
            cached_sets = set_names(encoding.root, encoding.name)
            raise missing_features(name, encoding.name, encoding.root, cached_sets)
        cached = store.read(path)
    if request.class_photos:
        from zsntta_cli.detection.photos import photo_classes

        classes = photo_classes(request.class_photos, encoding)
        if cached:
            check_same(cached.path, cached.identity, encoding.identity, then="extract it again")
        names, text, scale = classes.names, classes.features, classes.scale
    else:
        names, text = _named_classes(request, encoding, cached)
        identity = cached.identity if cached else encoding.identity
        scale = identity.get("logit_scale", math.nan)
        of_encoder = facts_of(
            identity, request.method, request.settings,
            lambda: cached.generic if cached else generic_text(encoding.encode_texts)[0],
        )  # fmt: skip
    detector = Detector(
        text, scale, names, request.method, normalized=bool(cached and cached.normalized),
        **of_encoder, **request.settings,
    )  # fmt: skip
    # Of the embedded encoder the summary says more.
    if detector.note and not request.class_photos and not is_tiny(encoding.name):
        encoding.reporter.note(f"note: {detector.note}")
    return DetectRun(request, encoding, detector, cached, corrected)


def _named_classes(
    request: Request, encoding: Encoding, cached: Features | None
) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Class names, by default those of the set, and their text features (C, D).

    The set's own file has the text features, if it has them of these names.
    """
    names, note = request.classes or (cached.class_names if cached else ()), encoding.reporter.note
    if not names:
        raise SettingsError(f"'{request.set_name}' has no class names: add --classes.")
    quoted = [f"'{short(name)}'" if "," in name else short(name) for name in names]
    why = " (names with a comma are in quotes)" if "," in "".join(names) else ""
    note(f"note: {counted(len(names), 'class', 'classes')}: {first_of(quoted)}{why}.")
    for warning in notes_on(request.classes):
        note(f"note: {warning}")
    prompt = default_prompt(request.set_name) if request.set_name else DEFAULT_PROMPT
    prompt = prompt if request.prompt is None else prompt_template(request.prompt)
    kept = cached.texts.get(prompt) if cached else None
    if cached and kept is not None and set(names) <= set(cached.class_names):
        text = kept.features[[cached.class_names.index(name) for name in names]]
    else:
        text = prompt_features(encoding.encode_texts, prompt, names)
        if cached:
            check_same(cached.path, cached.identity, encoding.identity, then="extract it again")
    compared = text if len(names) <= _COMPARED else text[:0]
    same = np.argwhere(np.triu(compared @ compared.T, 1) > _ALIKE)
    if len(same):
        first, second = (short(names[i]) for i in same[0])
        more = f", and {len(same) - 1:,} more pairs" if len(same) > 1 else ""
        note(f"warning: to this encoder '{first}' and '{second}' are the same words{more}.")
    return names, text


def _not_here() -> bytes:
    """Read an image of a cached set."""
    raise OSError("only its features are cached, not its location")


def rank_so_far(rows: Sequence[Row], margins: list[float]) -> None:
    """Rank rows among those so far, and add their margins to the ascending `margins`."""
    for row in rows:
        insort(margins, row["margin"])
        row["rank"] = len(margins) - bisect_right(margins, row["margin"]) + 1


def rows_of(photos: Sequence[Photo], decided: Sequence[Row], encoder_name: str) -> list[Row]:
    """Rows of images in their order; one that cannot be read has an error and no verdict."""
    verdicts, rows = iter(decided), []
    for photo in photos:
        is_judged = photo.features is not None
        rows.append(
            dict.fromkeys(FIELDS)
            | (next(verdicts) if is_judged else {})
            | {
                "format": FORMAT,
                "source": photo.source,
                "content": photo.content.hex() or None if is_judged else None,
                "note": photo.note or None,
                "error": photo.error or None,
                "encoder": encoder_name,
            }
        )
    return rows
