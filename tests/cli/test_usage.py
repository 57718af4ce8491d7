"""Wrong usage is answered in this program's words, not in those of the libraries below it."""

import re
from pathlib import Path

import pytest
from made import fails

from zsntta_cli.cli import COMMANDS

THEIRS = re.compile(
    r"Value error|Input should|Invalid value|is not a valid|unable to parse"
    r"|No such (?!file)|Possible options|Missing|requires|unexpected|Errno|codec|Expecting"
)


@pytest.mark.parametrize("name", ["simulate", "extract", "detect"])
def test_no_option_lets_a_library_speak(zsntta, name):
    """None of these commands runs: what it works on is not named."""
    options = [p for p in COMMANDS[name].params if not getattr(p, "is_flag", True)]
    answers = [zsntta(name, f"{option.opts[0]}=x!y") for option in options]
    assert len(answers) >= 20
    for answer in answers:
        assert answer.exit_code in (1, 2), answer.output
        assert not THEIRS.search(answer.stderr), answer.stderr
    assert sum("is 'x!y', must be" in answer.stderr for answer in answers) >= 2


@pytest.mark.parametrize(
    ("typed", "said"),
    {
        ("simulate", "--seed", "x"): "--seed is 'x', must be a whole number, a list",
        ("simulate", "--seed", "4-0"): "error: the range '4-0' goes down: type 0-4.",
        ("simulate", "--format", "pdf"): "--format is 'pdf', must be one of: table, markdown,",
        ("simulate", "--threshold", "auto"): "must be a number such as 0.5, or adaptive",
        (
            "simulate",
            "--seed",
            "0",
        ): "say what to run: --method NAME, such as adand, or all; zsntta",
        ("simulate", "--method", "adanf"): "did you mean 'adand'?",
        ("simulate", "--method", "x"): "more: zsntta methods lists them",
        ("simulate", "--nonsens", "3"): "no option --nonsens (did you mean '--noise'?).",
        ("extract", "--id", "cifar10"): "error: there is no option --id.",
        ("simulate", "-q"): "error: there is no option -q.",
        ("simulate", "--seed"): "error: --seed needs a value.",
        ("simulate", "--dry-run=1"): "error: --dry-run takes no value.",
        ("simulate", "adand"): "error: one argument too many: adand.",
        ("methods", "show"): "error: an argument is missing: NAME.",
        ("demo", "--features-dir=a", "--features-dir=b"): "error: --features-dir is given 2 times",
        ("simulate", "--seeds"): "error: --seeds is '', must be the number of seeds",
        ("simulate", "--method", "adnd"): "(did you mean 'adand'?): zsntta methods lists them\n",
        ("simulate", "--method", "adand", "--set", "adand.wormup=1"): (
            "wormup is no setting of adand (did you mean 'warmup'?).\n"
        ),
        ("simulate", "--method", "adand", "--columns", "acch"): (
            "(did you mean 'acc_h'?): docs/results.md lists them\n"
        ),
        (
            "--seed",
            "3",
            "simulate",
        ): "error: --seed stands behind its command: ",
        ("--model=tiny", "cache", "list"): "error: there is no option --model.",
        ("simulat",): "error: there is no command simulat (did you mean 'simulate'?).",
        ("records", "x!y"): "error: there is no command x!y.",
        ("cache", "shov"): "no command shov (did you mean 'show'?). See ",
        ("datasets", "verify", "--workers=0"): "--workers is '0', must be at least 1.",
    }.items(),
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_what_people_type_first(zsntta, typed, said):
    answer = zsntta(*typed)
    fails(answer, said, code=2)
    assert not THEIRS.search(answer.stderr)
    assert len(answer.stderr) < 300


@pytest.mark.parametrize("typed", [("extract",), ("nonsense",), ("simulate", "--nonsense")])
def test_wrong_usage_says_where_the_help_is(zsntta, typed):
    fails(zsntta(*typed), " -h.\n", code=2)


def test_help_is_a_command_too(zsntta):
    assert zsntta("help").stdout == zsntta("--help").stdout
    assert zsntta("help", "cache", "show").stdout == zsntta("cache", "show", "-h").stdout
    fails(zsntta("help", "simulat"), "simulat", code=2)


def test_the_page_on_methods_shows_what_is_said(zsntta):
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ zsntta (.*)\n(error: .*\n)", page, re.MULTILINE)
    assert len(shown) == 2
    for typed, line in shown:
        said = zsntta(*typed.split()).stderr.replace("See root", "See zsntta")
        assert said == line
