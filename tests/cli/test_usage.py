"""Wrong usage is one line in this program's words, not in those of the libraries below it."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from made import ZSNTTA, fails

from zsntta_cli.cli import COMMANDS

THEIRS = re.compile(
    r"Value error|Input should|Invalid value|is not a valid|unable to parse"
    r"|No such (?!file)|Possible options|Missing|requires|unexpected|Errno|codec|Expecting"
)
ADAND = "simulate --method adand"


@pytest.mark.parametrize("name", ["simulate", "extract", "detect"])
def test_no_option_lets_a_library_speak(zsntta, name):
    """None of these commands runs: what it works on is not named."""
    options = [p for p in COMMANDS[name].params if not getattr(p, "is_flag", True)]
    answers = [zsntta(name, f"{option.opts[0]}=x!y") for option in options]
    assert len(answers) >= 15
    for answer in answers:
        assert answer.exit_code in (1, 2), answer.output
        assert not THEIRS.search(answer.stderr), answer.stderr
    assert sum("is 'x!y', must be" in answer.stderr for answer in answers) >= 2


@pytest.mark.parametrize(
    ("typed", "said"),
    {
        # commands and options
        "nonsense": " -h.\n",
        "simulat": "error: there is no command simulat (did you mean 'simulate'?).",
        "records x!y": "error: there is no command x!y.",
        "cache shov": "no command shov (did you mean 'show'?). See ",
        "help simulat": "simulat",
        "--seed 3 simulate": "error: --seed stands behind its command: ",
        "--model=tiny cache list": "error: there is no option --model.",
        "simulate --nonsens 3": "no option --nonsens (did you mean '--noise'?).",
        "extract --id cifar10": "error: there is no option --id.",
        "simulate -q": "error: there is no option -q.",
        "simulate --seed": "error: --seed needs a value.",
        "simulate --dry-run=1": "error: --dry-run takes no value.",
        "simulate adand": "error: one argument too many: adand.",
        "methods show": "error: an argument is missing: NAME.",
        "extract": " -h.\n",
        "simulate --seed 0": "say what to run: --method NAME, such as adand, or all; zsntta",
        # what is given twice, or contradicts itself
        "demo --features-dir=a --features-dir=b": "error: --features-dir is given 2 times",
        f"{ADAND} --jobs 1 --jobs 2": "--jobs is given 2 times",
        f"{ADAND} --model tiny --model tiny": "--model is given 2 times",
        "extract --dataset digits --limit 1 --limit 2 --limit 3": "--limit is given 3 times",
        "cache list --encoder a --encoder b": "--encoder is given 2 times",
        f"{ADAND} --model tiny --encoder x": "encoder is 'x' and model is 'tiny': features are of",
        "cache show pets --precision fp16 --encoder x": "encoder is 'x' and precision is 'fp16'",
        # values
        "simulate --seed x": "--seed is 'x', must be a whole number, a list",
        "simulate --seed 4-0": "error: the range '4-0' goes down: type 0-4.",
        "simulate --format pdf": "--format is 'pdf', must be one of: table, markdown,",
        "simulate --threshold auto": "must be a number such as 0.5, or adaptive",
        "datasets verify --workers=0": "--workers is '0', must be at least 1.",
        "simulate --method x": "more: zsntta methods lists them",
        "simulate --method adnd": "(did you mean 'adand'?): zsntta methods lists them\n",
        "simulate --method magic": "method is 'magic', must be one of: zs-clip, adand",
        f"{ADAND} --set adand.wormup=1": "wormup is no setting of adand (did you mean 'warmup'?)",
        f"{ADAND} --columns acch": "(did you mean 'acc_h'?): docs/results.md lists them\n",
        f"{ADAND} --preset papr": "(did you mean 'paper'?)",
        f"{ADAND} --noise gausian": "(did you mean 'gaussian'?)",
        f"{ADAND} --noise pink": "noise is 'pink', must be one of: gaussian",
        f"{ADAND} --ratio 25": "ratio is 25.0, must be in [0, 1)",
        f"{ADAND} --ratio 1": "ratio is 1.0, must be in [0, 1)",
        f"{ADAND} --ratio half": "ratio is 'half', must be a number in [0, 1) or natural.",
        f"{ADAND} --seed -1": "seed is -1, must be 0 or more",
        f"{ADAND} --noise-every 0": "noise-every is 0, must be 1 or more",
        f"{ADAND} --prompt 'a photo'": "prompt 'a photo' is neither one of code, paper, clip-80,",
        f"{ADAND} --set reevaluate=perhaps": "reevaluate is 'perhaps', must be",
        f"{ADAND} --precision int8": "precision is 'int8', must be one of: fp32, fp16, bf16, amp.",
        "simulate --method tent --jobs 2": "live methods take the whole machine: jobs must be 1.\n",
        "simulate --method tent --set pipeline=best": "pipeline is 'best', must be one of: normal",
    }.items(),
)
def test_wrong_usage_is_one_line_that_names_the_mend(zsntta, typed, said):
    answer = zsntta(*shlex.split(typed))
    fails(answer, said, code=2)
    assert not THEIRS.search(answer.stderr)
    assert len(answer.stderr) < 400


@pytest.mark.parametrize(
    ("typed", "said"),
    {
        f"{ADAND} --id shape --model tiny": "(did you mean 'shapes'?)",
        f"{ADAND} --ood glyph --model tiny": "(did you mean 'glyphs'?)",
        f"{ADAND} --id cifar1 --model tiny": "did you mean 'cifar10'?",
        f"{ADAND} --model tny": "no model 'tny' (did you mean 'tiny'?)",
        f"{ADAND} --model RN5": "no model 'RN5' (did you mean 'RN50'?)",
        "paper 10 --model tny": "open_clip has no model 'tny' (did you mean 'tiny'?)",
        "extract --dataset cifar10 --model tny": "no model 'tny' (did you mean 'tiny'?)",
        "extract --dataset digits --model VIT-B-16": "(did you mean 'ViT-B-16'?)",
        "extract --dataset cifar01 --model tiny": "no data set 'cifar01' (did you mean 'cifar10'?",
        "datasets show svnh": "no data set 'svnh' (did you mean 'svhn'?)",
    }.items(),
)
def test_names_of_what_is_not_there_are_asked_for(cached, typed, said):
    fails(cached(*typed.split()), said)


def test_help_is_a_command_too(zsntta):
    assert zsntta("help").stdout == zsntta("--help").stdout
    assert zsntta("help", "cache", "show").stdout == zsntta("cache", "show", "-h").stdout
    assert zsntta("--version").stdout.startswith("zsntta ")


@pytest.mark.parametrize(
    ("group", "stands_for"),
    [("", "--help"), ("cache", "--help"), ("datasets", "list"), ("records", "list")],
)
def test_a_group_without_a_command_helps_or_lists(tmp_path, group, stands_for):
    """In processes of their own: what the entry point gives back is seen here."""

    def ask(*words):
        command = [ZSNTTA, *group.split(), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert ask() == ask(stands_for)


def test_the_page_on_methods_shows_what_is_said(zsntta):
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ zsntta (.*)\n(error: .*\n)", page, re.MULTILINE)
    assert len(shown) == 2
    for typed, line in shown:
        said = zsntta(*typed.split()).stderr.replace("See root", "See zsntta")
        assert said == line


def test_ctrl_c_while_the_line_is_read_is_said(monkeypatch, zsntta):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("zsntta_cli.cli.line.command.TyperGroup.parse_args", interrupt)
    answer = zsntta("methods", "list")
    assert (answer.exit_code, answer.stderr) == (130, "interrupted.\n")
