"""Options: any value behind any option of any command, several at a time."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from torture.tool import examples
from zsntta_cli.cli import app

TRIED = "command lines drawn from all options and values"

BASE = {
    ("simulate",): ["--encoder", "made", "--id", "pets", "--ood", "sky", "--method", "adand"],
    ("cache", "list"): [], ("cache", "show"): ["pets"], ("cache", "verify"): ["pets"],
    ("cache", "split"): ["pets"],
    ("cache", "import"): ["new", "--features", "in.npy"],
    ("datasets", "list"): [], ("datasets", "show"): ["cifar10"], ("encoders",): [],
    ("datasets", "verify"): ["mine=pictures"],
    ("detect",): ["--set", "pets", "--encoder", "made"],
    # Without a set that is there: the errors of its options, not an extraction.
    ("extract",): ["--dataset", "mine=none", "--model", "tiny"],
}  # fmt: skip
# What starts minutes of work, looks for a network, has an exit code of its own, or waits for
# whoever reads a pipe.
LEFT_OUT = {"--fail-on-noise", "--debug", "--install-completion", "--show-completion", "--help",
            "--live"}  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-3, 700).map(str),
    st.floats(-2, 2).map(str),
    st.sampled_from(
        ["0.999999999999", "nan", "inf", "-inf", "1e-400", "1e400", "0x10", "1_0", "٣"]
    ),
    st.sampled_from(["9" * 30, "-" + "9" * 400, "1e308", "5e-324", "2147483648", "1.5", "1e3"]),
)
TEXTS = st.one_of(
    st.text(max_size=30).filter(lambda text: "\0" not in text),
    st.sampled_from(
        ["", " ", ".", "..", "/", "../..", "a/b", "-", "--", "-x", "~", "=", "x=", "=x"]
    ),
    st.sampled_from(["x" * 300, "x" * 5000, "\x1b[31mred", "a\nb", "\udcff", "été", "{}", "{} {}"]),
    st.sampled_from(["{0.__class__}", "%s", "$HOME", "[bold]x[/]", "[/x]", "noise-x", "words-x"]),
    st.sampled_from(["true", "yes", "none", "adaptive", "all", "cpu", "auto", "csv", "json"]),
    st.sampled_from(["paper", "official", "zs-clip", "mcm", "tda", "pets", "sky", "made", "tiny"]),
    st.sampled_from(["tent.rho=1", "adand.warmup=x", "tda.mask-low=2", "adand.seed=9", "x.y=z"]),
)
PATHS = st.sampled_from(
    ["in.npy", "none", "pictures", "pipe", ".", "/", "loop", "x" * 300, "in.npy/x", "features", "",
     "pictures/none/deep", "secret", "features/made/pets.h5", "/proc/self/mem", "/dev/zero"]
)  # fmt: skip
# Written to: within the examples' own folder alone.
TARGETS = st.sampled_from(
    ["out/a.csv", "out/b.json", ".", "out", "loop", "in.npy/x", "out/" + "x" * 300, "out/c.h5", ""]
)


def options_of(words) -> list[str]:
    command = get_command(app)
    for word in words:
        command = command.commands[word]
    names = [option for one in command.params for option in (*one.opts, *one.secondary_opts)]
    return [name for name in names if name.startswith("--") and name not in LEFT_OUT]


def value_of(option: str):
    if option in ("--output", "--scores", "--out", "--copy-to"):
        return TARGETS
    if option == "--jobs":
        return st.sampled_from(["1", "0", "-1", "x", "1.5", ""])
    if option == "--model":
        return TEXTS.filter(lambda text: ":" not in text)
    if option in ("--from", "--features", "--labels", "--class-names", "--text", "--words",
                  "--data-root", "--features-dir", "--no-text", "--dataset",
                  "--classes-file"):  # fmt: skip
        return PATHS | TEXTS
    return NUMBERS | TEXTS


@st.composite
def lines(draw):
    words = draw(st.sampled_from(list(BASE)))
    line = list(BASE[words])
    for option in draw(st.lists(st.sampled_from(options_of(words)), min_size=1, max_size=4)):
        line.append(option)
        if draw(st.integers(0, 9)):
            line.append(draw(value_of(option)))
    if draw(st.integers(0, 9)) == 0:
        line.insert(draw(st.integers(0, len(line))), draw(TEXTS))
    return [*words, *line]


@pytest.fixture(scope="module")
def stage(place):
    import numpy as np

    (place / "pictures" / "cat").mkdir(parents=True)
    (place / "out").mkdir()
    (place / "secret").write_text("x")
    np.save(place / "in.npy", np.ones((5, 8), np.float32))
    os.mkfifo(place / "pipe")
    os.symlink("loop", place / "loop")
    return place


@given(line=lines())
@examples(40, 1000)
def test_any_option(zsntta, stage, line):
    answer = zsntta(*line, cwd=stage).check()
    if answer.code == 0:
        assert answer.stdout or answer.stderr or {"--output", "--scores", "--out"} & set(line)
