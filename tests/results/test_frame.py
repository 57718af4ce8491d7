"""Which runs make a row of a frame, how it is called, which saw the same samples, which count."""

import pytest
from kept import kept_run, run_of

from zsntta_cli.report.figures import usual
from zsntta_cli.results import frame
from zsntta_cli.results.selection import chosen


def rows(*kept):
    return [row for table in frame.tables(kept) for row in table.rows]


def labels(made):
    names = frame.varying(made)
    return [frame.label(row, names[row.method]) for row in made]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"noise": "gaussian", "noise_every": 2, "placement": "shuffled"}, {}),
        ({"order": "burst", "limit": 7}, {"order": "burst", "limit": 7}),
        ({"ood_fill": "cap"}, {"ood_fill": "cap"}),
        ({"ood_fill": "cap", "ratio": 0.0}, {}),  # there are no OOD samples
        ({"ood_fill": "cap", "ratio": "natural"}, {}),
        ({"rounded_odds": True, "ratio": 0.25}, {"rounded_odds": True}),
        ({"rounded_odds": True, "ratio": 1 / 9}, {"rounded_odds": True}),  # odds of 0.125
        ({"rounded_odds": True}, {}),  # odds of 1
        ({"rounded_odds": True, "ratio": 0.75}, {}),  # odds of 3
        ({"rounded_odds": True, "ratio": "natural"}, {}),
    ],
)
def test_settings_that_change_no_sample_make_no_other_stream(values, kind):
    [row] = rows(kept_run(**values))
    assert dict(row.stream.kind) == kind


@pytest.mark.parametrize(
    ("name", "number"), [("shapes", "2.1.1"), ("text/shapes", "1.2.1"), ("glyphs", "1.1.2")]
)
def test_rows_of_other_features_are_numbered_and_never_ranked_together(name, number):
    """The commonest features of a name have no number."""
    others = {name: "0" * 64}
    made = rows(kept_run("zs-clip"), kept_run("tda"), kept_run("cull", digests=others),
                kept_run("zs-clip", digests=others), kept_run("zs-clip", seed=1))  # fmt: skip
    features = {(row.method, row.settings["features"]) for row in made}
    assert features == {("zs-clip", ""), ("tda", ""), ("cull", number), ("zs-clip", number)}
    [table] = frame.tables(record for row in made for record in row.records)
    contests = [{row.settings["features"] for row in contest} for contest in table.contests()]
    assert sorted(map(sorted, contests)) == [[""], [number]]


@pytest.mark.parametrize(
    ("lists", "numbers"), [({"items/glyphs": "1"}, ["", ""]), ({}, ["", "1.1.2"])]
)
def test_each_ratio_has_its_own_list_of_ood_images_but_the_same_features(lists, numbers):
    made = rows(kept_run(digests=lists), kept_run(seed=1, digests=lists),
                kept_run(ratio=0.75, digests={"glyphs": "0" * 64} | lists))  # fmt: skip
    assert [row.settings["features"] for row in made] == numbers


def test_all_settings_of_a_run_are_flat_and_name_the_features_of_none_of_its_sets():
    run = kept_run("adand", digests={"norm/shapes": "5" * 64, "items/glyphs": "6" * 64})
    settings = frame.all_settings(run)
    assert [*settings][:4] == ["preset", "encoder", "prompt", "ratio"]
    assert settings["preset"] == "paper"
    assert (settings["ratio"], settings["warmup"]) == (0.5, 10)
    features = {name: value for name, value in settings.items() if name.startswith("features of")}
    assert features == {"features of noise-gaussian": "44444444"}


