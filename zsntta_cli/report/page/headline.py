"""The headline tables: methods by noise ratio and OOD set, what is best on each stream marked."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from zsntta_cli.report.page.markup import NOTHING, row, row_head, spread, table, text
from zsntta_cli.report.page.ranking import (
    BY_ITEMS,
    BY_SEEDS,
    NO_TEST,
    Mark,
    Standings,
    average_marks,
)
from zsntta_cli.report.page.rows import METRICS, Row, Value, decides, folded, measured
from zsntta_cli.report.tables import AVERAGE
from zsntta_cli.results.frame import Stream, shown

ACCURACIES, DETECTION = ("acc_s", "acc_n", "acc_h"), ("auroc", "fpr95")

_TESTS = {
    BY_ITEMS: "by McNemar’s exact test on the samples of each stream",
    BY_SEEDS: "by a paired t test over seeds",
}


def streams(rows: Sequence[Row]) -> dict[Stream, list[Row]]:
    """The rows of each table."""
    found: dict[Stream, list[Row]] = {}
    for one in rows:
        found.setdefault(one.spot.stream, []).append(one)
    return found


def name_of(stream: Stream) -> str:
    """What a table is of, as text."""
    parts = [f"ID: {stream.id_set}", stream.encoder]
    parts += [f"{name.replace('_', ' ')} {shown(name, value)}" for name, value in stream.kind]
    if any(stream.features):
        numbers = ".".join(str(number + 1) for number in stream.features)
        parts.append(f"OTHER FEATURES of the same name ({numbers})")
    return ", ".join(parts)


def headline(stream: Stream, rows: Sequence[Row], known: Standings) -> str:
    """The tables of one ID set and encoder: accuracies under noise, clean streams, AUROC."""
    noisy = [one for one in rows if one.spot.ratio and decides(one)]
    clean = [one for one in rows if not one.spot.ratio and decides(one)]
    scored = [one for one in rows if one.spot.ratio]
    parts = [
        _table(f"{name_of(stream)}: accuracies in %", noisy, ACCURACIES, known),
        _table(f"{name_of(stream)}: clean streams, Acc_S in %", clean, ("acc_s",), known),
        _table(f"{name_of(stream)}: how the scores rank, in %", scored, DETECTION, known),
    ]
    return "".join(parts)


def _table(title: str, rows: Sequence[Row], metrics: Sequence[str], known: Standings) -> str:
    if not rows:
        return ""
    columns = sorted_columns(rows)
    averaged = len(columns) > 1
    said: list[Mark] = []
    bodies = []
    for ratio, some in itertools.groupby(_by_ratio(rows), key=lambda one: one.spot.ratio):
        body = list(some)
        cells, marked = _cells(body, columns, metrics, known)
        said += marked
        span = 1 + len(metrics) * (len(columns) + averaged)
        head = f'<tr><th scope="rowgroup" colspan="{span}">Noise {shown("ratio", ratio)}\n'
        bodies.append((head if ratio else "") + "".join(cells))
    names = [AVERAGE] * averaged + columns
    return table(f"{text(title)}<small>{_legend(said)}</small>", _head(names, metrics), bodies)


def _by_ratio(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda one: one.spot.ratio)


def sorted_columns(rows: Sequence[Row]) -> list[str]:
    """The OOD sets of rows, in the order of the runs."""
    return list(dict.fromkeys(one.spot.ood_set for one in rows))


def _head(names: Sequence[str], metrics: Sequence[str]) -> str:
    heads = [METRICS[metric] for metric in metrics] * len(names)
    second = "".join(f'<th scope="col">{head}' for head in heads)
    if not any(names):
        return row('<th scope="col">Method', second.replace('"col"', '"col" class="n"'))
    first = [f'<th scope="colgroup" colspan="{len(metrics)}">{text(name)}' for name in names]
    return row('<th scope="col" rowspan="2">Method', *first) + row("", second)


def _cells(
    rows: Sequence[Row], columns: Sequence[str], metrics: Sequence[str], known: Standings
) -> tuple[list[str], list[Mark]]:
    """The rows of one ratio, a line a label, and all marks in them."""
    lines: dict[str, dict[str, Row]] = {}
    for one in rows:
        lines.setdefault(one.label, {})[one.spot.ood_set] = one
    texts: dict[str, list[str]] = {label: [] for label in lines}
    said = _average(lines, columns, metrics, texts) if len(columns) > 1 else []
    for column in columns:
        for label, line in lines.items():
            if column in line:
                own = [known[line[column], metric] for metric in metrics]
                values = (line[column].values[metric] for metric in metrics)
                texts[label] += map(_cell, values, own)
                said += own
            else:
                texts[label] += ["<td>"] * len(metrics)
    return [row(row_head(label), *cells) for label, cells in texts.items()], said


def _cell(value: Value, mark: Mark) -> str:
    if mark.is_marked:
        return f'<td class="b">{spread(value)}*'
    return f"<td>{spread(value)}"


def _average(
    lines: Mapping[str, Mapping[str, Row]],
    columns: Sequence[str],
    metrics: Sequence[str],
    texts: dict[str, list[str]],
) -> list[Mark]:
    """Means over the OOD sets, of rows that have them all; of each seed, where all sets have it."""
    said: list[Mark] = []
    for metric in metrics:
        whole = [label for label, line in lines.items() if len(line) == len(columns)]
        by_seed = [_seed_means(list(lines[label].values()), metric) for label in whole]
        found = average_marks(by_seed, metric)
        said += found
        for label in lines:
            if label not in whole:
                missing = f"{len(lines[label])} of {len(columns)} sets"
                texts[label].append(f'<td title="{missing}">{NOTHING}')
                continue
            place = whole.index(label)
            values = list(by_seed[place].values())
            value = folded(values) if values else Value(math.nan)
            texts[label].append(_cell(value, found[place]))
    return said


def _seed_means(rows: Sequence[Row], metric: str) -> dict[int, float]:
    seeds = [seed for seed in rows[0].by_seed if all(seed in one.by_seed for one in rows)]
    return {
        seed: math.fsum(measured(one.by_seed[seed], metric) for one in rows) / len(rows)
        for seed in seeds
    }


def _legend(said: Sequence[Mark]) -> str:
    """What * means in a table, and how it was found out."""
    if not any(mark.is_marked for mark in said):
        return ""
    tests = {mark.test for mark in said}
    ways = " or ".join(words for name, words in _TESTS.items() if name in tests)
    legend = f" * best, and all not significantly worse (5 %, Holm) {ways}." if ways else " * best."
    untested = " Where no test is possible (one seed, no items kept), only the best is marked."
    return legend + untested * (NO_TEST in tests)
