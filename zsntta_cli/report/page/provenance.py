"""The origin of each row: all settings, the commands that made it, features, versions."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from zsntta_cli.report.page.document import Code, PageSheet, Strong
from zsntta_cli.report.page.headline import name_of
from zsntta_cli.report.sheet import Labels, SheetRow
from zsntta_cli.results.frame import FEATURES, ResultRow, ResultTable, labels, set_place, shown
from zsntta_cli.simulation.record import Record

_MIB = 2**20
_OF_LINES = ("ratio", FEATURES)  # settings of the rows that share a card

Setting = tuple[str, Any]  # name and value


def plain_sheet(
    title: str, heads: Labels, numbers: Labels, rows: Sequence[tuple[Labels, Sequence[str]]],
    **more: Any,
) -> PageSheet:  # fmt: skip
    """A table of labels and, behind them, numbers."""
    body = [SheetRow(labels, {"": values}) for labels, values in rows]
    return PageSheet(title, heads, {"": numbers}, {"": body} if body else {}, **more)


def commands(table: ResultTable) -> Iterator[PageSheet]:
    """For each line of the headline tables the commands that made it, its time and its device."""
    names = labels(table.rows)
    for stream, rows in table.by_stream().items():
        yield plain_sheet(
            f"{name_of(stream)}: the commands",
            ("Method", "Noise", "Command", "Device"),
            ("Runs", "s a run", "Peak MiB"),
            [_line(names[row], row) for row in rows],
            kind="commands",
        )


def _line(label: str, row: ResultRow) -> tuple[Labels, Sequence[str]]:
    records = row.records
    memory = max(record.memory for record in records)
    seconds = math.fsum(record.seconds for record in records) / len(records)  # of the method alone
    devices = ", ".join(sorted({record.device for record in records}))
    typed = Code("\n".join(sorted({record.command for record in records} - {""})))
    return (
        (label, shown("ratio", row.ratio), typed, devices),
        (str(len(records)), f"{seconds:.3g}", f"{memory / _MIB:,.0f}"),
    )


class Card(NamedTuple):
    """The settings of rows, below their name."""

    name: str
    where: str
    sheet: PageSheet


def settings(tables: Sequence[ResultTable]) -> list[Card]:
    """All settings: first those that all rows share, then the others of each label.

    Settings that differ between the rows of one method are bold.
    """
    cards: dict[tuple[str, tuple[Setting, ...]], list[ResultRow]] = {}
    by_method: dict[str, list[set[Setting]]] = {}
    for table in tables:
        for row, label in labels(table.rows).items():
            values = tuple((k, v) for k, v in row.settings.items() if k not in _OF_LINES)
            cards.setdefault((label, values), []).append(row)
            by_method.setdefault(row.method, []).append(set(values))
    alike = {method: set.intersection(*values) for method, values in by_method.items()}
    everywhere = set.intersection(*alike.values())
    first = next(iter(cards))[1]
    common = _card("All rows", "", [each for each in first if each in everywhere], everywhere)
    return [common] + [
        _card(
            label,
            f"on {', '.join(dict.fromkeys(row.stream.id_set for row in rows))}",
            [each for each in values if each not in everywhere],
            alike[rows[0].method],
        )
        for (label, values), rows in cards.items()
    ]


def _card(name: str, where: str, values: Sequence[Setting], alike: set[Setting]) -> Card:
    """Some settings; those that differ between the rows of the method are bold."""
    rows = [
        ((name, (str if (name, value) in alike else Strong)(shown(name, value))), ())
        for name, value in values
    ]
    title = f"{name}: settings; bold where rows of the method differ"
    return Card(name, where, plain_sheet(title, ("Setting", "Value"), (), rows))


def features(records: Sequence[Record]) -> PageSheet:
    """The digests of all features that the runs read."""
    counts = Counter(
        (record.settings.encoder, name, digest)
        for record in records
        for name, digest in record.digests.items()
    )
    return plain_sheet(
        "Features that the runs saw; text/SET: class text, logit scale, whether normalised",
        ("Features", "Encoder", "SHA-256"),
        ("Runs",),
        [
            ((name, encoder, Code(digest)), [str(counts[encoder, name, digest])])
            for encoder, (_, name), digest in sorted(
                (encoder, set_place(name), digest) for encoder, name, digest in counts
            )
        ],
    )


def versions(records: Sequence[Record]) -> PageSheet:
    """The versions that made the runs, and when."""
    days: dict[Labels, list[str]] = {}
    for record in records:
        made_by = ", ".join(f"{name} {number}" for name, number in sorted(record.versions.items()))
        key = (made_by, record.device, record.revision)
        days.setdefault(key, []).append(record.created[:10])
    return plain_sheet(
        "Versions and devices",
        ("Made by", "Device", "Revision", "First", "Last"),
        ("Runs",),
        [((*key, min(on), max(on)), [str(len(on))]) for key, on in sorted(days.items())],
    )
