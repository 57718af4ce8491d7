"""Encode a data set into a feature file: once, resumable, one process at a time for each file.

The work is divided into parts of a few batches, and the bounds of batches do not depend on where an
earlier run stopped: a resumed extraction gives the same bytes as an uninterrupted one.
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
from numpy.typing import NDArray

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import (
    check_folder,
    feature_path,
    folder_name,
    part_path,
    parts_folder,
    set_names,
    stored,
)
from zsntta_cli.cache.identity import ENCODING, check_same, difference, machine_facts
from zsntta_cli.cache.parts import (
    PartsIdentity,
    check_not_whole,
    claim_parts,
    is_joined,
    join_parts,
    read_identity,
    read_part,
)
from zsntta_cli.cache.store import Features, PartOf, Text
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.names import (
    DATASET,
    NOISE,
    SIZES,
    SKIPPED,
    WORDS,
    SetName,
    noise_name,
    words_name,
)
from zsntta_cli.datasets.sharding import SetPart, ShardedSet
from zsntta_cli.datasets.sizes import image_sizes, in_words
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.encoders.text import prompt_features
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import DatasetError, SettingsError, counted, short
from zsntta_cli.extraction.existing import (
    existing_features,
    other_type,
)
from zsntta_cli.extraction.jobs import Encoded, encode_parts, job_for, no_features
from zsntta_cli.extraction.parts import Parts, discard_parts, equal_parts, locked, locked_if_free
from zsntta_cli.extraction.processes import Processes
from zsntta_cli.extraction.words import embed_words, word_set, write_words
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import FLOAT16, EncoderChoice, ExtractSettings
from zsntta_cli.settings.prompts import class_prompts_beside, templates_of

_BATCHES_A_PART = 4  # a killed run loses at most this much


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
    if not extracted.images:
        return f"{extracted.path}: no {extracted.unit}: there are fewer shards than parts"
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
    find_processes: Callable[[], Processes | None] = field(default=lambda: None)

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

    @cached_property
    def processes(self) -> Processes | None:
        """The processes that encode on several devices, if any; chosen at the first use."""
        return self.find_processes()

    def close(self) -> None:
        """Stop the processes, if they were used."""
        if processes := vars(self).get("processes"):
            processes.close()

    def dataset(self, images: ImageSet, templates: Sequence[str] = ()) -> Extracted:
        """Extract a data set, and class text features for each prompt template.

        Raises:
            DatasetError: an image is broken. StoreError: its file is of another set or encoder.
        """
        path = feature_path(self.root, self._folder, images.name)
        with locked(path, self.reporter.note):
            existing = self._existing(path, images)
            if existing is not None:
                discard_parts(path)
                self._say_other_batches(existing)
                self._add_texts(existing, templates)
                extracted = Extracted(path, len(existing), 0, 0.0)
            else:
                extracted = self._extract(path, DATASET, images, templates)
        if count := datasets.miscounted(images.name, extracted.images):
            self.reporter.note(f"note: '{images.name}' is not the published set: it has {count}.")
        return extracted

    def part(
        self, sharded: ShardedSet, index: int, of: int, prompts: Callable[[ImageSet], Sequence[str]]
    ) -> Extracted:
        """Extract one part of a set; the first with a shard also gets text features for `prompts`.

        A part that exists already is left as it is, and no image is read.

        Raises:
            DatasetError: an image or shard is broken. StoreError: there are parts of another set,
                number or encoder.
        """
        whole = feature_path(self.root, self._folder, sharded.name)
        with locked(part_path(whole, index), self.reporter.note):
            return self._part(whole, sharded, index, of, prompts)

    def part_if_free(
        self, sharded: ShardedSet, index: int, of: int, prompts: Callable[[ImageSet], Sequence[str]]
    ) -> Extracted | None:
        """Extract one part as `part` does; None if another process works on it."""
        whole = feature_path(self.root, self._folder, sharded.name)
        with locked_if_free(part_path(whole, index)) as is_free:
            return self._part(whole, sharded, index, of, prompts) if is_free else None

    def _part(
        self,
        whole: Path,
        sharded: ShardedSet,
        index: int,
        of: int,
        prompts: Callable[[ImageSet], Sequence[str]],
    ) -> Extracted:
        """Extract one part of the set at `whole` while its lock is held."""
        path, source = part_path(whole, index), sharded.identity()
        if self._has_part(whole, index, of, source):
            discard_parts(path)
            return Extracted(path, len(store.read(path, rows=False)), 0, 0.0)
        claim_parts(whole, PartsIdentity(self.encoder.identity, source, of))
        check_not_whole(whole)
        part = sharded.part(index, of)
        run = sharded.shards_of(index, of)
        templates = prompts(part.images) if run and run.start == 0 else ()
        return self._extract(path, DATASET, part.images, templates, part=part)

    def _has_part(self, whole: Path, index: int, of: int, source: Mapping[str, Any]) -> bool:
        """Whether a part exists; StoreError if it belongs to another set of parts."""
        if not part_path(whole, index).exists():
            return False
        identity = read_identity(whole)
        claim_parts(whole, PartsIdentity(identity.encoder, source, of))
        check_same(parts_folder(whole), identity.encoder, self._request, self._request)
        part = read_part(whole, index, identity)
        if part and not self._has_type(part):
            raise other_type(part.path, part.image_features.dtype, self.settings.store)
        return part is not None

    def joined(self, sharded: ShardedSet, of: int) -> Extracted:
        """Join the parts of a set; StoreError if one is missing or does not fit."""
        path = feature_path(self.root, self._folder, sharded.name)
        with locked(path, self.reporter.note):
            claim_parts(path, read_identity(path)._replace(source=sharded.identity(), of=of))
            return Extracted(path, len(join_parts(path)), 0, 0.0)

    def is_joined(self, name: str) -> bool:
        """Whether the file of a set exists, was joined from parts, and is to stay."""
        try:
            path = feature_path(self.root, self._folder, name)
        except SettingsError:  # no name of a set: who loads its images says so
            return False
        return not self.settings.overwrite and is_joined(path)

    def joined_before(
        self, sharded: ShardedSet, templates: Sequence[str]
    ) -> tuple[Extracted, bool]:
        """A set that was joined from parts, with text features for further templates.

        Also return whether it has classes.

        Raises:
            StoreError: it is of other images or of another encoder.
        """
        path = feature_path(self.root, self._folder, sharded.name)
        with locked(path, self.reporter.note):
            existing = store.read(path)
            check_same(path, existing.identity, self._request, self._request)
            identity = sharded.identity()
            check_same(
                path,
                existing.source,
                identity,
                identity,
                what="set of images",
                then="--overwrite replaces it",
            )
            self._add_texts(existing, templates)
        return Extracted(path, len(existing), 0, 0.0), bool(existing.texts)

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
            return self._extract(path, NOISE, make(self.encoder.image_size), (), pool)

    def words(
        self, name: str, words: Sequence[str], templates: Sequence[str], limit: int | None = None
    ) -> Extracted:
        """Embed a word list: a feature file without images, whose class names are the words."""
        path = feature_path(self.root, self._folder, words_name(name))
        images = word_set(path.stem, words, limit)
        with locked(path, self.reporter.note):
            existing = self._existing(path, images)
            cached = existing.texts if existing is not None else {}
            missing = [template for template in templates if template not in cached]
            if missing:
                _ = self.encoder  # its loading is no word's time
            started = time.monotonic()
            for template in missing:
                identity = {**self._identity(images, WORDS), "template": template}
                text = embed_words(path, images, template, identity, self.encoder, self.reporter)
                if existing is None and template == missing[0]:
                    write_words(path, images, self.encoder, text)
                else:
                    store.add_texts(path, [text])
            discard_parts(path)
            seconds = time.monotonic() - started
            return Extracted(path, len(words), len(words) * bool(missing), seconds, unit="words")

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
        pool: Features | None = None,
        part: SetPart | None = None,
    ) -> Extracted:
        """Encode what is not kept yet, and write the file; `pool` is one to extend.

        The file of a part of a set has only its images.
        """
        size, encoder = self.settings.batch_size, self.encoder
        started = time.monotonic()  # the encoder is loaded: its time is no image's
        no_rows = no_features(encoder, self.settings.store)
        same = pool is not None and pool.identity == encoder.identity and self._has_type(pool)
        kept = pool.image_features[:] if pool and same else no_rows
        kept = kept[: len(kept) // size * size]  # whole batches only: the same bits
        rows = range(len(kept), len(images))
        ranges, layout = equal_parts(rows, size * _BATCHES_A_PART)
        if part is not None:
            ranges, layout = part.rows, {"part": part.index, "of": part.of, "batch_size": size}
        identity = {**self._identity(images, kind), **layout}
        parts = Parts(path, identity, ranges, self.reporter.note)
        encoded = self._encode_missing(images, parts)
        readable = np.append(np.ones(len(kept), bool), parts.readable())
        if not readable.any() and len(images):
            raise DatasetError(f"not one image of '{images.name}' could be read.")
        skipped = tuple(itertools.compress(images.sample_ids, ~readable))
        blocks = itertools.chain([kept] if len(kept) or not len(images) else [], parts.blocks())
        texts = self._texts(
            images.name, images.class_names, templates if images.class_names else ()
        )
        features = Features(
            path,
            kind,
            images.name,
            identity=encoder.identity,
            source={**images.identity(), **_beside(images, kind), **_left_out(skipped)},
            image_features=no_rows,
            labels=images.labels[readable],
            class_names=tuple(images.class_names),
            texts={text.template: text for text in texts},
            machine=machine_facts(ENCODING, gpu=_gpu_name(encoder), batch_size=size),
            part=PartOf(part.index, part.of, str(part.set_identity["digest"])) if part else None,
        )
        store.write(features, list(itertools.compress(images.sample_ids, readable)), blocks)
        parts.discard()
        seconds = time.monotonic() - started
        return Extracted(path, int(readable.sum()), encoded, seconds, skipped)

    def _encode_missing(self, images: ImageSet, parts: Parts) -> int:
        """Encode the missing parts and keep each; return the number of images encoded."""
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
        store = self.settings.store
        type_of_rows = {} if store == FLOAT16 else {"store": store}
        return {"encoder": self.encoder.identity, "source": source, **type_of_rows}

    def _encode(
        self, images: ImageSet, missing: Sequence[range], advance: Callable[[int], None]
    ) -> Encoded:
        """The features of the missing parts, of several devices if there is more than one part."""
        processes = self.processes if len(missing) > 1 else None
        if processes is None:
            return encode_parts(images, self.encoder, self.settings, missing, advance)
        return processes.encode(job_for(images, self.choice, self.settings), missing, advance)


def _left_out(skipped: Sequence[str]) -> dict[str, object]:
    return {SKIPPED: skipped} if skipped else {}


def _beside(images: ImageSet, kind: str) -> dict[str, object]:
    """What a file says about its images besides their identity."""
    sizes = in_words(image_sizes(images)) if kind == DATASET else ""
    return {**images.facts, **({SIZES: sizes} if sizes else {})}


def _gpu_name(encoder: Encoder) -> str | None:
    """The model of the GPU on which an encoder runs, if it does."""
    if encoder.identity.get("device") != "cuda":
        return None
    import torch

    return torch.cuda.get_device_name(encoder.device)
