"""The work of `zsntta detect`: images, or cached features, become rows as they are decided."""

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path, set_names
from zsntta_cli.cache.identity import check_same, is_level_known
from zsntta_cli.cache.lacking import missing_features
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets import default_prompt
from zsntta_cli.datasets.tree import LeftOut
from zsntta_cli.detection.corrections import Corrected
from zsntta_cli.detection.detector import Detector
from zsntta_cli.detection.encoding import Encoding, wrong_with
from zsntta_cli.detection.inputs import check_method, checked_settings
from zsntta_cli.detection.names import names_of, notes_on
from zsntta_cli.detection.sources import PIPE, Photo, check_sources, photos_of, refuse
from zsntta_cli.detection.verdicts import FIELDS, FORMAT, Flag, Row, Verdicts, parsed_flag
from zsntta_cli.encoders.text import generic_text, prompt_features
from zsntta_cli.errors import SettingsError, counted, first_of, short
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import is_tiny
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, prompt_template

AT_ONCE = 64  # images between two words about them, where they are decided on arrival
_ALIKE, _COMPARED = 1 - 1e-6, 4096  # cosine of texts, and the most classes to be compared


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which images, which classes, how to decide."""

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
        check(
            not (self.sources and self.set_name),
            "both images and a cached set are named: name one of the two.",
        )
        check(
            bool(self.sources or self.set_name),
            "say which images: files, folders, archives, lists, '-', or a cached set.",
        )
        check_method(self.method)
        checked_settings(self.method, self.settings)
        if self.prompt is not None:
            prompt_template(self.prompt)
        if self.classes or not (self.set_name or self.class_photos):
            names_of(self.classes)
        by_words: dict[str, str] = {}
        for name in self.classes:
            other = by_words.setdefault(" ".join(name.replace("_", " ").split()), name)
            names = f"'{short(other)}' and '{short(name)}'"
            check(other == name, f"the class names {names} are one to the encoder.")
        check(
            parsed_flag(self.flag) is None or not self.on_arrival,
            "on arrival nobody knows how many images there will be: leave --flag out, or name a "
            "folder.",
        )

    @property
    def template(self) -> str:
        """The prompt template."""
        if self.prompt is not None:
            return prompt_template(self.prompt)
        return default_prompt(self.set_name) if self.set_name else DEFAULT_PROMPT

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
    examples: frozenset[bytes] = frozenset()  # features of photos that the classes were made of
    corrected: Corrected | None = None  # what a person said, which is learned and takes effect
    left_out: LeftOut = field(default_factory=LeftOut)  # of folders, as they are looked through

    def batches(self) -> Iterator[tuple[list[Photo], list[Row]]]:
        """Images and their rows, in order: all at once in hindsight, else as they are decided.

        Raises:
            DatasetError: a source holds no image. An image that cannot be read is a row with an
                error.
        """
        examples, margins, parts = 0, list[float](), self._photos()
        if not self.request.on_arrival:
            parts = iter([list(chain.from_iterable(parts))])
        elif self.corrected:
            self.corrected.teach(self.detector, self.encoding)
        for photos in parts:
            features = [photo.features for photo in photos if photo.features is not None]
            if self.examples:
                examples += sum(row.tobytes() in self.examples for row in features)
            stacked = np.array(features, np.float32)
            if self.request.on_arrival:
                decided = _on_arrival(self.detector, stacked, margins)
            else:
                if self.corrected:
                    self.corrected.teach(self.detector, self.encoding, photos)
                flag = self.request.flag
                decided = self.detector.decide_all(stacked, flag).rows() if features else []
            rows = rows_of(photos, decided, self.encoding.name)
            if self.corrected:
                self.corrected.apply(rows, self.detector.names)
            yield photos, rows
        if examples:
            self.encoding.reporter.note(
                f"note: {examples:,} of the images are example photos of the classes as well."
            )

    def _photos(self) -> Iterator[list[Photo]]:
        """The images with their features: all of a source, or some that came on arrival."""
        if self.cached is not None:
            read = partial(refuse, "its features are cached, but not where it is stored")
            photos = [Photo(name, read) for name in store.read_sample_ids(self.cached.path)]
            for photo, row in zip(photos, self.cached.image_features, strict=True):
                photo.error = wrong_with(row)
                photo.features = None if photo.error else row
            yield photos
            return
        all_folders = self.request.all_folders
        for photos in photos_of(self.request.sources, self.left_out, all_folders):
            step = AT_ONCE if self.request.on_arrival else max(len(photos), 1)
            for start in range(0, len(photos), step):
                part = photos[start : start + step]
                self.encoding.encode(part, "images" if len(part) > AT_ONCE else "")
                yield part
        if count := self.left_out.again:
            judged = "each is" if count > 1 else "it is"
            images = "image is" if count == 1 else "images are"
            self.encoding.reporter.note(
                f"note: {count:,} {images} given more than once, by a folder, a name or a link: "
                f"{judged} judged once."
            )


def detect_run(
    request: Request, encoding: Encoding, corrected: Corrected | None = None
) -> DetectRun:
    """A new detector for a request, with its images and what a person said of some.

    Raises:
        DatasetError: a named source does not exist. StoreError: features cannot be used.
        EncoderError: the encoder is needed and not available.
    """
    check_sources(request.sources)
    note = encoding.reporter.note
    cached = _cached_set(request.set_name, encoding) if request.set_name else None
    if request.class_photos:
        from zsntta_cli.detection.photos import photo_classes

        classes, examples = photo_classes(request.class_photos, encoding)
        if cached:
            check_same(cached.path, cached.identity, encoding.identity, then="extract it again")
        normalized = bool(cached and cached.normalized)
        detector = Detector(
            classes.features, classes.scale, classes.names, request.method, normalized=normalized,
            **request.settings,
        )  # fmt: skip
        return DetectRun(request, encoding, detector, cached, examples, corrected)
    names, text = _named_classes(request, encoding, cached)
    identity = cached.identity if cached else encoding.identity
    is_known, generic = is_level_known(identity), None
    has_level = is_known or request.settings.get("cull_low") is not None
    if has_level and METHODS[request.method].reads_generic:
        generic = cached.generic if cached else generic_text(encoding.encode_texts)
    detector = Detector(
        text, identity.get("logit_scale", math.nan), names, request.method,
        bias=identity.get("logit_bias"), generic=generic, is_level_known=is_known,
        normalized=bool(cached and cached.normalized), **request.settings,
    )  # fmt: skip
    if detector.note and not is_tiny(encoding.name):  # of which the summary says more
        note(f"note: {detector.note}")
    return DetectRun(request, encoding, detector, cached, corrected=corrected)


def _named_classes(
    request: Request, encoding: Encoding, cached: Features | None
) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Class names, by default those of the set, and their text features (C, D)."""
    names, note = request.classes or (cached.class_names if cached else ()), encoding.reporter.note
    if not names:
        raise SettingsError(f"'{request.set_name}' has no class names: name them.")
    shown = [f"'{short(name)}'" if "," in name else short(name) for name in names]
    quoted = " (in quotes are names with a comma)" if any("," in name for name in names) else ""
    note(f"note: {counted(len(names), 'class', 'classes')}: {first_of(shown)}{quoted}.")
    for said in notes_on(request.classes):
        note(f"note: {said}")
    text = _text(names, request.template, encoding, cached)
    compared = text if len(names) <= _COMPARED else text[:0]
    same = np.argwhere(np.triu(compared @ compared.T, 1) > _ALIKE)
    if len(same):
        first, second = (short(names[i]) for i in same[0])
        more = f", and {len(same) - 1:,} more pairs" if len(same) > 1 else ""
        note(f"warning: to this encoder '{first}' and '{second}' are the same words{more}.")
    return names, text


