"""Encode a data set into a feature file: once, resumable, one process at a time for each file.

The bounds of batches do not depend on where an earlier run stopped, or on the part of a set that is
made: a resumed extraction and joined parts have the features of an uninterrupted one.
"""

import itertools
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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
    locked,
    part_path,
    set_names,
    stored,
)
from zsntta_cli.cache.identity import ENCODING, check_same, difference, machine_facts
from zsntta_cli.cache.parts import part_rows
from zsntta_cli.cache.store import Features, Text
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
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.encoders.text import BATCH, generic_source, generic_text, prompt_features
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import DatasetError, EncoderError, StoreError, counted, short
from zsntta_cli.extraction.unfinished import Unfinished, discard
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings
from zsntta_cli.settings.prompts import class_prompts, class_prompts_beside, templates_of


@dataclass(frozen=True)
class Extracted:
    """The result for one data set."""

    path: Path
    images: int  # or words
    encoded: int = 0  # in this run: 0 where the file was there already
    seconds: float = 0.0
    skipped: tuple[str, ...] = ()  # sample ids of images that could not be read
    unit: str = "images"
    is_id: bool = False  # whether it can be an ID set


def summary(extracted: Extracted) -> str:
    """One line on the result for a set."""
    what = counted(extracted.images, extracted.unit.removesuffix("s"))
    if not extracted.encoded:
        return f"{extracted.path}: {what}, there already"
    rate = extracted.encoded / extracted.seconds if extracted.seconds else 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, else KiB
    line = (
        f"{extracted.path}: {what} in {extracted.seconds:.1f} s ({rate:,.1f} {extracted.unit}/s), "
        f"peak memory {peak / (2**20 if sys.platform == 'darwin' else 2**10):,.0f} MiB"
    )
    if extracted.skipped:
        line += f"; {len(extracted.skipped)} broken left out: {', '.join(extracted.skipped)}"
    return line


