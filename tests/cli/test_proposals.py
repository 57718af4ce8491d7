"""Commands that errors say to type: each is one that the command line itself takes."""

import re
import shlex
from pathlib import Path

import pytest

from zsntta_cli.cache import lacking
from zsntta_cli.cli import program
from zsntta_cli.cli.command import completed

GIVEN = {
    "the default": {},
    "a model": {"model": "RN50", "pretrained": "yfcc15m", "precision": "fp16"},
    "weights of one's own": {"model": "RN50", "pretrained": "my weights/x.pt"},
    "folders": {"features_dir": Path("my features"), "data_root": Path("~/the data")},
    "an encoder of the paper's": {"encoder": "ViT-L-14-openai"},
}
LACKING = {
    **{f"features of {name}": (lacking.missing_features, name)
       for name in ("cifar10-c:fog:1", "mine", "noise-poisson", "words-csp-nouns")},
    "text of mine": (lacking.missing_text, "art of a {}.", "mine", (), None),
    "text of words": (lacking.missing_text, "it's a {}", "words-nouns", (), None),
    "one of several words": (lacking.missing_words, "neglabel", ("nouns", "verbs")),
}  # fmt: skip


def parsed(line):
    """The parameters that a command line is read as; an error where it is none."""
    name, *words = shlex.split(line)
    assert name == "zsntta"
    command, context = program(), None
    while hasattr(command, "commands"):
        context = command.make_context("zsntta", words, parent=context)
        _, command, words = command.resolve_command(context, context._protected_args + context.args)
    return command.make_context(command.name, words, parent=context).params


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("kind", LACKING)
def test_what_to_type_is_a_command_of_this_encoder_and_these_folders(kind, given):
    make, *what = LACKING[kind]
    options = GIVEN[given]
    where = (options.get("encoder", ""), Path(options.get("features_dir", "features")))
    line = completed(str(make(*what, *where)), options)
    [commands] = re.findall(r"(?:type|or|:) (zsntta .*)", line)
    params, *_ = map(parsed, commands.split(" && "))
    for name, value in options.items():
        if name in params:
            assert Path(params[name]) == Path(value)
    if "encoder" in options:
        assert params["model"] == "ViT-L-14"
    if kind.startswith("text"):
        assert what[0] in (params["prompt"] or ()) or kind.endswith("words")


@pytest.mark.parametrize("kind", ["features of mine", "text of mine", "one of several words"])
def test_a_folder_that_no_encoder_is_known_of_is_none_to_extract_to(kind):
    make, *what = LACKING[kind]
    line = completed(str(make(*what, "mine", Path("features"))), {"encoder": "mine"})
    assert "zsntta extract" not in line
    assert line.endswith("'mine' is not an encoder that can be loaded here")


@pytest.mark.parametrize("name", ["my cats; rm -rf x", "$(touch x)", "it's"])
@pytest.mark.parametrize("encoder", [("--model", "tiny"), ("--encoder", "else; where")])
def test_what_is_to_be_typed_is_safe_to_paste(cached, name, encoder):
    result = cached("simulate", "--method", "zs-clip", "--id", name, "--ood", "glyphs", *encoder)
    assert result.exit_code in (1, 2)
    typed = result.stderr.partition(": type ")[2]
    words = shlex.split(typed)
    assert ";" not in words
    assert not typed or any(name in word for word in words), "one word of the line"
