"""The orders in which ID and OOD samples arrive: each a function of a generator.

`dirichlet:γ` is that of StatA's online streams (arXiv 2501.03729, Sec. 5), with every ID sample
once: each class is split over slots by shares from Dir(γ); a slot is shuffled. Its low, medium,
high correlation: γ = 0.1, 0.01, 0.001. A large γ is more even than chance, as each class is split
evenly; `inf` is shuffled. OOD samples are at random places, as in the order by class, so that the
share of noise is the same everywhere.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.settings import DIRICHLET, PARTS, parse_order

_CLEAN_HEAD = 0.6  # of the ID samples, before a `late` stream's noise
_SLOT = 128  # ID samples for which there is a slot at most: StatA's online batches

Items = NDArray[np.integer]
_Labels = NDArray[np.integer] | None
_Generator = np.random.Generator


def arrival_order(
    order: str, generator: _Generator, n_id: int, n_ood: int, labels: _Labels
) -> Items:
    """The order (T,) of n_id ID items, numbered from 0, and n_ood OOD items behind them.

    `labels` (n_id,) are needed by orders by class.
    """
    name, numbers = parse_order(order)
    items: Items = _ORDERS[name](generator, n_id, n_ood, labels, *numbers)
    return items


def _shuffled(generator: _Generator, n_id: int, n_ood: int, _: _Labels) -> Items:
    return generator.permutation(n_id + n_ood)


def _by_class(generator: _Generator, n_id: int, n_ood: int, labels: _Labels) -> Items:
    """ID samples class by class, in the order of labels."""
    assert labels is not None
    id_items = generator.permutation(n_id)
    return _with_ood(generator, id_items[np.argsort(labels[id_items], kind="stable")], n_ood)


def _in_parts(generator: _Generator, n_id: int, n_ood: int, _: _Labels, parts: int) -> Items:
    """Equal parts of the ID set, such as the corruptions of cifar10-c:all:5, one after another."""
    shuffled = [generator.permutation(part) for part in np.array_split(np.arange(n_id), parts)]
    return _with_ood(generator, np.concatenate(shuffled), n_ood)


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
    """ID items in their order, with OOD items in random order at random places among them."""
    n_id = len(id_order)
    is_ood = np.zeros(n_id + n_ood, bool)
    is_ood[generator.permutation(n_id + n_ood)[:n_ood]] = True
    order = np.empty(n_id + n_ood, np.int64)
    order[~is_ood], order[is_ood] = id_order, n_id + generator.permutation(n_ood)
    return order


_ORDERS: dict[str, Callable[..., Items]] = {
    "shuffled": _shuffled, "class": _by_class, "burst": _burst, "late": _late, "first": _first,
    DIRICHLET: _dirichlet, PARTS: _in_parts,
}  # fmt: skip
