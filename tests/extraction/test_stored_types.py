"""`extract --store float32`: features as the encoder gives them, and nothing of both types."""

from pathlib import Path

import numpy as np
import pytest
from made import PROMPT, TINY

from zsntta_cli import datasets
from zsntta_cli.cache import store
from zsntta_cli.datasets.images import limited
from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import ExtractSettings


def shapes(count=40):
    return limited(datasets.load_images("shapes", Path()), count)


def test_features_in_float32_are_the_encoders_to_the_bit_and_float16_are_them_rounded(
    extractor, tiny
):
    images = shapes(16)
    exact = store.read(extractor(store="float32").dataset(images, [PROMPT]).path)
    pixels = np.stack([tiny.resize(images.read(i)) for i in range(16)])
    by_encoder = np.concatenate([tiny.encode_pixels(pixels[i : i + 8]) for i in (0, 8)])
    rows = exact.image_features[:]
    assert exact.image_features.dtype == np.float32
    np.testing.assert_array_equal(rows, by_encoder)
    rounded = store.read(extractor(overwrite=True).dataset(images, [PROMPT]).path)
    np.testing.assert_array_equal(rounded.image_features[:], rows.astype(np.float16))
    assert rounded.digest != exact.digest


def test_no_other_type():
    with pytest.raises(SettingsError, match="must be one of: float16, float32"):
        ExtractSettings(store="float64")


def test_by_the_command_line_and_replayed(zsntta):
    def run(*words):
        return zsntta(*words, *TINY)

    wanted = ("extract", "--dataset", "shapes", "--dataset", "glyphs", "--limit", "60")
    assert run(*wanted, "--noise", "none", "--store", "float32").exit_code == 0
    shown = run("simulate", "--id", "shapes", "--ood", "glyphs", "--method", "zs-clip",
                "--noise", "none")  # fmt: skip
    assert shown.exit_code == 0, shown.stderr
    assert "Acc_H" in shown.stdout
    refused = run("extract", "--dataset", "shapes", "--limit", "60", "--noise", "none")
    assert refused.exit_code != 0
    [line] = [line for line in refused.stderr.splitlines() if line.startswith("error: ")]
    assert "of another set (type is float32, not float16)" in line
    assert "--overwrite" in line
