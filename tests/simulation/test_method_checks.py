"""What `zsntta methods check` finds: who is honest holds, and who cheats is caught."""

from dataclasses import dataclass

import numpy as np
import pytest
from made import own_method

import zsntta_cli
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.method import MethodSettings
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings.options import option
from zsntta_cli.simulation.checks import FAILED, HELD, NOT_RUN, check_method


@dataclass(frozen=True)
class PlainSettings(MethodSettings):
    batch_size: int = option(1, "Items that are decided on at once.")


def plain(data, options, threshold, u=None, classes=None, more=False):
    """ZS-CLIP, or another noise score or other classes in its place."""
    u = data.noise_score if u is None else u
    is_noise = (u > OnlineThreshold(threshold, options.batch_size)(u)) | more
    return Decisions(data.class_index if classes is None else classes, is_noise, 1 - u)


def by_the_mean_of_all(data, *settings):
    u = data.noise_score
    return plain(data, *settings, u=np.clip(u - u.mean() + 0.5, 0, 1) if len(u) else u)


def by_the_next_item(data, *settings):
    next_is_noise = np.append(data.noise_score[1:] > 0.7, False)[: len(data)]
    return plain(data, *settings, more=next_is_noise)


def by_the_number_of_its_class(data, *settings):
    return plain(data, *settings, more=data.class_index == 0)


def by_numpys_randomness(data, *settings):
    return plain(data, *settings, more=np.random.random(len(data)) < 0.01)  # noqa: NPY002


def raises(data, *settings):
    raise IndexError("list index out of range")


CHEATS = [
    (by_the_mean_of_all, "another future"),
    (by_the_next_item, "another future"),
    (by_the_number_of_its_class, "other classes"),
    (by_numpys_randomness, "two runs"),
]


def checked(method, **line):
    """The results by check, of a method in METHODS or of what one of one's own runs."""
    method = method if isinstance(method, str) else own_method(method, PlainSettings, **line)
    return {result.check: result for result in check_method(method)}


def test_an_honest_method_of_ones_own_holds_and_the_list_of_methods_stays():
    before = {**METHODS.data}
    assert {result.outcome for result in checked(plain).values()} == {HELD}
    assert METHODS.data == before
    with pytest.raises(SettingsError, match="is not a Method"):
        zsntta_cli.check_method(PlainSettings)


@pytest.mark.parametrize(("cheat", "check"), CHEATS, ids=[cheat.__name__ for cheat, _ in CHEATS])
def test_who_cheats_is_caught(cheat, check):
    assert checked(cheat)[check].outcome == FAILED


def test_what_differs_first_is_named():
    found = checked(by_the_mean_of_all)["another future"].evidence
    assert found.startswith("if the items from 1 on resemble no class: item 0: ")
    assert "became" in found
    assert checked(raises)["two runs"].evidence == "it raised IndexError: list index out of range"


def test_offline_is_not_asked_for_the_future_and_live_for_nothing():
    found = checked(by_the_mean_of_all, offline=True)
    assert [result.outcome for result in found.values()] == [NOT_RUN, HELD, HELD]
    assert {result.outcome for result in checked("tent").values()} == {NOT_RUN}
