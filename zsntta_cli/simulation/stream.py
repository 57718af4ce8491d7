"""A stream: the order in which ID, OOD and injected noise images arrive, as indices (NumPy).

The order of the test samples comes from PCG64(seed) alone and does not depend on the method or on
injection; which OOD samples take part depends on a seed of its own, the same for every order.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import NATURAL, NO_NOISE, StreamSettings, ood_share, ratio_text
from zsntta_cli.simulation.orders import arrival_order

OOD_CHOICE_SEED = 20_250_224  # fixed: seeds of a run change the order only

ID, OOD, NOISE = 0, 1, 2  # kinds of items
_BYTES = 100  # of memory that an item takes at least, with what is decided on it


def physical_memory() -> int:
    """The bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class Stream:
    """T items: the kind of each, and its row in its feature file."""

    kind: NDArray[np.int8]  # (T,) ID, OOD or NOISE
    row: NDArray[np.integer]  # (T,) index in the ID set, the OOD set or the noise pool

    def __len__(self) -> int:
        return len(self.kind)

    def first(self, count: int) -> "Stream":
        """The first `count` items."""
        return Stream(self.kind[:count], self.row[:count])


def ood_count(settings: StreamSettings, n_id: int, n_ood: int) -> int:
    """How many OOD samples of n_ood give the noise ratio with n_id ID samples."""
    if settings.ratio == NATURAL:
        return n_ood
    share = ood_share(settings.ratio)
    odds = share / (1 - share)
    return round(n_id * (round(odds, 2) if settings.rounded_odds else odds))


def has_ood(settings: StreamSettings, n_id: int) -> bool:
    """Whether a stream with n_id ID samples has any OOD samples."""
    return ood_count(settings, n_id, n_ood=1) > 0


def build_stream(
    settings: StreamSettings,
    n_id: int,
    n_ood: int,
    n_noise: int,
    labels: NDArray[np.integer] | None = None,
) -> Stream:
    """The stream over sets of n_id and n_ood images and a pool of n_noise noise images.

    All ID samples take part once. Noise images are repeated, in the pool's order, if the stream
    needs more than the pool has. `labels` (n_id,) are those of the ID set, for an order by class.

    Raises:
        SettingsError: a ratio above 0 without OOD samples, or injection without a pool.
    """
    wanted = ood_count(settings, n_id, n_ood)
    most = physical_memory() // _BYTES
    if n_id + wanted > most and settings.ood_fill != "cap":
        raise SettingsError(
            f"ratio is {ratio_text(settings.ratio)}: beside {n_id:,} ID samples that makes a "
            f"stream of {n_id + wanted:,} items, and this machine's memory is enough for {most:,}."
        )
    if has_ood(settings, n_id) and not n_ood:
        raise SettingsError(
            f"a noise ratio of {ratio_text(settings.ratio)} needs an OOD set: add --ood NAME"
        )
    ood_rows = _choose_ood(wanted, n_ood, settings.ood_fill)
    kind = np.repeat(np.array([ID, OOD], np.int8), [n_id, len(ood_rows)])
    row = np.concatenate([np.arange(n_id), ood_rows]).astype(_row_type(max(n_id, n_ood)))
    generator = np.random.Generator(np.random.PCG64(settings.seed))
    order = arrival_order(settings.order, generator, n_id, len(ood_rows), labels)[: settings.limit]
    return _inject(Stream(kind[order], row[order]), settings, n_noise, generator)


def _row_type(count: int) -> type[np.integer[Any]]:
    """The smaller of two integer types that is sufficient for this many rows."""
    return np.int32 if count < 2**31 else np.int64


def _choose_ood(wanted: int, size: int, fill: str) -> NDArray[np.int64]:
    """Rows of the OOD set: whole repeats, then a random remainder; or all rows."""
    generator = np.random.Generator(np.random.PCG64(OOD_CHOICE_SEED))
    if fill == "cap":
        wanted = min(wanted, size)
    repeats, remainder = divmod(wanted, size) if size else (0, 0)
    remaining = generator.permutation(size)[:remainder]
    return np.concatenate([np.tile(np.arange(size), repeats), remaining])


def stream_sizes(settings: StreamSettings, n_id: int, n_ood: int) -> tuple[int, int]:
    """The numbers of test samples and injected images in the stream over sets of these sizes."""
    wanted = ood_count(settings, n_id, n_ood)
    tests = n_id + (min(wanted, n_ood) if settings.ood_fill == "cap" else wanted)
    tests = tests if settings.limit is None else min(tests, settings.limit)
    return tests, noise_count(settings, tests)


def noise_count(settings: StreamSettings, n_test: int) -> int:
    """How many noise images are injected into n_test test samples."""
    return 0 if settings.noise == NO_NOISE else n_test // settings.noise_every


def _inject(
    tests: Stream, settings: StreamSettings, n_noise: int, generator: np.random.Generator
) -> Stream:
    """Put noise images among the test samples: after every M-th, or at random places."""
    count = noise_count(settings, len(tests))
    if not count:
        return tests
    if not n_noise:
        raise SettingsError(f"injecting {settings.noise} noise needs a noise pool.")
    total = len(tests) + count
    if settings.placement == "periodic":
        where = np.arange(1, count + 1) * (settings.noise_every + 1) - 1
    else:
        where = np.sort(generator.permutation(total)[:count])
    is_test = np.ones(total, bool)
    is_test[where] = False
    kind = np.full(total, NOISE, np.int8)
    row = np.empty(total, tests.row.dtype)
    kind[is_test], row[is_test] = tests.kind, tests.row
    row[where] = np.arange(count) % n_noise
    return Stream(kind, row)
