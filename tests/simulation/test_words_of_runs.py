"""Methods that need words or texts of their own: from the command line, with and without."""

import json

import numpy as np

PAIR = ("--id", "pets", "--ood", "sky")


def test_neglabel_needs_words_with_the_prompt(simulate):
    result = simulate("--method", "neglabel", *PAIR, "--prompt", "art of a {}.")
    assert "prompt 'art of a {}.' is not cached for 'words-nouns'" in result.stderr
    result = simulate("--method", "neglabel", *PAIR, "--set", "words=verbs")
    assert "no features of 'words-verbs'" in result.stderr


def test_methods_with_words_decide(simulate):
    methods = ("neglabel", "csp", "adaneg", "tanl", "csp+tda")
    arguments = [a for m in methods for a in ("--method", m)]
    result = simulate(*arguments, *PAIR, "--set", "words=nouns", "--set", "mined-share=0.5",
                      "--set", "groups=3", "--format", "json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    records = json.loads(result.stdout)
    assert [r["settings"]["method"] for r in records] == list(methods)
    assert all(0 < r["accuracies"]["acc_h"] <= 1 for r in records)
    result = simulate("--method", "csp", *PAIR)
    assert "no features of 'words-csp-nouns'" in result.stderr


def test_clipn_needs_its_own_text_features(simulate, tmp_path):
    result = simulate("--method", "clipn", *PAIR)
    assert "an array (3, 16) of finite numbers, one row per class, in the order of" in result.stderr
    assert result.stderr.endswith(": --set no-text=FILE.npy\n")
    np.save(tmp_path / "no.npy", np.ones((2, 16)))
    result = simulate("--method", "clipn", *PAIR, "--set", "no-text=no.npy")
    assert "holds an array (2, 16), but must hold an array (3, 16)" in result.stderr
    np.save(tmp_path / "no.npy", np.array([{}], dtype=object))
    result = simulate("--method", "clipn", *PAIR, "--set", "no-text=no.npy")
    assert "cannot read the 'no' text features no.npy" in result.stderr
    np.save(tmp_path / "no.npy", np.random.default_rng(0).normal(size=(3, 16)))
    result = simulate("--method", "clipn", *PAIR, "--set", "no-text=no.npy", "--report", "ood")
    assert result.exit_code == 0, result.stderr
