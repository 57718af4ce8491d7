"""What import, show and verify say of zero-shot accuracy."""

import numpy as np
import pytest
from made import PROMPT

from zsntta_cli.cache import accuracy


@pytest.mark.parametrize(("published", "code"), [(90.5, 0), (88.5, 1)])
def test_it_is_told_beside_the_published_one(zsntta, tmp_path, monkeypatch, published, code):
    """All images are at the axes of their classes but one in ten, at that of the next class."""
    row = accuracy.PublishedAccuracy("tiny", "embedded", "shapes", 100, PROMPT, published, "us")
    monkeypatch.setattr(accuracy, "table", lambda: [row])
    labels = np.arange(100) % 10
    rows = np.eye(10)[(labels + (np.arange(100) < 10)) % 10]
    np.savez(tmp_path / "own.npz", features=rows, labels=labels, text_features=np.eye(10))
    line = f"zero-shot accuracy 90.00 % (published: {published:.2f})"
    result = zsntta(
        "cache", "import", "shapes", "--features", tmp_path / "own.npz", "--encoder",
        "tiny-embedded", "--prompt", PROMPT,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert f"note: shapes: {line}\n" in result.stderr
    assert ("1.5 points above the published accuracy (us)" in result.stderr) == bool(code)
    assert line in zsntta("cache", "show", "shapes").stdout
    verified = zsntta("cache", "verify", "--published")
    assert verified.exit_code == code
    assert line in verified.stdout
    assert zsntta("cache", "verify").exit_code == 0
