"""`detect --others` and `simulate --method ridge --words` as they are typed."""

import json

import pytest
from made import TINY, fails

from zsntta_cli.datasets.drawn.builtin import render

NAMES = ",".join(render("shapes").class_names)
SHAPES = ("--classes", NAMES, *TINY)
RUN = ("simulate", "--method", "ridge", "--id", "shapes", "--ood", "glyphs", "--noise", "none")
QUICK = ("--ridge-first", "16", "--ridge-ring", "64")


def scores(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line)["score"] for line in result.stdout.splitlines()]


def test_detect_with_words(pictures, tmp_path):
    words = [*render("glyphs").class_names, "letter A", "Circle", "", "letter_A"]
    (tmp_path / "letters.txt").write_text("\n".join(words))
    without = scores(pictures("detect", "pictures", *SHAPES))
    worded = scores(pictures("detect", "pictures", *SHAPES, "--others", "letters.txt"))
    assert len(worded) == len(without) == 60
    assert worded != without
    again = pictures("detect", "pictures", *SHAPES, "--others", "letters.txt")
    assert scores(again) == worded
    assert "words" not in again.stderr, "what was encoded stays"


def test_detect_with_neutral_texts(pictures):
    assert len(scores(pictures("detect", "pictures", *SHAPES, "--others", "something"))) == 60


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (("--others", "nothing.txt"), "others is 'nothing.txt', must be wordnet, something, or a"),
        (("--others", "own.txt"), "every word of the list is one of the classes: there must be"),
        (
            ("--others", "own.txt", "--method", "adand"),
            "adand takes no words for what else images may show: leave them out, or take ridge",
        ),
    ],
)
def test_words_that_will_not_do(pictures, tmp_path, given, line):
    (tmp_path / "own.txt").write_text("circle\nSQUARE\n")
    fails(pictures("detect", "pictures", *SHAPES, *given), line, code=2)


def test_simulate_with_words(cached):
    def row(*more):
        result = cached(*RUN, *TINY, *QUICK, "--format", "json", *more)
        assert result.exit_code == 0, result.output
        [record] = json.loads(result.stdout)
        return record

    plain, again = row(), row("--words", "")
    assert plain["detection"] == again["detection"]
    assert cached("extract", "--words", "drawn", *TINY).exit_code == 0
    assert row()["detection"] == plain["detection"], "a list that is cached is not taken unasked"
    worded = row("--words", "drawn")
    assert worded["detection"] != plain["detection"]
    fails(cached(*RUN, *TINY, "--words", "mine"), "no features of 'words-mine'")
    kept = cached(*RUN, *TINY, *QUICK, "--words", "drawn", "--dry-run")
    assert "1 run: 1 kept, 0 to run" in kept.stdout
