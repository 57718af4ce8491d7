"""Wrong usage is one line on standard error that names the mend, and exit code 2."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from made import ZSNTTA, fails

ADAND = "simulate --method adand"


@pytest.mark.parametrize(
    ("typed", "said"),
    {
        # commands and options
        "nonsense": "No such command 'nonsense'. See zsntta -h.\n",
        "simulat": "error: No such command 'simulat'. Did you mean 'simulate'? See",
        "records x!y": "error: No such command 'x!y'.",
        "cache shov": "No such command 'shov'. Did you mean 'show'? See zsntta cache -h.",
        "--seed 3 simulate": "error: --seed stands behind a command",
        "--model=tiny cache list": "error: --model stands behind a command",
        "simulate --nonsens 3": "No such option: --nonsens (Possible options: --noise",
        "extract --id cifar10": "error: No such option: --id",
        "simulate -q": "error: No such option: -q",
        "simulate --plugin x.py": "--plugin stands before the command: zsntta --plugin",
        f"{ADAND} --noise-ratio 0.5": "there is no option --noise-ratio: type --ratio.",
        f"{ADAND} --id-dataset shapes": "there is no option --id-dataset: type --id.",
        f"{ADAND} --warmup 3": "warmup is a setting of adand, adand+tent: type --set warmup=VALUE.",
        "simulate --seed": "error: Option '--seed' requires an argument.",
        "simulate --dry-run=1": "error: Option '--dry-run' does not take a value.",
        "simulate adand": "error: Got unexpected extra argument(s) (adand).",
        "methods show": "error: Missing argument 'name'.",
        "extract": "error: ",
        "simulate --seed 0": "say what to run: --method NAME, such as adand, or all; zsntta",
        # what contradicts itself
        f"{ADAND} --model tiny --encoder x": "encoder is 'x' and model is 'tiny': features are of",
        "cache show pets --precision fp16 --encoder x": "encoder is 'x' and precision is 'fp16'",
        # values
        "simulate --seed x": "'x' is not a whole number, a list",
        "simulate --seed 4-0": "the range '4-0' goes down: type 0-4.",
        "simulate --format pdf": "'--format': 'pdf' is not one of table, markdown,",
        "simulate --threshold auto": "Invalid value for '--threshold': 'auto' is not a number",
        "datasets verify --workers=0": "Input should be greater than or equal to 1",
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
        f"{ADAND} --set noise-every=0": "noise-every is 0, must be 1 or more",
        f"{ADAND} --prompt 'a photo'": "prompt 'a photo' is neither one of code, paper, clip-80,",
        f"{ADAND} --set reevaluate=perhaps": "reevaluate: 'perhaps' must be true or false.",
        f"{ADAND} --precision int8": "precision is 'int8', must be one of: fp32, fp16, bf16, amp.",
        "simulate --method tent --jobs 2": "live methods take the whole machine: jobs must be 1.\n",
        "simulate --method tent --set pipeline=best": "pipeline is 'best', must be one of: normal",
    }.items(),
)
def test_wrong_usage_is_one_line_that_names_the_mend(zsntta, typed, said):
    answer = zsntta(*shlex.split(typed))
    fails(answer, said, code=2)
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


@pytest.mark.parametrize(
    ("group", "stands_for"),
    [("", "--help"), ("cache", "--help"), ("datasets", "list"), ("records", "list")],
)
def test_a_group_without_a_command_helps_or_lists(tmp_path, group, stands_for):
    """In processes of their own: what the entry point gives back is seen here."""

    def ask(*words):
        command = [ZSNTTA, *group.split(), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.rstrip(), done.stderr

    assert ask() == ask(stands_for)


def test_the_page_on_methods_shows_what_is_said(zsntta):
    page = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\$ zsntta (.*)\n(error: .*\n)", page, re.MULTILINE)
    assert len(shown) == 2
    for typed, line in shown:
        said = zsntta(*typed.split()).stderr.replace("See root", "See zsntta")
        assert said == line
