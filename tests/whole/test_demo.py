"""The demo, whole, through its entry point: it must show the paper's point."""

import subprocess

import pytest
from conftest import ZSNTTA

from zsntta_cli import demo
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cli.hints import NEXT_STEPS
from zsntta_cli.settings import EncoderChoice


@pytest.mark.slow
def test_the_demo_shows_the_papers_point(tmp_path, zsntta, monkeypatch):
    command = [ZSNTTA, "demo"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    for word in ("zs-clip", "adand", "glyphs", "textures", "other-shapes", "digits", "Average"):
        assert word in result.stdout
    assert result.stdout.endswith(NEXT_STEPS + "\n")

    records = demo.simulate(tmp_path / "features")
    assert len(records) == 2 * 4 * 4
    acc_s = {r.settings.method: r.accuracies.acc_s for r in records if r.settings.stream.ratio == 0}
    assert acc_s["adand"] > acc_s["zs-clip"] + 0.02, "AdaND keeps the clean stream's accuracy"
    for ratio in (0.25, 0.5, 0.75):
        acc_h = {
            method: sum(
                r.accuracies.acc_h
                for r in records
                if (r.settings.method, r.settings.stream.ratio) == (method, ratio)
            ) / 4
            for method in ("zs-clip", "adand")
        }  # fmt: skip
        assert acc_h["adand"] > acc_h["zs-clip"], ratio

    shapes = hdf5.read_features(
        feature_path(tmp_path / "features", EncoderChoice("tiny").slug, "shapes")
    )
    [text] = shapes.text_features.values()
    predicted = (shapes.image_features.astype("float32") @ text.T).argmax(axis=1)
    assert 0.70 <= (predicted == shapes.labels).mean() <= 0.95, "honest zero-shot accuracy"

    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.stdout == result.stdout
    assert again.stderr.count("there already") == 6

    monkeypatch.setattr(demo, "LIVE_LIMIT", 24)
    live = zsntta("demo", "--live")  # in the same folder
    assert live.exit_code == 0, live.stderr
    assert "on the first 24 samples of each stream" in live.stdout
    for method in ("tent", "sotta", "tpt", "adand+tent"):
        assert f"│ {method} " in live.stdout
