"""What each known set is, held against a table: labels, names, ids, fingerprint and pixels.

Features that were made from a set stay valid only if none of these changes. The table is written
anew by `python tests/datasets/test_known_table.py`, and only on purpose.
"""

import hashlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
import originals  # noqa: E402

from zsntta_cli import datasets  # noqa: E402

TABLE = ROOT / "fixtures" / "known_sets.json"


def digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def picture(seed=0, size=(8, 8), form="bmp"):
    """A picture whose bytes no version of an encoder changes, of a size of its own."""
    shape = (size[1], size[0] + seed % 7, 3)
    content = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    Image.fromarray(pixels).save(content, form)
    return content.getvalue()


def row_of(name, monkeypatch, root):
    """The digests of a small set of this name, made and read."""
    monkeypatch.setattr(originals, "picture", picture)
    originals.made(name, monkeypatch, root)
    images = datasets.load_images(originals.spec_of(name), root)
    pixels = b"".join(images.read(i).tobytes() for i in range(len(images)))
    return {
        "labels": images.labels.tolist() if len(images) < 9 else digest(images.labels.tobytes()),
        "class_names": digest("\0".join(images.class_names).encode()),
        "sample_ids": digest("\0".join(images.sample_ids).encode()),
        "fingerprint": digest(images.fingerprint.encode()),
        "identity": images.identity()["digest"][:16],
        "pixels": digest(pixels),
    }


@pytest.mark.parametrize("name", originals.NAMES)
def test_a_known_set_is_what_it_was(name, monkeypatch, tmp_path):
    assert row_of(name, monkeypatch, tmp_path / "data") == json.loads(TABLE.read_text())[name]


if __name__ == "__main__":
    import tempfile

    rows = {}
    for set_name in originals.NAMES:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            rows[set_name] = json.dumps(row_of(set_name, patch, Path(folder) / "data"))
    table = ",\n".join(f'"{name}": {row}' for name, row in rows.items())
    TABLE.write_text(f"{{\n{table}\n}}\n")
