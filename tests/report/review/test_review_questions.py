"""The review's questions: which images, and what answers on the page are."""

import numpy as np
import pytest
from review_page import DOT, Review
from reviewed import page, verdict

from zsntta_cli.detection.questions import Questions
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.report.review.review import to_ask

ROWS = [verdict(f"photos/{i}.png", (i * 7 % 200 - 139.5) / 40) for i in range(200)]


def as_verdicts(rows):
    """The verdicts that rows say."""
    count = len(rows)
    score, threshold = (np.array([row[name] for row in rows]) for name in ("score", "threshold"))
    answers = np.array([row["answer"] for row in rows])
    nothing = np.zeros((count, 1))
    return Verdicts(
        class_names=("cat",), class_index=np.zeros(count, np.int32), noise=answers == "noise",
        unsure=answers == "unsure", score=score, threshold=threshold,
        adapted=np.ones(count, bool), top_index=nothing.astype(np.int32), top_score=nothing,
        evidence=np.array([row["evidence"] or 0.0 for row in rows]),
        evidence_kind=np.zeros(count, np.int8), judged=np.zeros(count, bool),
    )  # fmt: skip


def test_they_are_those_of_the_command_without_an_answer():
    asked = to_ask(ROWS)
    assert len(set(asked)) == 10
    assert asked == Questions(as_verdicts(ROWS)).next(10)


def test_what_was_judged_is_not_asked_about():
    first, *_ = to_ask(ROWS)
    rows = [row | {"stage": "judged"} if i == first else row for i, row in enumerate(ROWS)]
    assert first not in to_ask(rows)
    assert to_ask([row | {"stage": "judged"} for row in ROWS]) == []
    assert to_ask([]) == []


def test_there_are_none_of_what_was_decided_on_arrival():
    assert 'id="questions-list"' in page(ROWS)
    assert '<ul id="questions-list"' not in page(ROWS, hindsight=False)


def test_answers_are_corrections_and_corrections_answers(browser, tmp_path):
    path = tmp_path / "review.html"
    path.write_text(page(ROWS, dict.fromkeys(range(len(ROWS)), DOT)))
    review = Review(browser, path.as_uri())
    first, second, last = (ROWS[i]["source"] for i in (*to_ask(ROWS)[:2], to_ask(ROWS)[-1]))
    click = review.page.get_by_role("button", exact=True, name=f"It does not: {first}").click
    click()
    review.page.get_by_role("button", name=f"It belongs: {second}").click()
    assert {row["source"]: row["noise"] for row in review.corrections()} == {
        first: True, second: False,
    }  # fmt: skip
    click()
    assert [row["source"] for row in review.corrections()] == [second], "taken back"
    assert review.page.locator("#questions-list img").count() == 10
    review.page.locator("#questions-list a", has_text=last).click()
    assert review.at() == [last], "its card is shown, wherever it stands"
    review.page.keyboard.press("n")
    pressed = review.page.get_by_role("button", name=f"It does not: {last}")
    assert pressed.get_attribute("aria-pressed") == "true"
    assert review.said == []
    review.context.close()


@pytest.mark.parametrize("count", [1, 4])
def test_a_small_folder_has_fewer(count):
    assert sorted(to_ask(ROWS[:count])) == list(range(count))
