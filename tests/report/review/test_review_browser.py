"""The review in a browser: what its script does, what it must never do, who can use it."""

import hashlib
from pathlib import Path

import pytest
from review_page import DOT, Review
from reviewed import HOSTILE, page, unread, verdict

ROWS = [
    verdict(f"photos/{i}.png", (i - 19.5) / 8, ("cat", "dog", "owl")[i % 3], threshold=1 + i / 7)
    for i in range(30)
]
NAMES = [HOSTILE, "'\"></script><script>alert(1)</script>", "a\nb\u2028c", "inv\udcffalid", "`\\"]
STRANGE = [verdict(name, i - 1.5, NAMES[-1 - i]) for i, name in enumerate(NAMES)]
STRANGE += [verdict(HOSTILE, 0.25, HOSTILE), unread(HOSTILE, HOSTILE)]


def write(path, rows, **values):
    shown = dict.fromkeys(range(0, len(rows) - 1, 2), DOT)
    path.write_bytes(page(rows, shown, **values).encode())
    return path.as_uri()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("review")
    many = [verdict(f"{i}.png", i - 700.5) for i in range(1000)]
    pages = {"plain": ROWS, "strange": STRANGE, "many": many}
    return {name: write(root / f"{name}.html", rows) for name, rows in pages.items()}


@pytest.fixture
def opened(browser, files):
    """Pages, watched; they must have asked for nothing and complained of nothing."""
    pages = []

    def open_one(name="plain", **context):
        context.setdefault("viewport", {"width": 1280, "height": 900})
        pages.append((files[name], Review(browser, files[name], **context)))
        return pages[-1][1]

    yield open_one
    for uri, watched in pages:
        asked = {url.split("#")[0] for url in watched.asked}
        assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {uri}
        assert watched.said == []
        watched.context.close()


def numbers(places):
    return [int(Path(place).stem) for place in places]


def test_as_decided_the_script_shows_the_lists_of_the_file(opened):
    still = opened(java_script_enabled=False)
    live = opened()
    live.page.get_by_role("combobox", name="Class").select_option("owl")
    assert live.heads() == ["4 of 12", "2 of 4", "0", "4 of 14"]
    live.page.get_by_role("searchbox", name="Find").fill("PHOTOS/2 owl")
    assert numbers(live.listed("noise")) == [29, 26]
    live.page.get_by_role("searchbox", name="Find").fill("")
    live.page.get_by_role("combobox", name="Class").select_option("")
    for key in ("borderline", "noise", "clean"):
        assert live.listed(key) == still.listed(key), key
    assert live.heads() == still.heads() == ["12", "4", "0", "14"]
    assert live.moved() == "10 of 30 images do not belong, as decided."


def test_the_keyboard_goes_through_all_and_corrects(opened):
    review = opened()
    press = review.page.keyboard.press
    press("n")  # at no image: nothing
    assert review.page.locator(".corrected").count() == 0
    order = [p for key in ("borderline", "noise", "clean") for p in review.listed(key)]
    for place in [*order, order[-1]]:
        press("j")
        assert review.at() == [place]
    press("k")
    assert review.at() == order[-2:-1]
    press("n")
    noise = review.card(numbers(order)[-2]).get_by_role("button", name="Does not belong")
    assert noise.get_attribute("aria-pressed") == "true"
    assert review.at() == order[-1:], "it goes on"
    press("k")
    press("c")
    assert noise.get_attribute("aria-pressed") == "false"
    press("k")
    press("e")
    press("d")  # the box of classes takes it: dog
    press("Escape")
    assert review.corrections()[0]["class"] == "dog"
    press("u")
    assert review.page.get_by_role("button", name="Export corrections").is_disabled()
    press("/")
    review.page.keyboard.type("nju")
    assert review.page.get_by_role("searchbox").input_value() == "nju"
    assert review.page.locator(".corrected").count() == 0


def test_the_mouse_corrects_and_takes_back(opened):
    review = opened()
    clean = review.card(29).get_by_role("button", name="Belongs: photos/29.png")
    clean.click()
    box = review.page.get_by_role("combobox", name="Class: photos/29.png")
    assert box.locator("option").all_text_contents() == ["class as shown", "cat", "dog", "owl"]
    box.select_option("cat")
    review.card(2).get_by_role("button", name="Does not belong").click()
    assert box.input_value() == "cat"
    names = "class answer noise rank score threshold margin stage evidence level encoder"
    first, second = review.corrections()
    assert (first["source"], first["noise"], first["class"]) == ("photos/2.png", True, None)
    assert second == {
        "format": 1, "source": "photos/29.png", "content": None, "noise": False, "class": "cat",
        "verdict": {name: ROWS[29][name] for name in names.split()},
    }  # fmt: skip
    clean.click()
    assert [one["source"] for one in review.corrections()] == ["photos/2.png"]


def of_content(source, margin, name="cat", **values):
    content = hashlib.sha256(Path(source).name.encode()).hexdigest()
    return verdict(source, margin, name, **{"content": content, **values})


