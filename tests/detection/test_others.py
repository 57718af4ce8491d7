"""Words for what else images may show: lists as people write them, their features, kept states."""

import numpy as np
import pytest
from made import PROMPT
from small_detectors import DIM, detector, world

from zsntta_cli import NoiseDetector, OnlineDetector
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import WORDS, Text
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.datasets.words import built_in_words
from zsntta_cli.detection.classes.others import KeptTexts, OtherWords
from zsntta_cli.errors import DatasetError, SettingsError, StoreError
from zsntta_cli.settings.prompts import NOUN_PROMPT

TEXT, FEATURES, _ = world()
WORD_ROWS = np.random.default_rng(1).normal(size=(5, DIM))


def texts(words, prompt):
    """Features that say what they are of."""
    return np.array([[len(word), len(prompt)] for word in words], np.float32)


# --- lists


def test_a_file_with_odd_lines(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeffsea lion\r\n\n  two words  \n\tsea lion\nZebra\u2028crab".encode())
    read = OtherWords.read(str(path), PROMPT)
    [words] = read.lists
    assert list(words.words) == ["sea lion", "two words", "Zebra", "crab"]
    assert words.prompt == read.class_prompt == PROMPT
    assert read == OtherWords.read(path, PROMPT)


def test_built_in_lists_have_prompts_of_their_own():
    wordnet = OtherWords.read("wordnet", PROMPT)
    assert [words.name for words in wordnet.lists] == ["wordnet-nouns", "wordnet-adjectives"]
    assert wordnet.class_prompt == NOUN_PROMPT
    something = OtherWords.read("something", PROMPT)
    assert list(something.lists[0].words) == built_in_words("cma")
    assert (something.lists[0].prompt, something.class_prompt) == ("{}", PROMPT)
    both = OtherWords.read("wordnet", PROMPT).features(["cat"], PROMPT, texts)
    assert len(both.more_text) == sum(len(words.words) for words in wordnet.lists)
    np.testing.assert_array_equal(both.more_names, [[3, len(NOUN_PROMPT)]])
    assert something.features(["cat"], PROMPT, texts).more_names is None


def test_lists_that_will_not_do(tmp_path):
    with pytest.raises(SettingsError, match="others is 'wordnett', must be wordnet, something, or"):
        OtherWords.read("wordnett", PROMPT)
    with pytest.raises(SettingsError, match="others must be words"):
        OtherWords.read(["cat", 3], PROMPT)
    (tmp_path / "empty").write_text(" \n\n")
    with pytest.raises(DatasetError, match="is empty: one word a line"):
        OtherWords.read(tmp_path / "empty", PROMPT)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DatasetError, match="cannot read the word list"):
        OtherWords.read(tmp_path / "binary", PROMPT)


# --- features


def test_what_was_extracted_is_not_encoded_again(encoding):
    encoding.encoder  # noqa: B018 - loads it, so that its identity is known
    rows = np.eye(2, encoding.encoder.embed_dim, dtype=np.float32)
    hdf5.write_features(
        feature_path(encoding.root, encoding.name, "words-wordnet-nouns"), kind=WORDS,
        name="words-wordnet-nouns", encoder=encoding.identity, source={},
        blocks=[np.empty((0, rows.shape[1]), np.float16)], labels=np.empty(0, np.int32),
        sample_ids=(), class_names=("abacus", "zebra"), texts=[Text(NOUN_PROMPT, rows)],
    )  # fmt: skip
    kept = KeptTexts(encoding, encoding.identity, encoding.texts)
    found = kept(["zebra", "new", "abacus"], NOUN_PROMPT)
    np.testing.assert_array_equal(found[[2, 0]], rows)
    np.testing.assert_array_equal(found[1:2], encoding.texts(["new"], NOUN_PROMPT))
    assert sum(encoding.reporter.advanced) == 1
    other = KeptTexts(encoding, {**encoding.identity, "model": "another"}, encoding.texts)
    np.testing.assert_array_equal(
        other(["zebra"], NOUN_PROMPT)[0], encoding.texts(["zebra"], NOUN_PROMPT)[0]
    )
    assert (other(["zebra"], NOUN_PROMPT)[0] != rows[1]).any()


def test_a_detector_on_images_takes_words():
    names, words = ["circle", "square"], ["letter A", "circle", "letter B"]
    detector = NoiseDetector(names, "tiny", others=words)
    assert len(detector.others.more_text) == 2, "a circle is a class"
    prompts = [f"a photo of a {word}." for word in ("letter A", "letter B")]
    encoded = detector.encoder.encode_texts(prompts)
    np.testing.assert_array_equal(detector.others.more_text, encoded)
    with pytest.raises(SettingsError, match="zs-clip takes no words"):
        NoiseDetector(names, "tiny", method="zs-clip", others=words)
    assert NoiseDetector(names, "tiny").others is None


# --- states


def online(words=WORD_ROWS):
    return detector(other_features=words)


def test_a_state_goes_on_with_the_same_words_alone(tmp_path):
    path, first = tmp_path / "state.h5", online()
    first.update(FEATURES[:100])
    first.save(path)
    again = online()
    again.resume(path)
    one, other = first.update(FEATURES[100:]), again.update(FEATURES[100:])
    np.testing.assert_array_equal(one.score, other.score)
    assert (one.score != online(None).update(FEATURES)[100:].score).any()
    had = f"{path} goes with words for what else images may show, and"
    for others, said in (
        (online(None), "none are given"),
        (online(WORD_ROWS[:4]), "others are given"),
    ):
        with pytest.raises(StoreError) as refused:
            others.resume(path)
        assert str(refused.value) == f"{had} {said} here: give the same."
    with pytest.raises(StoreError, match="none are given here"):
        OnlineDetector.load(path)


def test_a_state_without_words_does_not_go_on_with_some(tmp_path):
    path = tmp_path / "state.h5"
    online(None).save(path)
    with pytest.raises(StoreError, match="goes with no words for what else images may show"):
        online().resume(path)
    assert OnlineDetector.load(path).others is None
