"""Lists as people type them stand for options that are repeated."""

import pytest
from made import TINY, fails

from zsntta_cli.cli.values import in_known_case

MADE = ("--encoder", "made", "--id", "pets", "--ood", "sky", "--noise", "none", "--set", "warmup=1")
PAIRS = {
    ("--seed", "0-2"): ("--seed", 0, "--seed", 1, "--seed", 2),
    ("--seed=1,3-4",): ("--seed", 1, "--seed", 3, "--seed", 4),
    ("--seed", "0-0"): ("--seed", 0),
    ("--seed", "0–2"): ("--seed", "0-2"),
    ("--seed", "0 - 2"): ("--seed", "0-2"),
    ("--preset", "paper,official"): ("--preset", "paper", "--preset", "official"),
    ("--columns", "auroc, fpr95"): ("--columns", "auroc", "--columns", "fpr95"),
    ("--order", "class,burst"): ("--order", "class", "--order", "burst"),
    ("--ratio", "0.25, 0.5"): ("--ratio", 0.25, "--ratio", 0.5),
    ("--ratio", "natural,0.1"): ("--ratio", "natural", "--ratio", 0.1),
    ("--set", "update-every=16,32"): ("--set", "update-every=16", "--set", "update-every=32"),
    ("--set", "positive-alpha=1,2"): ("--set", "positive-alpha=1", "--set", "positive-alpha=2"),
    ("--threshold", "adaptive,0.4"): ("--threshold", "adaptive", "--threshold", 0.4),
}


def asked(zsntta, features, *options, method=("--method", "adand", "--method", "tda")):
    made = [*MADE[:2], "--features-dir", features, *MADE[2:]]
    return zsntta("simulate", *method, *made, "--format", "csv", "--dry-run", *options)


@pytest.mark.parametrize("typed", PAIRS, ids=lambda words: " ".join(map(str, words)))
def test_a_list_is_its_values(zsntta, features, typed):
    several = asked(zsntta, features, *map(str, PAIRS[typed]))
    assert several.exit_code == 0, several.stderr
    assert asked(zsntta, features, *map(str, typed)).stdout == several.stdout


def test_methods_in_one_word_and_in_any_case(zsntta, features):
    several = asked(zsntta, features)
    assert asked(zsntta, features, method=("--method", "AdaND,TDA")).stdout == several.stdout
    fails(asked(zsntta, features, method=("--method", "AdaNN,tda")), "AdaNN", code=2)


def test_known_names_in_any_case_and_formats_by_other_words(zsntta, features):
    several = asked(zsntta, features, "--preset", "official")
    assert asked(zsntta, features, "--preset=Official").stdout == several.stdout
    assert zsntta("datasets", "show", "SVHN").stdout == zsntta("datasets", "show", "svhn").stdout
    assert zsntta("methods", "show", "AdaND").stdout == zsntta("methods", "show", "adand").stdout
    words = ("methods", "show", "adand", "--format")
    assert zsntta(*words, "TeX").stdout == zsntta(*words, "latex").stdout
    assert zsntta(*words, "MD").stdout == zsntta(*words, "markdown").stdout
    for unknown in ("Shapes=SVHN", "/SVHN", "My-Set", "a,B"):
        assert in_known_case(unknown) == unknown
    assert in_known_case("SVHN:fog:5") == "svhn:fog:5"


def test_sets_in_one_word_are_extracted(zsntta, tmp_path):
    command = ("extract", "--dataset", "Shapes,glyphs", "--limit", 4, "--noise", "none", *TINY)
    assert zsntta(*command).exit_code == 0
    made = {path.stem for path in (tmp_path / "features" / "tiny").glob("*.h5")}
    assert made == {"shapes", "glyphs"}
