"""The words that a run of NegLabel reads from the cache."""

import numpy as np
from feature_files import write_features

from zsntta_cli.cache import store
from zsntta_cli.cache.store import Text
from zsntta_cli.datasets.names import DATASET, WORDS
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, NOUN_PROMPT, SPEECH_PROMPTS
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.sources import Library

ENCODER = {"model": "ViT-B-16", "pretrained": "openai", "precision": "fp32", "logit_scale": 10.0}
ADJECTIVE_PROMPT = SPEECH_PROMPTS["adjectives"]


def unit_rows(seed, rows):
    drawn = np.random.default_rng(seed).standard_normal((rows, 4))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def test_each_list_has_its_prompt_and_a_word_counts_once(tmp_path):
    nouns = [*(f"noun {i}" for i in range(39)), "orange"]
    adjectives = ["orange", *(f"adjective {i}" for i in range(20))]
    for name, kind, rows, classes, prompts in (
        ("cifar10", DATASET, 20, ["cat", "dog"], [DEFAULT_PROMPT, NOUN_PROMPT]),
        ("dtd", DATASET, 20, [], []),
        ("words-nouns", WORDS, 0, nouns, [DEFAULT_PROMPT, NOUN_PROMPT]),
        ("words-adjectives", WORDS, 0, adjectives, [DEFAULT_PROMPT, ADJECTIVE_PROMPT]),
    ):
        write_features(
            tmp_path / "e" / f"{name}.h5", kind=kind, name=name, encoder=ENCODER, source={},
            blocks=[10 * unit_rows(1, rows)],
            labels=np.arange(rows, dtype=np.int32) % max(len(classes), 1),
            sample_ids=[str(i) for i in range(rows)], class_names=classes,
            texts=[Text(p, unit_rows(len(p + name), len(classes))) for p in prompts],
        )  # fmt: skip

    def text(name, prompt):
        return store.read(tmp_path / "e" / f"{name}.h5").texts[prompt].features

    words = "nouns,adjectives"
    run = build_run("neglabel", "e", "cifar10", "dtd", DEFAULT_PROMPT, "official", words=words)
    more = Library(tmp_path).sources(run).more
    assert more.more_sizes == (40, 20), "orange is a noun already"
    assert np.array_equal(more.more_text[:40], text("words-nouns", NOUN_PROMPT))
    assert np.array_equal(more.more_text[40:], text("words-adjectives", ADJECTIVE_PROMPT)[1:])
    assert np.array_equal(more.more_names, text("cifar10", NOUN_PROMPT))
