"""The page in a browser: what its script does, what it must never do, who can read it."""

import csv
import io
import json
from pathlib import Path

import pytest
from kept import curves, kept_run
from watched import Watched

from zsntta_cli.report.page.leaderboard import Reported
from zsntta_cli.report.page.page import page

HOSTILE = "<img src=x onerror=alert(1)>"
ROWS = 14


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with 3 methods on 2 pairs at 2 ratios, one row of other features, a published one."""
    known = {"zs-clip": 5, "tda": 6, "ridge": 8}
    kept = [
        kept_run(method, ood, ratio, seed, known=right + seed, caught=6, curves=curves(20, 10))
        for method, right in known.items() for ood in ("glyphs", HOSTILE)
        for ratio in (0.5, 0.75) for seed in (0, 1)
    ]  # fmt: skip
    kept.append(kept_run("tda", known=10, digests={"shapes": "9" * 64}))
    said = [Reported("=1+1", "shapes", "glyphs", "tiny", 0.5, 0.8, 0.9, 0.85, 'a "paper", table 2')]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(kept, lambda *_: "zsntta simulate", HOSTILE, reported=said).html)
    return path.as_uri()


class Board(Watched):
    """The report, with a leaderboard."""

    def column(self, number):
        """The texts of a column of the leaderboard's rows that are shown."""
        return self.page.evaluate(
            """(i) => [...document.querySelectorAll('.board tbody tr:not(.head)')]
            .filter((row) => row.offsetParent).map((row) => row.cells[i].textContent.trim())""",
            number,
        )


@pytest.fixture
def watch(browser, file):
    """Open the page, or a view of it, in windows of any kind."""
    boards = []

    def open_one(view="", **context):
        boards.append(Board(browser, **context))
        boards[-1].page.goto(file + view)
        return boards[-1]

    yield open_one
    for board in boards:
        board.context.close()


@pytest.fixture
def opened(watch, file):
    """The page, watched; it must have asked for nothing and complained of nothing."""
    watched = watch(viewport={"width": 1280, "height": 900})
    yield watched
    requests = {
        url.split("#")[0] for url in watched.asked if not url.startswith(("data:", "blob:"))
    }
    assert requests == {file}
    assert watched.said == []


def test_nothing_is_asked_for_and_no_name_is_markup(opened):
    opened.page.wait_for_timeout(200)
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("h1").text_content() == HOSTILE
    assert opened.page.locator(f"th:text-is('{HOSTILE}')").count() >= 1
    assert opened.page.evaluate("document.querySelectorAll('script').length") == 2


def test_the_policy_stops_what_would_run_all_the_same(watch):
    watch().assert_guarded()


def test_a_click_sorts_and_the_hash_keeps_it(opened, file):
    head = opened.page.locator("th[data-key=acc_h]")
    button = head.get_by_role("button")
    assert head.get_attribute("aria-sort") is None
    before = opened.column(1)
    button.click()
    first = [float(text.rstrip("*").split("±")[0]) for text in opened.column(8)]
    assert first[:12] == sorted(first[:12], reverse=True)
    assert first[0] > first[11]
    assert head.get_attribute("aria-sort") == "descending"
    assert opened.page.url == f"{file}#board?sort=-acc_h"
    button.click()
    again = [float(text.rstrip("*").split("±")[0]) for text in opened.column(8)]
    assert again[:12] == sorted(first[:12])
    assert head.get_attribute("aria-sort") == "ascending"
    button.click()
    assert opened.column(1) == before
    assert head.get_attribute("aria-sort") is None
    assert opened.page.url == f"{file}#board"


def test_a_table_is_sorted_by_its_heads_each_body_by_itself(opened):
    table = opened.page.locator("table:has(caption:has-text('accuracies in %'))").first
    head = table.get_by_role("columnheader", name="Acc_H").first
    place = table.locator("thead tr").nth(1).locator("th").all_inner_texts()
    column = 1 + [text.strip("↕ ") for text in place].index("Acc_H")

    def bodies():
        texts = """(table, i) => [...table.tBodies].map((body) =>
            [...body.rows].filter((row) => row.cells.length > 1)
            .map((row) => parseFloat(row.cells[i].textContent)))"""
        return table.evaluate(texts, column)

    first = bodies()
    head.get_by_role("button").focus()
    for order in ("descending", "ascending", None):
        opened.page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == order
        expected = [sorted(body, reverse=order == "descending") for body in first]
        assert bodies() == (expected if order else first)
    assert [sorted(body) for body in first] != [sorted(body)[::-1] for body in first]
    table.get_by_role("button", name="Method").click()
    assert head.get_attribute("aria-sort") is None
    names = table.locator("tbody").first.locator("th[scope=row]").all_inner_texts()
    assert names == sorted(names)


def test_rows_of_other_features_and_published_ones_stay_apart(opened):
    last = [opened.column(1)[-2:], opened.column(18)[-2:]]
    assert last == [["tda", "=1+1"], ["measured", 'published: a "paper", table 2']]
    for key in ("rank", "method", "acc_s", "acc_h", "p", "source"):
        for _ in range(2):
            opened.page.locator(f"th[data-key={key}] button").click()
            assert [opened.column(1)[-2:], opened.column(18)[-2:]] == last, key


