"""Encode a data set into a feature file: once, resumably, one process at a time for each file.

The bounds of batches depend neither on where an earlier run stopped nor on the part of a set that
is made. A resumed extraction and joined parts therefore have the features of an uninterrupted one.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli import datasets
from zsntta_cli.cache import folder, store
from zsntta_cli.cache.accuracy import accuracy_lines
from zsntta_cli.cache.identity import ENCODING, check_same, difference, machine_facts
from zsntta_cli.cache.parts import part_path, part_rows
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.cache.unfinished import Unfinished
from zsntta_cli.datasets.drawn.builtin import noise_images
from zsntta_cli.datasets.images import AS_SHOWN, ImageSet, pick_rows
from zsntta_cli.datasets.names import DATASET, NOISE, SKIPPED, WORDS, SetName, noise_name
from zsntta_cli.datasets.words import limited_words
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.encoders.text import BATCH, generic_text, prompt_features
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
    encoded: int = 0  # images or words in this run: 0 if the file was already complete
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

    @property
    def line(self) -> str:
        """One line on the result: the file, its images, and how fast they were encoded."""
        unit = "word" if self.features.kind == WORDS else "image"
        what = f"{self.path}: {counted(self.images, unit)}"
        if not self.encoded:
            return f"{what}, already extracted"
        rate = self.encoded / self.seconds if self.seconds else 0.0
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, else KiB
        peak //= 2**20 if sys.platform == "darwin" else 2**10
        how = f"{self.seconds:.1f} s ({rate:,.1f} {unit}s/s), peak memory {peak:,} MiB"
        broken = f"; skipped {len(self.skipped)} broken: {', '.join(self.skipped)}"
        return f"{what} in {how}{broken if self.skipped else ''}"


class Extractor:
    """The extraction of any number of sets with one encoder, which is loaded when first needed."""

    def __init__(
        self, choice: EncoderChoice, settings: ExtractSettings, reporter: Reporter
    ) -> None:
        self.choice, self.settings, self.reporter = choice, settings, reporter
        self._folder = folder.folder_name(choice)

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
            folder.check_folder(self.settings.features_dir, self._folder, encoder.identity)
        return encoder

    @cached_property
    def _generic(self) -> tuple[NDArray[np.float32], str]:
        return generic_text(self.encoder.encode_texts)

    def dataset(
        self, images: ImageSet, templates: Sequence[str] = (), part: tuple[int, int] | None = None
    ) -> Extracted:
        """Extract a data set, and class text features for each prompt template.

        `part` extracts one part of the set, by its number from 1 and the number of parts. Parts are
        whole batches, so that joined they equal the set. The first part gets the text features.

        Raises:
            DatasetError: an image is broken. StoreError: its file has a different set or encoder.
        """
        path, chosen = self.path(images.name), images
        if part:
            path, templates = part_path(path, *part), templates if part[0] == 1 else ()
            rows = part_rows(len(images), *part, self.settings.batch_size)
            chosen = pick_rows(images, np.array(rows))
        with self._writing(path):
            if (existing := self._existing(path, images)) is None:
                return self._encode(path, DATASET, images, chosen, templates)
            new = self._with_texts(existing, templates)
            return self._result(new if new is existing else store.write(new))

    def noise(self, noise_type: str, count: int) -> Extracted:
        """Extract a pool of at least `count` noise images of the encoder's image size.

        Raises:
            StoreError: its file is from a different encoder.
        """
        path = self.path(noise_name(noise_type))
        with self._writing(path):
            if path.exists() and not self.settings.overwrite:
                pool = store.read(path)
                check_same(path, pool.identity, self._request, self._request)
                if len(pool) >= count and pool.image_features.dtype == self.settings.store:
                    return self._result(pool)
            images = noise_images(noise_type, count, self.encoder.image_size)
            return self._encode(path, NOISE, images, images)

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
        path, started = self.path(name), time.monotonic()
        words = limited_words(every := read(), limit)
        limit = limit if len(words) < len(every) else None
        no_images = list[Image.Image]().__getitem__
        images = ImageSet(name, no_images, np.empty(0, np.int32), (), words, limit=limit)
        with self._writing(path):
            features = self._existing(path, images)
            if features is None:
                features = Features(
                    path, WORDS, name, self.encoder.identity, images.identity(),
                    np.empty((0, self.encoder.embed_dim), np.float16), images.labels, tuple(words),
                    machine=machine_facts(ENCODING),
                )  # fmt: skip
            missing = [template for template in templates if template not in features.texts]
            for template in missing:
                texts = {**features.texts, template: self._embedded(features, template)}
                features = store.write(replace(features, texts=texts), ())
                _rows_path(path).unlink(missing_ok=True)  # the next template has its own
            encoded = len(words) if missing else 0
            return self._result(features, encoded, time.monotonic() - started)

    def _embedded(self, features: Features, template: str) -> Text:
        """The text features of a word list's words under a template."""
        words, of = features.class_names, {"source": features.source, "template": template}
        unfinished = self._begun(features.path, of, len(words), BATCH, "float32")
        rows = (
            prompt_features(self.encoder.encode_texts, template, words[i : i + BATCH])
            for i in range(unfinished.done, len(words), BATCH)
        )
        with self.reporter.track(features.name, len(words), "words") as advance:
            unfinished.fill(rows, advance)
        return Text(template, np.array(unfinished.rows))

    def match_class_names(self) -> None:
        """Embed all sets' class names with the prompts of the cached built-in word lists."""
        root = self.settings.features_dir
        lists = [SetName.parse(name).bare for name in folder.set_names(root, self._folder, WORDS)]
        if not (prompts := class_prompts_beside(lists)):
            return
        lacking = [
            file
            for file in folder.described(root, self._folder)
            if file.kind == DATASET and file.class_names and not {*prompts} <= {*file.texts}
            and not difference(file.identity, self._request, self._request)
        ]  # fmt: skip
        if lacking:
            names = ", ".join(file.name for file in lacking)
            self.reporter.note(f"class names with the word lists' prompts: {names}")
        for file in lacking:
            with self._writing(file.path):
                store.write(self._with_texts(store.read(file.path), prompts))

    def path(self, name: str) -> Path:
        """The feature file of a set."""
        return folder.feature_path(self.settings.features_dir, self._folder, name)

    def _writing(self, path: Path) -> AbstractContextManager[None]:
        """Lock the file at `path`. If its encoder cannot be loaded, not even its folder is made."""
        if self.settings.overwrite or not path.exists():
            _ = self.encoder
        return folder.locked(path, self.reporter.note)

    def _existing(self, path: Path, images: ImageSet) -> Features | None:
        """The content of a set's file, or None if it has to be made.

        Raises:
            StoreError: its encoder, images or type differ.
        """
        if self.settings.overwrite or not path.exists():
            return None
        existing = store.read(path)
        check_same(path, existing.identity, self._request, self._request)
        dtype = str(existing.image_features.dtype) if len(existing) else self.settings.store
        names = ", ".join(existing.class_names)
        facts = {**existing.source, "type": dtype, "class list": names}
        expected = {
            AS_SHOWN: None, **images.identity(), "type": self.settings.store,
            "class list": ", ".join(images.class_names),
        }  # fmt: skip
        check_same(path, facts, expected, expected, what="set", then=_REPLACE)
        return existing

    def _result(
        self,
        features: Features,
        encoded: int = 0,
        seconds: float = 0.0,
        skipped: tuple[str, ...] = (),
    ) -> Extracted:
        """The result for a file that is finished; notes on a whole set are reported."""
        _rows_path(features.path).unlink(missing_ok=True)
        if features.path.stem == features.name:
            for line in accuracy_lines(features):
                self.reporter.note(line)
            if count := datasets.miscounted(features.name, len(features)):
                self.reporter.note(
                    f"note: '{features.name}' is not the published set: it has {count}."
                )
        no_rows = np.empty((0, features.dim), features.image_features.dtype)
        return Extracted(replace(features, image_features=no_rows), encoded, seconds, skipped)

    def _with_texts(self, features: Features, templates: Sequence[str]) -> Features:
        """A set with class text features for each template, and a generic text beside them.

        A template may combine several. Existing features are not made again.
        """
        names, texts = features.class_names, dict(features.texts)
        missing = [template for template in templates if template not in texts]
        lacks_generic = bool(templates) and features.generic is None
        if not names or not (missing or lacks_generic):
            return features
        for prompt in missing:
            what, total = f"{features.name}, {short(prompt, 20)}", len(templates_of(prompt))
            with self.reporter.track(what, total * len(names), "prompts") as advance:

                def encode(prompts: Sequence[str]) -> NDArray[np.float32]:
                    encoded = self.encoder.encode_texts(prompts)
                    advance(len(prompts))
                    return encoded

                texts[prompt] = Text(prompt, prompt_features(encode, prompt, names))
        features = replace(features, texts=texts)
        if lacks_generic:
            generic, source = self._generic
            features = replace(features, generic=generic, generic_source=source)
        return features

    def _begun(
        self, path: Path, of: Mapping[str, Any], count: int, batch_size: int, dtype: str
    ) -> Unfinished:
        """The rows of the file at `path`: whole batches of an interrupted run, or none."""
        of = {**of, "encoder": self.encoder.identity, "batch_size": batch_size, "count": count}
        unfinished = Unfinished(_rows_path(path), of, self.encoder.embed_dim, dtype)
        if unfinished.has_others:
            self.reporter.note(
                f"{path.stem}: starting over: an interrupted run had a different encoder, "
                f"--batch-size, number of threads or images."
            )
        # Where disks have no locks, another process may have appended rows behind the last one.
        unfinished.done = min(unfinished.done, count)
        if unfinished.done < count:  # the last bits of features depend on their batch
            unfinished.done -= unfinished.done % batch_size
        return unfinished

    def _encode(
        self,
        path: Path,
        kind: str,
        images: ImageSet,
        chosen: ImageSet,
        templates: Sequence[str] = (),
    ) -> Extracted:
        """Encode the `chosen` images that an interrupted run has not, and write the file.

        The file describes all `images`.
        """
        size, encoder, started = self.settings.batch_size, self.encoder, time.monotonic()
        source = images.identity()
        unfinished = self._begun(path, {"source": source}, len(chosen), size, self.settings.store)
        if done := unfinished.done:
            self.reporter.note(
                f"note: {images.name}: {done:,} of {len(chosen):,} images were already encoded by "
                f"an interrupted run"
            )
        # Too long a prompt is refused before the images, which may take hours.
        for template in chain.from_iterable(map(templates_of, templates)):
            encoder.text.check_length(class_prompts(template, images.class_names))
        with self.reporter.track(images.name, len(chosen)) as advance:
            unfinished.fill(self._rows(chosen, done), advance)
        features = unfinished.rows
        readable = ~np.isnan(features[:, 0])
        if not readable.any() and len(chosen):
            raise DatasetError(f"no image of '{images.name}' could be read.")
        skipped = tuple(compress(chosen.sample_ids, ~readable))
        source |= {**images.facts, **({SKIPPED: skipped} if skipped else {})}
        new = Features(
            path, kind, images.name, encoder.identity, source,
            features[readable] if skipped else features, chosen.labels[readable],
            tuple(images.class_names),
            machine=machine_facts(ENCODING, gpu=encoder.gpu, batch_size=size),
        )  # fmt: skip
        ids = [*compress(chosen.sample_ids, readable)]
        new = store.write(self._with_texts(new, templates), ids)
        seconds, encoded = time.monotonic() - started, len(chosen) - done
        return self._result(new, encoded, seconds, skipped)

    def _rows(self, images: ImageSet, first: int) -> Iterator[NDArray[np.floating]]:
        """The features (B, D) of batches from image `first` on; NaN for skipped broken images."""
        settings, encoder, size = self.settings, self.encoder, self.settings.batch_size
        batches = [range(i, min(i + size, len(images))) for i in range(first, len(images), size)]
        loaded = load_batches(
            images, batches, encoder.resize, settings.workers, settings.skip_broken
        )
        for pixels, is_readable in loaded:
            rows = np.full((len(is_readable), encoder.embed_dim), np.nan, settings.store)
            if len(pixels):
                with np.errstate(over="ignore"):
                    rows[is_readable] = encoder.encode_pixels(pixels)
            if not np.isfinite(rows[is_readable]).all():
                raise EncoderError(f"the encoder's features are not finite in {settings.store}.")
            yield rows


def _rows_path(path: Path) -> Path:
    """The file of rows that are finished before the feature file at `path`."""
    return path.with_name(f".{path.stem}{folder.ROWS}")
