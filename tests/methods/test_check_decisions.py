"""What a method returns is checked, whoever wrote it."""

from dataclasses import replace

import numpy as np
import pytest

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.base import Decisions, check_decisions

RIGHT = Decisions(np.array([0, 2, 1], np.int32), np.zeros(3, bool), np.array([0.1, 0.9, 0.5]))


def test_decisions_of_the_right_kinds_are_taken_as_they_are():
    for decisions in (RIGHT, replace(RIGHT, is_noise=None), replace(RIGHT, evidence=np.ones(3))):
        assert check_decisions(decisions, "mine", 3, 3) is decisions


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"is_noise": np.array([0, 7, 1])}, "is_noise of int64, must be an array of booleans"),
        ({"is_noise": [True, False, True]}, "is_noise of list, must be an array of booleans"),
        (
            {"is_noise": np.zeros(2, bool)},
            "is_noise of shape (2,), must be (3,), one for each",
        ),
        ({"class_index": np.ones(3)}, "class_index of float64, must be an array of integers"),
        ({"class_index": np.array([0, 3, -1])}, "class_index 3 at item 1, must be in [0, 3)"),
        ({"class_index": np.array([0, 0, -1])}, "class_index -1 at item 2, must be in [0, 3)"),
        ({"id_score": np.array([0.5, 0.1, np.nan])}, "id_score nan at item 2, must be finite"),
        ({"id_score": np.array([np.inf, 0.1, 0])}, "id_score inf at item 0, must be finite"),
        ({"id_score": None}, "id_score of NoneType, must be an array of floats"),
        ({"id_score": np.ones((3, 1))}, "id_score of shape (3, 1), must be (3,)"),
        ({"level": np.ones(3, int)}, "level of int64, must be an array of floats"),
    ],
)
def test_anything_else_is_refused_by_its_field_and_first_item(changed, said):
    with pytest.raises(SettingsError) as error:
        check_decisions(replace(RIGHT, **changed), "mine", 3, 3)
    assert str(error.value).startswith(f"mine returns {said}")
