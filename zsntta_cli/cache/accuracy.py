"""Zero-shot accuracy of cached features: the first check of an encoder and its class names.

The answer is the class whose text feature is nearest by cosine (Radford et al., 2021, Sec. 3.1), so
the accuracy depends on neither logit scale nor bias. Accuracies are kept in `.SET.accuracy.json`
beside the feature file and count as long as its content is the same. That note can be deleted.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.label_orders import better_order
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.errors import StoreError, short
from zsntta_cli.files import read_input, write_whole

_SCORES = 2**22  # scores that are computed at a time: 16 MiB
_LARGEST_NOTE = 2**20  # bytes
_MOST = 2**40  # images that a note may count
_PAIRS = 3  # pairs of exchanged classes that are named

Swap = tuple[str, str]  # a class by its label, and the class that its images are taken for


@dataclass(frozen=True)
class ZeroShotAccuracy:
    """The number of images that are nearest to their class's text feature, under one prompt."""

    template: str
    correct: int
    images: int  # images that have a label
    reordered: float = 0.0  # accuracy under another order of labels, if that is far better
    swaps: tuple[Swap, ...] = ()  # the first classes that this order would exchange
    order: str = ""  # how this order comes about, if that is known

    @property
    def accuracy(self) -> float:
        """The share of correct answers."""
        return self.correct / self.images


def zero_shot(features: Features, template: str) -> ZeroShotAccuracy | None:
    """Return the accuracy under a prompt, or None if the set has no labels or not that prompt."""
    text, labelled = features.texts.get(template), features.labels >= 0
    if text is None or not labelled.any():
        return None
    answers = _answers(features.image_features, text.features)[labelled]
    labels = features.labels[labelled]
    correct = int((answers == labels).sum())
    present = np.unique(labels).tolist()
    names = features.class_names
    better = better_order(labels, answers, names)
    if better is None:
        return ZeroShotAccuracy(template, correct, len(labels))
    swaps = [(names[i], names[j]) for i in present if (j := better.classes[i]) != i]
    reordered, first_swaps = better.accuracy, tuple(swaps[:_PAIRS])
    return ZeroShotAccuracy(template, correct, len(labels), reordered, first_swaps, better.words)


def _answers(rows: NDArray[np.floating], text: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the nearest class (N,) of features (N, D), by text features (C, D) of unit norm."""
    answers = np.empty(len(rows), np.intp)
    step = max(1, _SCORES // len(text))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        with np.errstate(all="ignore"):  # features that are not finite are refused elsewhere
            answers[block] = (rows[block].astype(np.float32) @ text.T).argmax(axis=1)
    return answers


def zero_shots(path: Path) -> list[ZeroShotAccuracy]:
    """Return the zero-shot accuracy of a feature file for each prompt; none if it has no labels.

    Accuracies that were computed before are not computed again.

    Raises:
        StoreError: the file is broken.
    """
    header = store.read(path, rows=False)
    if header.kind != DATASET or not header.texts:
        return []
    if (kept := _kept(path, header)) is not None:
        return kept
    features = store.read(path)
    shots = [zero_shot(features, template) for template in features.texts]
    present = [shot for shot in shots if shot is not None]
    _keep(path, header, present)
    return present


def note_path(path: Path) -> Path:
    """The path of the note that keeps the accuracies of a feature file."""
    return path.with_name(f".{path.stem}.accuracy.json")


def _content(header: Features) -> list[str]:
    """The digests of features, labels and text features, on which the accuracies depend."""
    return [header.digest, *(text.digest for text in header.texts.values())]


def _kept(path: Path, header: Features) -> list[ZeroShotAccuracy] | None:
    try:
        note = json.loads(read_input(note_path(path), _LARGEST_NOTE))
        if note["of"] != _content(header):
            return None
        return [parsed_shot(values) for values in note["accuracies"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value <= _MOST:
        raise ValueError(f"{short(str(value))} is no count")
    return value


def parsed_shot(values: Any) -> ZeroShotAccuracy:
    """Parse an accuracy that was kept.

    Raises:
        ValueError, TypeError, KeyError: the values are no accuracy.
    """
    correct, images = (_count(values[key]) for key in ("correct", "images"))
    if not correct <= images or not images or not 0 <= (reordered := values["reordered"]) <= 1:
        raise ValueError(f"{correct} of {images} images are no share, or another order's is none")
    swaps = tuple((str(one), str(other)) for one, other in values["swaps"])
    return ZeroShotAccuracy(
        str(values["template"]), correct, images, float(reordered), swaps,
        str(values["order"]),
    )  # fmt: skip


def _keep(path: Path, header: Features, shots: Sequence[ZeroShotAccuracy]) -> None:
    note = {"of": _content(header), "accuracies": [asdict(shot) for shot in shots]}
    try:
        write_whole(note_path(path), json.dumps(note).encode())
    except StoreError:  # the folder cannot be written: the accuracies are computed again
        return
