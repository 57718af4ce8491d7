"""Zero-shot accuracy of cached features: the first check of an encoder and its class names.

The answer is the class whose text feature is nearest by cosine (Radford et al., 2021, Sec. 3.1), so
the accuracy depends on neither logit scale nor bias. Accuracies are kept in `.SET.accuracy.json`
beside the feature file and count as long as its content is the same. That note can be deleted.

They stand beside the published ones of the same templates and number of images. Two published runs
of the same weights by the same benchmark differ by up to 0.31 points (ViT-B/16, Cars: 64.46 and
64.77), so a difference of more than one point is said. The table of published accuracies is made by
tools/published_accuracies.py.
"""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.identity import IMPORTED
from zsntta_cli.cache.label_orders import better_order
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.names import DATASET, SetName
from zsntta_cli.errors import StoreError
from zsntta_cli.files import read_input, write_whole
from zsntta_cli.settings.prompts import templates_of

_MOST = 1.0  # points
_SCORES = 2**22  # scores that are computed at a time: 16 MiB
_LARGEST_NOTE = 2**20  # bytes
_PAIRS = 3  # pairs of exchanged classes that are named
_TABLE = Path(__file__).with_name("published.csv")
# CLIP_benchmark's sets on the hub that have other names: the sets whose accuracies they share.
_WEB_SETS = {
    "wds_cars": "cars196", "wds_vtab-pets": "pets37", "wds_fgvc_aircraft": "coop-aircraft",
    "wds_vtab-flowers": "coop-flowers102",
}  # fmt: skip
_CAUSES = "class names, the order of labels, interpolation (bicubic), QuickGELU, the prompt"


@dataclass(frozen=True)
class PublishedAccuracy:
    """One published accuracy."""

    model: str
    pretrained: str
    set: str
    images: int
    templates: str  # one, or an ensemble's name
    accuracy: float  # percent
    source: str


@dataclass(frozen=True)
class ZeroShotAccuracy:
    """The number of images that are nearest to their class's text feature, under one prompt."""

    template: str
    correct: int
    images: int  # images that have a label
    reordered: float = 0.0  # accuracy under another order of labels, if that is far better
    swaps: tuple[tuple[str, str], ...] = ()  # a class by its label, and what it is taken for
    order: str = ""  # how this order comes about, if that is known
    published: PublishedAccuracy | None = None  # of the same templates and number of images

    @property
    def accuracy(self) -> float:
        """The share of correct answers."""
        return self.correct / self.images

    @property
    def off(self) -> float:
        """The difference from the published value in points, positive if it is above."""
        return 0.0 if self.published is None else 100 * self.accuracy - self.published.accuracy

    @property
    def is_suspect(self) -> bool:
        """Whether it is far from the published one, or labels seem to be in another order."""
        return abs(self.off) > _MOST or bool(self.swaps)

    @property
    def line(self) -> str:
        """One line: zero-shot accuracy 68.41 % (published: 68.34)."""
        published = f" (published: {self.published.accuracy:.2f})" if self.published else ""
        return f"zero-shot accuracy {100 * self.accuracy:.2f} %{published}"

    @property
    def warning(self) -> str:
        """What may be wrong, with the usual causes in their order; empty if nothing is."""
        if self.swaps:
            pairs = ", ".join(f"'{one}' for '{other}'" for one, other in self.swaps)
            how = f" ({self.order})" * bool(self.order)
            return (
                f"labels seem to be in another order than the class names{how}: {pairs} … would "
                f"give {100 * self.reordered:.1f} % in place of {100 * self.accuracy:.1f} %"
            )
        if self.published is None or not self.is_suspect:
            return ""
        return (
            f"that is {abs(self.off):.1f} points {'below' if self.off < 0 else 'above'} the "
            f"published accuracy ({self.published.source}); usual causes, the most frequent first: "
            f"{_CAUSES}"
        )


def zero_shots(path: Path, header: Features | None = None) -> list[ZeroShotAccuracy]:
    """Return the accuracy of a feature file for each prompt; none if it has no labels.

    Each stands beside the published one, if there is any. Accuracies that were computed before are
    not computed again. `header` is what was read of the file already.

    Raises:
        StoreError: the file is broken.
    """
    if SetName.parse(path.stem).kind != DATASET:
        return []
    content, kept = _kept(path)
    features = header or store.read(path, rows=not content)
    if features.kind != DATASET or not features.texts:
        return []
    count = int((features.labels >= 0).sum())
    now = [features.digest, *(text.digest for text in features.texts.values())]
    if content != now or any(
        shot.images != count or not 0 <= shot.correct <= count or not 0 <= shot.reordered <= 1
        for shot in kept
    ):
        whole = features if len(features.image_features) else store.read(path)
        shots = [zero_shot(whole, template) for template in whole.texts]
        kept = [shot for shot in shots if shot is not None]
        _keep(path, now, kept)
    rows = published_for(features.identity, path.stem)
    return [judge(shot, rows) for shot in kept]


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


def note_path(path: Path) -> Path:
    """The path of the note that keeps the accuracies of a feature file."""
    return path.with_name(f".{path.stem}.accuracy.json")


def _kept(path: Path) -> tuple[list[str], list[ZeroShotAccuracy]]:
    """The digests of what accuracies were kept of, and these; nothing without a note."""
    try:
        note = json.loads(read_input(note_path(path), _LARGEST_NOTE))
        shots = [
            ZeroShotAccuracy(**{**values, "swaps": tuple((a, b) for a, b in values["swaps"])})
            for values in note["accuracies"]
        ]
        return list(note["of"]), shots
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return [], []


def _keep(path: Path, content: Sequence[str], shots: Sequence[ZeroShotAccuracy]) -> None:
    note = {"of": content, "accuracies": [asdict(shot) for shot in shots]}
    try:
        write_whole(note_path(path), json.dumps(note).encode())
    except StoreError:  # the folder cannot be written: the accuracies are computed again
        return


# What is published.


@lru_cache(maxsize=1)
def table() -> tuple[PublishedAccuracy, ...]:
    """All published accuracies that the package holds."""
    with _TABLE.open(newline="", encoding="utf-8") as file:
        return tuple(
            PublishedAccuracy(
                row["model"],
                row["pretrained"],
                row["set"],
                int(row["images"]),
                row["templates"],
                float(row["accuracy"]),
                row["source"],
            )
            for row in csv.DictReader(file)
        )


def published_for(identity: Mapping[str, Any], name: str) -> list[PublishedAccuracy]:
    """Find the published accuracies of an encoder on a set, by its model and its weights' tag.

    An imported encoder only has a name, which must be that of the usual folder: ViT-B-16-openai.
    """
    whole = _WEB_SETS.get(name, name)
    model, pretrained = str(identity.get("model")), identity.get("pretrained")
    if pretrained == "openai":
        model = model.removesuffix("-quickgelu")  # OpenAI's weights have it in any case
    return [
        row
        for row in table()
        if row.set == whole
        and (
            (row.model, row.pretrained) == (model, pretrained)
            or (pretrained == IMPORTED and model == f"{row.model}-{row.pretrained}")
        )
    ]


def judge(shot: ZeroShotAccuracy, rows: Iterable[PublishedAccuracy]) -> ZeroShotAccuracy:
    """Put the published accuracy of the same templates and images beside a zero-shot accuracy."""
    same = (
        row
        for row in rows
        if row.images == shot.images
        and {*templates_of(row.templates)} == {*templates_of(shot.template)}
    )
    return replace(shot, published=next(same, None))
