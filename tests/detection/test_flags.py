"""How many images are flagged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.detection.flags import Flag, between, flagged
from zsntta_cli.detection.verdicts import Verdicts
from zsntta_cli.errors import SettingsError


def verdicts(*margins, thresholds=0.5):
    margin = np.array(margins, float)
    count, threshold = len(margin), np.full(len(margin), thresholds)
    nothing = np.zeros((count, 1))
    return Verdicts(
        ("cat",), np.zeros(count, np.int32), margin > 0, np.zeros(count, bool),
        threshold + margin, threshold,
        np.ones(count, bool), nothing.astype(np.int32), nothing,
        np.full(count, np.nan), np.full(count, np.nan), np.ones(count, bool), np.zeros(count, bool),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        ("5%", Flag(share=0.05)), (" 0.5 % ", Flag(share=0.005)), (0.05, Flag(share=0.05)),
        (np.float32(0.5), Flag(share=0.5)), ("50", Flag(count=50)), (50, Flag(count=50)),
        (np.int64(1), Flag(count=1)), (Flag(count=3), Flag(count=3)),
        (None, Flag()),
    ],
)  # fmt: skip
def test_flags_as_they_are_typed_or_a_program_has_them(value, flag):
    assert Flag.of(value) == flag


TYPED = ("", "0", "0%", "100%", "-1", "5.5", "x", "fpr=1%", "1e3", "٣%", "5%%")


@pytest.mark.parametrize("value", [*TYPED, True, False, 0, -3, 0.0, 1.0, 5.0, float("nan"), [5]])
def test_other_flags_are_refused(value):
    with pytest.raises(SettingsError, match="flag is "):
        Flag.of(value)


def test_a_number_or_a_share_flags_so_many_and_moves_all_thresholds_by_one_amount():
    some = verdicts(0.3, -0.1, 0.1, -0.4)
    plain, ranks = flagged(some, Flag())
    assert plain.noise.tolist() == [True, False, True, False]
    assert ranks == [1, 3, 2, 4]
    three, same_ranks = flagged(some, Flag(count=3))
    assert three.noise.tolist() == [True, True, True, False]
    np.testing.assert_allclose(three.threshold, 0.5 - 0.25)  # half-way from -0.1 to -0.4
    assert same_ranks == ranks
    assert flagged(some, Flag(share=0.25))[0].noise.tolist() == [True, False, False, False]
    assert flagged(some, Flag(share=0.1))[0].noise.tolist() == [True, False, False, False]
    assert flagged(some, Flag(count=9))[0].noise.all()
    for flag in (Flag(count=1), Flag(count=3), Flag(count=9), Flag(share=0.5)):
        verdict, _ = flagged(some, flag)
        assert (verdict.noise == (some.score > verdict.threshold)).all()


@given(count=st.integers(1, 40), percent=st.floats(0.01, 99.99))
def test_a_share_of_few_images_is_the_nearest_number_and_at_least_one(count, percent):
    wanted = Flag(share=percent / 100).wanted(count)
    assert 1 <= wanted <= count
    assert wanted == 1 or abs(wanted - percent / 100 * count) <= 0.5 + 1e-9
    assert flagged(verdicts(*range(count)), Flag(share=percent / 100))[0].noise.sum() == wanted


def test_of_equal_margins_the_earlier_are_flagged():
    assert flagged(verdicts(0.1, 0.1, 0.1), Flag(count=2))[0].noise.tolist() == [True, True, False]


def test_between_parts_the_largest_from_the_others():
    assert between([1.0, 2.0, 4.0], 1) == 3
    assert between([1.0, 2.0, 4.0], 0) == 4
    assert between([1.0, 2.0, 4.0], 3) == 0.5
    assert between([], 0) == 0
