"""Encode a data set into a feature file: once, resumable, one process at a time for each file.

The bounds of batches do not depend on where an earlier run stopped, or on the part of a set that is
made: a resumed extraction and joined parts have the features of an uninterrupted one.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import (
    check_folder,
    feature_path,
    folder_name,
    part_path,
    set_names,
    stored,
)
from zsntta_cli.cache.identity import ENCODING, check_same, difference, machine_facts
from zsntta_cli.cache.parts import part_rows
from zsntta_cli.cache.store import Features, PartOf, Text
from zsntta_cli.datasets.images import ImageSet, pick_rows
from zsntta_cli.datasets.names import (
    DATASET,
    NOISE,
    SKIPPED,
    WORDS,
    SetName,
    noise_name,
    words_name,
)
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.encoders.text import BATCH, prompt_features
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import DatasetError, EncoderError, counted, short
from zsntta_cli.extraction.existing import existing_features, other_type
from zsntta_cli.extraction.unfinished import Unfinished, discard, locked
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings
from zsntta_cli.settings.prompts import class_prompts_beside, templates_of

_KEPT = 4  # batches, of images or words: a killed run loses at most these
_SECONDS_TO_TELL = 60  # of work that is announced


@dataclass(frozen=True)
class Extracted:
    """The result for one data set."""

    path: Path
    images: int  # or words
    encoded: int  # in this run: 0 where the file was there already
    seconds: float
    skipped: tuple[str, ...] = ()  # sample ids of images that could not be read
    unit: str = "images"

    @property
    def rate(self) -> float:
        """Images per second in this run."""
        return self.encoded / self.seconds if self.seconds else 0.0


def summary(extracted: Extracted) -> str:
    """One line on the result for a set."""
    what = counted(extracted.images, extracted.unit.removesuffix("s"))
    if not extracted.encoded:
        return f"{extracted.path}: {what}, there already"
    line = (
        f"{extracted.path}: {what} in {extracted.seconds:.1f} s "
        f"({extracted.rate:,.1f} {extracted.unit}/s), peak memory {_peak_memory() / 2**20:,.0f} MiB"
    )
    if extracted.skipped:
        line += f"; {len(extracted.skipped)} broken left out: {', '.join(extracted.skipped)}"
    return line


def _peak_memory() -> int:
    """The most bytes of resident memory that the process has held."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass
