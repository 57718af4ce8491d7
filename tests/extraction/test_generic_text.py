"""The encoder's generic text: beside the class texts, computed once, and never of unit norm."""

import numpy as np
import pytest
from made import TINY

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.identity import is_level_known
from zsntta_cli.encoders import text


def test_it_is_the_mean_of_256_words_and_no_unit_vector():
    asked = []

    def encode(prompts):
        asked.extend(prompts)
        return np.eye(len(prompts), dtype=np.float32)

    feature = text.generic_text(encode)
    np.testing.assert_allclose(feature, 1 / 256)
    assert len(set(asked)) == 256
    assert all(p.startswith("a photo of a ") and p.endswith(".") for p in asked)
    words = text.generic_source().removeprefix("a photo of a {}. ").split(", ")
    assert [f"a photo of a {word}." for word in words] == asked


def test_it_stands_beside_class_texts_and_is_added_where_it_lacks(cached, tmp_path):
    path = feature_path(tmp_path / "features", "tiny", "shapes")
    first, others = store.read(path), feature_path(tmp_path / "features", "tiny", "glyphs")
    assert 0 < np.linalg.norm(first.generic) < 0.999
    assert first.generic_source == text.generic_source()
    assert store.read(others).generic is None, "a set without class texts has none"
    bare = store.Features(**{**vars(first), "generic": None, "generic_source": ""})
    store.write(bare, store.read_sample_ids(path))
    assert store.read(path).generic is None
    done = cached("extract", "--dataset", "shapes", "--limit", "300", *TINY)
    assert "there already" in done.output
    again = store.read(path)
    assert again.generic.tobytes() == first.generic.tobytes()
    assert again.digest == first.digest


@pytest.mark.parametrize(
    ("model", "pretrained", "known"),
    [("ViT-B-32", "openai", True), ("ViT-B-16-quickgelu", "openai", True),
     ("ViT-L-14-336", "openai", True), ("ViT-B-32", "laion2b_s34b_b79k", False),
     ("RN50", "openai", False), ("tiny", "embedded", False)],
)  # fmt: skip
def test_the_level_is_known_of_openais_vits(model, pretrained, known):
    assert is_level_known({"model": model, "pretrained": pretrained}) is known
    assert not is_level_known({})
