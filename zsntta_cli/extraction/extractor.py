"""Encode a data set into a feature file: once, resumably, one process at a time for each file.

The bounds of batches depend neither on where an earlier run stopped nor on the part of a set that
is made: a resumed extraction and joined parts have the features of an uninterrupted one.
"""

import contextlib
import itertools
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.accuracy import accuracy_lines
from zsntta_cli.cache.folder import (
    ROWS,
    check_folder,
    described,
    feature_path,
    folder_name,
    locked,
    set_names,
)
from zsntta_cli.cache.identity import ENCODING, check_same, difference, machine_facts
from zsntta_cli.cache.parts import part_path, part_rows
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.cache.unfinished import Unfinished
from zsntta_cli.datasets.drawn.builtin import noise_images
from zsntta_cli.datasets.images import AS_SHOWN, ImageSet, pick_rows
from zsntta_cli.datasets.names import (
    DATASET,
    NOISE,
    SKIPPED,
    WORDS,
    SetName,
    noise_name,
    words_name,
)
from zsntta_cli.datasets.words import limited_words
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.encoders.text import BATCH, generic_source, generic_text, prompt_features
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import DatasetError, EncoderError, counted, short
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings
from zsntta_cli.settings.prompts import class_prompts, class_prompts_beside, templates_of

_REPLACE = "--overwrite replaces it, --features-dir DIR writes elsewhere"


@dataclass(frozen=True)
class Extracted:
    """The result for one data set."""

    features: Features  # the description of its file, without rows
    encoded: int = 0  # images or words, in this run: 0 where the file was there already
    seconds: float = 0.0
    skipped: tuple[str, ...] = ()  # sample ids of images that could not be read

    @property
    def path(self) -> Path:
        """The feature file."""
        return self.features.path

    @property
    def images(self) -> int:
        """The number of images, or of words."""
        features = self.features
        return len(features.class_names if features.kind == WORDS else features)


def summary(extracted: Extracted) -> str:
    """One line on the result for a set."""
    unit = "word" if extracted.features.kind == WORDS else "image"
    what = counted(extracted.images, unit)
    if not extracted.encoded:
        return f"{extracted.path}: {what}, already extracted"
    rate = extracted.encoded / extracted.seconds if extracted.seconds else 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, else KiB
    line = (
        f"{extracted.path}: {what} in {extracted.seconds:.1f} s ({rate:,.1f} {unit}s/s), "
        f"peak memory {peak / (2**20 if sys.platform == 'darwin' else 2**10):,.0f} MiB"
    )
    if extracted.skipped:
        line += f"; skipped {len(extracted.skipped)} broken: {', '.join(extracted.skipped)}"
    return line


