"""Commands that errors say to type: each is one that the command line itself takes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import open_clip
import pytest

from zsntta_cli.cache import lacking
from zsntta_cli.cli import cache, demo, program
from zsntta_cli.cli.command import completed
from zsntta_cli.encoders import weights

GIVEN = {
    "the default": {},
    "tiny": {"model": "tiny"},
    "a model": {"model": "RN50", "pretrained": "yfcc15m", "precision": "fp16"},
    "weights of one's own": {"model": "RN50", "pretrained": "my weights/x.pt"},
    "folders": {"features_dir": Path("my features"), "data_root": Path("~/the data")},
    "an encoder of the paper's": {"encoder": "ViT-L-14-openai"},
    "an encoder of the paper's under autocast": {"encoder": "ViT-L-14-openai-amp"},
}
SETS = ("cifar10", "cifar10-c:fog:1", "pets37", "svhn", "mine", "noise-poisson")
TEXTS = {"cifar10": "art of a {}.", "mine": "art of a {}.", "words-nouns": "it's a {}"}
LACKING = {
    **{f"features of {n}": (lacking.missing_features, n) for n in SETS},
    "features of words": (lacking.missing_features, "words-nouns"),
    "features of built-in words": (lacking.missing_features, "words-csp-nouns"),
    **{f"text of {n}": (lacking.missing_text, p, n, (), None) for n, p in TEXTS.items()},
    "words": (lacking.missing_words, "neglabel", ()),
    "one of several words": (lacking.missing_words, "neglabel", ("nouns", "verbs")),
}


def parsed(line):
    """The parameters that a command line is read as; an error where it is none."""
    name, *words = shlex.split(line)
    assert name == "zsntta"
    command, context = program(), None
    while hasattr(command, "commands"):
        context = command.make_context("zsntta", words, parent=context)
        _, command, words = command.resolve_command(context, context._protected_args + context.args)
    return command.make_context(command.name, words, parent=context).params


def proposed(error, given):
    """The commands that an error's line says to type."""
    line = completed(str(error), given)
    [commands] = re.findall(r"(?:type|or|:) (zsntta .*)", line)
    return [parsed(command) for command in commands.split(" && ")]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("kind", LACKING)
def test_what_to_type_is_a_command_of_this_encoder_and_these_folders(kind, given):
    make, *what = LACKING[kind]
    options = GIVEN[given]
    where = (options.get("encoder", ""), Path(options.get("features_dir", "features")))
    params, *_ = proposed(make(*what, *where), options)
    for name in ("features_dir", "data_root"):
        if name in options and name in params:
            assert Path(params[name]) == Path(options[name])
    for name in ("model", "pretrained", "precision"):
        if name in options:
            assert Path(params[name]) == Path(options[name])
    if given == "an encoder of the paper's":
        assert params["model"] == "ViT-L-14"
    if "prompt" in params and kind.startswith("text"):
        assert what[0] in (params["prompt"], *(params["prompt"] or ()))


@pytest.mark.parametrize("kind", ["features of cifar10", "text of mine", "words"])
def test_a_folder_that_no_encoder_is_known_of_is_none_to_extract_to(kind):
    make, *what = LACKING[kind]
    line = completed(str(make(*what, "mine", Path("features"))), {"encoder": "mine"})
    assert "zsntta extract" not in line
    assert line.endswith("'mine' is no encoder that can be loaded here")


def test_partners_that_are_to_be_had_are_proposed(tmp_path):
    easy = lacking.no_partner("cifar10", "ViT-B-16-openai", tmp_path, ("svhn", "lsun"))
    assert proposed(easy, {})[0]["dataset"] == ["svhn"]
    by_hand = lacking.no_partner("cub200", "", tmp_path, ("inaturalist", "sun"))
    assert proposed(by_hand, {})[0]["dataset"] == ["inaturalist", "sun"]
    assert str(lacking.no_partner("mine", "", tmp_path, ())).endswith(": add --ood NAME")


def test_the_next_steps_and_what_to_type_where_nothing_is_cached():
    lines = [line.partition(":")[2].strip() for line in demo.NEXT_STEPS.splitlines()]
    lines += re.findall(r"zsntta [^,]*", cache._NOTHING_CACHED)
    assert len(lines) == 5
    assert all(parsed(line) for line in lines)


@pytest.mark.parametrize("name", ["my cats; rm -rf x", "$(touch x)", "a b", "it's", "`x`"])
@pytest.mark.parametrize("encoder", [("--model", "tiny"), ("--encoder", "else; where")])
def test_what_is_to_be_typed_is_safe_to_paste(cached, name, encoder):
    result = cached("simulate", "--method", "zs-clip", "--id", name, "--ood", "glyphs", *encoder)
    assert result.exit_code in (1, 2)
    typed = result.stderr.partition(": type ")[2]
    words = shlex.split(typed)
    assert not typed or words[:2] in (["zsntta", "extract"], ["zsntta", "cache"])
    assert ";" not in words
    assert not typed or any(name in word for word in words), "one word of the line"


def test_a_model_that_there_is_is_no_misspelt_one(tmp_path):
    """Nor one that a script has added, or one of the hub; open_clip is not imported for this."""
    words = "from zsntta_cli.encoders.weights import misspelt; import sys; "
    models = ["tiny", "RN50", "ViT-B/16", "ViT-B-32", "hf-hub:timm/x", "xxxxxxxx"]
    line = f"{words}print([*map(misspelt, {models})], 'open_clip' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert found.stdout == f"{[''] * 6} False\n"
    open_clip.add_model_config(_small(tmp_path / "RN50-mine.json"))
    assert weights.misspelt("RN50-mine") == ""
    assert weights.misspelt("RN50-mines") == (
        "open_clip has no model 'RN50-mines' (did you mean 'RN50-mine'?)"
    )


def _small(path):
    path.write_text('{"embed_dim": 1, "vision_cfg": {}, "text_cfg": {}}')
    return path