FIRST = [of_content(f"a/{i}.png", i - 2.5, "dog" if i % 2 else "cat") for i in range(6)]


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ([*FIRST, of_content("a/new.png", 2)], [2, 3]),
        ([of_content(f"moved/{i}.png", 2.5 - i, "dog") for i in (3, 2, 1)], [2, 3]),
        # What belongs to no class may belong to the owls, and 3 was said to be a dog.
        ([*FIRST[:3], *FIRST[4:], of_content("a/3.png", 1, "owl")], [3]),
        # Without dogs, 2 still belongs to none of the classes that are left.
        ([of_content(f"a/{i}.png", 1, "cat") for i in range(6)], [2]),
    ],
)
def test_answers_are_there_on_a_page_that_is_made_again(browser, tmp_path, again, said):
    review = Review(browser, write(tmp_path / "r.html", FIRST))
    review.card(2).get_by_role("button", name="Does not belong").click()
    review.card(3).get_by_role("button", name="Belongs").click()
    review.page.goto(write(tmp_path / "r.html", again))
    assert sorted(numbers(one["source"] for one in review.corrections())) == said
    told, waits = review.page.get_by_role("status").text_content(), len(said) < 2
    assert ("labelled for other classes: these answers are not used yet" in told) == waits
    if waits:
        review.page.get_by_role("button", name="Use answers about other classes").click()
        assert sorted(numbers(one["source"] for one in review.corrections())) == [2, 3]
    review.page.goto(write(tmp_path / "r.html", FIRST))
    assert sorted(numbers(one["source"] for one in review.corrections())) == [2, 3], "kept"
    review.context.close()


def test_equal_images_have_one_answer(browser, tmp_path):
    rows = [of_content("a/1.png", 1), of_content("b/1.png", 1), of_content("a/2.png", -1)]
    review = Review(browser, write(tmp_path / "r.html", rows))
    review.card(1).get_by_role("button", name="Does not belong").click()
    assert [one["source"] for one in review.corrections()] == ["a/1.png", "b/1.png"]
    review.card(0).get_by_role("button", name="Belongs").click()
    assert [one["noise"] for one in review.corrections()] == [False, False]
    review.context.close()


def test_no_name_is_markup_and_exports_give_names_back_whole(opened):
    review = opened("strange")
    review.page.wait_for_timeout(200)
    assert review.page.locator("img[src=x]").count() == 0
    assert review.page.evaluate("document.querySelectorAll('script').length") == 2
    review.page.get_by_role("combobox", name="Class").select_option(HOSTILE)
    assert review.listed("borderline").count(HOSTILE) == 1
    review.page.get_by_role("combobox", name="Class").select_option("")
    for i, name in enumerate(NAMES):  # the last image has the source of the first, and its answer
        review.card(i).get_by_role("button", name="Belongs").click()
        review.card(i).locator("select").select_option(name)
    found = [(one["source"], one["class"], one["verdict"]["class"]) for one in review.corrections()]
    assert found == [*zip(NAMES, NAMES, NAMES[::-1], strict=True), (HOSTILE,) * 3]


def test_without_scripts_all_is_there(opened):
    review = opened("many", java_script_enabled=False)
    lines = review.page.locator("main section li").all_text_contents()
    assert len([line for line in lines if ".png" in line]) == 1010, "ten are asked about"
    assert review.page.locator(".noscript").is_visible()
    assert not review.page.locator("#controls").is_visible()
    assert review.page.locator("ol button").count() == 0
    assert review.page.locator("#i999 .none, #i998 img").count() == 2


@pytest.mark.parametrize(
    ("name", "theme", "width"),
    [("plain", "light", 320), ("strange", "dark", 320), ("strange", "light", 1400)],
)
def test_the_page_is_accessible_and_does_not_scroll_sideways(opened, name, theme, width):
    review = opened(name, color_scheme=theme, viewport={"width": width, "height": 2600})
    review.unfold()
    review.card(1).get_by_role("button", name="Does not belong").click()
    review.card(2).get_by_role("button", name="Belongs").click()
    assert review.width() == width
    review.assert_accessible("color-contrast", "button-name", "select-name", "image-alt")


def test_what_was_judged_before_is_labelled_and_can_be_taken_back(browser, tmp_path):
    rows = [
        verdict("a.png", 1, "cat"), verdict("b.png", 1, "dog", answer="clean", stage="judged"),
        verdict("c.png", -1, "owl", answer="noise", stage="judged"),
    ]  # fmt: skip
    review = Review(browser, write(tmp_path / "r.html", rows))
    judged = {one["source"]: (one["noise"], one["class"]) for one in review.corrections()}
    assert judged == {"b.png": (False, "dog"), "c.png": (True, None)}
    review.card(2).get_by_role("button", name="Does not belong").click()
    review.page.reload()
    assert [one["source"] for one in review.corrections()] == ["b.png"]
    review.context.close()


def test_pictures_are_printed(browser, tmp_path):
    review = Review(browser, write(tmp_path / "r.html", ROWS))
    review.page.emulate_media(media="print")
    shown = review.page.locator("ol .of img:visible").count()
    assert shown == review.page.locator("ol .of img").count() > 10
    review.context.close()
