"""The page as a file: what it says, by hand; that it loads nothing, and lets nothing in."""

import base64
import dataclasses

import pytest
from kept import kept_run
from parsed import Page, assert_inert, cells

from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.report.page.page import page
from zsntta_cli.simulation.notes import RunNote

HOSTILE = "<img src=x onerror=alert(1)>"


def made(*kept):
    return page(kept).html


GRID = [
    kept_run(method, ood, ratio, seed, known=6 + i + seed, caught=5 + i,
             record={"command": f"run {method}"})
    for i, method in enumerate(("zs-clip", "tda", "cull"))
    for ood in ("glyphs", "textures") for ratio in (0.5, 0.75) for seed in (0, 1)
]  # fmt: skip
RIGHT = {
    "tda": (61, 62, 62, 60, 63), "zs-clip": (40, 42, 41, 41, 40), "cull": (60, 63, 61, 60, 62),
}  # fmt: skip


@pytest.mark.parametrize(
    ("methods", "seeds", "verdict"),
    [("tda cull zs-clip", 5, "no: not distinguishable from cull"), ("tda zs-clip", 5, "yes"),
     ("tda cull zs-clip", 4, "not tested: fewer than 5 seeds in common")],
)  # fmt: skip
def test_in_short_the_best_method_stands_beside_the_next_and_what_seeds_say(
    methods, seeds, verdict
):
    first, second, *_ = methods.split()
    html = made(*[
        kept_run(method, seed=seed, known=known, caught=known, samples=100)
        for method in methods.split() for seed, known in enumerate(RIGHT[method][:seeds])
    ])  # fmt: skip
    [row] = cells(html, "The highest mean Acc_H")[1:]
    assert (row[2], row[4], row[6]) == (first, second, verdict)
    assert seeds < 5 or row[3] == "61.60±1.14"
    assert f"{first} has the highest mean Acc_H in 1 of 1 comparisons of methods" in html


def test_a_method_alone_is_the_best_of_nothing():
    alone = page([kept_run("cull"), kept_run("tda")], filters={"method": ["cull"]})
    assert alone.runs == 1
    assert "In short" not in alone.html


def test_other_settings_of_a_method_stand_folded_in_a_table_of_their_own():
    swept = [kept_run("adand", warmup=n, seed=s) for n in (3, 10, 20) for s in (0, 1)]
    html = made(kept_run("zs-clip"), *swept, kept_run("adand", warmup=3, seed=2))
    shown = cells(html, "ID: shapes, noise 50%, tiny")[2:]
    assert [row[0] for row in shown] == ["zs-clip", "adand"]
    folded = html.split("<summary>Other settings of the same methods: 2 rows</summary>")[1]
    hidden = cells(folded, "ID: shapes, noise 50%, tiny")[2:]
    assert [row[:2] for row in hidden] == [["adand", "3"], ["adand", "20"]]


def by_class(right, noise, confused_with, names=("cat", HOSTILE, "ox")):
    """The counts of three classes; of the last there are no images."""
    lists = {"images": [4, 2, 0], "right": right, "noise": noise, "confused_with": confused_with}
    return {"classes": {"names": [*names]} | {k: v for k, v in lists.items() if v}}


def test_each_class_stands_folded_below_with_the_counts_of_its_runs_summed():
    html = made(
        kept_run("cull", "glyphs", curves=by_class([3, 2, 0], [1, 0, 0], [2, -1, -1])),
        kept_run("cull", "textures", curves=by_class([1, 1, 0], [0, 1, 0], [1, 0, -1])),
        kept_run("cull", seed=1, curves=by_class([2, 1, 0], [1, 0, 0], [2, -1, -1])),
        kept_run("cull", seed=2, curves=by_class([4, 2, 0], [4, 2, 0], [-1, -1, -1]),
                 record={"unfinished": 3}),
        kept_run("zs-clip", curves=by_class([4, 1, 0], None, [-1, 2, -1])),
        kept_run("cull", ratio=0.75, curves=by_class([4, 0, 0], [0, 0, 0], [-1, 2, -1])),
    )  # fmt: skip
    folded = html.split("<summary>By class: ID: shapes, tiny</summary>")[1]
    escaped = HOSTILE.replace("<", "&lt;").replace(">", "&gt;")
    assert {tuple(row) for row in cells(folded, "By class: ID: shapes, tiny")[2:]} == {
        ("cat", "50%", "100.00", "-", "-", "50.00", "16.67", "ox"),
        (escaped, "50%", "50.00", "-", "ox", "66.67", "16.67", "cat"),
        ("cat", "75%", "", "", "", "100.00", "0.00", "-"),
        (escaped, "75%", "", "", "", "0.00", "0.00", "ox"),
    }
    assert HOSTILE not in html
    assert "By class" not in made(*GRID)


