"""Classes from photos do not go with other words."""

from pathlib import Path

import pytest

from zsntta_cli.detection.detecting.request import DecisionRule, Images, Request
from zsntta_cli.errors import SettingsError


def test_other_words_go_with_class_names_alone():
    rule = DecisionRule(others="something")
    with pytest.raises(SettingsError, match="not with photos"):
        Request(images=Images(sources=("x",)), class_photos=Path("photos"), rule=rule)
    assert Request(images=Images(sources=("x",)), classes=("cat", "dog"), rule=rule).classes
