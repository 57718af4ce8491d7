"""Encode images and prompts with one encoder, which is loaded when something has to be encoded.

torch is imported only then: images that were encoded before are decided without it.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.cache.folder import encoder_folder, folder_name
from zsntta_cli.cache.identity import check_same
from zsntta_cli.datasets.decoding import CUT_OFF, as_shown, reader
from zsntta_cli.detection.feature_store import FILE, IMAGE, TEXT, FeatureStore, Kept
from zsntta_cli.detection.sources import Half, Photo, check_no_address, check_not_raw
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import DatasetError, EncoderError, first_line, short
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder

STORE = "images.sqlite"  # beside the encoder's feature files
_BATCH = 64  # images to an encoder pass
_WORKERS = 4  # threads that read the images of a program

Pixels = NDArray[np.uint8]


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

        choice = self._of_folder() if self.choice.folder else self.choice
        with self.reporter.waiting(lambda: f"loading {choice.model}"):
            encoder = load_encoder(choice, self.device)
        encoder.tell(self.reporter.note)
        self.store.set_identity(encoder.identity)
        check_same(self.store.path, self.store.identity or {}, encoder.identity)
        if not self.store.is_kept:
            self.reporter.note(f"note: {self.store.path} cannot be written: no features are kept.")
        return encoder

    def _of_folder(self) -> EncoderChoice:
        """The encoder of a named folder in open_clip's terms, by the stored identity."""
        identity = self.store.identity or {}
        words = [identity.get(key) for key in ("model", "pretrained", "precision")]
        if not all(isinstance(word, str) for word in words):
            raise EncoderError(
                f"what made the features of {self.choice.folder} is not known here, so nothing "
                f"new can be encoded: name a model."
            )
        return EncoderChoice(*map(str, words))

    def encode_texts(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        """Text features (P, D) of prompts, of unit norm: new ones are encoded, and kept."""
        keys = [prompt.encode(errors="surrogatepass") for prompt in prompts]
        features = self.store.unpacked(self.store.kept(TEXT, keys), np.float32)
        missing = {k: p for k, p in zip(keys, prompts, strict=True) if k not in features}
        if missing:
            new = self.encoder.encode_texts([*missing.values()])
            features |= zip(missing, new, strict=True)
            self.store.keep({TEXT: {key: Kept(features[key].tobytes()) for key in missing}})
        return np.stack([features[key] for key in keys])

    def encode(self, photos: Sequence[Photo], name: str = "") -> None:
        """Give images their features, or the error of reading them.

        Files that did not change are not read, and known images are not encoded. Progress is shown
        under `name`, if given.
        """
        stamps = {photo: photo.stamp for photo in photos if not photo.error}
        files = self.store.kept(FILE, filter(None, stamps.values()))
        for photo, stamp in stamps.items():
            photo.content = files.get(stamp, Kept()).value
        self._give_kept(photos)
        todo = [photo for photo in photos if photo.features is None and not photo.error]
        if todo:
            with (self.reporter if name else Reporter()).track(name, len(todo)) as advance:
                for batch in self._read(todo):
                    self._encode_new(batch, stamps)
                    advance(len(batch))

    def features_of(self, contents: Iterable[bytes]) -> dict[bytes, Half]:
        """Features (D,) of images that were ever encoded, by their content."""
        return self.store.unpacked(self.store.kept(IMAGE, contents), np.float16)

    def _give_kept(self, photos: Iterable[Photo]) -> None:
        """Give images the features that are kept of their content, or why there are none."""
        by_content = {photo.content for photo in photos if photo.content}
        kept = self.store.kept(IMAGE, by_content)
        features = self.store.unpacked(kept, np.float16)
        failures = self.store.kept(reader(), by_content - kept.keys())
        for photo in photos:
            if (row := features.get(photo.content)) is not None:
                photo.note, photo.error = kept[photo.content].words, wrong_with(row)
                photo.features = None if photo.error else row
            elif photo.content in failures:
                photo.error = failures[photo.content].words

    def _read(self, photos: Sequence[Photo]) -> Iterator[dict[Photo, Pixels | None]]:
        """Images in batches, with the pixels of those that are new."""
        known = self.store.keys(IMAGE, reader())  # what is known by its content is not decoded

        def read(photo: Photo) -> Pixels | None:
            # Before the encoder is loaded, nobody knows how large pixels are to be.
            return _read(photo, known, self.encoder.resize if "encoder" in vars(self) else None)

        with ThreadPoolExecutor(self.workers) as threads:
            for batch in _ahead(threads, read, photos, max(_BATCH, 2 * self.workers)):
                lacking = [
                    photo
                    for photo, pixels in batch.items()
                    if pixels is None and not photo.error and photo.content not in known
                ]
                if lacking and self.encoder:  # it is loaded now
                    batch |= zip(lacking, threads.map(read, lacking), strict=True)
                yield batch
                known |= {photo.content for photo in batch}

    def _encode_new(
        self, batch: Mapping[Photo, Pixels | None], stamps: Mapping[Photo, bytes]
    ) -> None:
        """Encode the new ones of images that were read, and keep what became of all of them."""
        new = {photo.content: (photo, p) for photo, p in batch.items() if p is not None}
        kept: dict[str, dict[bytes, Kept]] = {IMAGE: {}, reader(): {}, FILE: {}}
        if new:
            rows = self.encoder.encode_pixels(np.stack([pixels for _, pixels in new.values()]))
            with np.errstate(over="ignore"):
                halves = rows.astype(np.float16)
            preprocessing: Mapping[str, Any] = self.encoder.identity.get("preprocessing") or {}
            # An encoder that squeezes an image into a square sees all of it.
            untrue = CUT_OFF if preprocessing.get("resize_mode") == "squash" else None
            for (content, (photo, _)), half in zip(new.items(), halves, strict=True):
                note = "; ".join(said for said in photo.note.split("; ") if said != untrue)
                kept[IMAGE][content] = Kept(half.tobytes(), note)
        for photo in batch:
            if photo.content and photo.error:
                kept[reader()][photo.content] = Kept(words=photo.error)
            # A file that changed since has another stamp, under which it is read the next time.
            if photo.content and stamps[photo]:
                kept[FILE][stamps[photo]] = Kept(photo.content)
        self.store.keep(kept)
        self._give_kept([photo for photo in batch if not photo.error])


def wrong_with(features: NDArray[np.floating]) -> str:
    """Why an image's features (D,) cannot be judged; empty if they can."""
    if not np.isfinite(features).all():
        return "its features are not finite"
    return "its features are the same number in all dims" if not np.ptp(features) else ""


def _read(
    photo: Photo, known: set[bytes], resize: Callable[[Image.Image], Pixels] | None
) -> Pixels | None:
    """Read an image; its pixels if its content is not known and `resize` is.

    One that cannot be decoded has its error without `resize`, too: no encoder is loaded for it.
    """
    try:
        data = photo.read()
        photo.content = hashlib.sha256(data).digest()
        if photo.content not in known:
            image, photo.note = as_shown(data)
            return resize(image) if resize else None
    except Exception as error:  # of a damaged image PIL raises nearly anything
        photo.error = first_line(error).partition(" <_io.")[0]  # PIL names the object
        if isinstance(error, MemoryError):  # it is not the content that is wrong
            photo.content = b""
    return None


def _ahead(
    threads: ThreadPoolExecutor,
    read: Callable[[Photo], Pixels | None],
    photos: Sequence[Photo],
    more: int,
) -> Iterator[dict[Photo, Pixels | None]]:
    """Images with what was read of them, a batch at a time; `more` are read in advance."""
    upcoming = iter(photos)
    waiting: deque[tuple[Photo, Future[Pixels | None]]] = deque()
    try:
        while True:
            for photo in islice(upcoming, _BATCH + more - len(waiting)):
                waiting.append((photo, threads.submit(read, photo)))
            if not waiting:
                return
            batch = [waiting.popleft() for _ in range(min(_BATCH, len(waiting)))]
            yield {photo: future.result() for photo, future in batch}
    finally:
        for _, future in waiting:
            future.cancel()


def encode(encoder: "Encoder", images: Any) -> NDArray[np.float32]:
    """Raw features (N, D) of one image or several, paths or PIL images, in their order.

    They are read as `zsntta detect` reads them, as a viewer shows them, by threads.

    Raises:
        DatasetError: a file that cannot be read as an image.
        TypeError: something is neither a path nor a PIL image.
    """
    listed = list(images) if isinstance(images, list | tuple | Iterator) else [images]
    for image in listed:
        if not isinstance(image, str | Path | Image.Image):
            raise TypeError(
                f"an image is of the type {type(image).__name__}, must be a path or a PIL image, "
                f"as of PIL.Image.open(file) or PIL.Image.fromarray(pixels)."
            )
    parts = [np.empty((0, encoder.embed_dim), np.float32)]
    with ThreadPoolExecutor(_WORKERS) as threads:
        for start in range(0, len(listed), _BATCH):
            part = listed[start : start + _BATCH]
            pixels = [*threads.map(lambda image: encoder.resize(_shown(image)), part)]
            parts.append(encoder.encode_pixels(np.stack(pixels)))
    return np.concatenate(parts)


def _shown(image: str | Path | Image.Image) -> Image.Image:
    """An image as a viewer shows it; DatasetError if it cannot be read."""
    try:
        if isinstance(image, str):
            check_no_address(image)
            image = Path(image)
        if isinstance(image, Path):
            check_not_raw(image.name)
        return as_shown(image).image
    except Exception as error:  # of a damaged image PIL raises nearly anything
        what = "an image" if isinstance(image, Image.Image) else f"image '{short(str(image), 200)}'"
        raise DatasetError(f"cannot read {what} ({first_line(error)}).") from error