@dataclass
class Extractor:
    """The extraction of any number of sets with one encoder, which is loaded when first needed."""

    choice: EncoderChoice
    settings: ExtractSettings
    reporter: Reporter

    def __post_init__(self) -> None:
        self._request = weights_request(self.choice)
        self._folder = folder_name(self.choice)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder, loaded at the first use; notes about it are reported."""
        with self.reporter.waiting(lambda: f"loading {self.choice.model}"):
            encoder = load_encoder(self.choice, self.settings.device)
        encoder.tell(self.reporter.note)
        if not self.settings.overwrite:
            check_folder(self.settings.features_dir, self._folder, encoder.identity)
        return encoder

    def path(self, name: str) -> Path:
        """The feature file of a set."""
        return feature_path(self.settings.features_dir, self._folder, name)

    def dataset(self, images: ImageSet, templates: Sequence[str] = ()) -> Extracted:
        """Extract a data set, and class text features for each prompt template.

        Raises:
            DatasetError: an image is broken. StoreError: its file is of another set or encoder.
        """
        path = self.path(images.name)
        with locked(path, self.reporter.note):
            there = self._there(path, images)
            if there is None:
                extracted = self._encode(path, DATASET, images, templates)
            else:
                discard(path)
                self._add_texts(there, templates)
                extracted = Extracted(path, len(there))
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
        path = part_path(self.path(images.name), index, of)
        with locked(path, self.reporter.note):
            there = self._there(path, images)
            if there is None:
                texts = templates if index == 1 else ()
                return self._encode(path, DATASET, images, texts, (index, of))
            discard(path)
        size = "batch_size"
        check_same(
            path, there.machine, {size: self.settings.batch_size}, [size],
            what="size of batches", then="remove it, or take the same --batch-size",
        )  # fmt: skip
        return Extracted(path, len(there))

    def noise(self, noise_type: str, count: int) -> Extracted:
        """Extract a pool of at least `count` noise images of the encoder's image size.

        Raises:
            StoreError: its file is of another encoder.
        """
        path = self.path(noise_name(noise_type))
        with locked(path, self.reporter.note):
            if path.exists() and not self.settings.overwrite:
                pool = store.read(path)
                check_same(path, pool.identity, self._request, self._request)
                if len(pool) >= count and self._has_type(pool):
                    return Extracted(path, len(pool))
            images = noise_images(noise_type, count, self.encoder.image_size)
            return self._encode(path, NOISE, images)

    def words(
        self, name: str, words: Sequence[str], templates: Sequence[str], limit: int | None = None
    ) -> Extracted:
        """Embed a word list: a feature file without images, whose class names are the words.

        Raises:
            StoreError: its file is of another list or encoder.
        """
        path = self.path(words_name(name))
        images = ImageSet(path.stem, _no_image, np.empty(0, np.int32), (), words, limit=limit)
        with locked(path, self.reporter.note):
            there = self._there(path, images)
            missing = [t for t in templates if there is None or t not in there.texts]
            if not missing:
                discard(path)
                return Extracted(path, len(words), unit="words")
            _ = self.encoder  # its loading is no word's time
            started = time.monotonic()
            for template in missing:
                text = self._embed(path, images, template)
                if there is None and template == missing[0]:
                    rows = np.empty((0, self.encoder.embed_dim), np.float16)
                    features = Features(
                        path, WORDS, images.name, self.encoder.identity, images.identity(), rows,
                        images.labels, tuple(words), {template: text},
                        machine=machine_facts(ENCODING),
                    )  # fmt: skip
                    store.write(features, ())
                else:
                    store.add_texts(path, [text])
                discard(path)
        return Extracted(path, len(words), len(words), time.monotonic() - started, unit="words")

    def _embed(self, path: Path, words: ImageSet, template: str) -> Text:
        """Embed all words of a list under a template, in batches; finished ones are reused."""
        names, encoder = words.class_names, self.encoder
        unfinished = Unfinished(
            path,
            {"encoder": encoder.identity, "source": words.identity(), "template": template,
             "batch_size": BATCH},
            (len(names), encoder.embed_dim), "float32", self.reporter.note,
        )  # fmt: skip
        batches = (names[i : i + BATCH] for i in range(unfinished.done, len(names), BATCH))
        rows = (prompt_features(encoder.encode_texts, template, batch) for batch in batches)
        with self.reporter.track(words.name, len(names), "words") as advance:
            unfinished.fill(rows, advance)
        return Text(template, np.array(unfinished.rows))

    def match_class_names(self) -> None:
        """Embed the class names of all cached sets as the cached built-in word lists need them."""
        root = self.settings.features_dir
        lists = set_names(root, self._folder, WORDS)
        if not lists:
            return
        prompts = class_prompts_beside(SetName.parse(name).bare for name in lists)
        files = stored(root, self._folder) if prompts else []
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

    def _there(self, path: Path, images: ImageSet) -> Features | None:
        """The file's content; None if it has to be made.

        Raises:
            StoreError: it is of another encoder, of other images, or of another type.
        """
        if self.settings.overwrite or not path.exists():
            return None
        there = store.read(path)
        check_same(path, there.identity, self._request, self._request)
        if what := _other_images(there, images):
            raise StoreError(
                f"{path} was made from other images: {what}: "
                "--overwrite replaces it, --features-dir DIR puts the new one elsewhere"
            )
        if not self._has_type(there):
            raise StoreError(
                f"{path} has features in {there.image_features.dtype}, and {self.settings.store} "
                f"is asked for: "
                "--overwrite replaces it, --features-dir DIR puts the new one elsewhere"
            )
        return there

    def _has_type(self, there: Features) -> bool:
        """Whether features have the requested type; no features have any type."""
        return not len(there) or there.image_features.dtype == self.settings.store

    def _add_texts(self, there: Features, templates: Sequence[str]) -> None:
        missing = [t for t in templates if t not in there.texts]
        lacks_generic = bool(templates) and there.generic is None
        if (missing or lacks_generic) and (names := there.class_names):
            generic = self._generic if lacks_generic else (None, "")
            texts = self._texts(there.name, names, missing)
            store.add_texts(there.path, texts.values(), *generic)

    @cached_property
    def _generic(self) -> tuple[NDArray[np.float32], str]:
        """The encoder's generic text (D,) and its words, of another file of its folder or new."""
        source = generic_source()
        for file in stored(self.settings.features_dir, self._folder):
            of = file.header
            if of is None or of.generic is None or of.generic_source != source:
                continue
            if difference(of.identity, self.encoder.identity) is None:
                return of.generic, source
        return generic_text(self.encoder.encode_texts), source

    def _texts(
        self, set_name: str, class_names: Sequence[str], templates: Sequence[str]
    ) -> dict[str, Text]:
        """The class text features by prompt, each of which may stand for many templates."""
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

    def _encode(
        self,
        path: Path,
        kind: str,
        images: ImageSet,
        templates: Sequence[str] = (),
        part: tuple[int, int] | None = None,
    ) -> Extracted:
        """Encode what is not kept yet, and write the file.

        Of a part, the file has its images alone, and the description of the whole set.
        """
        size, encoder, dtype = self.settings.batch_size, self.encoder, self.settings.store
        started = time.monotonic()  # the encoder is loaded: its time is no image's
        chosen = images
        if part:
            rows = part_rows(len(images), *part, size)
            chosen = pick_rows(images, np.arange(rows.start, rows.stop))
        source = images.identity()
        identity = {"encoder": encoder.identity, "source": source, "batch_size": size}
        shape = len(chosen), encoder.embed_dim
        unfinished = Unfinished(path, identity, shape, dtype, self.reporter.note)
        todo = len(chosen) - unfinished.done
        if unfinished.done:
            done = f"{unfinished.done:,} of {len(chosen):,} images are encoded already"
            self.reporter.note(f"note: {images.name}: {done}, by a run that was stopped")
        # Before the images, which may take hours: a refusal would come behind them.
        for template in [part for prompt in templates for part in templates_of(prompt)]:
            encoder.text.check_length(class_prompts(template, images.class_names))
        with self.reporter.track(images.name, len(chosen)) as advance:
            unfinished.fill(self._rows(chosen, unfinished.done), advance)
        readable = unfinished.readable()
        if not readable.any() and len(chosen):
            raise DatasetError(f"not one image of '{images.name}' could be read.")
        texts = self._texts(images.name, images.class_names, templates)
        skipped = tuple(itertools.compress(chosen.sample_ids, ~readable))
        beside = {**images.facts, SKIPPED: skipped}
        generic, of_words = self._generic if texts else (None, "")
        features = Features(
            path, kind, images.name, encoder.identity,
            {**source, **{key: value for key, value in beside.items() if value}},
            np.empty((0, encoder.embed_dim), dtype), chosen.labels[readable],
            tuple(images.class_names), texts, generic, of_words,
            machine=machine_facts(ENCODING, gpu=_gpu_name(encoder), batch_size=size),
        )  # fmt: skip
        ids = list(itertools.compress(chosen.sample_ids, readable))
        store.write(features, ids, unfinished.blocks())
        discard(path)
        return Extracted(path, int(readable.sum()), todo, time.monotonic() - started, skipped)

    def _rows(self, images: ImageSet, first: int) -> Iterator[NDArray[np.floating]]:
        """The features (B, D) of batches from image `first` on, NaN for what cannot be read.

        Raises:
            DatasetError: an image is broken, and such are not left out.
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
            yield rows


def _other_images(there: Features, images: ImageSet) -> str:
    """How the images of a feature file differ from these; empty if they are the same."""
    keys = [*images.identity(), AS_SHOWN]
    differs = difference(there.source, images.identity(), keys)
    if differs is None:
        same = [*there.class_names] == [*images.class_names]
        return "" if same else "the class names are others"
    if differs.key == "digest":
        return "names, sizes, labels or class names of files are others"
    if differs.key == AS_SHOWN:
        return "read " + ("as shown, now not" if differs.one else "as published, now as shown")
    before, now = ("all" if value is None else f"{value}" for value in differs[1:])
    return f"{differs.key} {before}, now {now}"


def _no_image(_: int) -> Image.Image:
    raise AssertionError("a word list has no images")


def _gpu_name(encoder: Encoder) -> str | None:
    """The model of the GPU on which an encoder runs, if it does."""
    if encoder.identity.get("device") != "cuda":
        return None
    import torch

    return torch.cuda.get_device_name(encoder.device)
