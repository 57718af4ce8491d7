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
        stream = container.add_stream("mpeg4", rate=1, width=64, height=32, pix_fmt="yuv420p")
        for shade in (0, 90, 250, 30):
            frame = av.VideoFrame.from_image(Image.new("RGB", (64, 32), (shade, 255 - shade, 60)))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    result = pictures("detect", "clip.mp4", *SHAPES, "--review", "r.html")
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
