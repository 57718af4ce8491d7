"""Questions about a folder, and its verdicts with the answers."""

import copy

import numpy as np
import pytest
from asked import folder, verdicts
from small_detectors import detector, world

from zsntta_cli.detection.questions import Questions
from zsntta_cli.errors import SettingsError


def test_the_images_nearest_to_their_threshold_are_asked_about_each_once():
    first = verdicts([0.3, -0.1, 0.2, -0.1, 0.05, 0.2])
    questions = Questions(first)
    assert questions.next(9) == [4, 1, 2, 0], "3 and 5 are copies of 1 and 2"
    questions.answer(4, True)
    questions.answer(3, False)
    assert questions.next(9) == [2, 0], "a copy of what was answered is not asked about"
    assert questions.next(1) == [2]
    after = questions.verdicts()
    assert after.answer == ["noise", "noise", "noise", "noise", "clean", "noise"]
    assert after.judged.tolist() == [False, True, False, True, True, False]


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("sure", [False, True])
def test_answers_that_belong_change_nothing_about_others(noise, sure):
    first, truth = folder(noise=noise, sure=sure)
    questions = Questions(first)
    for number in np.flatnonzero(~truth)[:10].tolist():
        questions.answer(number, True)
    after = questions.verdicts()
    rest = ~after.judged
    assert after.judged.sum() == 10
    assert not after.flagged[after.judged].any()
    np.testing.assert_array_equal(after.threshold, first.threshold)
    np.testing.assert_array_equal(after.noise[rest], first.noise[rest])
    np.testing.assert_array_equal(after.unsure[rest], first.unsure[rest])


def test_after_an_answer_that_is_noise_doubt_is_noise():
    first, truth = folder(noise=0.1)
    questions = Questions(first)
    for number in np.argsort(-first.margin)[:10].tolist():
        questions.answer(number, not truth[number])
    after = questions.verdicts()
    assert not after.unsure.any()
    np.testing.assert_array_equal(after.noise[~after.judged], first.flagged[~after.judged])
    np.testing.assert_array_equal(after.noise[after.judged], truth[after.judged])


def test_without_an_answer_nothing_changes():
    first, _ = folder()
    assert Questions(first).verdicts() is first
    assert Questions(first[:0]).next(10) == []
    assert len(Questions(first[:0]).verdicts()) == 0


def test_the_latest_answer_about_an_image_counts():
    first, _ = folder()
    questions = Questions(first)
    questions.answer(7, False)
    questions.answer(7, True)
    assert not questions.verdicts().noise[7]


def test_what_was_judged_before_is_not_asked_about():
    first, _ = folder(count=12)
    judged = first.as_judged({0: True, 3: False})
    assert sorted(Questions(judged).next(12)) == [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]


def test_images_are_called_by_their_sources_where_these_tell_them_apart():
    first = verdicts([0.3, 0.2, 0.1, -0.1], sources=("a.png", "b.png", "b.png", None))
    questions = Questions(first)
    assert {name for name, _ in questions.named(4)} == {"a.png", 1, 2, 3}
    assert questions.number("a.png") == questions.number(0) == 0
    assert questions.number(2) == 2
    for wrong in ("b.png", "c.png", 4, -1):
        with pytest.raises(SettingsError, match="is no image of this folder"):
            questions.number(wrong)


def test_a_detector_asks_about_what_it_decided_in_hindsight():
    online, (_, features, _) = detector(), world()
    with pytest.raises(SettingsError, match="call decide_all"):
        online.questions()
    names = [f"{i}.png" for i in range(len(features))]
    first = online.decide_all(features, sources=names)
    batch = online.questions(10)
    assert len(dict(batch)) == 10
    for name, verdict in batch:
        assert verdict.source == name
        online.answer(name, belongs=True)
    after = online.answered()
    assert {v.source for v in after[after.judged]} == set(dict(batch))
    assert after[names.index(batch[0][0])].stage == "judged"
    assert after.noise.sum() <= first.noise.sum()
    assert not set(dict(online.questions(10))) & set(dict(batch))
    with pytest.raises(SettingsError, match="is no image of this folder"):
        online.answer("none.png", belongs=True)
    with pytest.raises(SettingsError, match="count is 0"):
        online.questions(0)
    assert online.seen == 0
    other = copy.deepcopy(online)
    other.answer(names[0], belongs=False)
    assert other.answered().judged[0]
    assert not online.answered().judged[0], "a copy has its own answers"
    again = online.decide_all(features)
    assert (online.answered().noise == again.noise).all(), "another folder: no answers"
    assert [name for name, _ in online.questions(3)] == [names.index(n) for n, _ in batch[:3]]
