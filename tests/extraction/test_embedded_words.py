"""Word lists to features: in parts, by name, with the class names that go beside them."""

import os
import signal
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from made import PROMPT, Notes, fails

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.unfinished import KEPT
from zsntta_cli.datasets import words as word_lists
from zsntta_cli.encoders.text import BATCH, prompt_features
from zsntta_cli.encoders.weights import weights_request
from zsntta_cli.extraction.extractor import Extractor
from zsntta_cli.settings import EncoderChoice, ExtractSettings
from zsntta_cli.settings.prompts import NOUN_PROMPT, WORD_SETS

TINY = EncoderChoice("tiny")
PART = BATCH * KEPT
WORDS = [f"word {i}" for i in range(3 * PART + 100)]
TEMPLATES = [PROMPT, "{} | the {}"]
pytestmark = pytest.mark.usefixtures("noon")


class Batched:
    """An encoder whose features depend on all prompts of a batch, as sums' last bits do."""

    identity: ClassVar = {**weights_request(TINY), "logit_scale": 100.0}
    embed_dim = 8

    def __init__(self, act=lambda batches: None):
        self.act, self.batches = act, 0

    def encode_texts(self, prompts):
        self.act(self.batches)
        self.batches += 1
        seeds = [sum(map(ord, prompt)) for prompt in prompts]
        rows = np.sin(np.outer(seeds, np.arange(1, 9)) + len(prompts) + seeds[0])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def extractor(root, encoder):
    extractor = Extractor(TINY, ExtractSettings(features_dir=root), Notes())
    extractor.encoder = encoder
    return extractor


def path_in(root):
    return feature_path(root, "tiny", "words-many")