def test_filters_and_search_show_fewer_rows_and_say_how_many(opened, file):
    count = opened.page.locator("#controls output")
    assert count.text_content() == f"{ROWS} of {ROWS} rows"
    opened.page.locator("select[name=method]").select_option("ridge")
    assert opened.column(1) == ["ridge"] * 4
    opened.page.locator("select[name=ood_set]").select_option(HOSTILE)
    assert opened.column(3) == [HOSTILE] * 2
    opened.page.locator("input[name=find]").fill("75%  RIDGE")
    assert opened.column(5) == ["75%"]
    assert count.text_content() == f"1 of {ROWS} rows"
    assert opened.page.url.startswith(f"{file}#board?method=ridge&ood_set=%3Cimg")
    opened.page.locator("input[name=find]").fill("nothing like it")
    assert opened.column(1) == []
    assert not opened.page.get_by_text("Other features of the same names").is_visible()
    opened.page.get_by_role("button", name="Reset").click()
    assert len(opened.column(1)) == ROWS


def test_a_hash_is_a_view_that_one_can_send(watch, file):
    watched = watch("#board?sort=acc_s&method=tda&noise=50%25&find=glyphs")
    assert watched.column(1) == ["tda"] * 2
    assert watched.page.locator("select[name=method]").input_value() == "tda"
    assert watched.page.locator("input[name=find]").input_value() == "glyphs"
    assert watched.page.locator("th[data-key=acc_s]").get_attribute("aria-sort") == "ascending"
    watched.page.evaluate("location.hash = '#board?method=zs-clip'")
    watched.page.wait_for_function(
        "document.querySelector('select[name=method]').value == 'zs-clip'"
    )
    assert watched.column(1) == ["zs-clip"] * 4
    watched.page.evaluate("location.hash = '#s0'")  # a section's
    assert watched.column(1) == ["zs-clip"] * 4
    for wrong in ("#board?sort=none&method=best&find=", "#board?%", "#board?sort=-"):
        watched.page.goto("about:blank")
        watched.page.goto(file + wrong)
        assert len(watched.column(1)) == ROWS, wrong
    watched.page.locator("select[name=source]").select_option("measured")
    assert watched.page.url == f"{file}#board?source=measured"
    assert len(watched.column(1)) == ROWS - 1
    assert watched.said == []


def downloaded(opened, name):
    with opened.page.expect_download() as waiting:
        opened.page.get_by_role("button", name=f"Download {name}").click()
    assert waiting.value.suggested_filename == f"leaderboard.{name.lower()}"
    return Path(waiting.value.path()).read_text()


def test_downloads_are_of_what_is_shown(opened):
    whole = json.loads(downloaded(opened, "JSON"))
    assert len(whole) == ROWS
    assert whole[0]["ood_set"] == "glyphs"
    opened.page.locator("th[data-key=acc_s] button").click()
    opened.page.locator("select[name=noise]").select_option("50%")
    opened.page.locator("select[name=ood_set]").select_option("glyphs")
    some = json.loads(downloaded(opened, "JSON"))
    assert [(row["method"], row["acc_s"]) for row in some] == [
        ("ridge", 0.85), ("tda", 0.65), ("zs-clip", 0.55), ("tda", 1.0), ("=1+1", 0.8),
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(downloaded(opened, "CSV"))))
    assert [row["method"] for row in rows] == ["ridge", "tda", "zs-clip", "tda", "'=1+1"]
    assert float(rows[0]["acc_s"]) == 0.85
    assert rows[3]["acc_s_std"] == ""
    assert (rows[-1]["source"], rows[-1]["citation"]) == ("published", 'a "paper", table 2')


def test_the_keyboard_does_all_of_it(opened):
    opened.page.locator("select[name=method]").focus()
    opened.page.keyboard.press("ArrowDown")
    assert len(set(opened.column(1))) == 1
    opened.page.get_by_role("button", name="Reset").press("Enter")
    opened.page.locator("th[data-key=rank] button").focus()
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("Space")
    assert opened.page.locator("th[data-key=method]").get_attribute("aria-sort") == "ascending"
    style = "(e) => getComputedStyle(e).outlineStyle"
    assert opened.page.locator("th[data-key=method] button").evaluate(style) == "solid"
    opened.page.locator("summary").first.press("Enter")
    assert opened.page.locator("details").first.evaluate("(one) => one.open")


def test_without_scripts_all_is_there(watch, file):
    watched = watch(java_script_enabled=False)
    assert watched.page.locator(".board tbody tr:not(.head)").count() == ROWS
    assert watched.page.locator(".board th button").count() == 0
    assert watched.page.locator(".noscript").is_visible()
    assert not watched.page.locator("#controls").is_visible()
    assert watched.page.locator("svg[role=img]").first.is_visible()
    assert watched.asked == [file]


@pytest.mark.parametrize("width", [320, 800, 1400])
def test_the_page_does_not_scroll_sideways(watch, width):
    watched = watch(viewport={"width": width, "height": 800})
    watched.unfold()
    assert watched.width() == width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(watch, theme):
    watched = watch(color_scheme=theme, viewport={"width": 2600, "height": 1000})
    watched.unfold()
    watched.assert_accessible("color-contrast", "scope-attr-valid", "svg-img-alt")


def test_what_is_folded_is_printed(opened):
    closed = "document.querySelectorAll('details:not([open])').length"
    before = opened.page.evaluate(closed)
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert (before > 0, opened.page.evaluate(closed)) == (True, 0)
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.page.evaluate(closed) == before