@dataclass
class Extractor:
    """The extraction of any number of sets with one encoder, which is loaded when first needed."""

    choice: EncoderChoice
    settings: ExtractSettings
    reporter: Reporter

    def __post_init__(self) -> None:
        self._folder = folder_name(self.choice)
        self._beside: Sequence[Features] = ()  # what lies in the folder as the encoder is loaded

    @cached_property
    def _request(self) -> dict[str, Any]:
        """What existing files must record of their encoder, which is not loaded for this."""
        return weights_request(self.choice)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder, loaded at the first use; notes about it are reported."""
        with self.reporter.waiting(lambda: f"loading {self.choice.model}"):
            encoder = load_encoder(self.choice, self.settings.device)
        encoder.tell(self.reporter.note)
        if not self.settings.overwrite:
            root = self.settings.features_dir
            self._beside = check_folder(root, self._folder, encoder.identity)
        return encoder

    def dataset(
        self, images: ImageSet, templates: Sequence[str] = (), part: tuple[int, int] | None = None
    ) -> Extracted:
        """Extract a data set, and class text features for each prompt template.

        `part` extracts one part of the set, by its number from 1 and the number of parts. Parts are
        whole batches, so that joined they equal the set. The first part gets the text features.

        Raises:
            DatasetError: an image is broken. StoreError: its file has a different set or encoder.
        """
        path = self._path(images.name)
        if part:
            path, templates = part_path(path, *part), templates if part[0] == 1 else ()
        with self._writing(path):
            if (there := self._there(path, images)) is None:
                return self._encode(path, DATASET, images, templates, part)
            _rows_path(path).unlink(missing_ok=True)
            return self._result(there if part else self._with_texts(there, templates))

    def noise(self, noise_type: str, count: int) -> Extracted:
        """Extract a pool of at least `count` noise images of the encoder's image size.

        Raises:
            StoreError: its file is from a different encoder.
        """
        path = self._path(noise_name(noise_type))
        with self._writing(path):
            if path.exists() and not self.settings.overwrite:
                pool = store.read(path)
                check_same(path, pool.identity, self._request, self._request)
                if len(pool) >= count and pool.image_features.dtype == self.settings.store:
                    return self._result(pool)
            images = noise_images(noise_type, count, self.encoder.image_size)
            return self._encode(path, NOISE, images)

    def words(
        self,
        name: str,
        read: Callable[[], list[str]],
        templates: Sequence[str],
        limit: int | None = None,
    ) -> Extracted:
        """Embed a word list: a feature file without images, whose class names are the words.

        They are embedded in batches under each template; an interrupted run is resumed.

        Raises:
            StoreError: its file is from a different list or encoder.
        """
        path, started, encoded = self._path(words_name(name)), time.monotonic(), 0
        words = limited_words(every := read(), limit)
        limit = limit if len(words) < len(every) else None
        images = ImageSet(path.stem, _no_image, np.empty(0, np.int32), (), words, limit=limit)
        source, total = images.identity(), len(words)
        with self._writing(path):
            there = self._there(path, images)
            for template in templates:
                if there is not None and template in there.texts:
                    continue
                of = {"source": source, "template": template}
                unfinished = self._begun(path, of, total, BATCH, "float32")
                rows = (
                    prompt_features(self.encoder.encode_texts, template, words[i : i + BATCH])
                    for i in range(unfinished.done, total, BATCH)
                )
                with self.reporter.track(images.name, total, "words") as advance:
                    unfinished.fill(rows, advance)
                text, encoded = Text(template, np.array(unfinished.rows)), total
                if there is None:
                    there = Features(
                        path, WORDS, images.name, self.encoder.identity, source,
                        np.empty((0, self.encoder.embed_dim), np.float16), images.labels,
                        tuple(words), machine=machine_facts(ENCODING),
                    )  # fmt: skip
                there = replace(there, texts={**there.texts, template: text})
                store.write(there, ())
            _rows_path(path).unlink(missing_ok=True)
            assert there is not None, "a list is embedded under one template or more"
            return self._result(there, encoded, time.monotonic() - started)

    def match_class_names(self) -> None:
        """Embed all cached sets' class names with the prompts of the cached built-in word lists."""
        root = self.settings.features_dir
        lists = [SetName.parse(name).bare for name in set_names(root, self._folder, WORDS)]
        if not (prompts := class_prompts_beside(lists)):
            return
        lacking = [
            file
            for file in described(root, self._folder)
            if file.kind == DATASET and file.class_names and not {*prompts} <= {*file.texts}
            and not difference(file.identity, self._request, self._request)
        ]  # fmt: skip
        if lacking:
            names = ", ".join(file.name for file in lacking)
            self.reporter.note(f"class names with the word lists' prompts: {names}")
        for file in lacking:
            with self._writing(file.path):
                self._with_texts(store.read(file.path), prompts)

    def _path(self, name: str) -> Path:
        return feature_path(self.settings.features_dir, self._folder, name)

    @contextlib.contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        """Lock the file at `path`; if its encoder cannot be loaded, no folder is made."""
        if self.settings.overwrite or not path.exists():
            _ = self.encoder
        with locked(path, self.reporter.note):
            yield

    def _there(self, path: Path, images: ImageSet) -> Features | None:
        """The file's content; None if it has to be made.

        Raises:
            StoreError: its encoder, images or type differ.
        """
        if self.settings.overwrite or not path.exists():
            return None
        there = store.read(path)
        check_same(path, there.identity, self._request, self._request)
        dtype, names = "type", "class list"
        asked = {AS_SHOWN: None, **images.identity(), dtype: self.settings.store}
        asked[names] = ", ".join(images.class_names)
        held = {**there.source, names: ", ".join(there.class_names)}
        held[dtype] = str(there.image_features.dtype) if len(there) else self.settings.store
        check_same(path, held, asked, asked, what="set", then=_REPLACE)
        return there

    def _result(
        self,
        features: Features,
        encoded: int = 0,
        seconds: float = 0.0,
        skipped: tuple[str, ...] = (),
    ) -> Extracted:
        """The result for a set or a part of one; notes on a set are reported."""
        if features.path.stem == features.name:
            for line in accuracy_lines(features):
                self.reporter.note(line)
            if count := datasets.miscounted(features.name, len(features)):
                self.reporter.note(
                    f"note: '{features.name}' is not the published set: it has {count}."
                )
        no_rows = np.empty((0, features.dim), features.image_features.dtype)
        return Extracted(replace(features, image_features=no_rows), encoded, seconds, skipped)

    def _with_texts(self, there: Features, templates: Sequence[str]) -> Features:
        """A set with class text features for each template; missing ones are added."""
        missing = [t for t in templates if t not in there.texts]
        lacks_generic = bool(templates) and there.generic is None
        if not there.class_names or not (missing or lacks_generic):
            return there
        texts = self._texts(there.name, there.class_names, missing)
        there = replace(there, texts={**there.texts, **texts})
        if lacks_generic:
            generic, source = self._generic
            there = replace(there, generic=generic, generic_source=source)
        return store.write(there)

    @cached_property
    def _generic(self) -> tuple[NDArray[np.float32], str]:
        """The encoder's generic text (D,) and its words, from another file of its folder or new."""
        source, encoder = generic_source(), self.encoder
        for file in self._beside:
            if file.generic is not None and file.generic_source == source:
                return file.generic, source
        return generic_text(encoder.encode_texts), source

    def _texts(
        self, set_name: str, class_names: Sequence[str], templates: Sequence[str]
    ) -> dict[str, Text]:
        """The class text features by prompt; a prompt may combine many templates."""
        texts = {}
        for prompt in templates if class_names else ():
            total = len(templates_of(prompt)) * len(class_names)
            what = f"{set_name}, {short(prompt, 20)}"
            with self.reporter.track(what, total, "prompts") as advance:

                def encode(prompts: Sequence[str]) -> NDArray[np.float32]:
                    features = self.encoder.encode_texts(prompts)
                    advance(len(prompts))
                    return features

                texts[prompt] = Text(prompt, prompt_features(encode, prompt, class_names))
        return texts

    def _begun(
        self, path: Path, of: Mapping[str, Any], count: int, batch_size: int, dtype: str
    ) -> Unfinished:
        """The rows of the file at `path` that an interrupted run has made: whole batches."""
        of = {**of, "encoder": self.encoder.identity, "batch_size": batch_size, "count": count}
        unfinished = Unfinished(_rows_path(path), of, self.encoder.embed_dim, dtype)
        if unfinished.has_others:
            self.reporter.note(
                f"{path.stem}: starting over: an interrupted run had a different encoder, "
                f"--batch-size, number of threads or images."
            )
        # Features depend on their batch in the last bits.
        done = unfinished.done
        unfinished.done = count if done >= count else done // batch_size * batch_size
        return unfinished

    def _encode(
        self,
        path: Path,
        kind: str,
        images: ImageSet,
        templates: Sequence[str] = (),
        part: tuple[int, int] | None = None,
    ) -> Extracted:
        """Encode what is not stored yet, and write the file.

        The file of a part has only its images, but the description of the whole set.
        """
        size, encoder, chosen = self.settings.batch_size, self.encoder, images
        source, started = images.identity(), time.monotonic()
        if part:
            chosen = pick_rows(images, np.array(part_rows(len(images), *part, size)))
        unfinished = self._begun(path, {"source": source}, len(chosen), size, self.settings.store)
        if done := unfinished.done:
            self.reporter.note(
                f"note: {images.name}: {done:,} of {len(chosen):,} images were already encoded by "
                f"an interrupted run"
            )
        # Before the images, which may take hours: a refusal would come behind them.
        for template in itertools.chain.from_iterable(map(templates_of, templates)):
            encoder.text.check_length(class_prompts(template, images.class_names))
        with self.reporter.track(images.name, len(chosen)) as advance:
            unfinished.fill(self._rows(chosen, done), advance)
        features = unfinished.rows
        readable = ~np.isnan(features[:, 0])
        if not readable.any() and len(chosen):
            raise DatasetError(f"no image of '{images.name}' could be read.")
        texts = self._texts(images.name, images.class_names, templates)
        skipped = tuple(itertools.compress(chosen.sample_ids, ~readable))
        source |= {**images.facts, **({SKIPPED: skipped} if skipped else {})}
        generic, of_words = self._generic if texts else (None, "")
        new = Features(
            path, kind, images.name, encoder.identity, source,
            features if readable.all() else features[readable], chosen.labels[readable],
            tuple(images.class_names), texts, generic, of_words,
            machine=machine_facts(ENCODING, gpu=encoder.gpu, batch_size=size),
        )  # fmt: skip
        new = store.write(new, list(itertools.compress(chosen.sample_ids, readable)))
        _rows_path(path).unlink(missing_ok=True)
        return self._result(new, len(chosen) - done, time.monotonic() - started, skipped)

    def _rows(self, images: ImageSet, first: int) -> Iterator[NDArray[np.floating]]:
        """The features (B, D) of batches from image `first` on, NaN for unreadable images.

        Raises:
            DatasetError: an image is broken, and broken images are not skipped.
            EncoderError: a feature is not finite.
        """
        settings, dim = self.settings, self.encoder.embed_dim
        size = settings.batch_size
        batches = [range(i, min(i + size, len(images))) for i in range(first, len(images), size)]
        loaded = load_batches(
            images, batches, self.encoder.resize, settings.workers, settings.skip_broken
        )
        for pixels, is_readable in loaded:
            rows = np.full((len(is_readable), dim), np.nan, settings.store)
            if len(pixels):
                with np.errstate(over="ignore"):
                    rows[is_readable] = self.encoder.encode_pixels(pixels)
            if not np.isfinite(rows[is_readable]).all():
                raise EncoderError(f"the encoder's features are not finite in {settings.store}.")
            yield rows


def _rows_path(path: Path) -> Path:
    """The rows of the feature file at `path` while it is made."""
    return path.with_name(f".{path.stem}{ROWS}")


def _no_image(_: int) -> Image.Image:
    raise AssertionError("a word list has no images")
