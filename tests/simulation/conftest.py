"""Made-up features, and the command line on them."""

import numpy as np
import pytest
from made import MADE_UP, PROMPT

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, NOISE, WORDS, Text


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """Two ID sets, two OOD sets, noise and words in 16 dimensions."""
    root = tmp_path_factory.mktemp("made-up") / "features"
    generator = np.random.default_rng(0)
    text = np.linalg.qr(generator.standard_normal((16, 6)))[0].T.astype(np.float32)

    def write(name, centres, labels, kind=DATASET, classes=(), texts=(), ids=None):
        rows = 8 * centres + 1.2 * generator.standard_normal((len(labels), 16))
        hdf5.write_features(
            root / "made" / f"{name}.h5", kind=kind, name=name, encoder=MADE_UP, source={},
            blocks=[rows.astype(np.float16)], labels=np.asarray(labels, np.int32),
            sample_ids=ids or [f"{name}/{i}" for i in range(len(labels))],
            class_names=classes, texts=texts,
        )  # fmt: skip

    for name, names in (("pets", ["cat", "dog", "ox"]), ("birds", ["owl", "rook", "wren"])):
        labels = generator.integers(0, 3, 400)
        texts = [Text(t, text[:3]) for t in (PROMPT, "art of a {}.")]
        write(name, text[labels], labels, classes=names, texts=texts)
    for i, name in enumerate(("sky", "sand")):
        write(name, text[[3 + i] * 300], [-1] * 300)
    write("noise-gaussian", 0.3 * text[[5] * 60], [-1] * 60, NOISE)
    words = [f"word {i}" for i in range(40)]
    embedded = generator.standard_normal((40, 16)).astype(np.float32)
    embedded /= np.linalg.norm(embedded, axis=1, keepdims=True)
    write("words-nouns", np.empty((0, 16)), [], WORDS, words, [Text(PROMPT, embedded)])
    return root


@pytest.fixture
def simulate(zsntta, features, tmp_path):
    def run(*arguments):
        encoder = () if "--from" in arguments else ("--encoder", "made")
        kept = ("--records", tmp_path / "kept.sqlite")
        return zsntta("simulate", *encoder, "--features-dir", features, *kept, *arguments)

    return run
