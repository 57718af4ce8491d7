"""The page as a file: what it says, by hand; that it loads nothing, and lets nothing in."""

import base64
import math
import random
import re

import pytest
from kept import PROMPT, kept_run
from parsed import Page, assert_inert, cells

from zsntta_cli import __version__
from zsntta_cli.datasets import CATALOGUE, partners
from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.report.page.page import page
from zsntta_cli.simulation.metrics import METRICS, Measures, Metric
from zsntta_cli.simulation.notes import RunNote

HOSTILE = "<img src=x onerror=alert(1)>"


def made(*kept, **values):
    return page(kept, **values).html


GRID = [
    kept_run(method, ood, ratio, seed, known=6 + i + seed, caught=5 + i,
             record={"command": f"run {method}"})
    for i, method in enumerate(("zs-clip", "tda", "cull"))
    for ood in ("glyphs", "textures") for ratio in (0.5, 0.75) for seed in (0, 1)
]  # fmt: skip


def test_what_seeds_cannot_distinguish_is_underlined():
    right = {
        "tda": (61, 62, 62, 60, 63), "zs-clip": (40, 42, 41, 41, 40), "cull": (60, 63, 61, 60, 62),
    }  # fmt: skip
    html = made(*(
        kept_run(method, seed=s, known=k, caught=k, samples=100)
        for method, known in right.items() for s, k in enumerate(known)
    ))  # fmt: skip
    rows = {row[0]: row[3] for row in cells(html, "ID: shapes, tiny: accuracies in %")[3:]}
    assert rows == {"zs-clip": "40.80±0.84", "tda": "61.60±1.14*", "cull": "61.20±1.30~"}
    assert "An underlined value is not distinguishable from the best" in html


def test_what_has_to_be_known_of_a_run_stands_under_each_table_and_figure_that_shows_it():
    note = RunNote("warm-up", "cull", "cull decides as zs-clip does throughout.", -40)
    noted = [
        run.model_copy(update={"notes": (note,)})
        if run.settings.method == "cull" else run
        for run in GRID
    ]  # fmt: skip
    html = made(*noted)
    parts = {p.partition("<")[0]: p for p in re.split(r"<h2[^>]*>", html)[1:]}
    for name in ("Results", "Acc_H against the noise ratio"):
        assert note.text in parts[name], name
    assert note.text not in made(*GRID)


def test_an_average_stands_beside_the_worst_tenth_of_its_runs():
    html = made(
        kept_run("zs-clip", "glyphs", caught=4), kept_run("zs-clip", "textures", caught=6),
        kept_run("cull", "glyphs"),
    )  # fmt: skip
    rows = cells(html, "ID: shapes, tiny: accuracies in %")
    assert rows[0] == ["Method", "Average", "Worst tenth of runs", "glyphs", "textures"]
    assert rows[3][:5] == ["zs-clip", "80.00", "50.00", "60.95", "53.33"]
    assert (rows[4][:5], rows[4][-3:]) == (["cull", "-", "-", "-", "-"], [""] * 3)


def test_clean_streams_have_a_table_of_their_own():
    html = made(kept_run("zs-clip", ratio=0, known=7), kept_run("cull"))
    rows = cells(html, "ID: shapes, tiny: clean streams, Acc_S in %")
    assert rows == [["Method", "Acc_S"], ["zs-clip", "70.00"]]


def test_scores_that_do_not_decide_have_auroc_alone():
    nothing = Measures.fromkeys(kept_run().accuracies, math.nan)
    html = made(kept_run("mcm", auroc=0.75, record={"accuracies": nothing}))
    assert "accuracies in %" not in html
    assert cells(html, "ID: shapes, tiny: how the scores rank")[-1] == [
        "mcm",
        "75.00",
        *("25.00", "25.00"),
        *("75.00", "75.00"),
    ]


def test_rows_of_other_features_stand_in_a_table_of_their_own():
    html = made(*GRID, kept_run("cull", known=10, digests={"glyphs": "9" * 64}))
    other = cells(html, "ID: shapes, tiny, OTHER FEATURES of the same name (1.1.2): accuracies")
    assert other[-1] == ["cull", "100.00", "80.00", "88.89"]
    assert "-" not in cells(html, "ID: shapes, tiny: accuracies in %")[-1]


