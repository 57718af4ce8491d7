"""Data set x encoder -> feature file: once, resumable, one process at a time on a file.

Work is cut into parts of a few batches, and the bounds of batches do not depend on where an
earlier run stopped: a resumed extraction gives the bytes of an uninterrupted one.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, NOISE, WORDS, FeatureSet, Text
from zsntta_cli.cache.folder import feature_path, folder_name, stored
from zsntta_cli.cache.identity import difference
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.names import noise_name, words_name
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import DatasetError, StoreError
from zsntta_cli.extraction.engines import Encoded, Engine, encode_parts, job_for
from zsntta_cli.extraction.extracted import Extracted
from zsntta_cli.extraction.parts import Parts, discard_parts, locked
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings
from zsntta_cli.settings.prompts import class_prompts

_BATCHES_A_PART = 4  # a killed run loses at most this much


@dataclass
class Extractor:
    """Extracts any number of sets with one encoder, which is loaded when first needed."""

    choice: EncoderChoice
    load: Callable[[], Encoder]
    root: Path
    settings: ExtractSettings
    reporter: Reporter
    find_engine: Callable[[], Engine | None] = field(default=lambda: None)

    def __post_init__(self) -> None:
        self._encoder: Encoder | None = None
        self._request = weights_request(self.choice)
        self._folder = folder_name(self.root, self.choice)

    @property
    def encoder(self) -> Encoder:
        """The encoder, loaded at the first use."""
        if self._encoder is None:
            with self.reporter.waiting(lambda: f"loading {self.choice.model}"):
                loaded = self.load()
            self._check_folder(loaded.identity)
            self._encoder = loaded
        return self._encoder

    def _check_folder(self, identity: Mapping[str, Any]) -> None:
        """A folder holds the features of one encoder, and weights behind a name may change."""
        headers = [one for one in stored(self.root, self._folder) if one.header]
        for other in headers if not self.settings.overwrite else ():
            if other.header and (found := difference(other.header.identity, identity)):
                raise StoreError(
                    f"{other.path} was made by another encoder than this is now ({found.key}: "
                    f"{found.one}, now {found.other})",
                    remedy="other-folder",
                )

    @cached_property
    def engine(self) -> Engine | None:
        """What encodes parts in other processes, if anything; sought at the first use."""
        return self.find_engine()

    def close(self) -> None:
        """Stop the engine, if it was used."""
        if engine := vars(self).get("engine"):
            engine.close()

    def dataset(self, images: ImageSet, templates: Sequence[str] = ()) -> Extracted:
        """Extract a data set, and class text features for each prompt template.

        Raises:
            DatasetError: a broken image. StoreError: another set or encoder is in its file.
        """
        path = feature_path(self.root, self._folder, images.name)
        with locked(path, self.reporter.note):
            existing = self._existing(path, images)
            if existing is not None:
                self._add_texts(existing, templates)
                return Extracted(path, len(existing), 0, 0.0)
            return self._extract(path, DATASET, images, templates)

    def noise(self, noise_type: str, make: Callable[[int], ImageSet], count: int) -> Extracted:
        """Extract a pool of `count` noise images, or what an existing pool lacks of them.

        `make(size)` gives the images for an encoder's image size.
        """
        path = feature_path(self.root, self._folder, noise_name(noise_type))
        with locked(path, self.reporter.note):
            pool = hdf5.read_features(path) if path.exists() else None
            if pool is not None:
                self._check_encoder(pool)
                if len(pool) >= count:
                    return Extracted(path, len(pool), 0, 0.0)
            return self._extract(path, NOISE, make(self.encoder.image_size), (), pool)

    def words(self, name: str, words: Sequence[str], templates: Sequence[str]) -> Extracted:
        """Embed a word list: a feature file without images, whose class names are the words."""
        path = feature_path(self.root, self._folder, words_name(name))
        images = ImageSet(path.stem, _no_image, np.empty(0, np.int32), (), words)
        with locked(path, self.reporter.note):
            existing = self._existing(path, images)
            if existing is not None:
                self._add_texts(existing, templates)
                return Extracted(path, len(words), 0, 0.0, unit="words")
            started = time.monotonic()
            hdf5.write_features(
                path, kind=WORDS, name=path.stem, encoder=self.encoder.identity,
                source=images.identity(),
                blocks=[np.empty((0, self.encoder.embed_dim), np.float16)],
                labels=images.labels, sample_ids=(), class_names=words,
                texts=self._texts(words, templates),
            )  # fmt: skip
            seconds = time.monotonic() - started
            return Extracted(path, len(words), len(words), seconds, unit="words")

    def _existing(self, path: Path, images: ImageSet) -> FeatureSet | None:
        """The file's content if it is what is asked for; None if it is to be made."""
        if not path.exists() or self.settings.overwrite:
            return None
        existing = hdf5.read_features(path)
        self._check_encoder(existing)
        if what := _other(existing, images):
            raise StoreError(f"{path} was made from other images: {what}", remedy="overwrite")
        discard_parts(path)
        return existing

    def _check_encoder(self, existing: FeatureSet) -> None:
        if found := difference(existing.identity, self._request, self._request):
            raise StoreError(
                f"{existing.path} was made by another encoder ({found.key} is {found.one}, not "
                f"{found.other})",
                remedy="other-folder",
            )

    def _add_texts(self, existing: FeatureSet, templates: Sequence[str]) -> None:
        missing = [t for t in templates if t not in existing.text_features]
        if missing and existing.class_names:
            hdf5.add_texts(existing.path, self._texts(existing.class_names, missing))

    def _texts(self, class_names: Sequence[str], templates: Sequence[str]) -> list[Text]:
        return [
            Text(t, self.encoder.encode_texts(class_prompts(t, class_names))) for t in templates
        ]

    def _extract(
        self,
        path: Path,
        kind: str,
        images: ImageSet,
        templates: Sequence[str],
        pool: FeatureSet | None = None,
    ) -> Extracted:
        """Encode what no part has yet, and make the file; `pool` is one that is to grow."""
        size, encoder = self.settings.batch_size, self.encoder
        started = time.monotonic()  # the encoder is loaded: its time is no image's
        same = pool is not None and pool.identity == encoder.identity
        kept = pool.image_features if pool and same else np.empty((0, 0), np.float16)
        kept = kept[: len(kept) // size * size]  # whole batches only: the same bits
        rows = range(len(kept), len(images))
        identity = self._identity(images, kind)
        parts = Parts(path, identity, rows, size * _BATCHES_A_PART, self.reporter.note)
        encoded = self._encode_missing(images, parts)
        readable = np.append(np.ones(len(kept), bool), parts.readable())
        if not readable.any():
            raise DatasetError(f"not one image of '{images.name}' could be read.")
        skipped = tuple(itertools.compress(images.sample_ids, ~readable))
        hdf5.write_features(
            path,
            kind=kind,
            name=images.name,
            encoder=self.encoder.identity,
            source=images.identity() | ({"skipped": skipped} if skipped else {}),
            blocks=itertools.chain([kept] if len(kept) else [], parts.blocks()),
            labels=images.labels[readable],
            sample_ids=list(itertools.compress(images.sample_ids, readable)),
            class_names=images.class_names,
            texts=self._texts(images.class_names, templates if images.class_names else ()),
        )
        parts.discard()
        seconds = time.monotonic() - started
        return Extracted(path, int(readable.sum()), encoded, seconds, skipped)

    def _encode_missing(self, images: ImageSet, parts: Parts) -> int:
        """Encode the missing parts and keep each; gives the number of images encoded."""
        missing = parts.missing()
        todo = sum(len(rows) for rows in missing)
        with self.reporter.track(images.name, len(images)) as advance:
            advance(len(images) - todo)
            with closing(self._encode(images, missing, advance)) as encoded:
                for rows, features, readable in encoded:
                    parts.write(rows, features, readable)
        return todo

    def _identity(self, images: ImageSet, kind: str) -> Mapping[str, Any]:
        """What parts must agree in; a pool of noise may grow while its parts stay."""
        source = images.fingerprint if kind == NOISE else images.identity()
        return {"encoder": self.encoder.identity, "source": source}

    def _encode(
        self, images: ImageSet, missing: Sequence[range], advance: Callable[[int], None]
    ) -> Encoded:
        """The features of the missing parts, by the engine where there is more than one part."""
        engine = self.engine if len(missing) > 1 else None
        if engine is None:
            return encode_parts(images, self.encoder, self.settings, missing, advance)
        return engine.encode(
            job_for(images, self.encoder, self.choice, self.settings), missing, advance
        )


def _other(existing: FeatureSet, images: ImageSet) -> str:
    """What of a feature file's images is other than of these; nothing if they are the same."""
    found = difference(existing.source, images.identity(), images.identity())
    if found is None:
        same = list(existing.class_names) == list(images.class_names)
        return "" if same else "the class names are others"
    if found.key == "digest":
        return "names, sizes, labels or class names of files are others"
    one, other = ("all" if value is None else f"{value}" for value in found[1:])
    return f"{found.key} {one}, now {other}"


def _no_image(_: int) -> Image.Image:
    raise AssertionError("a word list has no images")
