"""What the numbers of a table, or of all, come to: how many are within, outside or not judged.

Light: no NumPy.
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

_JUDGED = (WITHIN, OUTSIDE, UNKNOWN)  # misprints and other images' numbers are no differences
ALL_TABLES = "all"  # the table of the row that sums up all
COLUMNS = (
    "table", "label", "title", "printed", "measured", "compared", "within", "outside",
    "no_spread", "other_images", "misprints", "largest_difference", "largest_where",
)  # fmt: skip


class CheckTally:
    """How many numbers of some comparisons there are of each kind."""

    def __init__(self, comparisons: Sequence[Comparison]) -> None:
        """Count them."""
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
        """Whether something was judged, and nothing is outside."""
        return bool(self.within) and not self.outside

    @property
    def sentence(self) -> str:
        """One line: how many numbers are of each kind, and the largest difference."""
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
        """Where the largest difference stands; nothing where there is none."""
        return place(self.largest) if self.largest else ""

    def row(self, **table: Any) -> dict[str, Any]:
        """The counts as a row of COLUMNS; differences are percent (table 4: seconds, GiB)."""
        largest = None if self.largest is None else round(self.largest.difference, 12)
        return {
            **dict.fromkeys(COLUMNS), **table, "printed": self.printed, "measured": self.measured,
            "compared": self.compared, "within": self.within, "outside": self.outside,
            "no_spread": self.unknown, "other_images": self.other_images,
            "misprints": self.misprints, "largest_difference": largest,
            "largest_where": self.where or None,
        }  # fmt: skip


def place(comparison: Comparison) -> str:
    """Where a comparison stands in its table."""
    cell = comparison.cell
    return ", ".join(filter(None, (cell.group, " ".join(cell.row), cell.column, comparison.metric)))


ByTable = Mapping[PaperTable, Sequence[Comparison]]


def tally_all(by_table: ByTable) -> CheckTally:
    """What the numbers of several tables come to."""
    return CheckTally([comparison for of_table in by_table.values() for comparison in of_table])


def tally_lines(by_table: ByTable) -> list[str]:
    """A line a table, and one of all."""
    lines = [
        f"Table {table.number:2}: {CheckTally(comparisons).sentence}"
        for table, comparisons in by_table.items()
    ]
    return [*lines, f"All tables: {tally_all(by_table).sentence}"]


def tally_rows(by_table: ByTable) -> list[dict[str, Any]]:
    """A row a table, and one of all, of COLUMNS."""
    rows = [
        CheckTally(comparisons).row(table=table.number, label=table.label, title=table.title)
        for table, comparisons in by_table.items()
    ]
    return [*rows, tally_all(by_table).row(table=ALL_TABLES)]
