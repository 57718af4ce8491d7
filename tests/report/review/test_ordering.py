"""What is looked at first, by hand."""

from reviewed import verdict

from zsntta_cli.report.review.review import borderline, by_closeness, by_suspicion, pictured

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
