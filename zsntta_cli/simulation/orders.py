"""The orders in which ID and OOD samples arrive: each a function of a generator.

Correlated orders are those of published streams, with every ID sample once. OOD samples are at
random places among them, so that the share of noise is the same everywhere:

- `dirichlet:γ` StatA's online streams (arXiv 2501.03729, Sec. 5): each class is split over slots by
  shares from Dir(γ); a slot is shuffled. Its low, medium, high correlation: γ = 0.1, 0.01, 0.001.
  A large γ is more even than chance, as each class is split evenly; `inf` is shuffled.
- `note:δ` NOTE's (arXiv 2208.05117): each class is split over as many chunks as there are classes
  by shares from Dir(δ), in which chunks that are full get none; a chunk is class after class.
- `classes:A-B` windows of 64 samples of A to B classes, StatA's batches with each sample once.
- `separate` class after class, the classes in a random order.

For sets that are larger than memory `shuffled-blocks:N` reads runs of consecutive rows: ID rows and
OOD rows are each cut into as many runs as there are blocks of N items, and each block is a random
run of each, shuffled. The share of noise is the same in all blocks; images that are close in their
files stay close.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.settings.orders import BLOCKS, CLASSES, DIRICHLET, NOTE, parse_order

_CLEAN_HEAD = 0.6  # of the ID samples, before a `late` stream's noise
_SLOT = 128  # ID samples for which there is a slot at most: StatA's online batches
_WINDOW = 64  # ID samples of a window of few classes
_LEAST_CHUNK, _TRIES = 10, 100  # samples in each of NOTE's chunks; draws, the best of which counts

Items = NDArray[np.integer]
_Labels = NDArray[np.integer] | None
_Generator = np.random.Generator


def arrival_order(
    order: str,
    generator: _Generator,
    n_id: int,
    n_ood: int,
    labels: _Labels,
    shares: Sequence[float] = (),
) -> Items:
    """The order (T,) of n_id ID items, numbered from 0, and n_ood OOD items behind them.

    `labels` (n_id,) are needed by orders by class. `shares` are the shares of OOD items in parts of
    equal length, if they change along the stream; without them the order places OOD items.
    """
    parsed = parse_order(order)
    make = functools.partial(_ORDERS[parsed.name], generator, n_id)
    if not shares:
        return make(n_ood, labels, *parsed.values)
    is_ood = _places_by_share(generator, n_id + n_ood, n_ood, shares)
    return _merged(generator, make(0, labels, *parsed.values), is_ood)


def _places_by_share(
    generator: _Generator, total: int, n_ood: int, shares: Sequence[float]
) -> NDArray[np.bool_]:
    """The places (total,) of OOD items, random within a part, as many as its share."""
    bounds = np.linspace(0, total, len(shares) + 1).round().astype(np.int64)
    expected = np.append(0.0, np.cumsum(shares)) / sum(shares)
    counts = np.diff((n_ood * expected).round().astype(np.int64))
    is_ood = np.zeros(total, bool)
    for start, end, count in zip(bounds, bounds[1:], counts, strict=False):
        is_ood[start + generator.permutation(end - start)[:count]] = True
    missing = n_ood - np.count_nonzero(is_ood)  # what rounding left without a place in a short part
    is_ood[np.flatnonzero(~is_ood)[:missing]] = True
    return is_ood


def _shuffled(generator: _Generator, n_id: int, n_ood: int, _: _Labels) -> Items:
    return generator.permutation(n_id + n_ood)


def _shuffled_blocks(
    generator: _Generator, n_id: int, n_ood: int, _: _Labels, size: float
) -> Items:
    blocks = max(1, -(-(n_id + n_ood) // int(size)))
    bounds = [np.linspace(0, count, blocks + 1).round().astype(np.int64) for count in (n_id, n_ood)]
    order, start = np.empty(n_id + n_ood, row_type(n_id + n_ood)), 0
    runs = zip(generator.permutation(blocks), generator.permutation(blocks), strict=True)
    for of_id, of_ood in runs:
        (a, b), (c, d) = (of[i : i + 2] for of, i in zip(bounds, (of_id, of_ood), strict=True))
        block = np.append(np.arange(a, b), n_id + np.arange(c, d))
        order[start : start + len(block)] = generator.permutation(block)
        start += len(block)
    return order


def row_type(count: int) -> type[np.integer[Any]]:
    """The smaller of two integer types that is sufficient for this many rows."""
    return np.int32 if count < 2**31 else np.int64


def _by_class(generator: _Generator, n_id: int, n_ood: int, labels: _Labels) -> Items:
    """ID samples class by class, in the order of labels."""
    assert labels is not None
    id_items = generator.permutation(n_id)
    order = np.empty(n_id + n_ood, np.int64)
    is_ood = np.zeros(n_id + n_ood, bool)
    is_ood[generator.permutation(n_id + n_ood)[:n_ood]] = True
    order[~is_ood] = id_items[np.argsort(labels[id_items], kind="stable")]
    order[is_ood] = n_id + generator.permutation(n_ood)
    return order


def _late(generator: _Generator, n_id: int, n_ood: int, _: _Labels) -> Items:
    """ID samples alone at first, then all others mixed."""
    id_items = generator.permutation(n_id)
    head = round(_CLEAN_HEAD * n_id)
    rest = np.append(id_items[head:], n_id + np.arange(n_ood))
    return np.append(id_items[:head], generator.permutation(rest))


def _burst(generator: _Generator, n_id: int, n_ood: int, _: _Labels) -> Items:
    """All OOD samples in one run in the middle."""
    id_items, ood_items = generator.permutation(n_id), n_id + generator.permutation(n_ood)
    return np.concatenate([id_items[: n_id // 2], ood_items, id_items[n_id // 2 :]])


def _first(generator: _Generator, n_id: int, n_ood: int, _: _Labels) -> Items:
    """All OOD samples before the first ID sample."""
    return np.append(n_id + generator.permutation(n_ood), generator.permutation(n_id))


def _separate(generator: _Generator, _: int, n_ood: int, labels: _Labels) -> Items:
    members = _members(generator, labels)
    order = [members[c] for c in generator.permutation(len(members)).tolist()]
    return _with_ood(generator, np.concatenate(order), n_ood)


def _dirichlet(
    generator: _Generator, n_id: int, n_ood: int, labels: _Labels, concentration: float
) -> Items:
    if math.isinf(concentration):
        return _shuffled(generator, n_id, n_ood, labels)
    members = _members(generator, labels)
    slots = max(1, min(n_id // _SLOT, len(members)))
    contents: list[list[Items]] = [[] for _ in range(slots)]
    for items in members:
        shares = generator.dirichlet(np.full(slots, concentration))
        for slot, part in zip(contents, _split(items, shares), strict=True):
            slot.append(part)
    order = [generator.permutation(np.concatenate(slot)) for slot in contents]
    return _with_ood(generator, np.concatenate(order), n_ood)


def _note(
    generator: _Generator, n_id: int, n_ood: int, labels: _Labels, concentration: float
) -> Items:
    if math.isinf(concentration):
        return _shuffled(generator, n_id, n_ood, labels)
    members = _members(generator, labels)
    least = min(_LEAST_CHUNK, n_id // len(members))
    best: list[Items] = []
    for _ in range(_TRIES):
        chunks = _chunks(generator, members, n_id, concentration)
        if not best or min(map(len, chunks)) > min(map(len, best)):
            best = chunks
        if min(map(len, best)) >= least:
            break
    return _with_ood(generator, np.concatenate(best), n_ood)


def _chunks(
    generator: _Generator, members: list[Items], n_id: int, concentration: float
) -> list[Items]:
    """ID samples in as many chunks as there are classes, class after class within each."""
    chunks: list[list[Items]] = [[] for _ in members]
    sizes = np.zeros(len(members))
    for items in members:
        shares = generator.dirichlet(np.full(len(chunks), concentration))
        shares *= sizes < n_id / len(chunks)  # what is full gets none
        total = shares.sum()
        shares = shares / total if total > 0 else np.full(len(chunks), 1 / len(chunks))
        for i, part in enumerate(_split(items, shares)):
            chunks[i].append(part)
            sizes[i] += len(part)
    return [np.concatenate(chunk) for chunk in chunks]


def _windows(
    generator: _Generator, _: int, n_ood: int, labels: _Labels, fewest: float, most: float
) -> Items:
    pending = _members(generator, labels)
    order: list[Items] = []
    while pending:
        count = min(int(generator.integers(int(fewest), int(most) + 1)), len(pending))
        chosen = sorted(generator.permutation(len(pending))[:count].tolist())
        pool = generator.permutation(np.concatenate([pending[c] for c in chosen]))
        order.append(pool[:_WINDOW])
        rest = pool[_WINDOW:]
        for c in reversed(chosen):
            remaining = pending[c][np.isin(pending[c], rest)]
            if len(remaining):
                pending[c] = remaining
            else:
                del pending[c]
    return _with_ood(generator, np.concatenate(order), n_ood)


def _members(generator: _Generator, labels: _Labels) -> list[Items]:
    """The ID items of each class that has any, shuffled."""
    assert labels is not None
    items = generator.permutation(len(labels))
    by_class = items[np.argsort(labels[items], kind="stable")]
    _, starts = np.unique(labels[by_class], return_index=True)
    return np.split(by_class, starts[1:])


def _split(items: Items, shares: NDArray[np.float64]) -> list[Items]:
    """Items in parts by shares that sum to 1; the cumulated shares are rounded down."""
    bounds = (np.cumsum(shares)[:-1] * len(items)).astype(np.int64)
    return np.split(items, bounds)


def _with_ood(generator: _Generator, id_order: Items, n_ood: int) -> Items:
    """ID items in their order, with OOD items at random places among them."""
    total = len(id_order) + n_ood
    is_ood = np.zeros(total, bool)
    is_ood[generator.permutation(total)[:n_ood]] = True
    return _merged(generator, id_order, is_ood)


def _merged(generator: _Generator, id_order: Items, is_ood: NDArray[np.bool_]) -> Items:
    """ID items in their order at their places, OOD items in random order at the others."""
    order = np.empty(len(is_ood), np.int64)
    n_ood = len(is_ood) - len(id_order)
    order[~is_ood], order[is_ood] = id_order, len(id_order) + generator.permutation(n_ood)
    return order


_ORDERS: dict[str, Callable[..., Any]] = {
    "shuffled": _shuffled, "class": _by_class, "separate": _separate, "burst": _burst,
    "late": _late, "first": _first, BLOCKS: _shuffled_blocks, DIRICHLET: _dirichlet, NOTE: _note,
    CLASSES: _windows,
}  # fmt: skip
