"""Published zero-shot accuracies, and whether those of cached features are too far from them.

They are compared under the same templates and on the same number of images only. Two published runs
of the same weights by the same benchmark differ by up to 0.31 points (ViT-B/16, Cars: 64.46 and
64.77), so a difference of more than one point is said.

The table is made by tools/published_accuracies.py.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from zsntta_cli.cache import store
from zsntta_cli.cache.accuracy import ZeroShotAccuracy, zero_shots
from zsntta_cli.cache.identity import IMPORTED
from zsntta_cli.settings.prompts import templates_of

_MOST = 1.0  # points
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


@dataclass(frozen=True)
class ComparedAccuracy:
    """A zero-shot accuracy, beside the published one of the same templates and images if any."""

    shot: ZeroShotAccuracy
    published: PublishedAccuracy | None = None

    @property
    def off(self) -> float:
        """The difference from the published value in points, positive if it is above."""
        return 0.0 if self.published is None else 100 * self.shot.accuracy - self.published.accuracy

    @property
    def is_suspect(self) -> bool:
        """Whether it is far from the published one, or labels seem to be in another order."""
        return abs(self.off) > _MOST or bool(self.shot.swaps)

    @property
    def line(self) -> str:
        """One line: zero-shot accuracy 68.41 % (published: 68.34)."""
        published = f" (published: {self.published.accuracy:.2f})" if self.published else ""
        return f"zero-shot accuracy {100 * self.shot.accuracy:.2f} %{published}"

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
        if self.published is None or not self.is_suspect:
            return ""
        return (
            f"that is {abs(self.off):.1f} points {'below' if self.off < 0 else 'above'} the "
            f"published accuracy ({self.published.source}); usual causes, the most frequent first: "
            f"{_CAUSES}"
        )


def judged_file(path: Path) -> list[ComparedAccuracy]:
    """Compare the zero-shot accuracies of a feature file with published ones.

    Raises:
        StoreError: the file is broken.
    """
    rows = published_for(store.read(path, rows=False).identity, path.stem)
    return [judge(shot, rows) for shot in zero_shots(path)]


def judge(shot: ZeroShotAccuracy, rows: Iterable[PublishedAccuracy]) -> ComparedAccuracy:
    """Compare a zero-shot accuracy with the published one of the same templates and images."""
    same = (
        row
        for row in rows
        if row.images == shot.images
        and {*templates_of(row.templates)} == {*templates_of(shot.template)}
    )
    return ComparedAccuracy(shot, next(same, None))
