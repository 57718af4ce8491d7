"""What is looked at first, and what is asked."""

from reviewed import verdict

from zsntta_cli.report.review.review import (
    borderline,
    by_closeness,
    by_suspicion,
    pictured,
    to_ask,
)

ROWS = [verdict(str(m), m) for m in (-0.5, 3.0, 0.25, -2.0, 0.25, -0.125)]


def test_the_most_suspicious_first_and_equals_in_the_order_of_the_rows():
    assert by_suspicion(ROWS) == [1, 2, 4, 5, 0, 3]


def test_what_is_called_noise_comes_first_whatever_its_margin():
    tied = [verdict("a", 0.0), verdict("b", 0.0, answer="noise")]
    assert by_suspicion(tied) == [1, 0]
    mixed = [verdict("a", 2.0, answer="unsure"), *tied, verdict("c", 3.0, answer="unsure")]
    assert by_suspicion(mixed) == [2, 3, 0, 1]


def test_the_nearest_to_their_thresholds_first_on_both_sides():
    assert by_closeness(ROWS) == [5, 2, 4, 0, 3, 1]


def test_borderline_is_a_tenth_within_bounds():
    assert [borderline(n) for n in (0, 5, 60, 244, 100_000)] == [0, 5, 12, 24, 60]


def test_pictures_go_in_turn_to_the_borderline_and_the_suspicious():
    assert pictured(ROWS, 4) == [5, 1, 2, 4]
    assert sorted(pictured(ROWS, 600)) == list(range(6))
    assert pictured(ROWS, 0) == []


def test_what_has_no_file_to_show_gets_its_picture_first():
    assert pictured(ROWS, 4, {5, 1, 2}) == [4, 0, 3, 5]


FOLDER = [verdict(f"photos/{i}.png", (i * 7 % 200 - 139.5) / 40) for i in range(200)]


def test_the_nearest_are_asked_about_equal_files_once():
    assert to_ask(FOLDER) == by_closeness(FOLDER)[:10]
    copies = [verdict(f"{i}.png", 0.1 + i % 2, content="ab"[i % 2] * 64) for i in range(8)]
    assert to_ask(copies) == [0, 1]
    copies[4]["stage"] = "judged"
    assert to_ask(copies) == [1], "nor a copy of what was judged"


def test_what_was_judged_is_not_asked_about():
    first, *_ = to_ask(FOLDER)
    rows = [row | {"stage": "judged"} if i == first else row for i, row in enumerate(FOLDER)]
    assert first not in to_ask(rows)
    assert to_ask([row | {"stage": "judged"} for row in FOLDER]) == []
    assert [sorted(to_ask(FOLDER[:count])) for count in (0, 1, 4)] == [[], [0], [0, 1, 2, 3]]
