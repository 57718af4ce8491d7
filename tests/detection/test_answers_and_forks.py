"""What a person may answer, which rows are features, and what a fork leaves of a detector."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from made import TINY

from zsntta_cli import OnlineDetector
from zsntta_cli.detection.verdicts import Verdict
from zsntta_cli.errors import SettingsError

CLASSES = ("cat", "dog", "ox")
FEATURES = np.random.default_rng(0).standard_normal((40, 8))


def decided():
    text = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 3)))[0].T
    detector = OnlineDetector(text, 20.0, class_names=CLASSES)
    detector.decide_all(FEATURES)
    return detector


@pytest.mark.parametrize("answer", ["no", "noise", "false", "Cat", "", 0, 1, 1.0, None, ["cat"]])
def test_other_answers_than_true_false_or_a_class_are_refused_with_what_was_given(answer):
    detector = decided()
    wanted = "must be True, False or one of the classes: cat, dog, ox"
    with pytest.raises(SettingsError) as refused:
        detector.answer(3, answer)
    assert str(refused.value) == f"belongs is {answer!r}, {wanted}."
    with pytest.raises(SettingsError) as refused:
        detector.feedback(FEATURES[:2], [True, answer])
    assert str(refused.value) == f"noise[1] is {answer!r}, {wanted}."
    assert detector.labelled == 0
    assert not detector.answered().judged.any()


def test_a_class_is_the_answer_that_the_image_belongs():
    detector = decided()
    for number, answer in enumerate([True, False, np.True_, np.False_, "dog"]):
        detector.answer(number, answer)
    assert detector.answered()[:5].noise.tolist() == [False, True, False, True, False]
    by_class, by_truth = detector.copy(), detector.copy()
    by_class.feedback(FEATURES[:3], ["cat", True, "ox"])
    by_truth.feedback(FEATURES[:3], [False, True, False])
    np.testing.assert_array_equal(by_class.score(FEATURES), by_truth.score(FEATURES))


@pytest.mark.parametrize("value", [0, 1, -2.5])
def test_rows_that_are_no_features_are_refused_with_their_index(value):
    detector, rows = decided(), FEATURES.copy()
    rows[[7, 9]] = value
    for call in (detector.update, detector.predict, detector.decide_all):
        with pytest.raises(SettingsError, match=rf"features\[7\] are {value} in all dims.*: 2 of"):
            call(rows)
    assert detector.seen == 0


def test_numbers_are_those_that_people_read_and_still_say_which_is_above():
    def verdict(score, threshold):
        return Verdict(None, "cat", 0, "noise", score, threshold, "adapted", None, None, ())

    assert verdict(0.03, 0.02).margin == 0.01
    assert verdict(0.3 + 1e-14, 0.3).margin > 0
    for one in decided().decide_all(FEATURES):
        row = one.as_row(1)
        assert all(len(repr(row[name])) < 18 for name in ("score", "threshold", "margin"))
        assert (row["score"] > row["threshold"]) == (row["answer"] != "clean")


FORK = """
import os, sys
import numpy as np
from zsntta_cli import NoiseDetector, ZsnttaError

detector = NoiseDetector(["circle", "square"], model="tiny", device="cpu")
grey = np.full((64, 64, 3), 90, np.uint8); grey[9:40, 9:40] = 200
if sys.argv[1] == "used":
    detector.predict(grey)
rows = np.random.default_rng(0).standard_normal((4, 64))
if not os.fork():
    try:
        detector.predict(grey)
        print("judged", flush=True)
    except ZsnttaError as error:
        print("refused:", error, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize(
    ("when", "said"),
    [("used", "refused: this detector's encoder was used before a fork"), ("new", "judged")],
)
def test_a_fork_of_a_detector_that_was_used_says_so_and_hangs_not(when, said):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, when], capture_output=True, text=True,
        timeout=120, check=True, env=os.environ | {"OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.stdout.startswith(said), done.stderr


def test_a_line_of_corrections_is_refused_with_what_was_given(pictures):
    line = {"format": 4, "source": "a.png", "frame": None, "noise": "no", "class": None,
            "verdict": {"noise": True, "class": "cat"}}  # fmt: skip
    with open("corrections.jsonl", "w") as corrections:
        corrections.write(json.dumps(line))
    names = ("--classes", "circle,star", *TINY)
    result = pictures("detect", "pictures", *names, "--learn", "corrections.jsonl")
    assert result.exit_code == 1
    assert "corrections.jsonl, line 1: 'noise' is 'no', must be true or false" in result.stderr
