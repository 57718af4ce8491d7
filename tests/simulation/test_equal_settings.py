"""Settings that many records share are made once, and checked each: 1, 1.0 and true are equal."""

import pytest
from kept import kept_run

from zsntta_cli.errors import SettingsError
from zsntta_cli.simulation.recorded import run_from_record


def plain(**options):
    settings = kept_run().to_dict()["settings"]
    return {**settings, "options": {**settings["options"], **options}}


def test_equal_settings_of_two_records_are_one_object():
    one, other = run_from_record(plain(batch_size=3)), run_from_record(plain(batch_size=3))
    assert one == other
    assert one.options is other.options
    assert run_from_record(plain(batch_size=4)).options.batch_size == 4


@pytest.mark.parametrize("wrong", [True, 1.0, "1", [1], {"a": 1}, None])
def test_a_value_that_is_equal_to_a_good_one_is_still_checked(wrong):
    assert run_from_record(plain(batch_size=1)).options.batch_size == 1
    with pytest.raises(SettingsError, match="batch-size is"):
        run_from_record(plain(batch_size=wrong))
