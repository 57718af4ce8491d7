"""`zsntta simulate` as a user has it: tables, records, what is missing, what a table says."""

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from feature_files import reseal
from made import TINY, fails

ZS_CLIP = ("simulate", *TINY, "--method", "zs-clip")
ADAND = ("simulate", *TINY, "--method", "adand")


def records(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def words(result):
    """A table's text as if it was not folded."""
    return " ".join(result.stdout.split())


def test_records_are_complete_and_injection_is_adands_alone(cached):
    *found, frozen = records(cached(
        *ADAND, "--method", "zs-clip", "--ratio", 0, "--ratio", 0.5, "--ood", "glyphs",
        "--seed", 1, "--seed", 2, "--format", "json",
    ))  # fmt: skip
    streams = [(r["settings"]["stream"]["ratio"], r["settings"]["stream"]["seed"]) for r in found]
    assert streams[:4] == [(0, 1), (0, 2), (0.5, 1), (0.5, 2)]
    clean, _, _, noisy, *_ = found
    assert clean["counts"] == {"id": 300, "ood": 0, "noise": 37}
    assert noisy["counts"] == {"id": 300, "ood": 300, "noise": 75}
    assert frozen["counts"] == {"id": 300, "ood": 300, "noise": 0}
    assert clean["accuracies"]["acc_n"] is None
    assert noisy["settings"]["options"]["warmup"] == 10
    assert set(noisy["digests"]) == {"shapes", "glyphs", "noise-gaussian", "text/shapes"}
    hits = noisy["accuracies"]["acc_s"] * 300
    assert hits == pytest.approx(round(hits))


# What a table says


def test_a_table_says_which_sets_are_missing_or_too_small_and_which_preset_it_is_of(cached):
    glyphs = (*ZS_CLIP, "--ood", "glyphs")
    assert "average over 2 of its 4 OOD sets" in words(cached(*glyphs, "--ood", "digits"))
    whole = words(cached(*ADAND))
    assert "average over" not in whole
    assert "preset paper" in whole
    capped = cached(*glyphs, "--ratio", 0.75, "--set", "ood-fill=cap")
    assert "'glyphs' is too small for 75% noise: the stream has 50.0%." in capped.stdout
    assert "preset official" in words(cached(*ADAND, "--preset", "official"))
    both = cached(*ADAND, "--preset", "paper", "--preset", "official").stdout.splitlines()
    rows = [line.split("│")[2].strip() for line in both if line.startswith("│ adand")]
    assert rows == ["paper", "official"]


def test_the_papers_spread_of_averages_is_the_mean_of_the_sets(cached):
    def average(spread):
        result = cached(*ADAND, "--seed", "0-2", "--spread", spread, "--format", "markdown")
        *_, note = printed = result.stdout.strip().splitlines()
        row = [line for line in printed if line.startswith("|")][-1]
        return note, [float(c.partition("±")[2].strip("*")) for c in row.split("|")[2:-1]]

    own_note, own = average("seeds")
    note, sets = average("sets")
    assert "its own standard deviation over seeds" in own_note
    assert "the mean of its sets' standard deviations" in note
    assert own[:-3] == sets[:-3]
    expected = [np.mean(sets[i:-3:3]) for i in range(3)]
    np.testing.assert_allclose(sets[-3:], expected, atol=0.011)


def counts(result):
    """What a dry run says in numbers: all runs, kept, to run, without features."""
    line = re.search(r"^(\d+) runs?: (\d+) kept, (\d+) to run, (\d+) without", result.stdout)
    return [*map(int, line.groups())]


def test_a_dry_run_counts_what_is_kept_and_keeps_nothing(cached):
    grid = ("simulate", "--method", "zs-clip,adand", "--ood", "glyphs", *TINY)
    wide = (*grid, "--seed", "0,1", "--dry-run")
    assert counts(cached(*wide)) == [4, 0, 4, 0]
    assert not Path("features/records.sqlite").exists()
    assert cached(*grid).exit_code == 0
    assert counts(cached(*wide)) == [4, 2, 2, 0]
    assert counts(cached(*wide, "--fresh")) == [4, 0, 4, 0]


# What is missing or wrong


def test_without_an_ood_partner_the_command_that_makes_one_is_told(cached):
    for name in ("glyphs", "textures", "other-shapes", "digits"):
        Path(f"features/tiny/{name}.h5").unlink()
    fails(cached(*ADAND), "no OOD partner", "extract --dataset glyphs")


def test_a_broken_file_and_features_of_two_encoders_are_refused(cached):
    glyphs = Path("features/tiny/glyphs.h5")
    with h5py.File(glyphs, "r+") as file:
        encoder = json.loads(file.attrs["encoder"])
        file.attrs["encoder"] = np.bytes_(json.dumps({**encoder, "weights_sha256": "other"}))
        reseal(file)
    fails(cached(*ADAND, "--ood", "glyphs"), "glyphs.h5", "weights_sha256 is other")
    glyphs.write_bytes(glyphs.read_bytes()[:5000])
    fails(cached(*ADAND, "--ood", "glyphs"), "glyphs.h5", "not a complete")


def test_debug_shows_the_traceback(zsntta):
    result = zsntta("--debug", "simulate", "--method", "magic")
    assert type(result.exception).__name__ == "SettingsError"
