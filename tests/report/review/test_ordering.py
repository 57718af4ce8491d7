"""What is looked at first, and what is asked."""

from reviewed import verdict

from zsntta_cli.report.review.review import by_closeness, by_suspicion, pictured, to_ask

ROWS = [verdict(str(m), m) for m in (-0.5, 3.0, 0.25, -2.0, 0.25, -0.125)]


def test_the_most_suspicious_first_noise_before_all_and_the_nearest_on_both_sides():
    assert by_suspicion(ROWS) == [1, 2, 4, 5, 0, 3], "equals in the order of the rows"
    mixed = [verdict("a", 2.0, answer="unsure"), verdict("b", 0.0)]
    mixed += [verdict("c", 0.0, answer="noise"), verdict("d", 3.0, answer="unsure")]
    assert by_suspicion(mixed) == [2, 3, 0, 1]
    assert by_closeness(ROWS) == [5, 2, 4, 0, 3, 1]


def test_pictures_go_in_turn_to_the_near_and_the_suspicious_first_to_what_has_no_file():
    assert pictured(ROWS, 4) == [5, 1, 2, 4]
    assert sorted(pictured(ROWS, 600)) == list(range(6))
    assert pictured(ROWS, 4, {5, 1, 2}) == [4, 0, 3, 5]


def test_the_nearest_are_asked_about_equal_files_once_and_judged_ones_never():
    folder = [verdict(f"photos/{i}.png", (i * 7 % 200 - 139.5) / 40) for i in range(200)]
    first, *_ = to_ask(folder)
    assert to_ask(folder) == by_closeness(folder)[:10]
    folder[first]["stage"] = "judged"
    assert first not in to_ask(folder)
    copies = [verdict(f"{i}.png", 0.1 + i % 2, content="ab"[i % 2] * 64) for i in range(8)]
    assert to_ask(copies) == [0, 1]
    copies[4]["stage"] = "judged"
    assert to_ask(copies) == [1], "nor a copy of what was judged"
