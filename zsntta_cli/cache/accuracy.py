"""Zero-shot accuracy of cached features: the first check of an encoder and its class names.

The answer is the class whose text feature is nearest by cosine (Radford et al., 2021, Sec. 3.1), so
the accuracy depends on neither logit scale nor bias.

It is compared with the published accuracy for the same templates and number of images. Two
published runs of the same weights by the same benchmark differ by up to 0.31 points (ViT-B/16,
Cars: 64.46 and 64.77), so a warning reports only differences above one point. The table of
published accuracies is made by tools/published_accuracies.py.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.settings import IMPORTED
from zsntta_cli.settings.prompts import templates_of

_MOST = 1.0  # points
_SCORES = 2**22  # scores that are computed at a time: 16 MiB
_PAIRS = 3  # pairs of exchanged classes that are named
_TABLE = Path(__file__).with_name("published.csv")
# CLIP_benchmark's sets on the hub that have other names: the sets whose accuracies they share.
_WEB_SETS = {
    "wds_cars": "cars196", "wds_vtab-pets": "pets37", "wds_fgvc_aircraft": "coop-aircraft",
    "wds_vtab-flowers": "coop-flowers102",
}  # fmt: skip
_CAUSES = "class names, the order of labels, interpolation (bicubic), QuickGELU, the prompt"

Labels = NDArray[np.integer]


class PublishedAccuracy(NamedTuple):
    """One published accuracy: a row of the table."""

    model: str
    pretrained: str
    set: str
    images: int
    templates: str  # one, or an ensemble's name
    accuracy: float  # percent
    source: str


class ZeroShotAccuracy(NamedTuple):
    """The number of images nearest to their own class's text feature, under one prompt."""

    template: str
    correct: int
    images: int  # images that have a label
    published: float | None = None  # percent, of the same templates and number of images
    warning: str = ""  # what may be wrong

    @property
    def line(self) -> str:
        """One line: zero-shot accuracy 68.41 % (published: 68.34)."""
        published = "" if self.published is None else f" (published: {self.published:.2f})"
        return f"zero-shot accuracy {100 * self.correct / self.images:.2f} %{published}"


def zero_shots(features: Features) -> list[ZeroShotAccuracy]:
    """The accuracy of a set's features for each prompt, on the images that have a label.

    Noise, word lists and sets without labels have none.
    """
    is_labelled, shots = features.labels >= 0, []
    labels, images = features.labels[is_labelled], int(is_labelled.sum())
    for text in features.texts.values() if features.kind == DATASET and images else ():
        answers = _nearest(features.image_features, text.features)[is_labelled]
        correct = int((answers == labels).sum())
        warning = _other_order(labels, answers, features.class_names)
        row = published(features.identity, features.path.stem, text.template, images)
        if row and not warning and abs(off := 100 * correct / images - row.accuracy) > _MOST:
            warning = (
                f"that is {abs(off):.1f} points {'below' if off < 0 else 'above'} the published "
                f"accuracy ({row.source}); usual causes, most frequent first: {_CAUSES}"
            )
        percent = row.accuracy if row else None
        shots.append(ZeroShotAccuracy(text.template, correct, images, percent, warning))
    return shots