def test_a_row_is_told_apart_by_its_preset_or_by_what_differs_within_it():
    made = rows(
        kept_run("adand"), kept_run("adand", warmup=3), kept_run("adand", preset="official"),
        kept_run("zs-clip"),
    )  # fmt: skip
    [table] = frame.tables(record for row in made for record in row.records)
    assert table.varying == ["preset", "warmup"]
    assert labels(made) == [
        "zs-clip", "adand (paper, warmup 3)", "adand (paper, warmup 10)",
        "adand (official, warmup 10)",
    ]  # fmt: skip
    others = {"noise-gaussian": "9" * 64}
    made = rows(kept_run("adand"), kept_run("adand", seed=1, digests=others))
    assert labels(made) == [f"adand (features of noise-gaussian {n * 8})" for n in "49"]
    made = rows(kept_run(), kept_run(ratio=0.25, limit=9), kept_run(encoder="else"))
    assert labels(made) == ["zs-clip"] * 3, "tables show these elsewhere"


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
    [("adand", {}, ""), ("tent", {"pipeline": "normal"}, ""), ("etlt", {}, "the whole stream"),
     ("tent", {"pipeline": "gt"}, "pipeline gt")],
)  # fmt: skip
def test_who_competes(method, values, advantage):
    [row] = rows(kept_run(method, **values))
    assert advantage in row.advantage
    assert bool(row.advantage) == bool(advantage)


def test_tables_and_their_rows_have_one_order():
    """Sets as the catalogue lists them, partners first; methods as listed; then their settings."""
    kept = [
        kept_run("tda", id_set="digits", ood="shapes"), kept_run("adand", ood="glyphs", seed=1),
        kept_run("adand", ood="textures", warmup=3), kept_run("adand", ood="mine"),
        kept_run("adand", ood="mine", fixed=0.3), kept_run("zs-clip", ratio=0.0),
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
        names = ("ratio", "fixed", "warmup")
        assert [(row.method, *map(row.settings.get, names)) for row in table.rows] == [
            ("zs-clip", 0.0, None, None), ("zs-clip", 0.25, None, None),
            ("zs-clip", 0.5, None, None), ("adand", 0.5, None, 3), ("adand", 0.5, None, 10),
            ("adand", 0.5, 0.3, 10),
        ]  # fmt: skip
        assert [[row.method for row in contest] for contest in table.contests()] == [
            ["zs-clip"], ["zs-clip"], ["zs-clip", "adand", "adand", "adand"],
        ]  # fmt: skip
        assert [*table.rows[4].runs] == ["glyphs", "mine"]


def test_a_clean_stream_is_of_every_ood_set_and_alone_of_none():
    [table] = frame.tables([kept_run(ratio=0.0), kept_run()])
    clean = table.rows[0]
    assert (table.columns, [*clean.runs], [*clean.on("glyphs")]) == (["glyphs"], [""], [0])
    assert frame.tables(clean.records)[0].columns == [""]


def test_sets_are_in_the_catalogues_order_at_any_corruption_and_others_by_name():
    names = ["mine", "another", "cifar100", "cifar10-c:fog:1", "cifar10"]
    assert sorted(names, key=frame.set_place) == [
        "cifar10", "cifar100", "cifar10-c:fog:1", "another", "mine",
    ]  # fmt: skip


# Which runs are wanted.


def test_filters_leave_what_fits_and_a_clean_stream_is_of_all_ood_sets():
    runs = [run_of("adand", ratio=r, seed=s) for r in (0.0, 0.25) for s in (0, 1)]
    runs += [run_of("zs-clip", ood_set="textures")]
    assert chosen(runs, {"method": ["adand"], "seed": [1]}) == [runs[1], runs[3]]
    assert chosen(runs, {"ood": ["glyphs"]}) == runs[:4]
    assert chosen(runs, {"warmup": ["10"]}) == runs[:4]
    assert chosen(runs, {"fixed": ["adaptive"]}) == runs


def test_unasked_a_plot_has_the_papers_ratio_and_adaptive_thresholds():
    runs = [run_of("adand", ratio=r) for r in (0.25, 0.5)] + [run_of("adand", fixed=0.3)]
    assert usual(runs, {}) == [runs[1]]
    assert usual(runs, {}, keep=("ratio",)) == runs[:2]
    assert usual(runs, {}, keep=("fixed",)) == runs[1:]
    assert usual(runs[:1], {}) == runs[:1]
    assert usual(runs[2:], {}) == runs[2:]  # nothing else is there
    assert usual(runs, {"ratio": [0.25, 0.5]}) == runs[:2]
