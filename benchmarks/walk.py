"""Measure how a person works through a review page in a browser.

    zsntta detect photos --classes cat,dog --review review.html
    python benchmarks/walk.py review.html [OTHER.html …]

Each page is opened five times in the system's Chromium, in a window of 1280 x 900 pixels. The
columns are medians: the size of the page; the time until it is loaded and shows a picture; the
distance of that picture from the top; the time per answer, when `--answers` images are answered one
after the other with the key `n`; and the number of lines that are then exported.
"""

import argparse
import shutil
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.table import Table

TIMES = 5
SHOWN = "[...document.images].find(image => image.offsetParent && image.naturalWidth)"


class Walk(NamedTuple):
    """The measurements of one walk through a page."""

    opened: float  # s
    answered: float  # s per image
    top: float  # pixels, of the first picture
    exported: int  # lines


def walk(browser: Browser, path: Path, answers: int) -> Walk:
    """Open a page, answer images by keys, and export the answers."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    page = context.new_page()
    start = time.perf_counter()
    page.goto(path.resolve().as_uri())
    page.wait_for_function(f"() => {SHOWN}")
    opened = time.perf_counter() - start
    top = page.evaluate(f"() => {SHOWN}.getBoundingClientRect().top")
    page.keyboard.press("j")
    start = time.perf_counter()
    for _ in range(answers):  # each goes on to the next image
        page.keyboard.press("n")
    answered = (time.perf_counter() - start) / answers
    with page.expect_download() as download:
        page.get_by_role("button", name="Export corrections").first.click()
    exported = len(Path(download.value.path()).read_text().splitlines())
    context.close()
    return Walk(opened, answered, top, exported)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path, help="pages of `zsntta detect --review`")
    parser.add_argument("--answers", type=int, default=20)
    options = parser.parse_args()
    table = Table("page", "kB", "opened, ms", "first picture at, px", "an answer, ms", "exported")
    with sync_playwright() as driver:
        chromium = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path in options.pages:
            walks = [walk(browser, path, options.answers) for _ in range(TIMES)]
            opened, answered, top, exported = map(median, zip(*walks, strict=True))
            table.add_row(
                path.name, f"{path.stat().st_size / 1000:,.0f}", f"{1000 * opened:.0f}",
                f"{top:.0f}", f"{1000 * answered:.1f}", f"{exported:.0f}",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
