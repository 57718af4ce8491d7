"""Images and prompts to features by one encoder, which is loaded when something is to be encoded.

torch is imported then and not before: what was encoded once is decided again without it.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import difference
from zsntta_cli.cache.folder import encoder_folder, folder_name
from zsntta_cli.detection.encoding.reading import Read, Resize, ahead, read, trusted
from zsntta_cli.detection.encoding.store import FeatureStore, Half, Stamp
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.errors import EncoderError, StoreError
from zsntta_cli.progress import Advance, Reporter, Silent
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.prompts import class_prompts

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder

STORE = "images.sqlite"  # beside the encoder's feature files
_BATCH = 64  # images to an encoder pass
_MANY = 1000  # files to be read from which on all known digests are looked up at once


class Encoded(NamedTuple):
    """An item with its features, or with what was wrong with it."""

    item: Item
    features: Half | None  # (D,) raw
    error: str = ""


@dataclass
class Encoding:
    """One encoder's features of images and class names: those that are kept, and new ones."""

    choice: EncoderChoice
    root: Path
    device: str
    workers: int
    reporter: Reporter

    def __post_init__(self) -> None:
        self.name = folder_name(self.root, self.choice)
        self.store = FeatureStore(encoder_folder(self.root, self.name) / STORE)
        self._resize: Resize | None = None  # the encoder's, once it is loaded
        if known := self.store.identity:
            # Of features that are kept, the encoder is told by its weights where these are at hand.
            request = {} if self.choice.folder else weights_request(self.choice)
            self._check_same(known, {**known, **request})

    @property
    def identity(self) -> Mapping[str, Any]:
        """Of the encoder; it is loaded where nothing was encoded before."""
        return self.store.identity or self.encoder.identity

    @cached_property
    def encoder(self) -> "Encoder":
        """The encoder, loaded at the first use.

        Raises:
            EncoderError: it cannot be had. StoreError: what is kept is another's.
        """
        from zsntta_cli.encoders.clip import load_encoder

        choice = self._loadable()
        with self.reporter.waiting(lambda: f"loading {choice.model}"):
            encoder = load_encoder(choice, self.device)
        self.store.set_identity(encoder.identity)
        self._check_same(self.store.identity or {}, encoder.identity)
        if not self.store.is_kept:
            self.reporter.note(f"note: {self.store.path} cannot be written: no features are kept.")
        return encoder

    def _loadable(self) -> EncoderChoice:
        """The encoder in open_clip's words, from what it said of itself where a folder is named."""
        if not self.choice.folder:
            return self.choice
        known = self.store.identity or {}
        words = [known.get(key) for key in ("model", "pretrained", "precision")]
        if not all(isinstance(word, str) for word in words):
            raise EncoderError(
                f"what made the features of {self.choice.folder} is not known here, so nothing "
                f"new can be encoded: name a model."
            )
        return EncoderChoice(*map(str, words))

    def _check_same(self, kept: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        if found := difference(kept, now):
            raise StoreError(
                f"{self.store.path} was made by another encoder than this is now ({found.key}: "
                f"{found.one}, now {found.other})",
                remedy="other-folder",
            )

    def texts(self, names: Sequence[str], template: str) -> NDArray[np.float32]:
        """Text features (C, D) of class names, of unit norm."""
        prompts = class_prompts(template, names)
        known = self.store.texts(prompts)
        missing = [prompt for prompt in dict.fromkeys(prompts) if prompt not in known]
        if missing:
            made = dict(zip(missing, self.encoder.encode_texts(missing), strict=True))
            self.store.add_texts(made)
            known |= made
        return np.stack([known[prompt] for prompt in prompts])

    def images(self, items: Sequence[Item], name: str = "") -> list[Encoded]:
        """The items with their features, in order; what cannot be read says why.

        Files whose stamps are known are not read; images that are known are not encoded. Progress
        goes by `name`, where it is given one.
        """
        digests = self.store.digests(_stamps(items))
        known = self.store.features(digests.values())
        found = [known.get(digests.get(item.key, b"")) for item in items]
        encoded = list(map(_encoded, items, found, [""] * len(items)))
        todo = [i for i, features in enumerate(found) if features is None]
        reporter = self.reporter if name else Silent()
        with reporter.track(name, len(todo)) if todo else nullcontext(_no_advance) as advance:
            for i, features, error in self._read(items, todo, advance):
                encoded[i] = _encoded(items[i], features, error)
        return encoded

    def _read(
        self, items: Sequence[Item], todo: Sequence[int], advance: Advance
    ) -> Iterator[tuple[int, Half | None, str]]:
        """Features of the items that are to be read, or what is wrong, and their places."""
        # Of many files, those that are known by their content are not even decoded.
        seen = self.store.all_digests() if len(todo) > _MANY else set[bytes]()
        chunks = (todo[start : start + _BATCH] for start in range(0, len(todo), _BATCH))
        with ThreadPoolExecutor(self.workers) as threads:

            def one(i: int) -> Read:
                return read(items[i], seen, self._resize)

            for chunk, results in ahead(threads, one, chunks, 2 * self.workers):
                known = self.store.features({result.digest for result in results})
                if lacking := [
                    i for i, r in zip(chunk, results, strict=True) if _lacks_pixels(r, known)
                ]:
                    self._resize = self.encoder.resize  # only now is it needed
                    again = dict(zip(lacking, threads.map(one, lacking), strict=True))
                    results = [again.get(i, r) for i, r in zip(chunk, results, strict=True)]
                rows = known | self._made(results, known)
                self._keep(items, chunk, results, rows)
                seen |= rows.keys()
                for i, result in zip(chunk, results, strict=True):
                    yield i, rows.get(result.digest), result.error
                advance(len(chunk))

    def _keep(
        self,
        items: Sequence[Item],
        chunk: Sequence[int],
        results: Sequence[Read],
        rows: Mapping[bytes, Half],
    ) -> None:
        stamped = {
            items[i].key: (result.stamp, result.digest)
            for i, result in zip(chunk, results, strict=True)
            if result.stamp and result.digest in rows
        }
        self.store.add(rows, stamped)

    def _made(self, results: Sequence[Read], known: Mapping[bytes, Half]) -> dict[bytes, Half]:
        """Features of new pixels, by digest."""
        new = {r.digest: r.pixels for r in results if r.pixels is not None}
        pixels = {digest: one for digest, one in new.items() if digest not in known}
        if not pixels:
            return {}
        made = self.encoder.encode_pixels(np.stack(list(pixels.values())))
        with np.errstate(over="ignore"):
            return dict(zip(pixels, made.astype(np.float16), strict=True))


def _lacks_pixels(result: Read, known: Mapping[bytes, Half]) -> bool:
    return not result.error and result.pixels is None and result.digest not in known


def _encoded(item: Item, features: Half | None, error: str) -> Encoded:
    if features is not None and not np.isfinite(features).all():
        features, error = None, "its features are not finite"
    return Encoded(item.without_content(), features, error)


def _no_advance(images: int, status: str = "") -> None:
    del images, status


def _stamps(items: Sequence[Item]) -> dict[bytes, Stamp]:
    """Stamps of the items' files by their keys, of those that can be looked at."""
    found = ((item.key, trusted(item)) for item in items if item.file is not None)
    return {key: stamp for key, stamp in found if stamp is not None}
