"""Figures as files: the same bytes for the same records, letters that stay letters."""

import math
import os
import re
import subprocess
import sys

import pytest
from kept import run_of
from PIL import Image

from zsntta_cli.report import plots
from zsntta_cli.report.drawing import drawn, series_looks
from zsntta_cli.report.figure import Axis, Figure, Panel, Series, with_ends
from zsntta_cli.report.looks import looks_of
from zsntta_cli.report.plots import Filters, comparisons, distributions, over_pairs, streams
from zsntta_cli.simulation.notes import RunNote

HISTOGRAM = {"low": 0.0, "high": 1.0, "id": [0, 1, 3], "ood": [5, 0, 0]}
ITEMS = [10, 20, 30]
CURVES = {
    "scores": HISTOGRAM,
    "before": HISTOGRAM,
    "difference": {**HISTOGRAM, "low": -1.0},
    "gradients": {"item": ITEMS, "clean": [0.1, 0.2, 0.1], "noisy": [1.0, None, 3.0]},
    "thresholds": {"item": ITEMS, "zero_shot": [0.6, 0.5, 0.6]},
    "running": {"item": ITEMS, "acc_s": [0.5, 0.6, 0.7], "acc_n": [0.5, 0.9, 0.8]},
    "windows": {"item": ITEMS, "acc_s": [0.5, 0.7, 0.9], "acc_n": [0.5, 1.0, 0.6]},
}
METHODS = ("zs-clip", "tent", "adand")


def runs():
    """What every kind of plot has something of."""
    return [
        run_of(method, (0.5 + 0.1 * i, 0.6), CURVES, ood_set=ood, ratio=ratio, fixed=fixed, seed=s)
        for i, method in enumerate(METHODS)
        for ood in ("glyphs", "textures")
        for ratio in (0.25, 0.5)
        for fixed in (None, 0.5)
        for s in (0, 1)
    ]


def adaptive(some):
    return [kept for kept in some if kept.settings.threshold.fixed is None]


def one_ratio():
    return [kept for kept in adaptive(runs()) if kept.settings.stream.ratio == 0.5]


CHILD = """
import sys
sys.path[:0] = sys.argv[1:3]
runs = __import__("test_drawing").runs
from zsntta_cli.report import plots
from zsntta_cli.report.drawing import drawn
from zsntta_cli.report.plots import Filters
import hashlib
for i, kind in enumerate(plots.KINDS):
    figure = plots.plot(runs(), kind, Filters())
    for form in ("pdf", "svg", "png") if i == 0 else [("pdf", "svg", "png")[i % 3]]:
        print(kind, form, hashlib.sha256(drawn(figure, form)).hexdigest())
"""


def child(folder, seed, home):
    """Digests of every plot in every form, by a process with its own hash seed and settings."""
    here = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, here, os.path.join(here, "..", "..")], cwd=folder,
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONHASHSEED": seed, **home},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_two_processes_give_the_same_bytes_whatever_the_users_settings_are(tmp_path):
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nbackend: TkAgg\nsvg.fonttype: none\n")
    plain = child("/", "1", {"SOURCE_DATE_EPOCH": "1000000000"})
    assert len({line.split()[2] for line in plain.splitlines()}) == len(plots.KINDS) + 2
    assert child(tmp_path, "2", {"TZ": "Asia/Tokyo"}) == plain


@pytest.mark.parametrize("kind", plots.KINDS)
def test_a_figure_is_as_wide_as_asked_and_not_empty(kind, tmp_path):
    plots.write(tmp_path / "f.png", plots.plot(runs(), kind, Filters()), 3.25)
    with Image.open(tmp_path / "f.png") as picture:
        assert picture.width == 975  # 3.25 inches at 300 dots
        assert len(picture.convert("RGB").getcolors(10**6)) > 20


def test_what_has_to_be_known_of_a_run_stands_beside_its_figure_and_not_in_it():
    sentence = "adand decides as zs-clip does throughout: a stream of 337 items ends before."
    note = RunNote("warm-up", "adand", sentence, -337)
    [plain] = [run_of("adand", curves=CURVES)]
    noted = plain.model_copy(update={"notes": (note,)})
    figure = plots.plot([noted], "scores", Filters())
    assert figure.caption == (sentence,)
    assert drawn(figure, "svg") == drawn(plots.plot([plain], "scores", Filters()), "svg")


def test_files_have_true_type_letters_no_clock_and_no_links_but_to_themselves():
    pdf, svg = (drawn(over_pairs.means(one_ratio()), form) for form in ("pdf", "svg"))
    assert b"/FontFile2" in pdf
    for foreign in (b"/Type3", b"CreationDate"):
        assert foreign not in pdf
    for foreign in (b"<dc:date>", b'xlink:href="http'):
        assert foreign not in svg


def test_a_method_looks_the_same_in_every_figure_and_none_looks_like_another():
    first = series_looks(comparisons.ratio(adaptive(runs())))
    second = series_looks(over_pairs.means(one_ratio()[::-1]))
    assert {name: first[name] for name in METHODS} == {name: second[name] for name in METHODS}
    several = series_looks(comparisons.ratio([run_of("adand", warmup=n) for n in range(8)]))
    assert len({colour for colour, _, _ in several.values()}) == 8, "bars have no markers"
    assert len({marker for _, marker, _ in several.values()}) == 8, "lines have both"


