"""The results of repeated runs: how many are the same to the bit, and the others."""

import math
from collections.abc import Sequence

from zsntta_cli.report.sheet import Sheet, SheetRow
from zsntta_cli.results.frame import shown
from zsntta_cli.results.reproducing import Reproduction
from zsntta_cli.simulation.metrics import METRICS

_HEADS = ("Method", "ID", "OOD", "Noise", "Seed")
_COLUMNS = {"Acc_H": ("there", "here"), "Differs most": ("metric", "by"), "": ("Decisions",)}


def summary(reproductions: Sequence[Reproduction]) -> str:
    """One line: how many records were reproduced."""
    exact = sum(each.is_exact for each in reproductions)
    return f"{exact:,} of {len(reproductions):,} records to the bit"


def differing_sheet(reproductions: Sequence[Reproduction]) -> Sheet:
    """A row for each run that differs: its metrics in percent, decisions that differ."""
    rows = [_row(each) for each in reproductions if not each.is_exact]
    notes = [
        "Decisions are the test samples whose class or decision on noise differs; a dash means "
        "that no items were kept."
    ]
    return Sheet("Records that came out otherwise", _HEADS, _COLUMNS, rows, notes)


def _row(each: Reproduction) -> SheetRow:
    old, new, run = each.kept.record, each.again.record, each.kept.record.settings
    labels = (
        run.method, run.id_set, run.ood_set or "-", shown("ratio", run.stream.ratio),
        str(run.stream.seed),
    )  # fmt: skip
    acc_h = METRICS["acc_h"]
    texts = [acc_h.text(record.metric(acc_h)) for record in (old, new)]
    decisions = "-" if each.other_decisions is None else f"{each.other_decisions:,}"
    columns = dict(zip(_COLUMNS, (texts, _largest(each), [decisions]), strict=True))
    return SheetRow(labels, columns)


def _largest(each: Reproduction) -> list[str]:
    """The metric that differs most, and by how much, with as many digits as that needs."""
    sizes = {name: abs(value) for name, value in each.differences.items() if value == value}
    if not sizes:
        return ["-", "-"]
    metric = METRICS[max(sizes, key=lambda name: (sizes[name], name))]
    difference = each.differences[metric.name] * (100 if metric.is_percent else 1)
    digits = max(2, 1 - math.floor(math.log10(abs(difference))))
    return [metric.head, f"{difference:+.{digits}f}"]
