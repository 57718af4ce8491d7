"""A stream: the order in which ID, OOD and injected noise images arrive, as indices (NumPy).

The order of the test samples comes from PCG64(seed) alone and does not depend on the method or on
injection; which OOD samples take part depends on a separate seed, the same for every order.

`dirichlet:γ` is the order of StatA's online streams (arXiv 2501.03729, Sec. 5), with every ID
sample once: each class is split over slots by shares from Dir(γ), and each slot is shuffled. Its
low, medium and high correlation are γ = 0.1, 0.01 and 0.001. A large γ is more even than chance, as
each class is split evenly; `inf` is shuffled. OOD samples are at random positions, as in the order
by class, so that the share of noise is the same everywhere.
"""

import math
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import DIRICHLET, PARTS, StreamSettings, parse_order, ratio_text

OOD_CHOICE_SEED = 20_250_224  # fixed: seeds of a run change the order only

ID, OOD, NOISE = 0, 1, 2  # kinds of items
_BYTES = 100  # of memory that an item takes at least, with what is decided on it
_CLEAN_HEAD = 0.6  # of the ID samples, before a `late` stream's noise
_SLOT = 128  # ID samples to a slot, or more: StatA's online batches

Items = NDArray[np.integer]


@dataclass(frozen=True)
class Stream:
    """T items: the kind of each, and its row in its feature file."""

    kind: NDArray[np.int8]  # (T,) ID, OOD or NOISE
    row: NDArray[np.integer]  # (T,) index in the ID set, the OOD set or the noise pool

    def __len__(self) -> int:
        return len(self.kind)


def build_stream(
    settings: StreamSettings,
    n_id: int,
    n_ood: int,
    n_noise: int,
    labels: NDArray[np.integer] | None = None,
    listed: NDArray[np.int64] | None = None,
) -> Stream:
    """The stream over sets of n_id and n_ood images and a pool of n_noise noise images.

    All ID samples take part once. Noise images are repeated, in the pool's order, if the stream
    needs more than the pool has. `labels` (n_id,) are the ID set's, for an order by class.

    Raises:
        SettingsError: a ratio above 0 without OOD samples, or a stream that no memory holds.
    """
    sizes = settings.sizes(n_id, n_ood)
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _BYTES
    if n_id + sizes.ood > most:
        raise SettingsError(
            f"ratio is {settings.ratio}: that makes a stream of {n_id + sizes.ood:,} "
            f"items, but this machine's memory holds at most {most:,}."
        )
    if settings.ratio and not n_ood and settings.sizes(n_id, 1).wanted:
        raise SettingsError(
            f"a noise ratio of {ratio_text(settings.ratio)} needs an OOD set: add --ood NAME"
        )
    ood_rows = listed
    if ood_rows is None:  # whole repeats of the set, then a random remainder
        repeats, remainder = divmod(sizes.ood, n_ood) if n_ood else (0, 0)
        drawn = np.random.Generator(np.random.PCG64(OOD_CHOICE_SEED)).permutation(n_ood)
        ood_rows = np.concatenate([np.tile(np.arange(n_ood), repeats), drawn[:remainder]])
    kind = np.repeat(np.array([ID, OOD], np.int8), [n_id, len(ood_rows)])
    row = np.concatenate([np.arange(n_id), ood_rows])
    generator = np.random.Generator(np.random.PCG64(settings.seed))
    order = arrival_order(settings.order, generator, n_id, len(ood_rows), labels)[: settings.limit]
    return _inject(Stream(kind[order], row[order]), settings, n_noise, generator)


def _inject(
    tests: Stream, settings: StreamSettings, n_noise: int, generator: np.random.Generator
) -> Stream:
    """Put noise images among the test samples: after every M-th, or at random places."""
    count = settings.sizes(len(tests), 0, listed=0).injected
    if not count:
        return tests
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


def arrival_order(
    order: str,
    generator: np.random.Generator,
    n_id: int,
    n_ood: int,
    labels: NDArray[np.integer] | None,
) -> Items:
    """The arrival order (T,) of n_id ID items, numbered from 0, and n_ood OOD items after them.

    `labels` (n_id,) are needed by orders by class.
    """
    name, numbers = parse_order(order)
    if name == "shuffled" or math.inf in numbers:
        return generator.permutation(n_id + n_ood)
    if name == "first":  # all OOD samples before the first ID sample
        return np.append(n_id + generator.permutation(n_ood), generator.permutation(n_id))
    if name == PARTS:  # of the ID set, such as the corruptions of cifar10-c:all:5, one by one
        parts = np.array_split(np.arange(n_id), int(numbers[0]))
        return _with_ood(generator, np.concatenate([*map(generator.permutation, parts)]), n_ood)
    id_items: Items = generator.permutation(n_id)
    if name == "burst":  # all OOD samples in one run in the middle
        ood_items = n_id + generator.permutation(n_ood)
        return np.concatenate([id_items[: n_id // 2], ood_items, id_items[n_id // 2 :]])
    if name == "late":  # ID samples alone at first, then all others mixed
        head = round(_CLEAN_HEAD * n_id)
        rest = np.append(id_items[head:], n_id + np.arange(n_ood))
        return np.append(id_items[:head], generator.permutation(rest))
    assert labels is not None
    by_class: Items = id_items[np.argsort(labels[id_items], kind="stable")]
    if name == DIRICHLET:
        by_class = _in_slots(generator, by_class, labels, numbers[0])
    return _with_ood(generator, by_class, n_ood)


def _in_slots(
    generator: np.random.Generator, by_class: Items, labels: NDArray[np.integer], spread: float
) -> Items:
    """ID items, given class by class, in the order of `dirichlet:γ`; the spread is γ."""
    _, starts = np.unique(labels[by_class], return_index=True)
    members = np.split(by_class, starts[1:])
    slots = max(1, min(len(by_class) // _SLOT, len(members)))
    contents: list[list[Items]] = [[] for _ in range(slots)]
    for items in members:
        shares = generator.dirichlet(np.full(slots, spread))
        # In parts by these shares, which sum to 1; the cumulated shares are rounded down.
        bounds = (np.cumsum(shares)[:-1] * len(items)).astype(np.int64)
        for slot, part in zip(contents, np.split(items, bounds), strict=True):
            slot.append(part)
    return np.concatenate([generator.permutation(np.concatenate(slot)) for slot in contents])


def _with_ood(generator: np.random.Generator, id_order: Items, n_ood: int) -> Items:
    """ID items in their order, with OOD items in random order at random places among them."""
    n_id = len(id_order)
    is_ood = np.zeros(n_id + n_ood, bool)
    is_ood[generator.permutation(n_id + n_ood)[:n_ood]] = True
    order = np.empty(n_id + n_ood, np.int64)
    order[~is_ood], order[is_ood] = id_order, n_id + generator.permutation(n_ood)
    return order