def _text(
    names: Sequence[str], template: str, encoding: Encoding, cached: Features | None
) -> NDArray[np.float32]:
    """Text features (C, D) of names, from the set's own file if it has them."""
    kept = cached.texts.get(template) if cached else None
    if cached and kept is not None and set(names) <= set(cached.class_names):
        return kept.features[[cached.class_names.index(name) for name in names]]
    text = prompt_features(encoding.encode_texts, template, names)
    if cached:
        check_same(cached.path, cached.identity, encoding.identity, then="extract it again")
    return text


def _cached_set(name: str, encoding: Encoding) -> Features:
    path = feature_path(encoding.root, encoding.name, name)
    if not path.exists():
        cached_names = tuple(set_names(encoding.root, encoding.name))
        raise missing_features(name, encoding.name, encoding.root, cached_names)
    return store.read(path)


def _on_arrival(
    detector: Detector, features: NDArray[np.float32], margins: list[float]
) -> list[Row]:
    """What is decided on the next images (N, D), which are learned; ranks are among those so far.

    `margins` has those so far in ascending order.
    """
    if not len(features):
        return []
    verdicts: Verdicts = detector.update(features)
    rows = verdicts.rows()
    for row, margin in zip(rows, verdicts.margin.tolist(), strict=True):
        insort(margins, margin)
        row["rank"] = len(margins) - bisect_right(margins, margin) + 1
    return rows


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
