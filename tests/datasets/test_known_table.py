"""What each known set is, held against a table: labels, names, ids, fingerprint and pixels.

Features that were made from a set stay valid only if none of these changes. The row of a new set is
what the failure shows.
"""

import hashlib
import io
import json

import numpy as np
import originals
import pytest
from made import FIXTURES
from PIL import Image

from zsntta_cli import datasets

TABLE = json.loads((FIXTURES / "known_sets.json").read_text())


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
    assert row_of(name, monkeypatch, tmp_path / "data") == TABLE.get(name)
