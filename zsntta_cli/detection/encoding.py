"""Encode images and prompts with one encoder, which is loaded when something has to be encoded.

torch is imported only then: images that were encoded before are decided without it.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.cache.folder import encoder_folder, folder_name
from zsntta_cli.cache.identity import check_same
from zsntta_cli.datasets.decoding import CUT_OFF, as_shown, reader
from zsntta_cli.detection.feature_store import FILE, IMAGE, TEXT, FeatureStore, Kept
from zsntta_cli.detection.sources import Photo, check_readable
from zsntta_cli.encoders.batches import Pixels, read_ahead
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import DatasetError, EncoderError, first_line, short
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder

STORE = "images.sqlite"  # beside the encoder's feature files
_BATCH = 64  # images to an encoder pass
_WORKERS = 4  # threads that read the images of a program

Made = TypeVar("Made")


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
            # Kept features are compared with the encoder's weights, if these are on this machine.
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

        choice = self.choice
        if choice.folder:  # which only the kept features tell in open_clip's terms
            identity = self.store.identity or {}
            words = [identity.get(key) for key in ("model", "pretrained", "precision")]
            if not all(isinstance(word, str) for word in words):
                raise EncoderError(
                    f"the encoder of {choice.folder} is not known, so nothing new can be encoded: "
                    f"name a model."
                )
            choice = EncoderChoice(*map(str, words))
        with self.reporter.waiting(lambda: f"loading {choice.model}"):
            encoder = load_encoder(choice, self.device)
        encoder.tell(self.reporter.note)
        check_same(self.store.path, self.store.begin(encoder.identity), encoder.identity)
        if not self.store.is_kept:
            self.reporter.note(f"note: {self.store.path} cannot be written: no features are kept.")
        return encoder

    def encode_texts(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-norm text features (P, D) of prompts; new prompts are encoded and kept."""
        keys = {prompt: prompt.encode(errors="surrogatepass") for prompt in prompts}
        kept = self.store.features(TEXT, keys.values())
        if missing := [prompt for prompt, key in keys.items() if key not in kept]:
            new = self.encoder.encode_texts(missing)
            rows = {keys[p]: Kept(row.tobytes()) for p, row in zip(missing, new, strict=True)}
            self.store.keep({TEXT: rows})
            kept = self.store.features(TEXT, keys.values())
        return np.stack([kept[keys[prompt]][0] for prompt in prompts])

    def encode(self, photos: Sequence[Photo], name: str = "") -> None:
        """Give images their features, or the error of reading them.

        Files that did not change are not read, and known images are not encoded. Progress is shown
        under `name`, if given.
        """
        stamps = {photo: photo.stamp for photo in photos if not photo.error}
        files = self.store.kept(FILE, filter(None, stamps.values()))
        for photo, stamp in stamps.items():
            photo.content = files.get(stamp, Kept()).value
        self._give_kept(stamps)
        todo = [photo for photo in stamps if photo.features is None and not photo.error]
        if not todo:
            return
        batches = deque(todo[i : i + _BATCH] for i in range(0, len(todo), _BATCH))
        kept_contents = self.store.keys(IMAGE, reader())  # a known content is not decoded
        with (self.reporter if name else Reporter()).track(name, len(todo)) as advance:
            # No encoder is loaded until an image is new and can be decoded.
            while batches and "encoder" not in vars(self):
                decode = partial(_read, contents=kept_contents, use=bool)
                [is_new] = read_ahead(decode, [batches[0]], self.workers)
                if any(is_new):
                    assert self.encoder  # by this thread, which Ctrl-C interrupts
                else:
                    self._keep(batches[0], [None] * len(batches[0]), stamps)
                    advance(len(batches.popleft()))
            if batches:
                read = partial(_read, contents=kept_contents, use=self.encoder.resize)
                loaded = read_ahead(read, batches, self.workers)
                for batch, pixels in zip(batches, loaded, strict=True):
                    self._keep(batch, pixels, stamps)
                    kept_contents |= {photo.content for photo in batch}
                    advance(len(batch))

    def features_of(self, contents: Iterable[bytes]) -> dict[bytes, NDArray[np.floating]]:
        """Features (D,) of images that were encoded before, by their content."""
        kept = self.store.features(IMAGE, contents)
        return {content: row for content, (row, _) in kept.items()}

    def _keep(
        self,
        photos: Sequence[Photo],
        pixels: Sequence[Pixels | None],
        stamps: Mapping[Photo, bytes],
    ) -> None:
        """Keep what became of images that were read; those with pixels are new, and encoded."""
        kept: dict[str, dict[bytes, Kept]] = {IMAGE: {}, reader(): {}, FILE: {}}
        pairs = zip(photos, pixels, strict=True)
        if new := {photo.content: (photo, image) for photo, image in pairs if image is not None}:
            rows = self.encoder.encode_pixels(np.stack([image for _, image in new.values()]))
            with np.errstate(over="ignore"):
                halves = rows.astype(np.float16)
            # An encoder that squeezes an image into a square sees all of it.
            is_whole = self.encoder.identity["preprocessing"].get("resize_mode") == "squash"
            for (content, (photo, _)), half in zip(new.items(), halves, strict=True):
                notes = [n for n in photo.note.split("; ") if not (is_whole and n == CUT_OFF)]
                kept[IMAGE][content] = Kept(half.tobytes(), "; ".join(notes))
        for photo in photos:
            if photo.content and photo.error:
                kept[reader()][photo.content] = Kept(words=photo.error)
            # A file that changed since has another stamp, under which it is read the next time.
            if photo.content and stamps[photo]:
                kept[FILE][stamps[photo]] = Kept(photo.content)
        self.store.keep(kept)
        self._give_kept(photo for photo in photos if not photo.error)

    def _give_kept(self, photos: Iterable[Photo]) -> None:
        """Give images the features that are kept of their content, or why there are none."""
        by_content = [photo for photo in photos if photo.content]
        contents = {photo.content for photo in by_content}
        kept = self.store.features(IMAGE, contents)
        failures = self.store.kept(reader(), contents - kept.keys())
        for photo in by_content:
            if photo.content in kept:
                row, photo.note = kept[photo.content]
                photo.take(row)
            elif photo.content in failures:
                photo.error = failures[photo.content].words


