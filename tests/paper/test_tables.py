"""The printed numbers against themselves, and the names by which tables are asked for."""

import hashlib
from collections import Counter

from zsntta_cli.paper.tables import FIGURES, TABLES, parse_names, tables_with

NUMBERS = [
    (table, place, metric, number)
    for table in TABLES.values()
    for place, numbers in table.printed.items()
    for metric, number in numbers.items()
]


def test_every_number_is_there_as_it_was_compared_with_two_transcriptions():
    assert len(NUMBERS) == 6181
    assert sum(number.std == number.std for _, _, _, number in NUMBERS) == 250  # tables 20 and 21
    lines = sorted(
        f"{t.number} {p.encoder} {p.id_set} {p.ood_set} {sorted(t.rows[p.row].items())} {p.ratio} "
        f"{metric} {number.value:.2f} {number.std if number.std == number.std else None}"
        for t, p, metric, number in NUMBERS
    )
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert digest[:16] == "f3c89f230b2cd7ec"


def test_each_place_of_a_layout_has_its_metrics_printed():
    """A clean stream has no Acc_N and Acc_H; else a table prints all of its metrics."""
    for table in TABLES.values():
        for place, numbers in table.printed.items():
            expected = table.metrics_of(place) if place.ratio else ["acc_s"]
            assert [*numbers] == expected, (table.number, place)


def test_what_the_remarks_say_is_so():
    marked = Counter(table.number for table, _, _, number in NUMBERS if number.remark)
    # 7 sets of 5 columns of 3 numbers and 3 differences; Tent's clean stream; 11 clean streams.
    assert marked == {11: 1, 17: 11, 18: 11, 28: 108}
    clean = {  # Acc_S of clean streams
        (table.number, place.row, place.id_set): number
        for table, place, metric, number in NUMBERS
        if place.ratio == 0 and metric == "acc_s"
    }
    tent = clean[11, "Tent (bs=64)", "cifar100"]
    assert (tent.value, clean[19, "TPT", "cifar100"].value, tent.is_misprint) == (41.9, 41.9, True)
    assert clean[19, "Tent", "cifar100"].value == 53.54
    off = [
        round(abs(clean[19, "AdaND", name].value - clean[18, "M = 8", name].value), 2)
        for name in TABLES[18].id_sets
    ]
    assert (len(off), min(off), max(off)) == (11, 0.02, 0.18)


def test_tables_are_found_by_number_name_and_id_set():
    assert [*TABLES] == [1, 2, 3, 5, 6, *range(10, 31)]
    assert [*FIGURES] == [*range(1, 10)]
    assert parse_names("2,bird200,Table 2, BIRD200") == ([TABLES[2]], [])
    assert TABLES[10] in tables_with("cifar10")
    assert TABLES[2] not in tables_with("CIFAR10")
    assert tables_with("CIFAR") == []  # the name of table 10
    tables, figures = parse_names("3,fig6,2,CIFAR,10,3,Figure 2")
    assert ([table.number for table in tables], figures) == ([3, 2, 10], [6, 2])
