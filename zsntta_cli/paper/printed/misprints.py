"""Printed numbers that cannot all be right: which, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from zsntta_cli.paper.printed.published import Printed
from zsntta_cli.paper.printed.tables import LEAD


@dataclass(frozen=True)
class Mark:
    """What is said of some printed numbers."""

    table: int
    reason: str
    metrics: tuple[str, ...]
    id_sets: tuple[str, ...] = ()  # none: all
    method: str = ""
    settings: tuple[str, ...] = field(default=("",))  # one of these
    ratio: float | None = 0.5
    is_wrong: bool = False  # a misprint, which nothing is compared with

    def covers(self, cell: Printed, metric: str) -> bool:
        """Whether it is said of a number."""
        return (
            cell.table == self.table
            and metric in self.metrics
            and cell.id_set in (self.id_sets or (cell.id_set,))
            and (cell.method, cell.ratio) == (self.method, self.ratio)
            and cell.setting in self.settings
        )


def _lead(pipeline: str, printed: str, entries: str) -> Mark:
    return Mark(
        28, f"misprint: {printed} is printed, the entries give {entries}", (LEAD,),
        ("imagenet-a",), "tent", (f"pipeline={pipeline}",), is_wrong=True,
    )  # fmt: skip


def _clean(table: int, setting: str) -> Mark:
    return Mark(
        table, "another run than tables 16, 19 and 26, which differ by 0.02 to 0.18 in all 11 sets",
        ("acc_s",), (), "adand", (setting,), 0.0,
    )  # fmt: skip


_OTHER_BATCH = (
    "another run than tables 2 and 3, which differ by up to 0.20 (about what another batch size "
    "makes)"
)
MARKS = (
    _lead("gt", "+0.55", "+0.53"),
    _lead("normal", "+0.09", "+0.07"),
    _lead("all", "-0.41", "-0.43"),
    Mark(
        11, "misprint: table 19 has 53.54 here; 41.90 is TPT's clean Acc_S there", ("acc_s",),
        ("cifar100",), "tent", ("batch_size=64",), 0.0, is_wrong=True,
    ),
    _clean(17, "noise=gaussian"),
    _clean(18, "noise_every=8"),
    Mark(
        28, _OTHER_BATCH, ("acc_s", "acc_n", "acc_h"),
        ("cars196", "food101", "pets37", "imagenet", "imagenet-sketch", "imagenet-v2",
         "imagenet-r"), "zs-clip",
    ),
)  # fmt: skip


def mark(cell: Printed, metric: str, among: Sequence[Mark] = MARKS) -> Mark | None:
    """What is said of a printed number, if anything."""
    return next((one for one in among if one.covers(cell, metric)), None)
