"""The shipped words of WordNet, the tool that makes them, and the lists made of them."""

import re

from zsntta_cli.datasets.words import built_in_words, wordnet

# Distinct first lemmas of synsets, counted in WordNet 3.0's database by awk, sort and uniq.
COUNTS = {
    "noun.Tops": 50, "noun.act": 5890, "noun.animal": 7362, "noun.artifact": 10329,
    "noun.attribute": 2728, "noun.food": 2477, "noun.person": 9627, "noun.plant": 7630,
    "noun.time": 930, "adj.all": 10994, "adj.pert": 3394, "adj.ppl": 60,
}  # fmt: skip


def test_the_shipped_words_are_wordnets():
    by_file = wordnet()
    assert len(by_file) == 26 + 3
    assert {name: len(by_file[name]) for name in COUNTS} == COUNTS
    for name, words in by_file.items():
        assert len({*words}) == len(words), name
        assert all(re.fullmatch(r"[^\s_(A-Z]([^_(A-Z]*[^\s_(A-Z])?", word) for word in words)
    assert {"dog", "aardvark"} <= {*by_file["noun.animal"]}
    assert "domestic dog" not in by_file["noun.animal"], "dog's second lemma"
    assert "outback" in by_file["adj.all"], "outback(a) in the database"


def test_lists_of_nouns_and_of_adjectives_that_are_no_nouns():
    nouns, adjectives = built_in_words("wordnet-nouns"), built_in_words("wordnet-adjectives")
    assert (len(nouns), len(adjectives)) == (67_186, 12_217)
    assert not set(nouns) & set(adjectives)
    assert len({*nouns, *adjectives}) == 79_403
    assert "orange" in nouns


def test_csp_leaves_groups_out_and_makes_phrases_of_adjectives():
    nouns, phrases = built_in_words("csp-nouns"), built_in_words("csp-adjectives")
    assert "aardvark" in nouns
    # Each is of a single file of the database.
    assert not {"actress", "handful", "dynasty"} & set(nouns)
    [able] = [phrase for phrase in phrases if phrase.startswith("able ")]
    used = {phrase.rpartition(" ")[2] for phrase in phrases}
    assert able.split()[1] in used
    assert len(used) == 14
    assert built_in_words("csp-adjectives") == phrases, "the same draw each time"
