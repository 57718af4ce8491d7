"""NegLabel with several lists, as its released code has it."""

import numpy as np
import pytest
from feature_files import write_features
from streams import decide

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET, WORDS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, NOUN_PROMPT, SPEECH_PROMPTS
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

TEXT = np.eye(2, 3, dtype=np.float32)
IMAGES = np.array([[1, 0, 0], [0, 2, 0], [0.6, 0, 0.8], [0, 0, 5]], np.float32)
SCALE = 2.0
ADJECTIVE_PROMPT = SPEECH_PROMPTS["adjectives"]


def scores(data, **values):
    return decide("neglabel", data, ThresholdSettings(), **values)[0].id_score


def pool_of(*lists, names=None):
    words = np.array([word for words in lists for word in words], np.float32)
    sizes = tuple(map(len, lists))
    more = {"more_text": words, "more_sizes": sizes, "more_names": names}
    return StreamData.scored(IMAGES, TEXT, SCALE, **more)


# --- NegLabel: what is mined --------------------------------------------------------------------

FAR, NEAR, BETWEEN = (0, 0, 1), (1, 0, 0), (0, 0.6, 0.8)


def test_a_share_is_mined_of_each_list_separately():
    pool = pool_of([FAR, (-1, 0, 0), NEAR, NEAR], [NEAR, BETWEEN])
    # Half of each: both far words of the first list, and of the second the one that is farther.
    found = scores(pool, mined_share=0.5, groups=1)[3]
    negatives = np.exp(SCALE * np.array([1, 0, 0.8])).sum()
    assert found == pytest.approx(2 / (2 + negatives), rel=1e-5)
    # M of both: the two far words of the first list, none of the second.
    found = scores(pool, negatives=2, groups=1)[3]
    assert found == pytest.approx(2 / (2 + np.exp(SCALE) + 1), rel=1e-5)


@pytest.mark.parametrize(
    ("words", "share", "mined"), [(20, 0.15, 3), (19, 0.15, 2), (100, 0.29, 29), (3, 0.15, 1)]
)
def test_a_share_is_rounded_down_to_a_word_or_more(words, share, mined):
    found = scores(pool_of([FAR] * words), mined_share=share, groups=1)[3]
    assert found == pytest.approx(2 / (2 + mined * np.exp(SCALE)), rel=1e-5)


def test_random_groups_leave_the_remainder():
    pool = pool_of([FAR] * 7)
    ranked = scores(pool, groups=3)[3]  # of 3, 2 and 2 words
    shuffled = scores(pool, groups=3, grouping="random")[3]  # of 2 words each
    share = {n: 2 / (2 + n * np.exp(SCALE)) for n in (2, 3)}
    assert ranked == pytest.approx((share[3] + 2 * share[2]) / 3, rel=1e-5)
    assert shuffled == pytest.approx(share[2], rel=1e-5)
    assert scores(pool, grouping="random")[3] == pytest.approx(2 / (2 + np.exp(SCALE)), rel=1e-5), (
        "no more groups than words"
    )


def test_class_names_may_have_another_prompt_than_the_runs():
    names = np.array([[0, 0, 1], [0, 1, 0]], np.float32)
    found = scores(pool_of([NEAR], names=names))[3]
    assert found == pytest.approx((np.exp(SCALE) + 1) / (np.exp(SCALE) + 2), rel=1e-5)


# --- NegLabel: what is read from the cache ------------------------------------------------------

ENCODER = {"model": "ViT-B-16", "pretrained": "openai", "precision": "fp32", "logit_scale": 10.0}


def unit_rows(seed, rows):
    drawn = np.random.default_rng(seed).standard_normal((rows, 4))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def write(root, name, kind, rows, classes, prompts, limit=None):
    write_features(
        root / "e" / f"{name}.h5", kind=kind, name=name, encoder=ENCODER, source={"limit": limit},
        blocks=[10 * unit_rows(1 + len(name), rows)],
        labels=np.arange(rows, dtype=np.int32) % max(len(classes), 1),
        sample_ids=[str(i) for i in range(rows)], class_names=classes,
        texts=[Text(p, unit_rows(len(p + name), len(classes))) for p in prompts],
    )  # fmt: skip


@pytest.fixture
def root(tmp_path):
    write(tmp_path, "cifar10", DATASET, 20, ["cat", "dog"], [DEFAULT_PROMPT, NOUN_PROMPT], limit=20)
    write(tmp_path, "dtd", DATASET, 20, [], [])
    nouns = [f"noun {i}" for i in range(39)] + ["orange"]
    write(tmp_path, "words-nouns", WORDS, 0, nouns, [DEFAULT_PROMPT, NOUN_PROMPT])
    adjectives = ["orange", *(f"adjective {i}" for i in range(20))]
    write(tmp_path, "words-adjectives", WORDS, 0, adjectives, [DEFAULT_PROMPT, ADJECTIVE_PROMPT])
    return tmp_path


def text(root, name, prompt):
    return store.read(root / "e" / f"{name}.h5").texts[prompt].features


def run_of(preset="paper", words="nouns,adjectives", prompt=DEFAULT_PROMPT, **values):
    return build_run("neglabel", "e", "cifar10", "dtd", prompt, preset, words=words, **values)


def test_each_list_has_its_prompt_and_a_word_counts_once(root):
    more = Simulator(root)._library.sources(run_of("official")).more
    assert more.more_sizes == (40, 20), "orange is a noun already"
    nouns, adjectives = more.more_text[:40], more.more_text[40:]
    assert np.array_equal(nouns, text(root, "words-nouns", NOUN_PROMPT))
    assert np.array_equal(adjectives, text(root, "words-adjectives", ADJECTIVE_PROMPT)[1:])
    assert np.array_equal(more.more_names, text(root, "cifar10", NOUN_PROMPT))
