"""Questions about a folder, and its verdicts with the answers."""

import copy

import hypothesis.strategies as st
import numpy as np
import pytest
from asked import folder, verdicts
from hypothesis import given
from small_detectors import detector, world

from zsntta_cli.detection import questions as module
from zsntta_cli.detection.questions import Questions
from zsntta_cli.errors import SettingsError


def held(first, truth, count=10):
    questions = Questions(first)
    for _ in range(count):
        [number] = questions.next()
        questions.answer(number, not truth[number])
    return questions


def test_a_clean_folder_has_fewer_flags_after_ten_answers():
    first, truth = folder(evidence=0.9)
    questions = held(first, truth)
    after = questions.verdicts()
    assert first.noise.sum() == 120
    assert after.noise.sum() < 30
    assert questions.belief()[0] > 0.5, "that there is none"
    demoted = first.noise & ~after.noise & ~after.judged
    assert after.unsure[demoted].all(), "the first flags are still to be seen"
    assert (after.rank == first.rank).all()


@pytest.mark.parametrize(
    ("noise", "evidence", "shift"), [(0.1, 0.9, 6), (0.5, 0.0, 3), (0.05, 0, 1)]
)
def test_after_an_answer_that_is_noise_the_cut_stays_and_doubt_becomes_noise(
    noise, evidence, shift
):
    first, truth = folder(noise=noise, evidence=evidence, shift=shift)
    questions = Questions(first)
    for number in np.argsort(-first.margin)[:10].tolist():
        questions.answer(number, not truth[number])
    assert any(questions.truths.values())
    after = questions.verdicts()
    unanswered = ~after.judged
    np.testing.assert_array_equal(after.threshold, first.threshold)
    np.testing.assert_array_equal(after.noise[unanswered], first.flagged[unanswered])
    np.testing.assert_array_equal(after.noise[~unanswered], truth[~unanswered])


def test_all_thresholds_move_by_one_amount():
    first, truth = folder()
    after = held(first, truth).verdicts()
    moved = after.threshold - first.threshold
    assert np.ptp(moved) < 1e-12 < moved[0]


def test_without_a_noisy_answer_doubt_stays_doubt_and_no_more_is_flagged():
    first, _ = folder(noise=0.5, shift=1)
    questions = Questions(first)
    for number in np.argsort(first.margin)[:5].tolist():  # the least suspicious belong
        questions.answer(number, True)
    after = questions.verdicts()
    assert not after.noise.any()
    assert (after.unsure == first.unsure).all()
    assert ((after.margin > 0) <= (first.margin > 0)).all()


def test_without_an_answer_nothing_changes():
    first, _ = folder()
    assert Questions(first).verdicts() is first
    assert Questions(first[:0]).next(10) == []
    assert len(Questions(first[:0]).verdicts()) == 0


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=60),
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.sampled_from([0.0, 0.3, 0.7, 1.0, float("nan")]),
)
def test_answers_are_kept_and_nothing_is_asked_twice(margins, belongs, evidence):
    first, asked = verdicts(margins, evidence), []
    questions = Questions(first)
    for answer in belongs:
        for number in questions.next():
            asked.append(number)
            questions.answer(number, answer)
    assert len(asked) == len(set(asked)) == min(12, len(margins))
    after = questions.verdicts()
    assert after.noise[asked].tolist() == [not b for b in belongs[: len(asked)]]
    assert np.flatnonzero(after.judged).tolist() == sorted(asked)
    rest = ~after.judged
    assert (first.flagged <= after.flagged)[rest].all(), "what was flagged is at least unsure"
    assert not (after.noise & after.unsure).any()
    if all(belongs):
        assert (after.noise <= first.noise)[rest].all()
    again = Questions(first)
    for number, answer in reversed(list(zip(asked, belongs, strict=False))):
        again.answer(number, answer)
    assert (again.verdicts().noise == after.noise).all(), "in whatever order they come"


def test_flags_stay_where_another_cut_must_be_better_than_any_can(monkeypatch):
    monkeypatch.setattr(module, "_BETTER", 1.0)
    for noise in (0.0, 0.5):
        first, truth = folder(noise=noise, evidence=0.9)
        after = held(first, truth).verdicts()
        assert (after.threshold == first.threshold).all()
        assert (after.noise == first.noise)[~after.judged].all()


def test_the_latest_answer_about_an_image_counts():
    first, _ = folder()
    questions = Questions(first)
    questions.answer(7, False)
    questions.answer(7, True)
    assert not questions.verdicts().noise[7]
    assert questions.belief() == pytest.approx(belief_of(first, {7: True}))


def belief_of(first, answers):
    questions = Questions(first)
    for number, belongs in answers.items():
        questions.answer(number, belongs)
    return questions.belief()


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