def _nearest(rows: NDArray[np.floating], text: NDArray[np.float32]) -> NDArray[np.intp]:
    """The class (N,) with the nearest text feature (C, D) of each row (N, D)."""
    classes, step = np.empty(len(rows), np.intp), max(1, _SCORES // len(text))
    with np.errstate(all="ignore"):  # features that are not finite are refused elsewhere
        for start in range(0, len(rows), step):
            block = rows[start : start + step].astype(np.float32)
            classes[start : start + step] = (block @ text.T).argmax(axis=1)
    return classes


def accuracy_lines(features: Features) -> Iterator[str]:
    """A set's accuracies, the published ones, and warnings of what may be wrong, as lines."""
    path, shots = features.path, zero_shots(features)
    for shot in shots:
        under = f" under '{shot.template}'" * (len(shots) > 1)
        yield f"note: {path.stem}{under}: {shot.line}"
    for warning in dict.fromkeys(shot.warning for shot in shots if shot.warning):
        yield f"warning: {path.parent.name}/{path.stem}: {warning}."


@lru_cache(maxsize=1)
def table() -> list[PublishedAccuracy]:
    """All published accuracies in the package."""
    with _TABLE.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [
        PublishedAccuracy(model, weights, name, int(images), templates, float(accuracy), source)
        for model, weights, name, images, templates, accuracy, source in rows
    ]


def published(
    identity: Mapping[str, Any], name: str, template: str, images: int
) -> PublishedAccuracy | None:
    """Find the published accuracy of an encoder on that many images of a set, by equal templates.

    An encoder is identified by its model and its weights' tag. An imported one only has a name,
    which must be that of the usual folder: ViT-B-16-openai.
    """
    model, pretrained = str(identity.get("model")), identity.get("pretrained")
    if pretrained == "openai":
        model = model.removesuffix("-quickgelu")  # OpenAI's weights have it in any case
    encoder = model if pretrained == IMPORTED else f"{model}-{pretrained}"
    of_set, templates = _WEB_SETS.get(name, name), {*templates_of(template)}
    for row in table():
        is_of_set = (row.set, row.images) == (of_set, images)
        is_encoder = f"{row.model}-{row.pretrained}" == encoder
        if is_of_set and is_encoder and {*templates_of(row.templates)} == templates:
            return row
    return None


# An order of labels under which far more answers would be right is a sign of a wrong label column.
# Labels one too high or too low are tried first. Then the best order is determined from every other
# image, and must hold on the rest, because by chance alone some order always fits better, above all
# if classes have few images. An order must gain much and significantly, and its classes must be
# taken for each other far more often than for themselves, because an encoder that cannot tell
# classes apart confuses them, too.
_LEAST_GAIN = 0.05  # of accuracy
_ERRORS = 4  # the gain must be more than this many standard errors above 0 (McNemar's test)
_TIMES = 2  # at least this many times the right answers, on images of the exchanged classes
_MOST_CLASSES = 3000  # for the search, whose memory grows with the square of the classes


def _other_order(labels: Labels, answers: Labels, names: Sequence[str]) -> str:
    """Warn that labels seem to be in a different order, and give its accuracy; empty if not."""
    share, every = (labels == answers).mean(), np.arange(len(names))
    if share > 1 - _LEAST_GAIN:
        return ""  # no order can gain so much
    orders = [np.roll(every, 1), np.roll(every, -1)]  # labels one too high, and too low
    orders = [order for order in orders if _is_better(order, labels, answers)]
    if len(names) <= _MOST_CLASSES:
        best = _best(labels[::2], answers[::2], len(names))
        orders += [best] if _is_better(best, labels[1::2], answers[1::2]) else []
    if not orders:
        return ""
    order = max(orders, key=lambda order: (order[labels] == answers).mean())
    swaps = [(i, int(order[i])) for i in np.unique(labels) if order[i] != i]
    pairs = ", ".join(f"'{names[i]}' for '{names[j]}'" for i, j in swaps[:_PAIRS])
    return (
        f"labels and class names seem to differ in their order: {pairs} … would give "
        f"{100 * (order[labels] == answers).mean():.1f} % instead of {100 * share:.1f} %"
    )


def _best(labels: Labels, answers: Labels, classes: int) -> NDArray[np.intp]:
    """The order under which most of the answers are right; the usual one if none can gain much."""
    confusion = np.zeros((classes, classes), np.intp)
    np.add.at(confusion, (labels, answers), 1)
    most = np.minimum(confusion.max(axis=0).sum(), confusion.max(axis=1).sum())
    every = np.arange(classes)
    if most - np.trace(confusion) < _LEAST_GAIN * confusion.sum():
        return every
    from scipy.optimize import linear_sum_assignment

    _, order = linear_sum_assignment(confusion, maximize=True)
    # The assignment also moves classes with few or no answers, to any class that remains. Classes
    # therefore move only where each is the other's most frequent answer.
    moved = confusion[every, order]
    mutual = (moved == confusion.max(axis=1)) & (moved == confusion.max(axis=0)[order])
    return np.where(mutual & (moved > 0), order, every)


def _is_better(order: NDArray[np.intp], labels: Labels, answers: Labels) -> bool:
    """Whether an order gains much, significantly, and by far on images of the classes it moves."""
    right, right_by_order = labels == answers, order[labels] == answers
    moved = order[labels] != labels
    won, lost = int((right_by_order & moved).sum()), int((right & moved).sum())
    return (
        won - lost > _ERRORS * np.sqrt(won + lost)
        and won - lost > _LEAST_GAIN * len(labels)
        and won >= _TIMES * lost
    )