def test_each_row_has_its_command_time_memory_and_all_settings():
    html = made(*GRID)
    rows = cells(html, "ID: shapes, tiny: the commands")
    assert rows[1] == ["zs-clip", "50%", "run zs-clip", "cpu", "4", "0.25", "100"]
    assert ["cull_ring", "1024"] in cells(html, "cull: settings")
    assert ["prompt", PROMPT] in cells(html, "All rows: settings")
    assert "prompt" not in [row[0] for row in cells(html, "cull: settings")]
    assert ["glyphs", "tiny", "3" * 64, "12"] in cells(html, "Features that the runs saw")
    versions = cells(html, "Versions and devices")[1:]  # a row a revision: cull has its own
    assert {row[0] for row in versions} == {"numpy 2.4.6, python 3.11.7, zsntta 0.1.0"}
    assert all(row[-3:-1] == ["2026-01-02", "2026-01-02"] for row in versions)
    assert [int(row[-1]) for row in versions] == [16, 8]
    assert f"Made by zsntta {__version__}." in html


def test_what_differs_between_rows_of_a_method_is_marked():
    html = made(kept_run("adand"), kept_run("adand", warmup=3))
    [first, second] = re.findall(r'<th scope="row">warmup<td class="t">(.*)', html)
    assert {first, second} == {"<b>10</b>", "<b>3</b>"}
    assert '<th scope="row">queue<td class="t">512' in html


def test_each_command_that_made_runs_of_a_row_stands_there():
    html = made(*(kept_run(seed=seed, record={"command": f"run {seed}"}) for seed in (0, 1)))
    assert "<code>run 0</code><br><code>run 1</code>" in html


def drawings(html):
    """What each image of a page is called, and its SVG."""
    images = [attributes for attributes, _ in Page(html).named("img")]
    return [(a["alt"], base64.b64decode(a["src"].partition(",")[2]).decode()) for a in images]


def test_the_figure_is_an_image_of_a_panel_a_pair_or_of_averages_where_there_are_many():
    [(alt, svg)] = drawings(made(*GRID))
    assert alt == "Acc_H against the noise ratio: " + "; ".join(
        f"ID: shapes, tiny, OOD: {ood}" for ood in ("glyphs", "textures")
    )
    assert svg.count("<!-- ID: shapes, tiny, OOD: ") == 2
    many = [
        kept_run("cull", f"set{i}", ratio, id_set="cifar10")
        for i in range(13) for ratio in (0.25, 0.5)
    ]  # fmt: skip
    [(alt, _)] = drawings(made(*many))
    assert alt.endswith("cifar10, tiny, OOD: mean over 13 OOD sets")
    assert drawings(made(*(run for run in GRID if run.settings.stream.ratio == 0.5))) == []


def test_nothing_to_report_is_said_with_what_was_left_out():
    with pytest.raises(StoreError, match=r"^there is no result to report$"):
        made()
    with pytest.raises(StoreError, match=r"report: 1 run by another version"):
        made(kept_run(record={"revision": "0.1"}))
    some = page([kept_run(), kept_run(seed=1, record={"revision": "0.1"})])
    assert some.left_out == ["1 run by another version: run it again"]
    assert "Left out: 1 run by another version: run it again." in some.html


def test_a_stopped_run_is_shown_and_enters_no_mean():
    stopped = {"unfinished": 30}
    html = made(
        kept_run("zs-clip", known=5), kept_run("zs-clip", seed=1, known=9, record=stopped),
        kept_run("cull", known=10, record=stopped), kept_run("tda", known=6),
    )  # fmt: skip
    rows = {row[0]: row[1:] for row in cells(html, "ID: shapes, tiny: accuracies in %")[3:]}
    assert rows["zs-clip"][0] == "50.00"
    assert rows["cull"] == ["100.00†", "80.00†", "88.89†"]
    assert rows["tda"][0] == "60.00*"
    assert "† marks a value of a run that was stopped." in html
    assert "PARTIAL: cull against glyphs was stopped after 20 of 50 items; it enters no" in html
    assert "Stopped before its end: 2 runs. What was stopped enters no mean." in html


