"""What each test sample got, in three bytes: for tests that pair methods item by item."""

import base64
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import StoreError
from zsntta_cli.simulation.record import Replay
from zsntta_cli.simulation.stream import NOISE

_NOISE, _RIGHT = 1, 2  # bits
_BROKEN = "the kept items of a run are broken"


@dataclass(frozen=True)
class Items:
    """Decisions on the test samples of a stream, in its order (T,)."""

    class_index: NDArray[np.uint16]
    is_noise: NDArray[np.bool_]
    is_right: NDArray[np.bool_]  # an ID sample called clean and classified right, OOD called noise

    def __len__(self) -> int:
        return len(self.class_index)

    def packed(self) -> bytes:
        """At most three bytes an item: a column of classes, a column of bits, compressed."""
        bits = self.is_noise * np.uint8(_NOISE) + self.is_right * np.uint8(_RIGHT)
        raw = self.class_index.astype("<u2").tobytes() + bits.astype(np.uint8).tobytes()
        return zlib.compress(raw, 1)

    @classmethod
    def unpacked(cls, packed: bytes, count: int) -> "Items":
        """The items of a run of `count` test samples.

        Raises:
            StoreError: they are others, or no items.
        """
        try:
            reader = zlib.decompressobj()
            raw = reader.decompress(packed, 3 * count + 1)
        except zlib.error as error:
            raise StoreError(f"{_BROKEN} ({error}).") from error
        if len(raw) != 3 * count:
            raise StoreError(f"{_BROKEN}: they are not {count:,}.")
        classes = np.frombuffer(raw, "<u2", count).astype(np.uint16)
        bits = np.frombuffer(raw, np.uint8, offset=2 * count)
        return cls(classes, (bits & _NOISE).astype(bool), (bits & _RIGHT).astype(bool))

    def text(self) -> str:
        """Packed, as JSON has it."""
        return base64.b64encode(self.packed()).decode()


def items_of(replay: Replay) -> Items | None:
    """The items of a run; None of one that decides nothing, or between too many classes."""
    decisions, tests = replay.decisions, replay.stream.kind != NOISE
    if decisions.is_noise is None or decisions.class_index.max(initial=0) >= 2**16:
        return None
    labels, classes = replay.labels[tests], decisions.class_index[tests]
    is_noise = decisions.is_noise[tests]
    right = np.where(labels >= 0, ~is_noise & (classes == labels), is_noise)
    return Items(classes.astype(np.uint16), is_noise, right)
