"""The page in a browser: what its script does, what it must never do, who can read it."""

import pytest
from kept import kept_run
from watched import Watched

from zsntta_cli.report.page.page import page

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def watched(browser, tmp_path, request):
    """A page with 3 methods on 2 pairs at 2 ratios, and settings beside the usual ones."""
    known = {"zs-clip": 5, "tda": 6, "cull": 8}
    kept = [
        kept_run(method, ood, ratio, seed, known=right + seed, caught=6)
        for method, right in known.items() for ood in ("glyphs", HOSTILE)
        for ratio in (0.5, 0.75) for seed in (0, 1)
    ]  # fmt: skip
    path = tmp_path / "report.html"
    path.write_text(page([*kept, kept_run("zs-clip", queue=9)], HOSTILE).html)
    watched = Watched(browser, **getattr(request, "param", {}))
    watched.page.goto(path.as_uri())
    yield watched
    watched.context.close()


def test_a_table_is_sorted_by_its_heads_and_nothing_is_asked_for(watched):
    table = watched.page.locator("table:has(caption:has-text('ID: shapes'))").first
    texts = "(table) => [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[2].innerText))"
    first = table.evaluate(texts)
    head = table.get_by_role("columnheader", name="Acc_S").first
    head.get_by_role("button").focus()
    for order in ("descending", "ascending", None):
        watched.page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == order
        assert table.evaluate(texts) == (
            sorted(first, reverse=order == "descending") if order else first
        )
    closed = "document.querySelectorAll('details:not([open])').length"
    watched.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert watched.page.evaluate(closed) == 0, "what is folded is printed"
    assert [url for url in watched.asked if not url.startswith(("data:", "file:"))] == []
    assert watched.said == []
    watched.assert_guarded()


SCREENS = [
    {"color_scheme": theme, "viewport": {"width": width, "height": 1000}}
    for theme, width in (("light", 320), ("dark", 2600))
]


@pytest.mark.parametrize("watched", SCREENS, indirect=True)
def test_the_page_is_accessible_and_does_not_scroll_sideways(watched):
    watched.unfold()
    assert watched.width() == watched.page.viewport_size["width"]
    watched.assert_accessible("color-contrast", "scope-attr-valid", "image-alt")