def test_what_has_to_be_known_of_a_run_and_how_it_was_made_stands_there():
    note = RunNote("warm-up", "cull", "cull decides as zs-clip does throughout.", -40)
    noted = [dataclasses.replace(run, notes=(note,)) for run in GRID]
    html = made(*noted)
    assert note.text in html
    rows = cells(html, "The commands: ID: shapes, tiny")
    assert rows[1] == ["zs-clip", "50%", "run zs-clip", "cpu", "4", "0.25", "100"]
    assert ["glyphs", "tiny", "3" * 64, "12"] in cells(html, "Features that the runs used")
    versions = cells(html, "Versions and devices")[1:]  # a row a revision
    assert sum(int(row[-1]) for row in versions) == 24


def test_each_id_set_has_its_figure():
    other = [kept_run(m, id_set="digits", ood="glyphs") for m in ("zs-clip", "cull")]
    html = made(*GRID, *other)
    images = [attributes for attributes, _ in Page(html).named("img")]
    assert [one["alt"] for one in images] == [
        "Acc_H against the noise ratio, ID: shapes, tiny: glyphs; textures",
        "Mean accuracies, ID: digits, tiny: 1 ID-OOD pair",
    ]
    assert len(html) < 100_000
    svg = base64.b64decode(images[0]["src"].partition(",")[2]).decode()
    assert ">zs-clip</text>" in svg


def test_runs_of_other_code_are_left_out_and_counted():
    other = kept_run(seed=1, record={"revision": "0.1"})
    with pytest.raises(StoreError, match="1 run by another version"):
        made(other)
    some = page([kept_run(), other])
    assert f"Left out: {some.left_out[0]}." in some.html


def test_a_stopped_run_is_shown_and_enters_no_mean():
    stopped = {"unfinished": 30}
    html = made(
        kept_run("zs-clip", known=5), kept_run("zs-clip", seed=1, known=9, record=stopped),
        kept_run("cull", known=10, record=stopped), kept_run("tda", known=6),
    )  # fmt: skip
    rows = {row[0]: row[1:] for row in cells(html, "ID: shapes, noise 50%")[2:]}
    assert (rows["zs-clip"][0], rows["cull"][0], rows["tda"][0]) == ("50.00", "100.00", "60.00*")
    assert "PARTIAL: cull against glyphs was stopped after 20 of 50 items" in html
    assert "Stopped early: 2 runs" in html


def hostile(monkeypatch):
    """A page on which every string that a record may hold is markup."""
    monkeypatch.setitem(METHODS, HOSTILE, METHODS["cull"])
    monkeypatch.setitem(METHODS, f"{HOSTILE}'\"&", METHODS["zs-clip"])
    ending = f"</script></style></title>{HOSTILE}\u202e\x1b[31m\ud800"
    record = dict.fromkeys(("device", "command", "created"), ending) | {
        "versions": {ending: ending}
    }
    kept = [
        kept_run(
            method, HOSTILE + "1", ratio, id_set=HOSTILE, encoder=HOSTILE + "2",
            prompt=f"{ending} {{}}", digests={ending: ending}, record=record,
        )
        for method in (HOSTILE, f"{HOSTILE}'\"&") for ratio in (0, 0.5, 0.75)
    ]  # fmt: skip
    return page(kept, ending).html


@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_the_page_loads_nothing_and_its_tables_have_captions_and_scopes(kind, monkeypatch):
    html = made(*GRID) if kind == "plain" else hostile(monkeypatch)
    html.encode()
    parsed = Page(html)
    images = [attributes["src"] for attributes, _ in parsed.named("img")]
    assert images
    assert all(image.startswith("data:image/svg+xml;base64,") for image in images)
    assert assert_inert(html, images) == "data:"
    assert len(parsed.named("table")) == len(parsed.named("caption")) >= 5
    for attributes, text in parsed.named("th"):
        assert attributes["scope"] in ("col", "row", "colgroup")
        assert text
    if kind == "hostile":
        assert "<img src=x" not in html
        assert not {"\u202e", "\x1b"} & {*html}
