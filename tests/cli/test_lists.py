"""Lists as people type them stand for options that are repeated."""

import pytest

MADE = ("--encoder", "made", "--id", "pets", "--ood", "sky", "--noise", "none", "--set", "warmup=1")
PAIRS = {
    ("--seed", "0-2"): ("--seed", 0, "--seed", 1, "--seed", 2),
    ("--seed=1,3-4",): ("--seed", 1, "--seed", 3, "--seed", 4),
    ("--seed", "0 – 2"): ("--seed", "0-2"),
    ("--preset", "Paper,official"): ("--preset", "paper", "--preset", "official"),
    ("--columns", "auroc, fpr95"): ("--columns", "auroc", "--columns", "fpr95"),
    ("--ratio", "natural,0.1"): ("--ratio", "natural", "--ratio", 0.1),
    ("--set", "update-every=16,32"): ("--set", "update-every=16", "--set", "update-every=32"),
    ("--threshold", "adaptive,0.4"): ("--threshold", "adaptive", "--threshold", 0.4),
    ("--method", "AdaND,TDA"): ("--method", "adand", "--method", "tda"),
}


@pytest.mark.parametrize("typed", PAIRS, ids=lambda words: " ".join(map(str, words)))
def test_a_list_is_its_values(zsntta, features, typed):
    def asked(*options):
        made = [*MADE, "--features-dir", features, "--format", "csv", "--dry-run"]
        return zsntta("simulate", "--method", "adand,tda", *made, *map(str, options))

    several = asked(*PAIRS[typed])
    assert several.exit_code == 0, several.stderr
    assert asked(*typed).stdout == several.stdout


def test_names_in_any_case_and_formats_by_other_words(zsntta):
    for one, other in (
        ("datasets show SVHN", "datasets show svhn"),
        ("methods show AdaND", "methods show adand"),
        ("methods show adand --format TeX", "methods show adand --format latex"),
        ("methods show adand --format MD", "methods show adand --format markdown"),
    ):
        assert zsntta(*one.split()).stdout == zsntta(*other.split()).stdout
