"""Published zero-shot accuracies, and whether those of cached features are too far from them.

Two accuracies of one encoder on one set may differ for four reasons, which add up to an allowance:

- *implementation*: resizing, precision and versions of libraries. Two published runs of the same
  weights by the same benchmark differ by up to 0.31 points (ViT-B/16, Cars: 64.46 and 64.77), so
  0.5 points are allowed.
- *templates*, if the published accuracy is of other templates. The allowance is the largest
  distance between published accuracies of one encoder on that set under different templates; if the
  table has no such pair, the largest on any set. It is at least 5 points, by which prompts move
  ImageNet (Radford et al., 2021, Sec. 3.1.4), as the prompts of a table need not be the best and
  the worst.
- *images*, if the number of images differs: three standard errors of the difference of two shares.
- *classes without images*, up to one class in 20: as many points as these are percent of the
  classes, since accuracy would differ by that if all or none of their images were right.

Accuracies are not compared if more classes have no images, if the set has more or fewer classes
than the published one, or if class features are made of photos.

The table is made by tools/published_accuracies.py.
"""

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from zsntta_cli import datasets
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.accuracy import ZeroShotAccuracy, zero_shots
from zsntta_cli.cache.features import IMPORTED
from zsntta_cli.settings.prompts import PHOTOS, templates_of
from zsntta_cli.settings.published import by_tag

IMPLEMENTATION = 0.5  # points
TEMPLATES = 5.0  # points, at least, if templates differ
_ERRORS = 3  # standard errors of a share
_LACKING = 0.05  # the largest share of classes without images
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

    @property
    def prompt(self) -> str:
        """The templates in words."""
        count = len(templates_of(self.templates))
        return f"{count} templates, {self.templates}" if count > 1 else f"'{self.templates}'"


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
    whole = _set_of(name)
    named = by_tag(identity)
    model, pretrained = str(named.get("model")), named.get("pretrained")
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


def _set_of(name: str) -> str:
    """The set whose published accuracies a set shares."""
    return _WEB_SETS.get(name, name)


@dataclass(frozen=True)
class ComparedAccuracy:
    """A zero-shot accuracy beside the published one that allows the least difference."""

    shot: ZeroShotAccuracy
    published: PublishedAccuracy | None = None
    allowed: float = 0.0  # points
    not_compared: str = ""  # why it is not compared, although the set's accuracy is published

    @property
    def off(self) -> float:
        """The difference from the published value in points, positive if it is above."""
        return 0.0 if self.published is None else 100 * self.shot.accuracy - self.published.accuracy

    @property
    def is_outside(self) -> bool:
        """Whether it is further from the published value than is allowed."""
        return self.published is not None and abs(self.off) > self.allowed

    @property
    def is_suspect(self) -> bool:
        """Whether it is outside what is allowed, or far better under another order of labels."""
        return self.is_outside or bool(self.shot.swaps)

    @property
    def line(self) -> str:
        """One line: zero-shot accuracy 59.56 % (published for …: 63.32; within 5.3)."""
        percent = f"zero-shot accuracy {100 * self.shot.accuracy:.2f} %"
        if self.published is None:
            return percent + f" (not compared: {self.not_compared})" * bool(self.not_compared)
        row = self.published
        place = f"{'off by' if self.is_outside else 'within'} {self._distance}"
        return (
            f"{percent} (published for {row.model} {row.pretrained}, {row.prompt}: "
            f"{row.accuracy:.2f}; {place})"
        )

    @property
    def _distance(self) -> str:
        if self.is_outside:
            return f"{abs(self.off):.1f}, allowed {self.allowed:.1f}"
        return f"{self.allowed:.1f}"

    @property
    def warning(self) -> str:
        """What may be wrong, with the usual causes in their order; empty if nothing is."""
        if self.shot.swaps:
            pairs = ", ".join(f"'{one}' for '{other}'" for one, other in self.shot.swaps)
            how = f" ({self.shot.order})" * bool(self.shot.order)
            return (
                f"labels seem to be in another order than the class names{how}: {pairs} … would "
                f"give {100 * self.shot.reordered:.1f} % in place of "
                f"{100 * self.shot.accuracy:.1f} %"
            )
        if self.published is None or not self.is_outside:
            return ""
        side = "below" if self.off < 0 else "above"
        return (
            f"that is {abs(self.off):.1f} points {side} the published accuracy "
            f"({self.published.source}), {self.allowed:.1f} are allowed; usual causes, the most "
            f"frequent first: {_CAUSES}"
        )