class Extractor:
    """The extraction of any number of sets with one encoder, which is loaded when first needed."""

    choice: EncoderChoice
    load: Callable[[], Encoder]
    root: Path
    settings: ExtractSettings
    reporter: Reporter

    def __post_init__(self) -> None:
        self._encoder: Encoder | None = None
        self._request = weights_request(self.choice)
        self._folder = folder_name(self.choice)

    @property
    def encoder(self) -> Encoder:
        """The encoder, loaded at the first use."""
        if self._encoder is None:
            with self.reporter.waiting(lambda: f"loading {self.choice.model}"):
                loaded = self.load()
            if not self.settings.overwrite:
                check_folder(self.root, self._folder, loaded.identity)
            self._encoder = loaded
        return self._encoder

    def dataset(self, images: ImageSet, templates: Sequence[str] = ()) -> Extracted:
        """Extract a data set, and class text features for each prompt template.

        Raises:
            DatasetError: an image is broken. StoreError: its file is of another set or encoder.
        """
        path = feature_path(self.root, self._folder, images.name)
        with locked(path, self.reporter.note):
            existing = self._existing(path, images)
            if existing is not None:
                discard(path)
                self._say_other_batches(existing)
                self._add_texts(existing, templates)
                extracted = Extracted(path, len(existing), 0, 0.0)
            else:
                extracted = self._extract(path, DATASET, images, templates)
        if count := datasets.miscounted(images.name, extracted.images):
            self.reporter.note(f"note: '{images.name}' is not the published set: it has {count}.")
        return extracted

    def part(self, images: ImageSet, index: int, of: int, templates: Sequence[str]) -> Extracted:
        """Extract part `index`, from 1, of `of` of a set: whole batches, so its bits are the set's.

        The first part also gets class text features. A part that is there is left as it is.

        Raises:
            DatasetError: an image is broken. StoreError: the part's file is of another set or
                encoder.
        """
        path = part_path(feature_path(self.root, self._folder, images.name), index, of)
        rows = part_rows(len(images), index, of, self.settings.batch_size)
        with locked(path, self.reporter.note):
            existing = self._existing(path, images)
            if existing is not None:
                discard(path)
                size = "batch_size"
                check_same(
                    path, existing.machine, {size: self.settings.batch_size}, [size],
                    what="size of batches", then="remove it, or take the same --batch-size",
                )  # fmt: skip
                return Extracted(path, len(existing), 0, 0.0)
            texts = templates if index == 1 else ()
            whole = PartOf(index, of, str(images.identity()["digest"]))
            return self._extract(path, DATASET, images, texts, rows=rows, part=whole)

    def noise(self, noise_type: str, make: Callable[[int], ImageSet], count: int) -> Extracted:
        """Extract a pool of `count` noise images, or extend an existing pool.

        `make(size)` makes the images for an encoder's image size.
        """
        path = feature_path(self.root, self._folder, noise_name(noise_type))
        with locked(path, self.reporter.note):
            pool = store.read(path) if path.exists() else None
            if pool is not None:
                check_same(path, pool.identity, self._request, self._request)
                if len(pool) >= count and self._has_type(pool):
                    return Extracted(path, len(pool), 0, 0.0)
            return self._extract(path, NOISE, make(self.encoder.image_size), (), pool=pool)

    def words(
        self, name: str, words: Sequence[str], templates: Sequence[str], limit: int | None = None
    ) -> Extracted:
        """Embed a word list: a feature file without images, whose class names are the words."""
        path = feature_path(self.root, self._folder, words_name(name))
        images = ImageSet(path.stem, _no_image, np.empty(0, np.int32), (), words, limit=limit)
        with locked(path, self.reporter.note):
            existing = self._existing(path, images)
            cached = existing.texts if existing is not None else {}
            missing = [template for template in templates if template not in cached]
            if missing:
                _ = self.encoder  # its loading is no word's time
            started = time.monotonic()
            for template in missing:
                unfinished = self._embedded(path, images, template)
                text = Text(template, np.array(unfinished.rows))
                if existing is None and template == missing[0]:
                    self._write_words(path, images, text)
                else:
                    store.add_texts(path, [text])
                unfinished.discard()
            discard(path)
            seconds = time.monotonic() - started
            return Extracted(path, len(words), len(words) * bool(missing), seconds, unit="words")

    def _write_words(self, path: Path, words: ImageSet, text: Text) -> None:
        """Write the feature file of a list, with its features under one template."""
        rows = np.empty((0, self.encoder.embed_dim), np.float16)
        features = Features(
            path, WORDS, words.name, self.encoder.identity, words.identity(), rows, words.labels,
            tuple(words.class_names), {text.template: text}, machine=machine_facts(ENCODING),
        )  # fmt: skip
        store.write(features, ())

    def _embedded(self, path: Path, words: ImageSet, template: str) -> Unfinished:
        """Embed all words of a list under a template, in batches; finished ones are reused."""
        names = words.class_names
        unfinished = Unfinished(
            path,
            {"encoder": self.encoder.identity, "source": words.identity(), "template": template,
             "batch_size": BATCH},
            (len(names), self.encoder.embed_dim), "float32", self.reporter.note,
        )  # fmt: skip
        first = unfinished.done
        batches = [names[i : i + BATCH] for i in range(first, len(names), BATCH)]
        with self.reporter.track(words.name, len(names), "words") as advance:
            advance(first)

            def embed(batch: Sequence[str]) -> NDArray[np.float32]:
                started = time.monotonic()
                features = prompt_features(self.encoder.encode_texts, template, batch)
                if batch is batches[0]:
                    seconds = (time.monotonic() - started) / len(batch) * (len(names) - first)
                    self._announce(words.name, len(names) - first, seconds)
                advance(len(batch))
                return features

            _fill(unfinished, map(embed, batches))
        return unfinished

    def _announce(self, name: str, words: int, seconds: float) -> None:
        """Report how long the work will take, if it takes long."""
        if seconds >= _SECONDS_TO_TELL:
            self.reporter.note(f"{name}: {words:,} words, about {seconds / 60:,.0f} minutes")

    def match_class_names(self) -> None:
        """Embed the class names of all cached sets as the cached built-in word lists need them."""
        lists = set_names(self.root, self._folder, WORDS)
        prompts = class_prompts_beside(SetName.parse(name).bare for name in lists)
        files = stored(self.root, self._folder) if prompts else []
        lacking = [file for file in files if file.header and self._lacks(file.header, prompts)]
        if lacking:
            names = ", ".join(file.name for file in lacking)
            self.reporter.note(f"class names as the word lists have them, too: {names}")
        for file in lacking:
            with locked(file.path, self.reporter.note):
                self._add_texts(store.read(file.path), prompts)

    def _lacks(self, header: Features, prompts: Sequence[str]) -> bool:
        """Whether a set of this encoder lacks class names under some of the prompts."""
        if header.kind != DATASET or not header.class_names or {*prompts} <= {*header.texts}:
            return False
        return difference(header.identity, self._request, self._request) is None

    def _existing(self, path: Path, images: ImageSet) -> Features | None:
        """The file's content if it is what is asked for; None if it has to be made."""
        if self.settings.overwrite:
            return None
        existing = existing_features(path, images, self._request)
        if existing is not None and not self._has_type(existing):
            raise other_type(path, existing.image_features.dtype, self.settings.store)
        return existing

    def _say_other_batches(self, existing: Features) -> None:
        """Note that a file stays though another size of batches is asked for."""
        asked = self.settings.batch_size
        before = existing.machine.get("batch_size", asked)
        if before != asked != ExtractSettings().batch_size:
            self.reporter.note(
                f"note: {existing.path} was made with --batch-size {before}, and stays: another "
                f"one changes no more than the last bits of features."
            )

    def _has_type(self, existing: Features) -> bool:
        """Whether features have the requested type; no features have any type."""
        return not len(existing) or existing.image_features.dtype == self.settings.store

    def _add_texts(self, existing: Features, templates: Sequence[str]) -> None:
        missing = [t for t in templates if t not in existing.texts]
        if missing and existing.class_names:
            names = existing.class_names
            store.add_texts(existing.path, self._texts(existing.name, names, missing))

    def _texts(
        self, set_name: str, class_names: Sequence[str], templates: Sequence[str]
    ) -> list[Text]:
        return [Text(t, self._text(set_name, class_names, t)) for t in templates]

    def _text(self, set_name: str, class_names: Sequence[str], prompt: str) -> NDArray[np.float32]:
        """Text features (C, D) of classes under one or more templates; may take minutes."""
        several = len(templates_of(prompt))
        if several == 1:
            return prompt_features(self.encoder.encode_texts, prompt, class_names)
        what = f"{set_name}, {short(prompt, 20)}"
        with self.reporter.track(what, several * len(class_names), "prompts") as advance:

            def encode(prompts: Sequence[str]) -> NDArray[np.float32]:
                features = self.encoder.encode_texts(prompts)
                advance(len(prompts))
                return features

            return prompt_features(encode, prompt, class_names)

    def _extract(
        self,
        path: Path,
        kind: str,
        images: ImageSet,
        templates: Sequence[str],
        *,
        rows: range | None = None,
        pool: Features | None = None,
        part: PartOf | None = None,
    ) -> Extracted:
        """Encode what is not kept yet, and write the file; `pool` is one to extend.

        Of a part, the file has the images at `rows` alone, and the description of the whole set.
        """
        size, encoder, dtype = self.settings.batch_size, self.encoder, self.settings.store
        started = time.monotonic()  # the encoder is loaded: its time is no image's
        chosen = images if rows is None else pick_rows(images, np.arange(rows.start, rows.stop))
        identity = {"encoder": encoder.identity, "source": images.identity(), "batch_size": size}
        shape = len(chosen), encoder.embed_dim
        unfinished = Unfinished(path, identity, shape, dtype, self.reporter.note)
        if pool and pool.identity == encoder.identity and self._has_type(pool):
            whole_batches = len(pool) // size * size
            if unfinished.done < whole_batches:
                unfinished.keep(pool.image_features[unfinished.done : whole_batches])
        todo = len(chosen) - unfinished.done
        with self.reporter.track(images.name, len(chosen)) as advance:
            advance(unfinished.done)
            _fill(unfinished, self._encoded(chosen, unfinished.done, advance))
        readable = unfinished.readable()
        if not readable.any() and len(chosen):
            raise DatasetError(f"not one image of '{images.name}' could be read.")
        names = images.class_names
        texts = self._texts(images.name, names, templates if names else ())
        skipped = tuple(itertools.compress(chosen.sample_ids, ~readable))
        beside = {**images.facts, SKIPPED: skipped}
        features = Features(
            path, kind, images.name, encoder.identity,
            {**images.identity(), **{key: value for key, value in beside.items() if value}},
            np.empty((0, encoder.embed_dim), dtype), chosen.labels[readable],
            tuple(names), {text.template: text for text in texts},
            machine=machine_facts(ENCODING, gpu=_gpu_name(encoder), batch_size=size), part=part,
        )  # fmt: skip
        ids = list(itertools.compress(chosen.sample_ids, readable))
        store.write(features, ids, unfinished.blocks())
        unfinished.discard()
        return Extracted(path, int(readable.sum()), todo, time.monotonic() - started, skipped)

    def _encoded(
        self, images: ImageSet, first: int, advance: Callable[[int], None]
    ) -> Iterator[NDArray[np.floating]]:
        """The features (B, D) of batches from image `first` on, NaN for what cannot be read.

        Raises:
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
                raise EncoderError(
                    f"the encoder gives features that are not finite in {settings.store}."
                )
            advance(len(rows))
            yield rows


def _fill(unfinished: Unfinished, batches: Iterable[NDArray[np.floating]]) -> None:
    """Keep batches as they come, some at a time."""
    waiting = iter(batches)
    while group := list(itertools.islice(waiting, _KEPT)):
        unfinished.keep(np.concatenate(group))


def _no_image(_: int) -> Image.Image:
    raise AssertionError("a word list has no images")


def _gpu_name(encoder: Encoder) -> str | None:
    """The model of the GPU on which an encoder runs, if it does."""
    if encoder.identity.get("device") != "cuda":
        return None
    import torch

    return torch.cuda.get_device_name(encoder.device)
