"""The walk of a person: decided, looked at in a browser, corrected, and learned from."""

import json
from pathlib import Path

from made import TINY
from watched import Watched

from zsntta_cli.datasets.drawn.builtin import render

SHAPES = ("--classes", ",".join(render("shapes").class_names), *TINY)


def rows_of(result):
    assert result.exit_code == 0, result.output
    return {row["source"]: row for row in map(json.loads, result.stdout.splitlines())}


def is_letter(source):
    """Whether a picture belongs to none of the shapes."""
    return source.split("/")[1] == "x"


def test_the_ten_questions_are_answered_in_the_browser_and_learned_from(browser, pictures):
    before = rows_of(pictures("detect", "pictures", *SHAPES, "--review", "review.html"))
    watched = Watched(browser)
    page = watched.page
    page.goto(Path("review.html").absolute().as_uri())
    assert page.locator("section[aria-labelledby] h2").first.text_content() == "Questions"
    asked = page.locator("#questions-list a").all_text_contents()
    assert len(set(asked)) == 10
    for source in asked:
        answer = "It does not" if is_letter(source) else "It belongs"
        page.get_by_role("button", name=f"{answer}: {source}", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export corrections").click()
    waiting.value.save_as("corrections.jsonl")
    learned = pictures("detect", "pictures", *SHAPES, "--learn", "corrections.jsonl")
    after = rows_of(learned)
    assert "Learned from 10 of 10 corrections." in learned.stderr
    assert {source for source, row in after.items() if row["stage"] == "judged"} == {*asked}
    assert all(after[source]["noise"] == is_letter(source) for source in asked)
    others = [{s: rows[s] for s in rows if s not in asked} for rows in (before, after)]
    found = [sum(row["noise"] for s, row in rows.items() if is_letter(s)) for rows in others]
    assert found[0] < found[1], "letters that nobody was asked about"
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
        assert f"as with --flag {count}" in watched.page.locator("#moved").text_content()
    watched.page.get_by_role("button", name="As decided").click()
    assert watched.page.locator("#moved").text_content().endswith("as decided.")
    watched.context.close()
