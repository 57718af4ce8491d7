"""Commands that errors say to type: each is one that the command line itself takes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import open_clip
import pytest

from zsntta_cli import cli, errors
from zsntta_cli.cli import program
from zsntta_cli.cli.line import hints
from zsntta_cli.datasets import CATALOGUE
from zsntta_cli.encoders import weights
from zsntta_cli.settings.prompts import CSP_NOUN_PROMPT

COMMANDS = program()
GIVEN = {
    "the default": {},
    "tiny": {"model": "tiny"},
    "a model": {"model": "RN50", "pretrained": "yfcc15m", "precision": "fp16"},
    "weights of one's own": {"model": "RN50", "pretrained": "my weights/x.pt"},
    "folders": {"features_dir": Path("my features"), "data_root": Path("~/the data")},
    "an encoder of the paper's": {"encoder": "ViT-L-14-openai"},
    "an encoder of the paper's under autocast": {"encoder": "ViT-L-14-openai-amp"},
    "an encoder made elsewhere": {"encoder": "mine", "features_dir": Path("my features")},
}
SETS = ("cifar10", "cifar10-c:fog:1", "pets37", "svhn", "mine", "noise-poisson")
ERRORS = {
    **{f"features of {n}": errors.MissingFeatures(n, "", "features", ()) for n in SETS},
    "features of words": errors.MissingFeatures("words-nouns", "", "features", ()),
    "features of built-in words": errors.MissingFeatures("words-csp-nouns", "", "features", ()),
    **{f"text of {n}": errors.MissingText("art of a {}.", n, ()) for n in ("cifar10", "mine")},
    "text of words": errors.MissingText("it's a {}", "words-nouns", ("a {}",)),
    "words' prompt of class names": errors.MissingText(CSP_NOUN_PROMPT, "cifar10", ()),
    "words": errors.MissingWords("neglabel", ()),
    "one of several words": errors.MissingWords("neglabel", ("nouns", "verbs")),
    "partners": errors.NoPartner("cifar10", "features", ("svhn", "lsun")),
    "partners that a hand gets": errors.NoPartner("cub200", "features", ("inaturalist", "sun")),
    "no partners": errors.NoPartner("mine", "features", ()),
}


def parsed(line):
    """The parameters that a command line is read as; an error where it is none."""
    program, *words = shlex.split(line)
    assert program == "zsntta"
    command, context = COMMANDS, None
    while hasattr(command, "commands"):
        context = command.make_context("zsntta", words, parent=context)
        _, command, words = command.resolve_command(context, context._protected_args + context.args)
    return command.make_context(command.name, words, parent=context).params


def typed(line):
    """The commands that an error's line says to type."""
    return re.findall(r"(?:type|or|:) (zsntta .*)", line)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("kind", ERRORS)
def test_what_to_type_is_a_command_of_this_encoder_and_these_folders(kind, given):
    line = hints.worded(ERRORS[kind], GIVEN[given])
    if kind == "no partners":
        assert line.endswith(": add --ood NAME")
        return
    [commands] = typed(line)
    params, *more = [parsed(command) for command in commands.split(" && ")]
    assert not more or given == "an encoder made elsewhere", "one import a set"
    for name in ("features_dir", "data_root"):
        if name in GIVEN[given] and name in params:
            assert Path(params[name]) == Path(GIVEN[given][name])
    if "pretrained" in params:  # extract
        for name in ("model", "pretrained", "precision"):
            if name in GIVEN[given]:
                assert Path(params[name]) == Path(GIVEN[given][name])
        if given == "an encoder of the paper's":
            assert params["model"] == "ViT-L-14"
    else:  # nothing here can make features that were imported
        assert given == "an encoder made elsewhere"
        assert params["encoder"] == "mine"
    if "prompt" in params and kind.startswith("text"):
        assert ERRORS[kind].prompt in (params["prompt"], *(params["prompt"] or ()))


def test_near_misses_are_asked_for():
    def line(name):
        error = errors.MissingFeatures(name, "tiny", "features", ("pets", "sky"))
        return hints.worded(error, {}).removeprefix(f"no features of '{name}' by tiny in features/")

    assert line("pet") == " (did you mean 'pets'?)", "which is cached: there is nothing to type"
    assert line("cifra10") == (
        " (cached: pets, sky): did you mean 'cifar10'? For images of your own type zsntta extract "
        "--dataset cifra10=PATH --model tiny"
    )


def test_every_remedy_has_its_words_and_every_option_in_them_is_one():
    package = Path(cli.__file__).parents[1].rglob("*.py")
    files = [path.read_text(encoding="utf-8") for path in package if path.name != "hints.py"]
    used = {word for text in files for word in re.findall(r'remedy="([\w-]+)"', text)}
    assert used
    assert used <= set(hints._REMEDIES)
    unraised = [w for w in hints._REMEDIES if not any(f'"{w}"' in text for text in files)]
    assert not unraised, "what nothing raises goes"
    params = [p for command in leaves(COMMANDS) for p in command.params]
    known = {option for p in params for option in p.opts}
    for word in used:
        options = re.findall(r"--[\w-]+", hints._REMEDIES[word])
        assert set(options) <= known, word
        line = hints.worded(errors.StoreError("it is so.", remedy=word), {})
        assert line == f"it is so: {hints._REMEDIES[word]}"


def test_built_in_words_are_typed_by_the_name_of_their_set():
    line = hints.worded(errors.MissingFeatures("words-csp-nouns", "", "features", ()), {})
    assert line.endswith("type zsntta extract --words csp")
    line = hints.worded(errors.MissingText(CSP_NOUN_PROMPT, "cifar10", (), 300), {})
    assert line.endswith("type zsntta extract --words csp"), "all lists, however small the set is"
    assert hints.worded(errors.MissingWords("neglabel", ("csp",)), {}).endswith(
        "(cached: csp): name one with --set words=NAME, or type zsntta extract --words wordnet"
    )


def leaves(command):
    inner = getattr(command, "commands", None)
    return [leaf for one in inner.values() for leaf in leaves(one)] if inner else [command]


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_commands_of_a_sets_card(name, tmp_path):
    for command in hints.set_advice(name, CATALOGUE[name], tmp_path)["commands"].splitlines():
        assert parsed(command)


def test_the_next_steps_and_what_to_type_where_nothing_is_cached():
    lines = [line.partition(":")[2].strip() for line in hints.NEXT_STEPS.splitlines()]
    lines += re.findall(r"zsntta [^,]*", hints.NOTHING_CACHED)
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
