"""The review as a file: what it lists, that it loads nothing, and lets nothing in."""

import io
import json
import re

import pytest
from parsed import Page, assert_inert
from PIL import Image
from reviewed import HOSTILE, page, unread, verdict

from zsntta_cli.detection.sources import Photo
from zsntta_cli.report.review import review
from zsntta_cli.report.review.review import small, to_ask, write_review
from zsntta_cli.report.verdicts import Facts

PLAIN = [verdict(f"{i}.png", (i - 10) / 8, "cat" if i % 3 else "dog") for i in range(40)]
NAMES = [
    HOSTILE, "'\"><script>alert(1)</script>", "</script><!--", "a\nb\r\u2028c", "inv\udcffalid",
    "evil\u202egnp.exe", "&amp;", "`${alert(1)}`", "\\", "",
]  # fmt: skip
ROWS = [verdict(name, i - 4.5, NAMES[-1 - i]) for i, name in enumerate(NAMES)]
ROWS += [verdict(HOSTILE, 0.5, HOSTILE), unread(HOSTILE, HOSTILE)]
DOT = small(Image.new("RGB", (300, 200), (200, 30, 40)))


def listed(html, key):
    """Numbers of the images of a section, in its order."""
    [part] = re.findall(rf'<h2 id="{key}">.*?</section>', html, re.DOTALL)
    return [int(i) for i in re.findall(r'<li id="i(\d+)">', part)]


def test_each_image_is_in_one_list_in_its_order():
    html = page(PLAIN)
    assert listed(html, "borderline") == [10, 9, 11, 8, 12, 7, 13, 6, 14, 5, 15, 4]
    assert listed(html, "noise") == list(range(39, 15, -1))
    assert listed(html, "clean") == [3, 2, 1, 0]
    assert "40 images, 29 do not belong (noise)" in html
    heads = re.findall(r'<h2 id="\w+">(\w+).*?(\d*)(?:</small>)?</h2>', html)
    assert heads == [("Questions", ""), ("Borderline", "12"), ("Does", "24"), ("Unsure", "0"),
                     ("Belongs", "4"), ("About", "")]  # fmt: skip


def test_a_card_says_verdict_class_margin_and_place():
    html = page([verdict("a.png", -1.25, "dog")], shown={0: DOT})
    [card] = re.findall(r"<li id=.*?\n", html)
    assert re.sub(r"<[^>]+>", " ", card).split() == ["belongs", "−1.25", "dog", "a.png"]
    [(image, _)] = Page(card).named("img")
    assert image == {"src": DOT.uri, "alt": "", "width": "256", "height": "171"}


def test_the_first_of_a_list_have_cards_and_all_others_a_line():
    rows = [verdict(f"{i}.png", i - 700.5, "<b>") for i in range(1000)]
    html = page(rows, {5: DOT}, {6: "./6.png"})
    assert [len(listed(html, key)) for key in ("borderline", "noise", "unsure", "clean")] == [
        60, 120, 0, 121,
    ]  # fmt: skip
    in_cards = [int(i) for i in re.findall(r'<li id="i(\d+)">', html)]
    assert {5, *to_ask(rows)} <= set(in_cards)
    lines = re.findall(r"<li>([+−][\d.]+) &lt;b&gt;: (\d+).png\n", html)
    assert sorted([*in_cards, *(int(i) for _, i in lines)]) == list(range(1000))
    assert ("−694.50", "6") in lines


def script_data(html):
    [plain] = re.findall(r'id="review-data">(.*?)</script>', html)
    assert not set("<>&") & set(plain)
    return json.loads(plain)


def test_the_script_gets_names_whole_the_likeliest_classes_and_what_was_done_to_read():
    data = script_data(page(ROWS))
    assert [row[0] for row in data["rows"]] == [*NAMES, HOSTILE]
    assert data["columns"][:4] == ["source", "content", "class", "answer"]
    assert set(data["classes"]) == set(NAMES)
    top = [{"class": name, "score": score} for name, score in (("dog", 0.7512), ("elk", 0.0004))]
    rows = [verdict("a\n.png", -1, "cat", top=top, note="16 bit"), verdict("b.png", 1, "dog")]
    data = script_data(page(rows, files={1: "./b.png"}))
    assert data["tops"] == [[1, 751, "elk", 0], [1, 1000]]
    assert (data["files"], data["notes"]) == ([None, "./b.png"], {"0": "16 bit"})
    assert (data["places"], data["shown"]) == ({"0": "a\\n.png"}, {})


@pytest.fixture(params=["plain", "hostile"])
def html(request):
    return page(PLAIN if request.param == "plain" else ROWS, shown={1: DOT, 3: DOT})


def test_the_page_loads_nothing_handles_nothing_inline_and_a_line_stays_one_line(html):
    assert assert_inert(html, [DOT.uri] * 2, scripts=2) == "data: 'self' file:"
    assert not re.search("[\u202e\u2028\udcff\r]", html)


def image_file(size, kind="JPEG", mode="RGB"):
    content = io.BytesIO()
    Image.new(mode, size, 120).save(content, kind)
    return content.getvalue()


def test_the_file_is_whole_and_pictures_are_those_of_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(review, "EMBEDDED", 2)
    rows, sizes = [unread("bad"), *PLAIN[:6]], [(60, 30)] * 3 + [(30, 60)] * 4
    pairs = [
        (Photo(row["source"], lambda size=size: image_file(size)), row)
        for row, size in zip(rows, sizes, strict=True)
    ]
    path = tmp_path / "review.html"
    write_review(path, pairs, ("cat", "dog"), Facts("cull", 2, 64))
    html = path.read_text()
    cards = {int(i): card for i, card in re.findall(r'<li id="i(\d+)">(.*)', html)}
    assert [i for i, card in cards.items() if "<img" in card] == [5, 4]
    assert 'width="30" height="60"' in cards[5]
    assert '"files":[null,null,null,null,null,null]' in html, "these have no files"
    assert cards[0].count("no picture") == 1
