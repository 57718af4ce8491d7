"""The paper's tables and figures: their layout (tables.toml) and printed numbers (published.csv).

All are of "Noisy Test-Time Adaptation in Vision-Language Models" (ICLR 2025). This module does not
import NumPy.
"""

import csv
import functools
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.errors import SettingsError, near

_HERE = Path(__file__).parent
_FACTS: dict[str, Any] = tomllib.loads((_HERE / "tables.toml").read_text(encoding="utf-8"))
USUAL_ENCODER: str = _FACTS["usual"]["encoders"][0]
PARTNERS, AVERAGE = "partners", "average"  # in place of an OOD set: each of four, and their mean
LEAD = "_lead"  # behind a metric: its difference to ZS-CLIP's
FIGURES: dict[int, str] = {int(number): what for number, what in _FACTS["figures"].items()}
_NOT_HERE = {
    "4": "it has times, which python benchmarks/timing.py measures",
    **dict.fromkeys(("7", "8", "9"), "it has no numbers to compare"),
}


class Place(NamedTuple):
    """Where numbers of a table are; their metrics distinguish them."""

    encoder: str
    id_set: str
    row: str
    ratio: float
    ood_set: str  # or AVERAGE


class Printed(NamedTuple):
    """A printed number in percent and its ±, which are nan where there is none, and a doubt."""

    value: float = math.nan
    std: float = math.nan
    remark: str = ""

    @property
    def is_there(self) -> bool:
        """Whether anything is printed."""
        return self.value == self.value

    @property
    def is_misprint(self) -> bool:
        """Whether it is certainly wrong, so that nothing is compared with it."""
        return self.remark.startswith("misprint")


NOTHING_PRINTED = Printed()


@dataclass(frozen=True, eq=False)
class PaperTable:
    """What a table shows, and where; tables.toml explains each."""

    number: int
    name: str
    title: str
    id_sets: Sequence[str]
    rows: Mapping[str, Mapping[str, Any]]  # the method of a row and its settings, by its name
    encoders: Sequence[str]
    ratios: Sequence[float]
    ood_sets: Sequence[str]
    columns: str  # the part of a place that stands across
    head: str  # of the rows' names
    metrics: Sequence[str]
    leads: Sequence[str]
    seeds: int
    notes: Sequence[str]

    def metrics_of(self, place: Place) -> list[str]:
        """The metrics at a place: an average of a method other than ZS-CLIP has leads, too."""
        metrics = [*self.metrics]
        if place.ood_set == AVERAGE and self.rows[place.row]["method"] != "zs-clip":
            metrics += [metric + LEAD for metric in self.leads]
        return metrics

    @functools.cached_property
    def printed(self) -> Mapping[Place, Mapping[str, Printed]]:
        """The printed numbers by place and metric, in the paper's order."""
        rows, printed = dict[tuple[str, str], str](), dict[Place, dict[str, Printed]]()
        for name, asked in self.rows.items():
            settings = [f"{key}={value}" for key, value in asked.items() if key != "method"]
            rows[asked["method"], ";".join(settings)] = name
        for line in _published():
            if line["table"] == str(self.number):
                row, ratio = rows[line["method"], line["setting"]], float(line["ratio"])
                place = Place(line["encoder"], line["id_set"], row, ratio, line["ood_set"])
                value, std = float(line["value"]), float(line["std"] or math.nan)
                printed.setdefault(place, {})[line["metric"]] = Printed(value, std, line["remark"])
        return printed


@functools.cache
def _published() -> Sequence[Mapping[str, str]]:
    with (_HERE / "published.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _tables() -> Iterator[PaperTable]:
    """All tables, each with the rows and the groups of ID sets that it names."""
    for number in filter(str.isdigit, _FACTS):
        facts = {**_FACTS["usual"], **_FACTS[number]}
        rows, groups = facts.pop("rows"), facts.pop("id_sets")
        names = [name for group in groups for name in _FACTS["groups"].get(group, [group])]
        named = _FACTS["rows"][rows] if isinstance(rows, str) else rows
        yield PaperTable(int(number), rows=named, id_sets=names, **facts)


TABLES = {table.number: table for table in _tables()}


def tables_with(id_set: str) -> list[PaperTable]:
    """The tables that have an ID set; none if it is not an ID set of the paper."""
    return [table for table in TABLES.values() if id_set.lower() in table.id_sets]


def parse_names(text: str) -> tuple[list[PaperTable], list[int]]:
    """Parse a list such as "2,CIFAR,fig6" into tables and the numbers of figures, each once.

    Raises:
        SettingsError: there is no table or figure with a name.
    """
    named = {name: t for t in TABLES.values() for name in (str(t.number), t.name.lower())}
    tables, figures = dict[PaperTable, None](), dict[int, None]()
    for name in text.lower().split(","):
        kind, _, number = name.replace(" ", "").replace("figure", "fig").partition("fig")
        bare = name.strip().removeprefix("table").strip()
        if not kind and number.isdecimal() and int(number) in FIGURES:
            figures[int(number)] = None
        elif bare in named:
            tables[named[bare]] = None
        elif bare in _NOT_HERE:
            raise SettingsError(f"table {bare} is not here: {_NOT_HERE[bare]}.")
        else:
            names = [name for table in TABLES.values() for name in (table.name, *table.id_sets)]
            raise SettingsError(
                f"table is '{name}'{near(bare, list(dict.fromkeys(names)))}, must be a number from "
                f"1 to {max(TABLES)}, a name, fig1 to fig{max(FIGURES)}, or an ID set alone: "
                "zsntta paper lists them"
            )
    return list(tables), list(figures)
