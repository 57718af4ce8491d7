"""The published numbers against themselves: averages, harmonic means, printed differences."""

import math

import pytest

from zsntta_cli.errors import SettingsError
from zsntta_cli.paper.cells import PaperEncoder, cells
from zsntta_cli.paper.printed.published import (
    AVERAGE,
    LEAD,
    REMARKS,
    PaperNumber,
    printed,
    remark_on,
)
from zsntta_cli.paper.printed.tables import FIGURES, TABLES, figure_number, find_table

EPSILON = 1e-9
HALF = 0.005  # of the last printed digit


def key(cell):
    return (cell.table, cell.id_set, cell.encoder, cell.method, cell.setting, cell.ratio)


def by_set():
    """By row of a table that prints its sets: their cells, by OOD set."""
    rows = {}
    for table in TABLES:
        for cell in printed(table.number):
            rows.setdefault(key(cell), {})[cell.ood_set] = cell
    return {row: sets for row, sets in rows.items() if {AVERAGE} < set(sets)}


def test_every_number_is_there():
    numbers = [number for t in TABLES for cell in printed(t.number) for number in cell.numbers]
    assert len(numbers) == 6786 - 14 - 21 - 66 - 88  # all tables without 4, 7, 8 and 9
    assert sum(not math.isnan(number.mean) for number in numbers) == 6181
    assert sum(not math.isnan(number.std) for number in numbers) == 250  # tables 20 and 21
    assert PaperNumber.parse("83.53±0.02") == PaperNumber(83.53, 0.02)


def test_printed_averages_are_those_of_the_entries():
    checked = 0
    for row, sets in by_set().items():
        average = sets.pop(AVERAGE)
        assert len(sets) == 4, row
        for i in range(len(next(iter(sets.values())).numbers)):
            mean = sum(cell.numbers[i].mean for cell in sets.values()) / 4
            assert abs(mean - average.numbers[i].mean) <= 2 * HALF + EPSILON, (row, i)
            checked += 1
    assert checked == 903


def test_printed_harmonic_means_are_those_of_the_entries():
    """Of each pair: those of an average are averages, not harmonic means."""
    single = of_seeds = 0
    for table in TABLES:
        for cell in printed(table.number):
            pairs = cell.ood_set not in (AVERAGE, "") and "acc_h" in table.metrics
            if not pairs or table.number == 15:  # means of 15 corruptions
                continue
            s, n, h = (number.mean for number in cell.numbers[:3])
            # How far the printed one may be off, for what both are rounded by.
            slack = HALF + HALF * 2 * (n**2 + s**2) / (s + n) ** 2
            if table.seeds == (0,):
                assert abs(2 * s * n / (s + n) - h) <= slack + EPSILON, cell
                single += 1
            else:  # the mean of five seeds' harmonic means: a little below that of the means
                assert -slack <= 2 * s * n / (s + n) - h <= 0.2, cell
                of_seeds += 1
    assert (single, of_seeds) == (833, 40)


def test_printed_differences_are_those_of_the_averages_but_for_three_misprints():
    wrong, checked = [], 0
    for table in TABLES:
        averages = [cell for cell in printed(table.number) if cell.ood_set == AVERAGE]
        base = {cell.id_set: cell for cell in averages if cell.method == "zs-clip"}
        whole = len(table.metrics)
        for cell in averages:
            for i, number in enumerate(cell.numbers[whole:]):
                metric = table.leads[i]
                at = table.metrics.index(metric.removesuffix("_minus_zs-clip"))
                entries = cell.numbers[at].mean - base[cell.id_set].numbers[at].mean
                checked += 1
                if abs(entries - number.mean) > 3 * HALF + EPSILON:
                    wrong.append((table.number, cell.id_set, cell.method, cell.setting, metric))
    assert checked == 297
    assert wrong == [
        (28, "imagenet-a", "tent", f"pipeline={p}", LEAD) for p in ("gt", "normal", "all")
    ]


def test_each_remark_is_of_a_number_that_is_there():
    cells_of = {table.number: cells(table, PaperEncoder()) for table in TABLES}
    for one in REMARKS:
        covered = [
            cell
            for cell in cells_of[one.table]
            for metric in cell.metrics
            if remark_on(cell.of, metric) is one
        ]
        assert covered, one
    marked = {n: sum(remark_on(c.of, m) is not None for c in some for m in c.metrics)
              for n, some in cells_of.items()}  # fmt: skip
    # 7 sets of 5 columns of 3 numbers and 3 differences; Tent's clean stream; 11 clean streams.
    assert {n: count for n, count in marked.items() if count} == {11: 1, 17: 11, 18: 11, 28: 108}


def test_what_the_remarks_say_is_so():
    def first(table, **values):
        found = [c for c in printed(table) if all(getattr(c, k) == v for k, v in values.items())]
        return found[0].numbers[0].mean

    clean = {"id_set": "cifar100", "ratio": 0.0}
    tent = first(11, method="tent", setting="batch_size=64", **clean)
    assert (tent, first(19, method="tpt", **clean)) == (41.9, 41.9)
    assert first(19, method="tent", **clean) == 53.54
    off = [
        round(abs(first(19, method="adand", id_set=c.id_set, ratio=0.0) - c.numbers[0].mean), 2)
        for c in printed(18)
        if (c.setting, c.ratio) == ("noise_every=8", 0.0)
    ]
    assert (len(off), min(off), max(off)) == (11, 0.02, 0.18)


def test_a_table_is_found_by_number_and_label():
    assert [table.number for table in TABLES] == [1, 2, 3, 5, 6, *range(10, 31)]
    assert [number for number, _, _ in FIGURES] == list(range(1, 10))
    for name in ("2", "tab:bird200", "bird200", "Table 2"):
        assert find_table(name).number == 2
    assert find_table("app-tab:ablation-module").number == 16
    assert figure_number("fig3") == figure_number("fig:failure_case_score") == 3
    assert figure_number("2") is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("31", "must be a number from 1 to 30, a label, or fig1 to fig9"),
        ("bird", "did you mean 'bird200'?"),
        ("ablation-module", "'tab:ablation-module' and 'app-tab:ablation-module'"),
    ],
)
def test_a_table_that_is_not_there_is_answered(name, said):
    with pytest.raises(SettingsError, match=r".") as error:
        find_table(name)
    assert said in str(error.value)