def _read(photo: Photo, contents: Set[bytes], use: Callable[[Image.Image], Made]) -> Made | None:
    """Read an image, and `use` it; None if it is one of `contents`, or has an error now."""
    try:
        data = photo.read()
        photo.content = hashlib.sha256(data).digest()
        if photo.content not in contents:
            image, photo.note = as_shown(data)
            return use(image)
    except Exception as error:  # of a damaged image PIL raises nearly anything
        photo.error = first_line(error).partition(" <_io.")[0]  # PIL names the object
        if isinstance(error, MemoryError):  # it is not the content that is wrong
            photo.content = b""
    return None


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
                f"an image has the type {type(image).__name__}, must be a path or a PIL image, as "
                f"from PIL.Image.open(file) or PIL.Image.fromarray(pixels)."
            )

    def pixels(image: str | Path | Image.Image) -> Pixels:
        try:
            if not isinstance(image, Image.Image):
                check_readable(image)
                image = Path(image)
            return encoder.resize(as_shown(image)[0])
        except Exception as error:  # of a damaged image PIL raises nearly anything
            is_path = not isinstance(image, Image.Image)
            what = f"image '{short(str(image), 200)}'" if is_path else "an image"
            raise DatasetError(f"cannot read {what} ({first_line(error)}).") from error

    batches = [listed[i : i + _BATCH] for i in range(0, len(listed), _BATCH)]
    parts = [np.empty((0, encoder.embed_dim), np.float32)]
    loaded = read_ahead(pixels, batches, _WORKERS)
    return np.concatenate([*parts, *(encoder.encode_pixels(np.stack(part)) for part in loaded)])
