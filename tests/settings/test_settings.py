"""Settings are of their types and within their ranges; ratios as texts; the families of sets."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from zsntta_cli.datasets.names import IMAGENET, SetName
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS, Pair
from zsntta_cli.settings import EncoderChoice, StreamSettings, ThresholdSettings
from zsntta_cli.settings.options import option_name, value_type
from zsntta_cli.simulation.runs import build_run

METHOD_KINDS = dict.fromkeys(
    part.Settings
    for method in METHODS.values()
    for part in ((method.detector, method.classifier) if isinstance(method, Pair) else (method,))
)
KINDS = (StreamSettings, ThresholdSettings, EncoderChoice, *METHOD_KINDS)
FIELDS = [(kind, field) for kind in KINDS for field in dataclasses.fields(kind)]
NAMES = [f"{kind.__name__}.{field.name}" for kind, field in FIELDS]
NAN, INFINITE = float("nan"), float("inf")
WRONG = {  # by type
    int: (True, 1.5, 1.0, NAN, "1", b"1", [1], 1j),
    float: (True, NAN, INFINITE, -INFINITE, "0.5", b"1", [0.5], 1j),
    bool: (0, 1, 0.0, "true", "", [True]),
    str: (0, True, 1.5, b"none", ["none"]),
}


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=NAMES)
def test_values_of_another_type_are_refused(kind, field):
    of_type, optional = value_type(field)
    wrong = [*WRONG[of_type], *(() if optional else (None,))]
    for value in wrong:
        if value in (INFINITE, -INFINITE) and value in (field.metadata["within"] or ()):
            continue  # no number is as large, and no computer minds
        if isinstance(value, str) and field.name == "ratio":
            continue  # a number as it is typed
        with pytest.raises(SettingsError) as error:
            kind(**{field.name: value})
        assert str(error.value).startswith(f"{option_name(field)} is "), value
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=NAMES)
def test_the_ends_of_ranges(kind, field):
    within = field.metadata["within"]
    if within is None:
        assert value_type(field)[0] in (bool, str)
        return
    step = 1 if value_type(field)[0] is int else 1e-9
    for end, outside in ((within.least, -step), (within.most, step)):
        if math.isfinite(end):
            assert end in within
            assert end + outside not in within
    for end in (within.above, within.below):
        if math.isfinite(end):
            with pytest.raises(SettingsError, match=f"{option_name(field)} is "):
                kind(**{field.name: type(field.default or 0.0)(end)})


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=NAMES)
def test_a_text_is_one_of_its_choices(kind, field):
    choices = field.metadata["choices"]
    if choices and not field.metadata["checked_by"]:
        for choice in choices:
            assert getattr(kind(**{field.name: choice}), field.name) == choice
        with pytest.raises(SettingsError) as error:
            kind(**{field.name: choices[0] + "x"})
        assert f"(did you mean '{choices[0]}'?)" in str(error.value)


def test_numbers_of_other_libraries_are_numbers():
    assert StreamSettings(seed=np.int64(3)).seed == 3
    assert StreamSettings(ratio=np.float32(0.25)).ratio == 0.25
    assert StreamSettings(ratio=Fraction(1, 4)).ratio == 0.25
    with pytest.raises(SettingsError):
        StreamSettings(ratio=np.float64("nan"))


def test_every_setting_has_a_help_text_and_its_default_is_a_value_of_it():
    for kind, field in FIELDS:
        assert field.metadata["about"], field.name
        assert kind(**{field.name: field.default}), field.name


def test_equal_ratios_are_one_however_they_are_written():
    assert (
        StreamSettings(ratio="0.25") == StreamSettings(ratio=".250") == StreamSettings(ratio=0.25)
    )


FAMILY = ("imagenet", "imagenet-sketch", "imagenet-a", "imagenet-v2", "imagenet-r")
OTHERS = ("imagenet-mine", "imagenet-mine=PATH", "imagenet=PATH", "imagenet-c:fog:1", "imagenet-c",
          "imagenet100", "cifar10", "noise-gaussian")  # fmt: skip


@pytest.mark.parametrize("name", FAMILY + OTHERS)
def test_the_five_of_the_family_alone_have_its_defaults(name):
    """As released: ImageNet-C is not on the list, nor is a set of one's own of a like name."""
    of_family = name in FAMILY
    assert (SetName.parse(name).family == IMAGENET) == of_family
    options = build_run("adand+tent", "", name, None, "").options
    assert options.optimizer == ("sgd" if of_family else "adam")
    given = build_run("tent", "", name, None, "", optimizer="adam").options
    assert given.optimizer == "adam", "what is given goes before the family's"
