"""The paper's printed numbers: published.csv, read as it is. Light: no NumPy.

All are of "Noisy Test-Time Adaptation in Vision-Language Models" (ICLR 2025).
"""

import csv
import functools
import math
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("published.csv")
USUAL_ENCODER = "ViT-B-16"
AVERAGE = "average"  # in place of an OOD set: the mean over the ID set's four


@dataclass(frozen=True)
class Number:
    """A printed number: in percent but for table 4's seconds and GiB; nan where "-" is printed."""

    mean: float
    std: float = math.nan

    @classmethod
    def parse(cls, text: str) -> "Number":
        """From "83.53±0.02", "+2.87" or "-"."""
        mean, _, std = text.partition("±")
        return cls(math.nan if mean == "-" else float(mean), float(std) if std else math.nan)


@dataclass(frozen=True)
class Printed:
    """A cell of the paper: what it is of, in the tool's names, and its values as printed."""

    table: int
    id_set: str
    ood_set: str
    encoder: str
    method: str
    setting: str  # "name=value;name=value"
    ratio: float | None
    texts: tuple[str, ...]

    @property
    def settings(self) -> dict[str, str]:
        """Its settings by name, as texts."""
        pairs = (part.partition("=") for part in self.setting.split(";") if part)
        return {name: value for name, _, value in pairs}

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Its values, in the order of the table's metrics."""
        return tuple(Number.parse(text) for text in self.texts)


@functools.cache
def printed(table: int) -> tuple[Printed, ...]:
    """The cells of a table, in the paper's order."""
    return tuple(cell for cell in _all() if cell.table == table)


@functools.cache
def _all() -> tuple[Printed, ...]:
    with _FILE.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(line for line in file if not line.startswith("#"))
        next(rows)  # names of the columns
        return tuple(_read(*row) for row in rows)


def _read(table: str, id_set: str, ood_set: str, encoder: str, method: str, *rest: str) -> Printed:
    setting, ratio, values = rest
    return Printed(
        int(table), id_set, ood_set, encoder or USUAL_ENCODER, method, setting,
        float(ratio) if ratio else None, tuple(values.split()),
    )  # fmt: skip
