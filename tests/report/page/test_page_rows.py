"""Which runs a page has, and in which order their rows stand: by hand."""

from kept import kept_run

from zsntta_cli.report.page.rows import page_tables, select_runs


def test_a_run_that_is_there_twice_is_one_the_later():
    first, last = (
        kept_run(),
        kept_run(record={"created": "2026-02-01T00:00:00+00:00", "seconds": 2.0}),
    )
    for order in ((first, last), (last, first)):
        [run] = select_runs(order).runs
        assert run.record.seconds == 2.0


def test_of_a_stopped_twin_and_a_finished_one_the_finished_one_counts():
    stopped = {"unfinished": 3, "created": "2026-02-01T00:00:00+00:00"}
    [run] = select_runs([kept_run(record=stopped), kept_run()]).runs
    assert not run.record.unfinished


def test_runs_of_other_rules_are_left_out_and_counted_and_stopped_ones_are_not():
    selected = select_runs([
        kept_run(seed=0), kept_run(seed=1, record={"unfinished": 3}),
        kept_run(seed=2, record={"revision": "0.9"}), kept_run(seed=3, record={"revision": ""}),
    ])  # fmt: skip
    assert [run.record.settings.stream.seed for run in selected.runs] == [0, 1]
    assert selected.left_out == ["2 runs by rules other than this version's"]


def test_the_order_of_rows_is_their_own_and_not_that_of_their_making():
    kept = [
        kept_run(method, ood, ratio, seed)
        for method in ("ridge", "zs-clip") for ood in ("textures", "glyphs")
        for ratio in (0.5, 0.25) for seed in (1, 0)
    ]  # fmt: skip
    places = [
        [
            [
                (row.ratio, contest.ood_set, row.method, list(row.on(contest.ood_set)))
                for row in contest.rows
            ]
            for contest in page_tables(select_runs(runs).runs)[0].contests
        ]
        for runs in (kept, kept[::-1])
    ]
    assert places[0] == places[1]
    assert places[0][0][0] == (0.25, "glyphs", "zs-clip", [0, 1])
    assert [contest[0][:2] for contest in places[0]] == [
        (0.25, "glyphs"), (0.25, "textures"), (0.5, "glyphs"), (0.5, "textures"),
    ]  # fmt: skip