def test_names_from_records_are_letters_not_formulas():
    figure = comparisons.ratio([run_of("adand", id_set="$x^2$", ood_set="a_$\\frac$")])
    content = drawn(figure, "svg")
    assert content.startswith(b"<?xml")
    assert drawn(figure, "png") != drawn(comparisons.ratio([run_of("adand")]), "png")


def test_what_has_values_of_one_kind_alone_is_drawn():
    quiet = {"item": [0], "clean": [0.5], "noisy": [None]}
    some = [run_of("tent", curves={"gradients": quiet})]
    assert drawn(streams.gradients(some), "png") != drawn(streams.gradients_apart(some, 0.1), "png")
    clean = {**HISTOGRAM, "ood": [0, 0, 0]}
    some = [run_of("zs-clip", curves={"scores": clean}, ratio=0.0)]
    assert drawn(distributions.scores(some), "png")


def test_a_long_name_is_folded_and_cut():
    figure = comparisons.ratio([run_of("adand", id_set="a-long-name-" * 9, ood_set="b" * 90)])
    content = drawn(figure, "svg").decode()
    assert content.count("<!-- ") > 5
    longest = max(re.findall(r"<!-- (.*?) -->", content), key=len)
    assert len(longest) <= 3.25 * 15


def test_a_method_is_found_in_a_label_that_tells_its_settings():
    names = ("adand", "adand (batch size 8)", "cull (preset code)")
    panel = Panel("t", Axis("x"), Axis("y"), tuple(Series(n, (0,), (0,)) for n in names[1:]))
    adand, cull = (series_looks(Figure((panel,)))[name] for name in names[1:])
    alone = series_looks(comparisons.ratio([run_of("adand"), run_of("cull")]))
    assert (adand, cull) == (alone["adand"], alone["cull"])
    both = comparisons.ratio([run_of("adand"), run_of("adand", batch_size=8)])
    first, second = series_looks(both).values()
    assert first == adand
    assert second[0] != adand[0]


def test_ranks_say_what_the_width_of_a_box_is_and_means_have_bars_of_deviation():
    some = [kept for kept in one_ratio() if kept.settings.ood_set == "glyphs"]
    assert b"<!-- box width: share of pairs -->" in drawn(over_pairs.ranks(some), "svg")
    content = drawn(over_pairs.means(varied(some)), "svg").decode()
    assert "<!-- mean ± deviation (%) -->" in content
    alone = drawn(over_pairs.means(some[::2]), "svg").decode()  # one seed has none
    bars = [text.count('id="LineCollection_') for text in (content, alone)]
    assert bars[0] - bars[1] == 2 * len(METHODS)  # in the panel and in the legend


def varied(some):
    """Runs whose second seed is better."""
    return [
        run_of(one.method, (0.5 + 0.1 * one.stream.seed, 0.6), seed=one.stream.seed)
        for one in (kept.settings for kept in some)
    ]


def test_steps_have_whole_ticks():
    gradients = {"item": [*range(4)], "clean": [0.1] * 4, "noisy": [0.2] * 4}
    content = drawn(streams.gradients([run_of("tent", curves={"gradients": gradients})]), "svg")
    ticks = re.findall(r"<!-- ([\d.]+) -->", content.decode().split('id="matplotlib.axis_2"')[0])
    assert ticks == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 100, [0, 20, 40, 60, 80, 100]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (83.2, 86.9, [84, 85, 86]),
        (0, 20_000, [0, 5000, 10_000, 15_000, 20_000]),
        (-1.2, 2.5, [-1, 0, 1, 2]),
        (0, 11, [0, 2.5, 5, 7.5, 10]),
    ],
)
def test_ticks_are_round_and_on_the_axis(low, high, ticks):
    assert Axis("x", low, high).round_ticks() == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("high", "most", "ticks"),
    [
        (4, 3, [0, 2, 4]), (3, 5, [0, 1, 2, 3]), (11, 5, [0, 5, 10]), (2, 5, [0, 1, 2]),
        (100, 4, [0, 25, 50, 75, 100]),
    ],
)  # fmt: skip
def test_ticks_of_counts_are_whole_numbers(high, most, ticks):
    assert list(Axis("step", 0, high, is_count=True).round_ticks(most)) == ticks


def test_an_axis_without_ends_is_as_long_as_its_values_and_their_deviations_need():
    line = Series("a", (0, 10), (20, 40), std=(10, math.nan))
    panel = Panel("t", Axis("x", 0, 10), Axis("y"), (line,))
    [one] = with_ends([panel])
    assert (one.y.low, one.y.high) == pytest.approx((10 - 1.5, 40 + 1.5))
    other = Panel("u", Axis("x", 0, 10), Axis("y"), (Series("a", (0,), (70,)),))
    assert [p.y.high for p in with_ends([panel, other])] == pytest.approx([73, 73])
    apart = Panel("u", Axis("x", 0, 10), Axis("z"), (Series("a", (0,), (70,)),))
    assert [p.y.high for p in with_ends([panel, apart])] == pytest.approx([41.5, 70.7])


def test_eighty_names_have_looks_that_differ():
    names = [f"m{i}" for i in range(80)]
    assert len({*looks_of(names).values()}) == 80
