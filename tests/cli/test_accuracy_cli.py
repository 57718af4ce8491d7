"""What extract, import, show and verify say of zero-shot accuracy."""

import numpy as np
import pytest
from made import PROMPT

from zsntta_cli.cache import accuracy
from zsntta_cli.datasets.drawn.builtin import render

IMAGES = 1_500


@pytest.fixture(scope="module")
def shapes(tiny):
    """Features of the first shapes, their labels, and the text features of their names."""
    images = render("shapes")
    rows = encoded(tiny, [images.read(i) for i in range(IMAGES)])
    text = tiny.encode_texts([PROMPT.format(name) for name in images.class_names])
    return rows, images.labels[:IMAGES], text, images


def encoded(encoder, pictures):
    return encoder.encode_pixels(np.stack([encoder.resize(p) for p in pictures]))


def share_of(shapes):
    rows, labels, text, _ = shapes
    return float(((np.asarray(rows, np.float32) @ text.T).argmax(1) == labels).mean())


@pytest.fixture
def take_in(zsntta, shapes, tmp_path, monkeypatch):
    """Import them, some of it changed, as features of `shapes` by the embedded encoder.

    What is published is of as many images.
    """
    rows, labels, text, images = shapes
    [row] = [row for row in accuracy.table() if (row.model, row.set) == ("tiny", "shapes")]
    row = row._replace(images=IMAGES, accuracy=round(100 * share_of(shapes), 2))
    monkeypatch.setattr(accuracy, "table", lambda: (row,))

    def run(name="shapes", encoder="tiny-embedded", **changed):
        arrays = {"features": rows, "labels": labels, "text_features": text} | changed
        np.savez(tmp_path / "own.npz", **arrays, class_names=np.array(images.class_names))
        result = zsntta("cache", "import", name, "--features", "own.npz", "--encoder", encoder,
                        "--logit-scale", "20")  # fmt: skip
        assert result.exit_code == 0, result.output
        return result.stderr

    return run


def test_features_as_they_should_be_are_within(take_in, zsntta, shapes):
    said = take_in()
    share = share_of(shapes)
    percent = f"{100 * share:.2f}"
    assert f"shapes: zero-shot accuracy {percent} % (published: {percent})" in said
    assert "warning" not in said
    assert f"zero-shot accuracy {100 * share:.2f}" in zsntta("cache", "show", "shapes").stdout
    verified = zsntta("cache", "verify", "--published")
    assert verified.exit_code == 0
    assert f"ok; zero-shot accuracy {100 * share:.2f} %" in verified.stdout
