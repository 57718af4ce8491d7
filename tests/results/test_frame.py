"""Which runs make a row of a frame, how it is called, which saw the same samples, which count."""

import pytest
from kept import kept_run, run_of

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.figures import usual
from zsntta_cli.results import frame
from zsntta_cli.results.selection import chosen


def rows(*kept):
    return [row for table in frame.tables(kept) for row in table.rows]


def labels(made):
    names = frame.varying(made)
    return [frame.label(row, names[row.method]) for row in made]


def stream_of(**values):
    [row] = rows(kept_run(**values))
    return row.stream, row.ratio


def test_injection_makes_no_other_stream_and_order_limit_and_ratio_do():
    plain = stream_of()
    assert stream_of(noise="gaussian", noise_every=2, placement="shuffled") == plain
    assert stream_of(rounded_odds=True) == plain, "there is nothing to round"
    for other in ({"order": "burst"}, {"limit": 7}, {"ood_fill": "cap"}, {"ratio": 0.25}):
        assert stream_of(**other) != plain, other


@pytest.mark.parametrize("name", ["shapes", "glyphs", "text/shapes"])
def test_rows_of_other_features_are_never_ranked_together(name):
    others = {name: "9" * 64}
    made = rows(kept_run("zs-clip"), kept_run("tda"), kept_run("cull", digests=others),
                kept_run("zs-clip", digests=others))  # fmt: skip
    groups = frame.grouped(made, lambda row: row.stream).values()
    methods = sorted(sorted(row.method for row in group) for group in groups)
    assert methods == [["cull", "zs-clip"], ["tda", "zs-clip"]]


def test_a_row_is_told_apart_by_its_preset_or_by_what_differs_within_it():
    made = rows(
        kept_run("adand"), kept_run("adand", warmup=3), kept_run("adand", preset="official"),
        kept_run("zs-clip"),
    )  # fmt: skip
    assert labels(made) == [
        "zs-clip", "adand (paper, warmup 3)", "adand (paper, warmup 10)",
        "adand (official, warmup 10)",
    ]  # fmt: skip
    others = {"noise-gaussian": "9" * 64}
    made = rows(kept_run("adand"), kept_run("adand", seed=1, digests=others))
    assert labels(made) == [f"adand (features of noise-gaussian {n * 8})" for n in "49"]


def test_of_two_records_of_a_run_the_later_finished_one_counts():
    def made(known, when, **record):
        return kept_run(known=known, record={"created": f"2026-01-0{when}", **record})

    first, later, stopped = made(1, 1), made(2, 2), made(3, 3, unfinished=5)
    other = kept_run(digests={"glyphs": "9" * 64})
    for order in ([first, later, stopped, other], [other, stopped, later, first]):
        counted = [record for row in rows(*order) for record in row.records]
        assert {id(one) for one in counted} == {id(later), id(other)}


def test_a_stopped_run_is_shown_as_incomplete_where_none_is_finished():
    stopped = {"unfinished": 5}
    [row] = rows(
        kept_run(seed=2, known=9, record=stopped), kept_run(seed=1, known=7, record=stopped),
        kept_run(ood="digits", known=6), kept_run(ood="digits", seed=1, record=stopped),
    )  # fmt: skip
    value = row.value("glyphs", "acc_s")
    assert (value.mean, [*value.by_seed], value.is_whole) == (0.7, [1], False)
    assert row.by_seed("digits", "acc_s") == {0: 0.6}
    assert row.value("digits", "acc_s").is_whole
    assert row.value("textures", "acc_s") == frame.NOTHING
    assert row.average(("glyphs", "digits"), "acc_s").lacks == "1 of 2 sets (digits)"


@pytest.mark.parametrize(
    ("method", "values", "advantage"),
    [("adand", {}, ""), ("tent", {"pipeline": "normal"}, ""),
     ("etlt", {}, "sees the whole stream before it decides"),
     ("tent", {"pipeline": "gt"}, "knows from its pipeline gt which samples are noise")],
)  # fmt: skip
def test_who_competes(method, values, advantage):
    [row] = rows(kept_run(method, **values))
    assert row.advantage == advantage


def test_tables_and_their_rows_have_one_order():
    """Sets as the catalogue lists them, partners first; methods as listed; then their settings."""
    kept = [
        kept_run("tda", id_set="digits", ood="shapes"), kept_run("adand", ood="glyphs", seed=1),
        kept_run("adand", ood="textures", warmup=3), kept_run("adand", ood="mine"),
        kept_run("zs-clip", ood="glyphs", ratio=0.25), kept_run("zs-clip", ood="another"),
        kept_run("zs-clip", ood="glyphs", encoder="else"), kept_run("zs-clip", ood="digits"),
    ]  # fmt: skip
    for order in (kept, kept[::-1]):
        found = frame.tables(order)
        assert [(table.id_set, table.encoder) for table in found] == [
            ("shapes", "else"), ("shapes", "tiny"), ("digits", "tiny"),
        ]  # fmt: skip
        table = found[1]
        assert table.columns == ["glyphs", "textures", "digits", "another", "mine"]
        assert [(row.method, row.ratio, row.settings.get("warmup")) for row in table.rows] == [
            ("zs-clip", 0.25, None), ("zs-clip", 0.5, None), ("adand", 0.5, 3), ("adand", 0.5, 10),
        ]  # fmt: skip
        assert [[row.method for row in contest] for contest in table.contests()] == [
            ["zs-clip"], ["zs-clip", "adand", "adand"]
        ]  # fmt: skip
        assert [*table.rows[3].runs] == ["glyphs", "mine"]


# Which runs are wanted.


def test_filters_leave_what_fits_and_a_clean_stream_is_of_all_ood_sets():
    runs = [run_of("adand", ratio=r, seed=s) for r in (0.0, 0.25) for s in (0, 1)]
    runs += [run_of("zs-clip", ood_set="textures")]
    assert chosen(runs, {"method": ["adand"], "seed": [1]}) == [runs[1], runs[3]]
    assert chosen(runs, {"ood": ["glyphs"]}) == runs[:4]
    assert chosen(runs, {"warmup": ["10"]}) == runs[:4]
    assert chosen(runs, {"fixed": ["adaptive"]}) == runs


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"method": ["tent"]}, "no matching kept run has method tent: found adand"),
        ({"ratio": [0.3]}, "has ratio 0.3: found 0.0, 0.25"),
        ({"ratio": [0.25], "seed": [7]}, "has seed 7: found 2"),
        ({"warmup": ["11"]}, "has warmup 11: found 10"),
        ({"views": ["8"]}, "has views 8: found none"),
    ],
)
def test_where_nothing_fits_the_error_says_what_is_there(filters, message):
    runs = [run_of("adand", ratio=0.0), run_of("adand", ratio=0.25, seed=2)]
    with pytest.raises(SettingsError, match=message):
        chosen(runs, filters)


def test_unasked_a_plot_has_the_papers_ratio_and_adaptive_thresholds():
    runs = [run_of("adand", ratio=r) for r in (0.25, 0.5)] + [run_of("adand", fixed=0.3)]
    assert usual(runs, {}) == [runs[1]]
    assert usual(runs, {}, keep=("ratio",)) == runs[:2]
    assert usual(runs, {}, keep=("fixed",)) == runs[1:]
    assert usual(runs[:1], {}) == runs[:1]
    assert usual(runs[2:], {}) == runs[2:]  # nothing else is there
    assert usual(runs, {"ratio": [0.25, 0.5]}) == runs[:2]
