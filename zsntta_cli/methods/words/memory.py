"""AdaNeg's memory: images beside the text that each is nearest to, and the proxies made of them.

A row is a text and its images; its proxy is the unit mean of both. Only rows that have an image are
held, as a running sum each and its images' places in the pool: the other proxies are the texts.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import Rows
from zsntta_cli.methods.scores import unit

Array = NDArray[np.float32]


class Memory:
    """Per text, up to `shots` images of lowest entropy; more only take the place of higher ones."""

    def __init__(self, text: Array, images: Array | Rows, shots: int) -> None:
        """Texts (K, D) of unit norm, raw images (P, D)."""
        self._text, self._images, self._shots = text, images, shots
        self._held: dict[int, list[tuple[float, int]]] = {}  # entropy and image
        self._sum: dict[int, NDArray[np.float64]] = {}
        self._proxy: dict[int, Array] = {}

    def proxies(self) -> tuple[NDArray[np.intp], Array]:
        """The rows (A,) that hold an image, and their proxies (A, D)."""
        return np.array(list(self._proxy), np.intp), self._stacked(list(self._proxy.values()))

    def enter(
        self, rows: Sequence[int], entropies: Sequence[float], images: Sequence[int]
    ) -> tuple[list[int], Array]:
        """Offer images in turn: which of them entered, and the proxy (E, D) that each made."""
        entered, made = [], []
        for i, (row, entropy, image) in enumerate(zip(rows, entropies, images, strict=True)):
            if self._place(row, entropy, image):
                entered.append(i)
                made.append(self._proxy[row])
        return entered, self._stacked(made)

    def _place(self, row: int, entropy: float, image: int) -> bool:
        """Put an image into a row: into a free place, or that of the largest entropy above its."""
        held = self._held.setdefault(row, [])
        if len(held) == self._shots:
            worst = max(held)
            if entropy >= worst[0]:
                return False
            held.remove(worst)
            self._sum[row] = self._sum[row] - self._feature(worst[1])
        held.append((entropy, image))
        start = self._sum.get(row)
        total = self._feature(image) + (self._text[row] if start is None else start)
        self._sum[row], self._proxy[row] = total, unit(total[None])[0].astype(np.float32)
        return True

    def _feature(self, image: int) -> NDArray[np.float64]:
        return np.asarray(unit(self._images[image : image + 1].astype(np.float64))[0])

    def _stacked(self, rows: list[Array]) -> Array:
        return np.array(rows, np.float32).reshape(len(rows), self._text.shape[1])
