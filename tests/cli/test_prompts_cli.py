"""Prompts that are averaged, by the command line: templates, CLIP's ensembles."""

from pathlib import Path

import numpy as np
from made import PROMPT, TINY, fails

from zsntta_cli.cache import store

SHAPES = ("--dataset", "shapes", "--limit", "40", "--noise", "none", "--no-partners", *TINY)
FILE = Path("features/tiny/shapes.h5")


def averaged(encoder, texts):
    """The mean of a class's prompts, by hand: each of norm 1, and so is their mean."""
    rows = encoder.encode_texts(texts)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    mean = rows.astype(np.float64).mean(axis=0)
    return mean / np.linalg.norm(mean)


def test_templates_together_are_one_prompt(zsntta, tiny):
    result = zsntta("extract", *SHAPES, "--prompt", "a {} | the {}")
    assert result.exit_code == 0, result.output
    (name,) = store.read(FILE).texts
    assert name == "a {} | the {}"
    row = store.read(FILE).texts[name].features[0]
    np.testing.assert_allclose(row, averaged(tiny, ["a circle", "the circle"]), atol=1e-6)
    run = zsntta("simulate", "--method", "zs-clip", "--ratio", "0", "--prompt", name, *TINY)
    assert run.exit_code == 0, run.output


def test_clips_ensembles_have_names(zsntta, tiny):
    result = zsntta("extract", *SHAPES, "--prompt", "clip-cars", "--prompt", "code")
    assert result.exit_code == 0, result.output
    assert {*store.read(FILE).texts} == {"clip-cars", PROMPT}
    assert "note: shapes under 'clip-cars': zero-shot accuracy " in result.stderr
    run = zsntta("simulate", "--method", "zs-clip", "--ratio", "0", "--prompt", "clip-cars", *TINY)
    assert run.exit_code == 0, run.output
    tuned = zsntta("simulate", "--method", "tpt", "--ratio", "0", "--prompt", "clip-cars", *TINY)
    fails(tuned, "several templates", code=2)
