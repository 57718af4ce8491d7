"""Prompts that are averaged, by the command line: sentences, templates, CLIP's ensembles."""

import json
from pathlib import Path

import numpy as np
import pytest
from made import PROMPT, TINY, fails

from zsntta_cli.cache.features import Text
from zsntta_cli.cache.hdf5 import add_texts, read_features
from zsntta_cli.datasets.drawn.builtin import render

SHAPES = ("--dataset", "shapes", "--limit", "40", "--noise", "none", "--no-partners", *TINY)
FILE = Path("features/tiny/shapes.h5")


def averaged(encoder, texts):
    """The mean of a class's sentences, by hand: each of norm 1, and so is their mean."""
    rows = encoder.encode_texts(texts)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    mean = rows.astype(np.float64).mean(axis=0)
    return mean / np.linalg.norm(mean)


def test_sentences_of_a_file_are_averaged_filed_and_found(zsntta, tiny):
    names = render("shapes").class_names
    sentences = {name: [f"a {name} on paper", f"{name}!", "{} braces"] for name in names}
    Path("cupl.json").write_text(json.dumps(sentences))
    result = zsntta("extract", *SHAPES, "--prompts", "cupl.json")
    assert result.exit_code == 0, result.output
    (filed,) = read_features(FILE).text_features
    assert filed.startswith("cupl@")
    for name, row in zip(names, read_features(FILE).text_features[filed], strict=True):
        np.testing.assert_allclose(row, averaged(tiny, sentences[name]), atol=1e-6)
    run = zsntta("simulate", "--method", "zs-clip", "--ratio", "0", "--prompt", "cupl", *TINY,
                 "--output", "r.json")  # fmt: skip
    assert run.exit_code == 0, run.output
    assert json.loads(Path("r.json").read_text())[0]["settings"]["prompt"] == filed
    assert filed in zsntta("cache", "show", "shapes", *TINY).stdout
    told = zsntta("paper", "2", "--encoder", "tiny", "--prompt", "menon")
    assert told.exit_code == 2, told.output
    meant = zsntta("paper", "2", "--encoder", "tiny", "--prompt", "cupl", "--dry-run")
    assert meant.exit_code == 0, meant.output
    again = zsntta("simulate", "--from", "r.json", "--output", "again.json")
    assert again.exit_code == 0, again.output


def test_templates_together_are_one_prompt(zsntta, tiny):
    result = zsntta("extract", *SHAPES, "--template", "a {}", "--template", "the {}")
    assert result.exit_code == 0, result.output
    (name,) = read_features(FILE).text_features
    assert name == "a {} | the {}"
    row = read_features(FILE).text_features[name][0]
    np.testing.assert_allclose(row, averaged(tiny, ["a circle", "the circle"]), atol=1e-6)
    run = zsntta("simulate", "--method", "zs-clip", "--ratio", "0", "--prompt", name, *TINY)
    assert run.exit_code == 0, run.output
    result = zsntta("extract", *SHAPES, "--template", "code", "--template", "the {}")
    assert result.exit_code == 0, result.output
    filed = {*read_features(FILE).text_features}
    assert filed == {name, f"{PROMPT} | the {{}}"}, "what is named is no text"


def test_clips_ensembles_have_names(zsntta, tiny):
    result = zsntta("extract", *SHAPES, "--prompt", "clip-cars", "--prompt", "code")
    assert result.exit_code == 0, result.output
    assert {*read_features(FILE).text_features} == {"clip-cars", PROMPT}
    assert "note: shapes under 'clip-cars': zero-shot accuracy " in result.stderr
    run = zsntta("simulate", "--method", "zs-clip", "--ratio", "0", "--prompt", "clip-cars", *TINY)
    assert run.exit_code == 0, run.output
    lacking = zsntta("simulate", "--method", "zs-clip", "--ratio", "0", "--prompt", "clip-7", *TINY)
    assert lacking.exit_code == 1
    assert "zsntta extract --dataset shapes --model tiny --prompt clip-7" in lacking.stderr
    tuned = zsntta("simulate", "--method", "tpt", "--ratio", "0", "--prompt", "clip-cars", *TINY)
    assert tuned.exit_code == 2
    assert "prompt 'clip-cars' stands for several templates: give one text with {}" in tuned.stderr


def test_sentences_that_are_not_cached_are_made_by_a_command_that_works(zsntta):
    assert zsntta("extract", *SHAPES).exit_code == 0
    run = ("simulate", "--method", "zs-clip", "--ratio", "0", *TINY, "--prompt")
    lacking = zsntta(*run, "cupl@0123abcd")
    assert lacking.exit_code == 1
    assert "zsntta extract --dataset shapes --model tiny --prompts cupl.json" in lacking.stderr
    unknown = zsntta(*run, "cupl")
    assert unknown.exit_code == 2
    assert "zsntta extract --prompts FILE.json" in unknown.stderr


@pytest.mark.parametrize("name", ["code", "clip-80", "photos"])
def test_no_file_takes_the_name_of_a_built_in_prompt(zsntta, name):
    """One in a stranger's features is no prompt that the name stands for either."""
    names = render("shapes").class_names
    Path(f"{name}.json").write_text(json.dumps({n: [n] for n in names}))
    result = zsntta("extract", *SHAPES, "--prompts", f"{name}.json")
    assert result.exit_code == 2
    assert f"'{name}' is the name of a built-in prompt" in result.stderr
    assert zsntta("extract", *SHAPES).exit_code == 0
    text = read_features(FILE).text_features[PROMPT]
    add_texts(FILE, [Text(f"{name}@0123abcd", text[::-1].copy())])
    run = zsntta("simulate", "--method", "zs-clip", "--ratio", "0", "--prompt", name, *TINY,
                 "--output", "r.json")  # fmt: skip
    assert run.exit_code == (0 if name == "code" else 1), run.output
    if name == "code":
        assert json.loads(Path("r.json").read_text())[0]["settings"]["prompt"] == PROMPT


def test_classes_that_only_the_file_has_are_noted_and_words_have_none_of_it(zsntta):
    names = render("shapes").class_names
    Path("cupl.json").write_text(json.dumps({n: [n] for n in [*names, "zebra"]}))
    Path("mine.txt").write_text("rock\nriver\n")
    result = zsntta("extract", *SHAPES, "--prompts", "cupl.json", "--words", "mine.txt")
    assert result.exit_code == 0, result.output
    assert "cupl has sentences for 1 ('zebra') that are no class of shapes" in result.stderr
    assert {*read_features(Path("features/tiny/words-mine.h5")).text_features} == {PROMPT}


@pytest.mark.parametrize(
    ("options", "said"),
    {
        "--prompts cupl.json": "no sentences for 'square', 'triangle', 'star' and 6 more of its 10",
        "--prompt cupl@0123abcd": "it has to be named: --prompts FILE.json",
        "--prompt clip-81": "neither one of code, paper, clip-80, clip-7, clip-cifar",
        "--prompt cupl": "neither one of code, paper, clip-80, clip-7, clip-cifar",
    }.items(),
)
def test_what_is_no_prompt_is_told_before_anything_is_encoded(zsntta, options, said):
    Path("cupl.json").write_text('{"circle": ["a ring"]}')
    fails(zsntta("extract", *SHAPES, *options.split()), said, code=2, stdout=None)
    assert not FILE.exists()
    assert not list(Path().rglob("*.parts"))
