"""The review in a browser: pictures that lie beside it, the large view, what leaves as a file."""

import csv
import io
import json
from pathlib import Path

import pytest
from PIL import Image
from review_page import DOT, Review
from reviewed import HOSTILE, page, verdict

from zsntta_cli.detection.sources import of_file
from zsntta_cli.report.review.review import address

STRANGE = ["a:b.png", "#50%?.png", "'\"<b>&.png", "javascript:x.png", "\udcff\n.png"]
TOP = [{"class": name, "score": score} for name, score in (("cat", 0.75), (HOSTILE, 0.2514))]


def written(folder, rows, names, **values):
    """The page of rows, with the addresses of files by their places."""
    files = {i: address(of_file(folder / "photos" / name), folder) for i, name in names.items()}
    path = folder / "review.html"
    path.write_text(page(rows, {0: DOT}, files, **values))
    return path.as_uri()


@pytest.fixture
def review(browser, tmp_path):
    """Six images: the first in the page itself, others beside it, the last one not there."""
    names = ["embedded.png", *STRANGE, "gone.png"]
    (tmp_path / "photos").mkdir()
    for i, name in enumerate(names[1:-1], 1):
        Image.new("RGBA", (400, 20 * i), (0, 90, 200, 128)).save(tmp_path / "photos" / name)
    rows = [verdict(f"photos/{name}", 3.5 - i, top=TOP) for i, name in enumerate(names)]
    opened = Review(browser, written(tmp_path, rows, dict(list(enumerate(names))[1:])))
    yield opened
    opened.context.close()


def sizes(review):
    """The heights of pictures by the number of their image; None where words stand instead."""
    return review.page.evaluate("""async () => {
        const found = {};
        for (const card of document.querySelectorAll('ol > li')) {
            const image = card.querySelector('.of img');
            if (image) { image.loading = 'eager'; await image.decode().catch(() => 0); }
            const left = card.querySelector('.of img');
            found[card.id] = left ? left.naturalHeight : card.querySelector('.none').textContent;
        }
        return found;
    }""")


def test_pictures_beside_the_page_are_shown_whatever_they_are_called(review):
    review.page.wait_for_function("document.querySelector('#i6 .none')")
    assert sizes(review) == {
        "i0": 171, "i1": 20, "i2": 40, "i3": 60, "i4": 80, "i5": 100, "i6": "no picture",
    }  # fmt: skip
    assert [line for line in review.said if "ERR_FILE_NOT_FOUND" not in line] == []
    folder = str(review.page.url).rpartition("/")[0]
    assert all(url.startswith(("data:", folder)) for url in review.asked), "and nowhere else"


def test_the_large_view_says_what_is_likeliest_and_gives_the_focus_back(review):
    press, zoom = review.page.keyboard.press, review.page.locator("#zoom")
    press("z")
    assert not zoom.is_visible(), "at no image"
    for _ in range(2):
        press("j")
    at = review.page.evaluate("document.activeElement.id")
    press("Enter")
    assert zoom.is_visible()
    assert zoom.locator("tbody tr").all_text_contents() == ["cat75.0 %", f"{HOSTILE}25.1 %"]
    assert zoom.locator("img[src=x]").count() == 0
    place = zoom.locator("h2").text_content()
    assert review.at() == [place]
    press("n")
    assert review.page.get_by_role("status").text_content() == "1 image labelled."
    assert zoom.locator("h2").text_content() != place, "it goes on"
    press("u")
    assert zoom.locator("h2").text_content() == place
    assert review.page.get_by_role("status").text_content() == ""
    press("Escape")
    assert not zoom.is_visible()
    assert review.page.evaluate("document.activeElement.id") == at
    review.card(1).get_by_role("button", name="Enlarge: photos/a:b.png").click()
    review.page.wait_for_function("document.querySelector('#zoom img').naturalHeight == 20")
    zoom.get_by_role("button", name="Does not belong").click()
    zoom.get_by_role("button", name="Close").click()
    assert [one["source"] for one in review.corrections()] == ["photos/a:b.png"]


def saved(review, name):
    review.page.locator("details:has-text('Save the list')").evaluate("(one) => one.open = true")
    with review.page.expect_download() as waiting:
        review.page.get_by_role("button", name=name, exact=True).click()
    return Path(waiting.value.path()).read_bytes().decode()


def test_the_list_as_it_stands_is_a_file(review):
    review.slide(2)
    review.card(6).get_by_role("button", name="Does not belong").click()
    lines = [json.loads(line) for line in saved(review, "JSON Lines").splitlines()]
    names = ["embedded.png", *STRANGE, "gone.png"]
    assert [one["source"] for one in lines] == [f"photos/{name}" for name in names]
    assert [one["answer"] for one in lines] == ["noise"] * 2 + ["clean"] * 4 + ["noise"]
    assert [one["judged"] for one in lines] == [False] * 6 + [True]
    assert [one["margin"] for one in lines] == [1.5 - i for i in range(7)]
    head, *cells = csv.reader(io.StringIO(saved(review, "CSV")))
    assert head == ["source", "answer", "class", "margin", "judged"]
    assert cells[2] == ["photos/#50%?.png", "clean", "cat", "-0.5", "false"]
    assert len(cells) == 7