def test_a_metric_of_the_table_is_on_the_page(monkeypatch):
    new = Metric("g_mean", "G-mean", "accuracies", ("accuracy",))
    monkeypatch.setitem(METRICS, "g_mean", new)
    measures = Measures(acc_s=0.5, acc_n=0.5, acc_h=0.5, g_mean=0.4321)
    html = made(kept_run(record={"accuracies": measures}))
    rows = cells(html, "ID: shapes, tiny: accuracies in %")
    assert rows[1] == ["Acc_S", "Acc_N", "Acc_H", "G-mean"]
    assert rows[3][-1] == "43.21"


def test_the_same_runs_in_any_order_give_the_same_bytes():
    shuffled = GRID[:]
    random.Random(0).shuffle(shuffled)
    assert made(*shuffled) == made(*GRID)


def hostile(monkeypatch):
    """A page on which every string that a record may hold is markup."""
    monkeypatch.setitem(METHODS, HOSTILE, METHODS["cull"])
    monkeypatch.setitem(METHODS, f"{HOSTILE}'\"&", METHODS["zs-clip"])
    ending = f"</script></style></title>{HOSTILE}"
    kept = [
        kept_run(
            method, HOSTILE + "1", ratio, seed, id_set=HOSTILE, encoder=HOSTILE + "2",
            prompt=f"{ending} {{}}", digests={ending: ending},
            record={
                "device": ending, "command": ending, "created": ending,
                "versions": {ending: ending},
            },
        )
        for method in (HOSTILE, f"{HOSTILE}'\"&") for ratio in (0, 0.5, 0.75) for seed in (0, 1)
    ]  # fmt: skip
    return page(kept, ending).html


def test_names_that_would_turn_a_line_over_are_written_out():
    html = made(kept_run("zs-clip", "evil\u202egpj", record={"device": "a\x1b[31m\ud800"}))
    assert "evil\\u202egpj" in html
    assert "a\\x1b[31m\\ud800" in html
    html.encode()


@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_the_page_loads_nothing_and_its_tables_have_captions_and_scopes(kind, monkeypatch):
    html = made(*GRID) if kind == "plain" else hostile(monkeypatch)
    parsed = Page(html)
    images = [attributes["src"] for attributes, _ in parsed.named("img")]
    assert images
    assert all(image.startswith("data:image/svg+xml;base64,") for image in images)
    assert assert_inert(html, images) == "data:"
    assert len(parsed.named("table")) == len(parsed.named("caption")) >= 8
    for attributes, text in parsed.named("th"):
        assert attributes["scope"] in ("col", "row", "colgroup", "rowgroup")
        assert text
    regions = [a for a, _ in parsed.named("div") if "scroll" in a.get("class", "")]
    assert len(regions) == len(parsed.named("table"))
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in regions)
    if kind == "hostile":
        assert "<img src=x" not in html
        assert parsed.named("h1")[0][1] == f"</script></style></title>{HOSTILE}"


def test_all_pairs_of_the_paper_with_ten_methods_are_no_large_file():
    pairs = [(name, ood) for name in CATALOGUE for ood in partners(name) if name != "shapes"][:44]
    methods = [name for name, method in METHODS.items() if method.decides][:10]
    kept = [
        kept_run(method, ood, 0.5, seed, id_set=id_set, encoder="ViT-B-16-openai", samples=1000,
                 known=500 + 20 * i + seed, caught=400 + 20 * i)
        for id_set, ood in pairs for i, method in enumerate(methods) for seed in (0, 1, 2)
    ]  # fmt: skip
    made_of = page(kept)
    assert (len(pairs), len(methods), made_of.rows) == (44, 10, 440)
    assert len(made_of.html.encode()) <= 600_000


def test_two_kinds_of_injected_noise_are_named_in_the_tables_that_have_both():
    both = [
        kept_run("adand", "glyphs", ratio, noise=noise)
        for ratio, noise in ((0.0, "gaussian"), (0.5, "gaussian"), (0.5, "none"))
    ]
    others = [kept_run("zs-clip", "glyphs", ratio) for ratio in (0.0, 0.5)]
    shown = made(*both, *others)
    [noisy, clean] = re.findall(
        r"(?:accuracies|clean streams, Acc_S) in %</div>.*?</tbody>", shown, re.DOTALL
    )
    assert noisy.count("adand (injected noise ") == 2
    assert "injected noise" not in clean
    assert ">adand<" in clean
    assert "zs-clip (" not in shown
