"""What a method returns is checked, whoever wrote it."""

from dataclasses import replace

import numpy as np
import pytest
from made import refused

from zsntta_cli.methods.base import Decisions, check_decisions

RIGHT = Decisions(np.array([0, 2, 1], np.int32), np.zeros(3, bool), np.array([0.1, 0.9, 0.5]))


def test_decisions_of_the_right_kinds_are_taken_as_they_are():
    for decisions in (RIGHT, replace(RIGHT, is_noise=None), replace(RIGHT, evidence=np.ones(3))):
        assert check_decisions(decisions, "mine", 3, 3) is decisions


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("is_noise", [True, False, True], "of list"),
        ("class_index", np.ones(3), "of float64"),
        ("level", np.ones(3, int), "of int64"),
        ("id_score", None, "of NoneType"),
        ("id_score", np.ones((3, 1)), "of shape (3, 1)"),
        ("class_index", np.array([0, 3, -1]), "3 at item 1"),
        ("class_index", np.array([0, 0, -1]), "-1 at item 2"),
        ("id_score", np.array([0.5, 0.1, np.nan]), "nan at item 2"),
    ],
)
def test_anything_else_is_refused_by_its_field_and_first_item(field, value, fault):
    with refused(f"mine returns {field} {fault}"):
        check_decisions(replace(RIGHT, **{field: value}), "mine", 3, 3)