ALL, A_PART = -(-len(WORDS) // BATCH), KEPT  # batches of a prompt, of a part


@pytest.mark.parametrize(
    ("at", "finished", "left"),  # a batch, the words that are kept, the batches that are missing
    [(9, 2 * PART, 3 * ALL - 2 * A_PART),  # within the third part; of a joined prompt, two each
     (ALL + 2 * 5, PART, 2 * (ALL - A_PART))],  # one part of the second prompt is finished
)  # fmt: skip
def test_a_killed_list_goes_on_where_it_was(tmp_path, at, finished, left):
    root = tmp_path / "killed"
    child = os.fork()
    if child == 0:  # which dies within a batch

        def die(batches):
            if batches == at:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            extractor(root, Batched(die)).words("words-many", lambda: WORDS, TEMPLATES)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert path_in(root).exists() == (at > ALL)
    resumed = extractor(root, again := Batched())
    assert resumed.words("words-many", lambda: WORDS, TEMPLATES).encoded == len(WORDS)
    assert resumed.reporter.advanced[0] == finished
    assert again.batches == left
    uninterrupted = extractor(tmp_path / "whole", Batched())
    whole = uninterrupted.words("words-many", lambda: WORDS, TEMPLATES)
    assert not uninterrupted.reporter.notes
    assert path_in(root).read_bytes() == whole.path.read_bytes()
    assert "starting over" not in "".join(resumed.reporter.notes)
    assert {p.name for p in path_in(root).parent.iterdir()} == {
        ".words-many.lock", "words-many.h5",
    }  # fmt: skip
    assert extractor(root, again).words("words-many", lambda: WORDS, TEMPLATES).encoded == 0


def test_joined_templates_give_the_mean_of_theirs(tiny):
    each = [tiny.encode_texts([f"{start}circle", f"{start}blue square"]) for start in ("", "the ")]
    mean = sum(each) / 2
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    found = prompt_features(tiny.encode_texts, "{} | the {}", ["circle", "blue_square"])
    np.testing.assert_allclose(found, mean, rtol=1e-5, atol=1e-7)
    assert found.dtype == np.float32


# --- by name, through the command line ----------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """WordNet, as if it were small."""
    by_file = {
        "noun.animal": ("cat", "dog"),
        "noun.person": ("actress", "king"),
        "noun.shape": ("circle",),
        "adj.all": ("blue", "round", "king"),
        "adj.pert": ("feline",),
    }
    monkeypatch.setattr(word_lists, "wordnet", lambda: by_file)


EXTRACT = ("extract", "--model", "tiny", "--words")


def cached_words(name):
    return store.read(Path(f"features/tiny/words-{name}.h5"))


def test_all_sets_are_embedded_under_prompts_of_their_own(cached, few):
    result = cached(*EXTRACT, "wordnet", "--words", "csp", "--words", "cma", "--words", "drawn")
    assert result.exit_code == 0, result.stderr
    prompts = {name: p for one in WORD_SETS.values() for name, p in one.prompts.items()}
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == [
        f"features/tiny/words-{name}.h5" for name in prompts
    ]
    for name, prompt in prompts.items():
        assert list(cached_words(name).texts) == [prompt]
    nouns = ("actress", "cat", "circle", "dog", "king")
    assert cached_words("wordnet-nouns").class_names == nouns
    assert cached_words("wordnet-adjectives").class_names == ("blue", "feline", "round")
    assert cached_words("csp-nouns").class_names == ("cat", "circle", "dog")
    phrases = cached_words("csp-adjectives").class_names
    assert [phrase.split()[0] for phrase in phrases] == ["blue", "king", "round"]
    assert len(cached_words("cma").class_names) == 5
    names = store.read(Path("features/tiny/shapes.h5")).texts
    assert set(names) == {PROMPT, NOUN_PROMPT, WORD_SETS["csp"].class_prompt}
    assert result.stderr.count("class names with the word lists' prompts: ") == 1
    again = cached(*EXTRACT, "wordnet", "--words", "csp", "--words", "cma", "--words", "drawn")
    assert again.stdout.count("already extracted") == len(prompts)
    assert "class names" not in again.stderr


def test_neglabel_runs_at_once_on_the_only_set(cached, few):
    line = ("simulate", "--model", "tiny", "--method", "neglabel", "--ood", "glyphs",
            "--report", "ood", "--limit", "100")  # fmt: skip
    fails(cached(*line, "--set", "words=csp"), "type zsntta extract --words csp --model tiny\n")
    cached(*EXTRACT, "cma")
    fails(cached(*line), "(cached: cma): name one with --set words=NAME, or type zsntta extract")
    cached(*EXTRACT, "wordnet")
    result = cached(*line)
    assert result.exit_code == 0, result.stderr
    assert cached(*line, "--set", "words=wordnet", "--fresh").stdout == result.stdout
    both = cached(*line, "--set", "words=wordnet-nouns,wordnet-adjectives", "--fresh")
    assert both.stdout == result.stdout
    assert cached(*line, "--set", "words=wordnet-nouns").stdout != result.stdout
    assert cached(*line, "--set", "words=cma").exit_code == 0
    cached(*EXTRACT, "drawn")
    assert cached(*line, "--fresh").stdout == result.stdout, "wordnet is meant, whatever is there"


def test_a_set_that_comes_later_gets_the_prompt_of_the_words(cached, few, picture_folder):
    cached(*EXTRACT, "wordnet")
    cached("extract", "--model", "tiny", "--dataset", f"pets={picture_folder}")
    pets = store.read(Path("features/tiny/pets.h5"))
    assert set(pets.texts) == {PROMPT, NOUN_PROMPT}


def test_a_built_in_name_goes_before_a_file_of_that_name(zsntta, few, tmp_path):
    (tmp_path / "wordnet").write_text("apple\n")
    assert zsntta(*EXTRACT, "wordnet").exit_code == 0
    assert "apple" not in cached_words("wordnet-nouns").class_names
    assert zsntta(*EXTRACT, "mine=./wordnet").exit_code == 0
    assert cached_words("mine").class_names == ("apple",)