def judge(shot: ZeroShotAccuracy, rows: Iterable[PublishedAccuracy]) -> ComparedAccuracy:
    """Compare a zero-shot accuracy with the published one that allows the least difference."""
    every = [ComparedAccuracy(shot, row, _allowed(shot, row)) for row in rows]
    return min(every, key=lambda judged: judged.allowed, default=ComparedAccuracy(shot))


def _allowed(shot: ZeroShotAccuracy, row: PublishedAccuracy) -> float:
    """The largest distance, in points, that an accuracy may have from a published one."""
    allowed = IMPLEMENTATION
    if {*templates_of(shot.template)} != {*templates_of(row.templates)}:
        allowed += max(_between_templates(row.set), TEMPLATES)
    allowed += 100 * shot.lacking / datasets.known(row.set).classes
    if shot.images != row.images:
        share = row.accuracy / 100
        variance = share * (1 - share) * (1 / shot.images + 1 / row.images)
        allowed += 100 * _ERRORS * math.sqrt(variance)
    return allowed


@lru_cache(maxsize=64)
def _between_templates(name: str) -> float:
    """The largest distance that templates make on a set, or on any set if the table has none."""
    distances: dict[str, list[float]] = {}
    for row in table():
        for other in table():
            same = (row.model, row.pretrained, row.set) == (
                other.model,
                other.pretrained,
                other.set,
            )
            if same and row.templates != other.templates:
                distances.setdefault(row.set, []).append(abs(row.accuracy - other.accuracy))
    return max(distances.get(name) or [d for some in distances.values() for d in some])


def judged_file(path: Path) -> list[ComparedAccuracy]:
    """Compare the zero-shot accuracies of a feature file with published ones.

    Raises:
        StoreError: the file is broken.
    """
    header = hdf5.read_header(path)
    return judged(header.identity, path.stem, zero_shots(path), header.classes)


def judged(
    identity: Mapping[str, Any], name: str, shots: Iterable[ZeroShotAccuracy], classes: int
) -> list[ComparedAccuracy]:
    """Compare the zero-shot accuracies of a set of `classes` classes with published ones."""
    rows = published_for(identity, name)
    reasons = {shot: _why_not_compared(identity, name, shot, classes) for shot in shots}
    return [
        ComparedAccuracy(shot, not_compared=reason) if reason else judge(shot, rows)
        for shot, reason in reasons.items()
    ]


def _why_not_compared(
    identity: Mapping[str, Any], name: str, shot: ZeroShotAccuracy, classes: int
) -> str:
    """Why an accuracy is not compared, although the set has published ones; empty if it is."""
    whole = _set_of(name)
    if all(row.set != whole for row in table()):
        return ""
    if shot.template == PHOTOS:
        return "its classes are of photos"
    if classes != (usual := datasets.known(whole).classes):
        return f"it has {classes:,} classes, the published set {usual:,}"
    if shot.lacking > _LACKING * classes:
        return f"{shot.lacking:,} of {classes:,} classes have no images"
    if published_for(identity, name):
        return ""
    if identity.get("pretrained") == IMPORTED:
        return "its encoder is only known by its name, which is not one such as ViT-B-16-openai"
    return "the table has no accuracy of this encoder on this set"
