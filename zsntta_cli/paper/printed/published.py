"""The paper's printed numbers, as they are in published.csv, and remarks on doubtful ones.

All are of "Noisy Test-Time Adaptation in Vision-Language Models" (ICLR 2025). This module does not
import NumPy.
"""

import csv
import functools
import math
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.settings import Ratio

_FILE = Path(__file__).with_name("published.csv")
USUAL_ENCODER = "ViT-B-16"
AVERAGE = "average"  # in place of an OOD set: the mean over the ID set's four
LEAD = "acc_h_minus_zs-clip"  # a printed difference of averages


@dataclass(frozen=True)
class PaperNumber:
    """A printed number in percent; nan if "-" is printed."""

    mean: float
    std: float = math.nan

    @classmethod
    def parse(cls, text: str) -> "PaperNumber":
        """Parse "83.53±0.02", "+2.87" or "-"."""
        mean, _, std = text.partition("±")
        return cls(math.nan if mean == "-" else float(mean), float(std) if std else math.nan)


@dataclass(frozen=True)
class Printed:
    """A cell of the paper: its sets, encoder and method by our names, and its printed values."""

    table: int
    id_set: str
    ood_set: str
    encoder: str
    method: str
    setting: str  # "name=value;name=value"
    ratio: Ratio | None
    texts: tuple[str, ...]

    @property
    def settings(self) -> dict[str, str]:
        """The settings by name, as texts."""
        pairs = (part.partition("=") for part in self.setting.split(";") if part)
        return {name: value for name, _, value in pairs}

    @property
    def numbers(self) -> tuple[PaperNumber, ...]:
        """The values, in the order of the table's metrics."""
        return tuple(PaperNumber.parse(text) for text in self.texts)


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


# Printed numbers that are misprints or disagree with other tables, and the reasons.


@dataclass(frozen=True)
class Remark:
    """A remark on printed numbers."""

    table: int
    reason: str
    metrics: tuple[str, ...]
    id_sets: tuple[str, ...] = ()  # empty: all
    method: str = ""
    settings: tuple[str, ...] = ("",)  # one of these
    ratio: float | None = 0.5
    is_wrong: bool = False  # a misprint, with which nothing is compared

    def covers(self, cell: Printed, metric: str) -> bool:
        """Whether the remark is on a number."""
        return (
            cell.table == self.table
            and metric in self.metrics
            and cell.id_set in (self.id_sets or (cell.id_set,))
            and (cell.method, cell.ratio) == (self.method, self.ratio)
            and cell.setting in self.settings
        )


def _lead(pipeline: str, number: str, entries: str) -> Remark:
    return Remark(
        28, f"misprint: {number} is printed, the entries give {entries}", (LEAD,),
        ("imagenet-a",), "tent", (f"pipeline={pipeline}",), is_wrong=True,
    )  # fmt: skip


def _clean(table: int, setting: str) -> Remark:
    return Remark(
        table, "another run than tables 16, 19 and 26, which differ by 0.02 to 0.18 in all 11 sets",
        ("acc_s",), (), "adand", (setting,), 0.0,
    )  # fmt: skip


_OTHER_BATCH = (
    "another run than tables 2 and 3, which differ by up to 0.20 (about what another batch size "
    "makes)"
)
REMARKS = (
    _lead("gt", "+0.55", "+0.53"),
    _lead("normal", "+0.09", "+0.07"),
    _lead("all", "-0.41", "-0.43"),
    Remark(
        11, "misprint: table 19 has 53.54 here; 41.90 is TPT's clean Acc_S there", ("acc_s",),
        ("cifar100",), "tent", ("batch_size=64",), 0.0, is_wrong=True,
    ),
    _clean(17, "noise=gaussian"),
    _clean(18, "noise_every=8"),
    Remark(
        28, _OTHER_BATCH, ("acc_s", "acc_n", "acc_h"),
        ("cars196", "food101", "pets37", "imagenet", "imagenet-sketch", "imagenet-v2",
         "imagenet-r"), "zs-clip",
    ),
)  # fmt: skip


def remark_on(cell: Printed, metric: str) -> Remark | None:
    """Find the remark on a printed number, if there is one."""
    return next((remark for remark in REMARKS if remark.covers(cell, metric)), None)
