"""The review from images to figures: decided, looked at in the browser, corrected, judged."""

import json
from pathlib import Path

from made import TINY
from watched import Watched

from zsntta_cli.datasets.drawn.builtin import render

SHAPES = ("--classes", ",".join(render("shapes").class_names), *TINY)


def test_corrected_in_the_browser_exported_and_judged(browser, pictures):
    result = pictures("detect", "pictures", *SHAPES, "--review", "review.html")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    watched = Watched(browser)
    page = watched.page
    page.goto(Path("review.html").absolute().as_uri())
    right, noise = 0, 0
    for i, row in enumerate(rows[:8] + rows[-6:]):
        at = i if i < 8 else len(rows) - 14 + i
        truth = row["source"].split("/")[1]
        button = "Does not belong" if truth == "x" else "Belongs"
        page.locator(f"#i{at}").get_by_role("button", name=button).click()
        if truth != "x":
            page.locator(f"#i{at} select").select_option(truth)
        right += truth == row["class"] and not row["noise"]
        noise += truth == "x" and row["noise"]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export corrections").click()
    waiting.value.save_as("corrections.jsonl")
    found = pictures("detect", "--judge", "corrections.jsonl")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[1].endswith(f"{right} of 8")
    assert lines[2].endswith(f"{noise} of 6")
    assert found.stderr.startswith("14 images labelled, 8 clean and 6 noise.")
    assert "without another class" not in found.stderr
    assert watched.said == []
    watched.context.close()


def test_the_slider_decides_as_flag_does(browser, pictures):
    pictures("detect", "pictures", *SHAPES, "--review", "review.html")
    watched = Watched(browser)
    watched.page.goto(Path("review.html").absolute().as_uri())
    for count in (3, 25):
        result = pictures("detect", "pictures", *SHAPES, "--flag", count)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        watched.page.locator("input[name=flagged]").fill(str(count))
        noise = watched.page.locator("li:has(.is-noise) .where").all_text_contents()
        assert sorted(noise) == sorted(row["source"] for row in rows if row["noise"])
        near = watched.page.locator("section[aria-labelledby=borderline] .where")
        # The threshold is midway between two images: which is nearer is their last bits' affair.
        distances = {row["source"]: round(abs(row["margin"]), 9) for row in rows}
        sources = near.all_text_contents()
        assert [distances[source] for source in sources] == sorted(distances.values())[:12]
        assert len(set(sources)) == 12
    watched.context.close()
