"""Noise ratios: numbers, the sets' own mix, shares that change; and what is none."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import StreamSettings
from zsntta_cli.settings.ratios import (
    changing_shares,
    mean_share,
    parse_ratio,
    ratio_place,
    ratio_text,
)

SHARES = st.integers(0, 99).map(lambda percent: percent / 100)


@given(SHARES)
def test_a_number_is_itself(share):
    assert parse_ratio(ratio_text(share)) == share
    assert changing_shares(share) == []
    assert mean_share(share) == share


@given(st.lists(SHARES, min_size=2, max_size=9).filter(any))
def test_steps_have_their_shares(shares):
    ratio = parse_ratio("steps:" + ",".join(map(str, shares)))
    assert changing_shares(ratio) == shares
    assert math.isclose(mean_share(ratio), sum(shares) / len(shares))
    assert parse_ratio(ratio) == ratio


@given(SHARES, SHARES)
def test_a_drift_goes_from_the_first_share_to_the_last(first, last):
    text = f"{first}..{last}"
    if not first and not last:
        with pytest.raises(SettingsError):
            parse_ratio(text)
        return
    shares = changing_shares(parse_ratio(text))
    assert sorted(shares, reverse=first > last) == shares
    assert math.isclose(mean_share(text), (first + last) / 2, abs_tol=1e-12)
    assert min(first, last) <= min(shares) <= max(shares) <= max(first, last)


def test_equal_ratios_are_one_however_they_are_written():
    for texts in (("0.1..0.7", ".10..0.70"), ("steps:0.1,0.5", "steps:.1,0.50")):
        assert len({StreamSettings(ratio=text) for text in texts}) == 1
    assert StreamSettings(ratio="0.25") == StreamSettings(ratio=0.25)


@pytest.mark.parametrize("text", [
    "", "half", "1", "1.5", "-0.1", "nan", "inf", "0.1..", "..0.7", "0.1..1", "0.1..0.5..0.7",
    "0..0", "0.1-0.7", "steps:", "steps:0.1", "steps:0.1,", "steps:0,0", "steps:0.1,1", "Natural",
    "natural:0.5", " 0.5", "0.5\n", "steps:" + ",".join(["0.1"] * 101),
])  # fmt: skip
def test_what_is_no_ratio(text):
    with pytest.raises(SettingsError, match="ratio is ") as error:
        StreamSettings(ratio=text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("order", ["burst", "late", "first"])
def test_noise_has_one_place(order):
    StreamSettings(ratio="natural", order=order)
    with pytest.raises(SettingsError, match=f"as order {order} does: choose one"):
        StreamSettings(ratio="0.1..0.7", order=order)


def test_places_in_lists():
    mixed = ["natural", 0.75, "0.1..0.7", 0.0, 0.25]
    assert sorted(mixed, key=ratio_place) == [0.0, 0.25, 0.75, "0.1..0.7", "natural"]
    assert math.isnan(mean_share("natural"))
