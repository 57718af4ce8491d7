"""Methods over pairs in a browser: what fits on a small screen, and who can read it."""

from pathlib import Path

import pytest
from kept import kept_run
from watched import Watched

from zsntta_cli.report.page.page import page

KNOWN = {"zs-clip": 40, "tda": 50, "ridge": 55, "adand": 60}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with a critical-difference diagram, one of its names long."""
    kept = [
        kept_run(method, known=right, id_set=f"id{i}", samples=100, items=False)
        for method, right in KNOWN.items() for i in range(6)
    ]  # fmt: skip
    values = {"warmup": 3, "queue": 1024}
    kept += [kept_run("adand", id_set=f"id{i}", items=False, **values) for i in range(6)]
    path = tmp_path_factory.mktemp("pairs") / "report.html"
    path.write_text(page(kept, lambda *_: "").html)
    return path.as_uri()


def test_names_stay_within_the_drawing_and_the_drawing_on_the_screen(browser, file):
    watched = Watched(browser, viewport={"width": 320, "height": 800})
    watched.page.goto(file)
    assert watched.page.evaluate("document.documentElement.scrollWidth") == 320
    [outside] = watched.page.evaluate(
        """() => [...document.querySelectorAll('.wide svg')].map((svg) => {
        const all = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text')].filter((text) => {
          const box = text.getBoundingClientRect();
          return box.left < all.left || box.right > all.right || box.top < all.top;
        }).map((text) => text.textContent)})"""
    )
    assert outside == []
    watched.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_a_diagram(browser, file, theme):
    axe = pytest.importorskip("axe_playwright_python")
    source = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    watched = Watched(browser, color_scheme=theme, viewport={"width": 2600, "height": 1000})
    watched.page.goto(file)
    watched.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    watched.page.evaluate(source)
    found = watched.page.evaluate("axe.run()")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    watched.context.close()
