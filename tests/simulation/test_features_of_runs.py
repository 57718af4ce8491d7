"""Features as a run reads them: their norms, and two names that the released code exchanges."""

import numpy as np
import pytest
from feature_files import write_features
from made import MADE_UP, PROMPT

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.errors import StoreError
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

# Of Food-101, the second and the third the wrong way round.
NAMES = ("apple_pie", "cheese_plate", "Cheesecake", "ramen")
ORDER = [0, 2, 1, 3]  # with the two under each other's name
LABELS = np.repeat(np.arange(4, dtype=np.int32), 10)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Food whose images look as their class's text says, and the same with texts swapped."""
    root = tmp_path_factory.mktemp("food")
    text = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0].astype(np.float32)
    noise = 0.02 * np.random.default_rng(1).standard_normal((60, 8))

    def write(folder, name, rows, labels, classes=(), texts=()):
        write_features(
            root / folder / f"{name}.h5", kind=DATASET, name=name, encoder=MADE_UP, source={},
            blocks=[rows.astype(np.float16)], labels=labels, class_names=classes, texts=texts,
            sample_ids=[f"{i}" for i in range(len(labels))],
        )  # fmt: skip

    images = text[LABELS] + noise[:40]
    for folder, order in (("made", [0, 1, 2, 3]), ("renamed", ORDER)):
        names = [NAMES[i] for i in order]
        texts = [Text(PROMPT, text[:4][order])]
        write(folder, "food101", images, LABELS, names, texts)
        write(folder, "sky", text[[5] * 20] + noise[40:], np.full(20, -1, np.int32))
    return root


def run_of(id_set="food101", preset="paper", folder="made", **values):
    return build_run("zs-clip", folder, id_set, "sky", PROMPT, preset, **values)


def test_official_has_the_names_swapped_as_if_they_and_their_texts_were_exchanged(root):
    simulator = Simulator(root)
    assert simulator.run(run_of("food101")).metric("acc_s") == 1.0
    swapped = simulator.replay(run_of(preset="official"))
    renamed = simulator.replay(run_of(preset="official", folder="renamed", swapped_names=False))
    assert np.array_equal(swapped.stream.row, renamed.stream.row)
    right = [replay.made.decisions.class_index == replay.labels for replay in (swapped, renamed)]
    assert np.array_equal(*right)
    for replay in (swapped, renamed):
        assert (replay.record().metric("acc_s"), replay.record().metric("acc_n")) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("class_names", "unlabelled", "words"),
    [((), 400, "no class names"), (("cat", "dog", "ox"), 400, "400 images of 400 without a label"),
     (("cat", "dog", "ox"), 1, "1 image of 400 without a label")],
)  # fmt: skip
def test_a_set_without_classes_for_all_images_is_no_id_set(
    features, tmp_path, class_names, unlabelled, words
):
    pets = store.read(features / "made" / "pets.h5")
    labels = np.where(np.arange(400) < unlabelled, -1, pets.labels)
    write_features(
        tmp_path / "made" / "some.h5", kind=DATASET, name="some", encoder=MADE_UP, source={},
        blocks=[pets.image_features], labels=labels, class_names=class_names,
        sample_ids=[str(i) for i in range(400)],
        texts=[Text(PROMPT, pets.texts[PROMPT].features)] if class_names else [],
    )  # fmt: skip
    with pytest.raises(StoreError, match=f"'some' cannot be an ID set: it has {words}"):
        Simulator(tmp_path).run(build_run("zs-clip", "made", "some", None, PROMPT, ratio=0.0))
