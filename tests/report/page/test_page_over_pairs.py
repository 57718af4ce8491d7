"""What the page says of methods over pairs: which runs are compared."""

import re

from kept import kept_run
from parsed import cells

from zsntta_cli.report.page.page import page


def made(*kept):
    return page(kept, lambda *_: "").html


KNOWN = {"zs-clip": 40, "ridge": 60, "tda": 50}


def runs(id_sets, oods=("glyphs",), known=KNOWN, **values):
    """Runs of some methods, each of which is as good everywhere, seed by seed better."""
    return [
        kept_run(
            method, ood, seed=seed, known=right + seed, caught=right, samples=100,
            id_set=f"id{i}", items=False, **values,
        )
        for method, right in known.items()
        for i in range(id_sets) for ood in oods for seed in (0, 2)
    ]  # fmt: skip


def table(html, place="tiny, noise 50%"):
    rows = {}
    for row in cells(html, f"{place}: over"):
        rows.setdefault(row[0], row[1:])  # by the first metric
    return rows


def test_methods_are_compared_over_pairs_each_by_its_mean_over_seeds():
    html = made(*runs(6, ("glyphs", "textures")))
    rows = cells(html, "tiny, noise 50%: over 12 ID-OOD pairs of 6 ID sets, in %")
    assert rows[2] == ["Acc_H"]
    # Acc_H of 60.5 % and 60 %, the mean of 2·a·b/(a + b) with a of 60 and 62 %.
    assert rows[3] == ["ridge", "60.49", "", "", ""]
    assert rows[4] == ["tda", "50.49", "-10.00", "0/0/12", "&lt;0.001"]  # 2 / 2^12, times two
    assert "Wilcoxon’s signed-rank test over pairs" in html


def test_one_pair_or_one_method_has_no_such_section():
    assert "no test over pairs is possible" in made(*runs(1, ("glyphs", "textures")))
    assert "Over pairs" not in made(*runs(1))
    assert "Over pairs" not in made(*runs(6, known={"ridge": 60}))


def test_streams_that_do_not_compare_have_tables_of_their_own():
    html = made(*runs(6), *runs(6, ratio=0.25), *runs(6, encoder="other"), *runs(6, ratio=0))
    titles = re.findall(r"<caption><div>([^<]*): over", html)
    assert titles == [
        "other, noise 50%", "tiny, clean streams", "tiny, noise 25%", "tiny, noise 50%",
    ]  # fmt: skip
    assert "Acc_S" in table(html, "tiny, clean streams")


def test_what_sees_the_whole_stream_first_is_no_rival():
    html = made(*runs(6, known={**KNOWN, "etlt": 90}))
    assert list(table(html)) == ["Method", "Mean", "Acc_H", *("ridge", "tda", "zs-clip"), "AUROC"]


def test_settings_that_vary_are_rows_apart():
    html = made(*runs(6), *runs(6, known={"adand": 30}), *runs(6, known={"adand": 35}, warmup=3))
    assert {"adand (warmup 3)", "adand (warmup 10)"} <= {*table(html)}
