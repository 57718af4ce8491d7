"""Counts of a table's numbers, or of all tables': how many are within, outside or not judged.

This module does not import NumPy.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from zsntta_cli.paper.comparing import (
    MISPRINT,
    OTHER_IMAGES,
    OUTSIDE,
    UNKNOWN,
    WITHIN,
    Comparison,
)
from zsntta_cli.paper.printed.tables import PaperTable

_JUDGED = (WITHIN, OUTSIDE, UNKNOWN)  # differences of misprints and other images mean nothing
ALL_TABLES = "all"  # the value of the column `table` in the row of all tables
COLUMNS = (
    "table", "label", "title", "printed", "measured", "compared", "within", "outside",
    "no_spread", "other_images", "misprints", "largest_difference", "largest_where",
)  # fmt: skip


class CheckTally:
    """The counts of comparisons by verdict, and the largest difference."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        """Count the comparisons."""
        self.is_published = any(c.published for c in comparisons)
        self.printed = sum(not math.isnan(c.published.mean) for c in comparisons if c.published)
        self.measured = sum(
            c.measured is not None and not math.isnan(c.measured.mean) for c in comparisons
        )
        verdicts = Counter(c.verdict for c in comparisons if c.verdict)
        self.compared = verdicts.total()
        self.within, self.outside = verdicts[WITHIN], verdicts[OUTSIDE]
        self.unknown, self.misprints = verdicts[UNKNOWN], verdicts[MISPRINT]
        self.other_images = verdicts[OTHER_IMAGES]
        judged = [c for c in comparisons if c.verdict in _JUDGED]
        self.largest = max(judged, key=lambda c: abs(c.difference), default=None)

    @property
    def is_passed(self) -> bool:
        """Whether some numbers are within, and none is outside."""
        return bool(self.within) and not self.outside

    @property
    def sentence(self) -> str:
        """One line: the number of comparisons by verdict, and the largest difference."""
        if not self.is_published:
            return f"{self.measured:,} numbers measured, nothing is published of them"
        parts = [f"{self.within:,} within", f"{self.outside:,} outside"]
        parts += [f"{self.unknown:,} without a known spread"]
        parts += [f"{self.other_images:,} of other images"] * bool(self.other_images)
        parts += [f"{self.misprints:,} misprinted"] * bool(self.misprints)
        line = f"{self.compared:,} of {self.printed:,} numbers compared: {', '.join(parts)}"
        if not self.largest:
            return line
        return f"{line}; largest difference {self.largest.difference:+.2f} ({self.where})"

    @property
    def where(self) -> str:
        """The place of the largest difference; empty if there is none."""
        return place(self.largest) if self.largest else ""

    def row(self, **table: Any) -> dict[str, Any]:
        """The counts as a row of COLUMNS; differences are in percent (table 4: seconds, GiB)."""
        largest = None if self.largest is None else round(self.largest.difference, 12)
        return {
            **dict.fromkeys(COLUMNS), **table, "printed": self.printed, "measured": self.measured,
            "compared": self.compared, "within": self.within, "outside": self.outside,
            "no_spread": self.unknown, "other_images": self.other_images,
            "misprints": self.misprints, "largest_difference": largest,
            "largest_where": self.where or None,
        }  # fmt: skip


def place(comparison: Comparison) -> str:
    """The place of a comparison in its table."""
    cell = comparison.cell
    return ", ".join(filter(None, (cell.group, " ".join(cell.row), cell.column, comparison.metric)))


ByTable = Mapping[PaperTable, Sequence[Comparison]]


def tally_all(by_table: ByTable) -> CheckTally:
    """Count the comparisons of several tables together."""
    return CheckTally([comparison for of_table in by_table.values() for comparison in of_table])


def tally_lines(by_table: ByTable) -> list[str]:
    """Give one line for each table, and one for all."""
    lines = [
        f"Table {table.number:2}: {CheckTally(comparisons).sentence}"
        for table, comparisons in by_table.items()
    ]
    return [*lines, f"All tables: {tally_all(by_table).sentence}"]


def tally_rows(by_table: ByTable) -> list[dict[str, Any]]:
    """Give one row of COLUMNS for each table, and one for all."""
    rows = [
        CheckTally(comparisons).row(table=table.number, label=table.label, title=table.title)
        for table, comparisons in by_table.items()
    ]
    return [*rows, tally_all(by_table).row(table=ALL_TABLES)]
