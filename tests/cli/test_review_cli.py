"""`detect --review` and `--judge` as they are typed."""

import json
import os
import re
from pathlib import Path

import pytest
from made import TINY, fails

from zsntta_cli.datasets.drawn.builtin import render

NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)
SAID = {"noise": False, "class": "cat"}


def correction(source, truth, name=None, **said):
    verdict = SAID | said
    return json.dumps(
        {"format": 1, "source": source, "frame": None, "noise": truth, "class": name,
         "verdict": verdict}
    )  # fmt: skip


def cards(path):
    """What a page lists: the words of each image's card, by its number."""
    found = re.findall(r'<li id="i(\d+)">(.*)', Path(path).read_text())
    return {int(i): card for i, card in found}


def test_the_page_beside_all_other_results(pictures):
    Path("pictures/bad.png").write_text("no image")
    result = pictures(
        "detect", "pictures", *SHAPES, "--review", "review.html", "--out", "rows.jsonl",
        "--only", "noise",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert len(cards("review.html")) == 60, "--only is of rows"
    html = Path("review.html").read_text()
    assert "<li>pictures/bad.png: it is a text" in html
    assert html.count("<img") == 60
    again = pictures("detect", "pictures", *SHAPES, "--review", "again.html")
    assert again.exit_code == 0
    assert Path("again.html").read_bytes() == Path("review.html").read_bytes()
    assert len(again.stdout.splitlines()) == 61, "rows still go to standard output"


def test_pictures_are_as_many_as_one_says(pictures):
    for most in (0, 7):
        pictures("detect", "pictures", *SHAPES, "--review", "r.html", "--embed", most)
        html = Path("r.html").read_text()
        assert html.count('<img src="data:') == most
        assert html.count('<img src="./pictures/') == 60 - most


def test_names_of_any_bytes_and_cached_features(pictures):
    strange = os.fsdecode(b"pictures/\xff\n'\"<b>.png")
    os.rename("pictures/x/00000.png", strange)
    assert pictures("detect", "pictures", *SHAPES, "--review", "r.html").exit_code == 0
    html = Path("r.html").read_bytes()
    assert b"pictures/\\udcff\\n&#x27;&quot;&lt;b&gt;.png" in html
    assert (
        json.dumps(strange)[1:-1].replace("<", "\\u003c").replace(">", "\\u003e").encode() in html
    )


def test_a_page_of_cached_features_has_no_pictures(cached):
    result = cached("detect", "--set", "shapes", *TINY, "--review", "r.html")
    assert result.exit_code == 0, result.output
    html = Path("r.html").read_text()
    assert len(cards("r.html")) + len(re.findall(r"<li>[+−]", html)) == 300
    assert "<img" not in Path("r.html").read_text()


def test_frames_of_a_video_have_their_pictures(pictures):
    av = pytest.importorskip("av")
    from PIL import Image

    with av.open("clip.mp4", "w") as container:
        stream = container.add_stream("mpeg4", rate=2, width=64, height=32, pix_fmt="yuv420p")
        for shade in (0, 90, 250, 30):
            frame = av.VideoFrame.from_image(Image.new("RGB", (64, 32), (shade, 255 - shade, 60)))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    result = pictures("detect", "clip.mp4", "--fps", "2", *SHAPES, "--review", "r.html")
    assert result.exit_code == 0, result.output
    found = cards("r.html")
    assert len(found) == 4
    assert all('width="64" height="32"' in card for card in found.values())
    assert len({re.search('src="([^"]*)"', card)[1] for card in found.values()}) == 4
    assert '"flag":false' in Path("r.html").read_text()


def test_wrong_usage_is_told_before_anything_is_read(pictures):

    for given, said in (
        (
            ("--review", "photo.png"),
            "--review is 'photo.png', must end in one of .html, .htm.",
        ),
        (("--embed", "5"), "--embed is of a page"),
        (("--judge", "c.jsonl"), "--judge reads corrections only"),
    ):
        result = pictures("detect", "pictures", *SHAPES, *given)
        assert result.exit_code == 2, given
        assert said in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert result.stdout == ""
    assert not Path("r.html").exists()


def test_a_page_that_cannot_be_written_is_told_before_the_work(pictures):
    Path("r.html").mkdir()
    result = pictures("detect", "pictures", *SHAPES, "--review", "r.html")
    fails(result, "cannot write r.html: it is a folder.")


def test_judge_needs_neither_images_nor_classes(zsntta):
    lines = [
        correction("a", False), correction("b", False, "dog"), correction("c", True, noise=True),
        correction("d", False, noise=True), correction("d", False, "cat", noise=True),
    ]  # fmt: skip
    Path("c.jsonl").write_text("\n".join(lines))
    result = zsntta("detect", "--judge", "c.jsonl")
    assert result.exit_code == 0, result.output
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [
        ["Acc_S", "33.33", "6.15", "–", "79.23", "1", "of", "3"],
        ["Acc_N", "100.00", "20.65", "–", "100.00", "1", "of", "1"],
        ["Acc_H", "50.00", *result.stdout.splitlines()[3].split()[2:]],
        ["precision", "50.00", "9.45", "–", "90.55", "1", "of", "2"],
    ]
    assert result.stderr.startswith("4 images labelled, 3 clean and 1 noise.")
    assert "1 image labelled clean without another class" in result.stderr
    assert "1 of the lines gave way" in result.stderr
    Path("c.jsonl").write_text(lines[0] + "\n{}\n")
    fails(
        zsntta("detect", "--judge", "c.jsonl"),
        "c.jsonl, line 2: its format is none of 1 to 4; must be what the review page exports.",
    )


def test_verdicts_are_no_corrections(pictures):
    pictures("detect", "pictures", *SHAPES, "--out", "rows.jsonl")
    fails(pictures("detect", "--judge", "rows.jsonl"), "line 1: it is a verdict, and no correction")
