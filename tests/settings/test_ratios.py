"""Noise ratios: numbers, the sets' own mix; and what is none."""

import math

import pytest
from hypothesis import strategies as st

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import StreamSettings, ood_share, ratio_place

SHARES = st.integers(0, 99).map(lambda percent: percent / 100)


def test_equal_ratios_are_one_however_they_are_written():
    assert (
        StreamSettings(ratio="0.25") == StreamSettings(ratio=".250") == StreamSettings(ratio=0.25)
    )


@pytest.mark.parametrize("text", [
    "", "half", "1", "1.5", "-0.1", "nan", "inf", "0.1..0.7", "0.1-0.7", "steps:0.1,0.5", "Natural",
    "natural:0.5", " 0.5", "0.5\n",
])  # fmt: skip
def test_what_is_no_ratio(text):
    with pytest.raises(SettingsError, match="ratio is ") as error:
        StreamSettings(ratio=text)
    assert "\n" not in str(error.value)


def test_natural_comes_after_all_numbers_and_has_no_share_of_its_own():
    mixed = ["natural", 0.75, 0.0, 0.25]
    assert sorted(mixed, key=ratio_place) == [0.0, 0.25, 0.75, "natural"]
    assert math.isnan(ood_share("natural"))
