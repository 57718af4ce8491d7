"""Orders of labels under which far more answers would be right: a label column that is not ours.

Those that come about in known ways are tried first, as they are; then the best one is looked for,
on every other image, and must hold on the rest: by chance alone some order always fits better, the
more so with few images to a class. Either way it must gain much, surely, and its classes must be
taken for each other far more than for themselves: an encoder that cannot tell classes apart
confuses them, too.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LEAST_GAIN = 0.05  # of accuracy
_ERRORS = 4  # standard errors of the gain by which it must be above none (McNemar's test)
_TIMES = 2  # as many right answers, at least, on images of the classes that are exchanged
_MOST_CLASSES = 3000  # for which the best order is looked for: it takes memory of their square


class LabelOrder(NamedTuple):
    """Which classes the labels seem to stand for."""

    classes: NDArray[np.intp]  # (C,) by label
    accuracy: float  # if it is so
    words: str = ""  # how it comes about; nothing where that is not known


def better_order(
    labels: NDArray[np.int32], answers: NDArray[np.intp], names: Sequence[str]
) -> LabelOrder | None:
    """The order of labels under which far more answers (N,) would be right; None: there is none."""
    if (labels == answers).mean() > 1 - _LEAST_GAIN:
        return None  # no order can gain so much
    orders = [
        LabelOrder(order, _accuracy(order, labels, answers), words)
        for words, order in _usual_orders(names)
        if _is_better(order, labels, answers)
    ]
    if best := _best(labels, answers, len(names)):
        orders = [order for order in orders if order.accuracy > best.accuracy - _LEAST_GAIN]
        orders = orders or [best]
    return max(orders, key=lambda order: order.accuracy, default=None)


def _usual_orders(names: Sequence[str]) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Orders that come about in known ways: the class by label."""
    every = np.arange(len(names))
    if len(names) == 2:
        yield "the two labels are exchanged", every[::-1]
        return
    yield "every label is one too high, as if they counted from 1", np.roll(every, 1)
    yield "every label is one too low, as if the first class had gone", np.roll(every, -1)
    yield "labels count from the last class", every[::-1]
    sortings: dict[str, Callable[[int], str]] = {
        "numbers as text is sorted: 0, 1, 10, 11 …": str,
        "the class names as they are sorted": lambda i: names[i],
        "the class names as they are sorted regardless of case": lambda i: names[i].lower(),
    }
    for words, key in sortings.items():
        order = np.array(sorted(range(len(names)), key=key), np.intp)
        yield f"labels count {words}", order
        yield f"text features are in the order of {words}", np.argsort(order)


def _best(labels: NDArray[np.int32], answers: NDArray[np.intp], classes: int) -> LabelOrder | None:
    """The best order for every other image, if it holds on the rest."""
    if classes > _MOST_CLASSES:
        return None
    found_on, held_out = slice(0, None, 2), slice(1, None, 2)
    pairs = labels[found_on].astype(np.intp) * classes + answers[found_on]
    confusion = np.bincount(pairs, minlength=classes**2).reshape(classes, classes)
    most = np.minimum(confusion.max(axis=0).sum(), confusion.max(axis=1).sum())
    if most - np.trace(confusion) < _LEAST_GAIN * confusion.sum():
        return None  # no order can gain so much
    from scipy.optimize import linear_sum_assignment

    every, order = linear_sum_assignment(confusion, maximize=True)
    mutual = (confusion[every, order] == confusion.max(axis=1)) & (
        confusion[every, order] == confusion.max(axis=0)[order]
    )
    order = np.where(mutual & (confusion[every, order] > 0), order, every)
    if not _is_better(order, labels[held_out], answers[held_out]):
        return None
    return LabelOrder(order, _accuracy(order, labels[held_out], answers[held_out]))


def _accuracy(
    order: NDArray[np.intp], labels: NDArray[np.int32], answers: NDArray[np.intp]
) -> float:
    return float((order[labels] == answers).mean())


def _is_better(
    order: NDArray[np.intp], labels: NDArray[np.int32], answers: NDArray[np.intp]
) -> bool:
    """Whether an order gains much, surely, and by far on the images of the classes it moves."""
    right, right_by_order = labels == answers, order[labels] == answers
    moved = order[labels] != labels
    won, lost = int((right_by_order & moved).sum()), int((right & moved).sum())
    return (
        won - lost > _ERRORS * np.sqrt(won + lost)
        and won - lost > _LEAST_GAIN * len(labels)
        and won >= _TIMES * lost
    )
