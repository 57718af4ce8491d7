"""The page in a browser: what its script does, what it must never do, who can read it."""

import pytest
from kept import kept_run
from watched import Watched

from zsntta_cli.report.page.page import page

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with 3 methods on 2 pairs at 2 ratios, one row of other features."""
    known = {"zs-clip": 5, "tda": 6, "cull": 8}
    kept = [
        kept_run(method, ood, ratio, seed, known=right + seed, caught=6)
        for method, right in known.items() for ood in ("glyphs", HOSTILE)
        for ratio in (0.5, 0.75) for seed in (0, 1)
    ]  # fmt: skip
    kept.append(kept_run("tda", known=10, digests={"shapes": "9" * 64}))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(kept, HOSTILE).html)
    return path.as_uri()


@pytest.fixture
def watch(browser, file):
    """Open the page in windows of any kind."""
    pages = []

    def open_one(**context):
        pages.append(Watched(browser, **context))
        pages[-1].page.goto(file)
        return pages[-1]

    yield open_one
    for one in pages:
        one.context.close()


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
    sources = opened.page.locator("img").evaluate_all("(all) => all.map((one) => one.src)")
    assert [source.partition(",")[0] for source in sources] == ["data:image/svg+xml;base64"]
    assert opened.page.locator("h1").text_content() == HOSTILE
    assert opened.page.locator(f"th:text-is('{HOSTILE}')").count() >= 1
    assert opened.page.evaluate("document.querySelectorAll('script').length") == 1


def test_the_policy_stops_what_would_run_all_the_same(watch):
    watch().assert_guarded()


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


def test_the_keyboard_does_all_of_it(opened):
    opened.page.locator("thead button").first.focus()
    opened.page.keyboard.press("Tab")
    head = opened.page.locator("thead button").nth(1)
    assert head.evaluate("(e) => getComputedStyle(e).outlineStyle") == "solid"
    opened.page.locator("summary").first.press("Enter")
    assert opened.page.locator("details").first.evaluate("(one) => one.open")


def test_without_scripts_all_is_there(watch, file):
    watched = watch(java_script_enabled=False)
    assert watched.page.locator("table").first.is_visible()
    assert watched.page.locator("th button").count() == 0
    assert watched.page.locator("figure img").first.is_visible()
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
    watched.assert_accessible("color-contrast", "scope-attr-valid", "image-alt")


def test_what_is_folded_is_printed(opened):
    closed = "document.querySelectorAll('details:not([open])').length"
    before = opened.page.evaluate(closed)
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert (before > 0, opened.page.evaluate(closed)) == (True, 0)
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.page.evaluate(closed) == before
