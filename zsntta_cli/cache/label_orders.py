"""Orders of labels under which far more answers would be right: signs of a wrong label column.

Orders that come about in known ways are tried first. Then the best order is searched on every other
image, and must hold on the rest, since by chance alone some order always fits better, above all if
classes have few images. An order must gain much and significantly, and its classes must be taken
for each other far more often than for themselves, since an encoder that cannot tell classes apart
confuses them, too.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LEAST_GAIN = 0.05  # of accuracy
_ERRORS = 4  # the gain must be more than so many standard errors above 0 (McNemar's test)
_TIMES = 2  # times as many right answers, at least, on images of the classes that are exchanged
_MOST_CLASSES = 3000  # for the search, whose memory grows with the square of the classes


class LabelOrder(NamedTuple):
    """Which classes the labels seem to stand for."""

    classes: NDArray[np.intp]  # (C,) by label
    accuracy: float  # under this order
    words: str = ""  # how the order comes about; empty if that is not known


def better_order(
    labels: NDArray[np.int32], answers: NDArray[np.intp], names: Sequence[str]
) -> LabelOrder | None:
    """Find the order of labels under which far more answers (N,) would be right, or None."""
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
    """Give the orders that come about in known ways, in words and as the class of each label."""
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
    """Find the best order for every other image, and return it if it holds on the rest."""
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
    # Classes move only where each is the other's most frequent answer: the assignment also moves
    # classes with few or no answers, to wherever a place is left.
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
    """Whether an order gains much, significantly, and by far on images of the classes it moves."""
    right, right_by_order = labels == answers, order[labels] == answers
    moved = order[labels] != labels
    won, lost = int((right_by_order & moved).sum()), int((right & moved).sum())
    return (
        won - lost > _ERRORS * np.sqrt(won + lost)
        and won - lost > _LEAST_GAIN * len(labels)
        and won >= _TIMES * lost
    )
