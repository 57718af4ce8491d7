"""Encode images and prompts with one encoder, which is loaded when something has to be encoded.

torch is imported only then: images that were encoded before are decided without it.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.cache.folder import encoder_folder, folder_name
from zsntta_cli.cache.identity import check_same
from zsntta_cli.datasets.decoding import CUT_OFF, as_shown
from zsntta_cli.detection.feature_store import FeatureStore, Half, KeptImage, Stamp
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.encoders.text import generic_text, prompt_features
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import EncoderError, first_line
from zsntta_cli.progress import Advance, Reporter
from zsntta_cli.settings import EncoderChoice

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder

STORE = "images.sqlite"  # beside the encoder's feature files
_BATCH = 64  # images to an encoder pass
_MANY = 1000  # files to be read from which on all known digests are looked up at once
# A file that is written twice within its clock's step may keep its stamp (FAT has steps of two
# seconds): one that was changed less than so many seconds ago is read again the next time.
_SETTLED = 4.0

Pixels = NDArray[np.uint8]
Resize = Callable[[Image.Image], Pixels]
Result = TypeVar("Result")


class Encoded(NamedTuple):
    """An item with its features, or with the error of reading it."""

    item: Item
    features: Half | None  # (D,) raw
    error: str = ""
    digest: bytes = b""  # SHA-256 of a file's content; of what is no file, nothing
    note: str = ""  # what was done to read it, where it is not as its file has it


@dataclass(frozen=True)
class Read:
    """The content of an item: its digest, and if it is new its pixels, or an error."""

    digest: bytes = b""  # nothing of what could not be had at all
    pixels: Pixels | None = None
    stamp: Stamp | None = None  # of a file that can be told from what it may become
    error: str = ""
    note: str = ""  # what was done to decode it
    is_lasting: bool = False  # whether its content is what is wrong


@dataclass
class Encoding:
    """One encoder's features of images and class names: kept ones, and new ones."""

    choice: EncoderChoice
    root: Path
    device: str
    workers: int
    reporter: Reporter

    def __post_init__(self) -> None:
        self.name = folder_name(self.choice)
        self.store = FeatureStore(encoder_folder(self.root, self.name) / STORE)
        self._resize: Resize | None = None  # the encoder's, once it is loaded
        if identity := self.store.identity:
            # Of features that are kept, the encoder is told by its weights where these are at hand.
            request = {} if self.choice.folder else weights_request(self.choice)
            check_same(self.store.path, identity, {**identity, **request})

    @property
    def identity(self) -> Mapping[str, Any]:
        """The identity of the encoder; it is loaded if nothing was encoded before."""
        return self.store.identity or self.encoder.identity

    @cached_property
    def encoder(self) -> "Encoder":
        """The encoder, loaded at the first use.

        Raises:
            EncoderError: the encoder is not available. StoreError: the kept features are another
                encoder's.
        """
        from zsntta_cli.encoders.clip import load_encoder

        choice = self._loadable()
        with self.reporter.waiting(lambda: f"loading {choice.model}"):
            encoder = load_encoder(choice, self.device)
        encoder.tell(self.reporter.note)
        self.store.set_identity(encoder.identity)
        check_same(self.store.path, self.store.identity or {}, encoder.identity)
        if not self.store.is_kept:
            self.reporter.note(f"note: {self.store.path} cannot be written: no features are kept.")
        return encoder

    def _loadable(self) -> EncoderChoice:
        """The encoder in open_clip's terms; for a named folder from the stored identity."""
        if not self.choice.folder:
            return self.choice
        identity = self.store.identity or {}
        words = [identity.get(key) for key in ("model", "pretrained", "precision")]
        if not all(isinstance(word, str) for word in words):
            raise EncoderError(
                f"what made the features of {self.choice.folder} is not known here, so nothing "
                f"new can be encoded: name a model."
            )
        return EncoderChoice(*map(str, words))

    def texts(self, names: Sequence[str], template: str) -> NDArray[np.float32]:
        """Text features (C, D) of class names, of unit norm; the mean of several templates."""
        return prompt_features(self._of_prompts, template, names)

    def generic_text(self) -> NDArray[np.float32]:
        """The encoder's generic text (D,); its words are encoded once, and kept."""
        return generic_text(self._of_prompts)

    def _of_prompts(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        """Text features (P, D) of prompts: new ones are encoded, and kept."""
        features = self.store.texts(prompts)
        missing = [prompt for prompt in dict.fromkeys(prompts) if prompt not in features]
        if missing:
            encoded = dict(zip(missing, self.encoder.encode_texts(missing), strict=True))
            self.store.add_texts(encoded)
            features |= encoded
        return np.stack([features[prompt] for prompt in prompts])

    def images(self, items: Sequence[Item], name: str = "") -> list[Encoded]:
        """The items with their features, in order; an item that cannot be read has its error.

        Files with known stamps are not read, and known images are not encoded. Progress is shown
        under `name`, if given.
        """
        stamps = {item.key: stamp for item in items if (stamp := trusted(item))}
        digests = self.store.digests(stamps)
        kept = self.store.images(digests.values())
        encoded, todo = list[Encoded](), list[int]()
        for i, item in enumerate(items):
            digest = digests.get(item.key, b"")
            encoded.append(_encoded(item, digest, kept.get(digest)))
            if encoded[i].features is None and not encoded[i].error:
                todo.append(i)
        reporter = self.reporter if name else Reporter()
        if todo:
            with reporter.track(name, len(todo)) as advance:
                for i, digest, image in self._read(items, todo, advance):
                    encoded[i] = _encoded(items[i], digest, image)
        return encoded

    def _read(
        self, items: Sequence[Item], todo: Sequence[int], advance: Advance
    ) -> Iterator[tuple[int, bytes, KeptImage]]:
        """Indices of the items to be read, with digests and features or errors."""
        # Of many files, those that are known by their content are not even decoded.
        seen = self.store.all_digests() if len(todo) > _MANY else set[bytes]()
        with ThreadPoolExecutor(self.workers) as threads:

            def read_item(i: int) -> Read:
                return read(items[i], seen, self._resize)

            for reads in ahead(threads, read_item, todo, max(_BATCH, 2 * self.workers)):
                kept = self.store.images({one.digest for one in reads.values()})
                lacking = [
                    i
                    for i, one in reads.items()
                    if one.digest not in kept and one.pixels is None and not one.error
                ]
                if lacking and "encoder" not in vars(self):  # it is not loaded for nothing
                    reads |= (failures := _first_failures(items, lacking))
                    lacking = lacking[len(failures) :]
                if lacking:
                    self._resize = self.encoder.resize  # only now is it needed
                    reads |= zip(lacking, threads.map(read_item, lacking), strict=True)
                images = kept | self._new_images(reads.values(), kept)
                stamps = {
                    items[i].key: (one.stamp, one.digest)
                    for i, one in reads.items()
                    if one.stamp and one.digest in images
                }
                self.store.add(images, stamps)
                seen |= images.keys()
                for i, one in reads.items():
                    failed = KeptImage(None, error=one.error)
                    yield i, one.digest, images.get(one.digest, failed)
                advance(len(reads))

    def _new_images(
        self, reads: Iterable[Read], kept: Mapping[bytes, KeptImage]
    ) -> dict[bytes, KeptImage]:
        """What is kept of new images, by digest: features of their pixels, or errors."""
        images, pixels, new = dict[bytes, KeptImage](), dict[bytes, Pixels](), dict[bytes, Read]()
        for one in reads:
            if not one.digest or one.digest in kept:
                continue
            if one.is_lasting:
                images[one.digest] = KeptImage(None, error=one.error)
            if one.pixels is not None:
                pixels[one.digest], new[one.digest] = one.pixels, one
        if not pixels:
            return images
        rows = self.encoder.encode_pixels(np.stack(list(pixels.values())))
        with np.errstate(over="ignore"):
            halves = rows.astype(np.float16)
        for digest, half in zip(pixels, halves, strict=True):
            images[digest] = KeptImage(half, self._note(new[digest]))
        return images

    def _note(self, one: Read) -> str:
        """What was done to read an image; an encoder that squeezes it into a square sees all."""
        preprocessing: Mapping[str, Any] = self.encoder.identity.get("preprocessing") or {}
        is_squeezed = preprocessing.get("resize_mode") == "squash"
        notes = one.note.split("; ")
        return "; ".join(note for note in notes if not (is_squeezed and note == CUT_OFF))


def _encoded(item: Item, digest: bytes, image: KeptImage | None) -> Encoded:
    features, note, error = image or KeptImage(None)
    if features is not None and (wrong := wrong_with(features)):
        features, error = None, wrong
    return Encoded(item, features, error, digest if features is not None else b"", note)


def wrong_with(features: NDArray[np.floating]) -> str:
    """Why an image's features (D,) cannot be judged; empty if they can."""
    if not np.isfinite(features).all():
        return "its features are not finite"
    return "its features are the same number in all dims" if not np.ptp(features) else ""


def _first_failures(items: Sequence[Item], places: Iterable[int]) -> dict[int, Read]:
    """The first images that cannot be decoded, by index: they need no encoder."""
    failures = {}
    for i in places:
        tried = read(items[i], set(), np.asarray)
        if not tried.error:
            break
        failures[i] = tried
    return failures


def read(item: Item, seen: set[bytes], resize: Resize | None) -> Read:
    """Read an item; its pixels only if its digest is new and `resize` is known."""
    before, digest = trusted(item), b""
    try:
        content = item.load()
        digest = content.digest
        decoded = as_shown(content.data) if resize and digest not in seen else None
        failure = None
    except Exception as error:  # of a damaged image PIL raises nearly anything
        failure = error
    stamp = before if trusted(item) == before else None
    if failure is not None:
        wrong = first_line(failure).partition(" <_io.")[0]  # PIL names the object
        is_lasting = bool(digest) and not isinstance(failure, MemoryError)
        return Read(digest, None, stamp, wrong, is_lasting=is_lasting)
    if not (resize and decoded):
        return Read(digest, None, stamp)
    return Read(digest, resize(decoded.image), stamp, note=decoded.note)


def trusted(item: Item) -> Stamp | None:
    """Size and times of an item's file; None if the file was changed just now."""
    if item.file is None:
        return None
    try:
        status = os.stat(item.file)
    except (OSError, ValueError):
        return None
    if time.time() - max(status.st_mtime_ns, status.st_ctime_ns) / 1e9 <= _SETTLED:
        return None
    return Stamp(status.st_size, f"{status.st_mtime_ns} {status.st_ctime_ns}")


def ahead(
    threads: ThreadPoolExecutor,
    function: Callable[[int], Result],
    numbers: Iterable[int],
    more: int,
) -> Iterator[dict[int, Result]]:
    """Results by index, a batch at a time, in order; `more` are computed in advance."""
    upcoming = iter(numbers)
    waiting: deque[tuple[int, Future[Result]]] = deque()
    try:
        while True:
            for i in islice(upcoming, _BATCH + more - len(waiting)):
                waiting.append((i, threads.submit(function, i)))
            if not waiting:
                return
            results = {}
            for _ in range(min(_BATCH, len(waiting))):
                i, future = waiting.popleft()
                results[i] = future.result()
            yield results
    finally:
        for _, future in waiting:
            future.cancel()
