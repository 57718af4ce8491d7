"""Live methods through the command line: tables, records, analysis, and what can go wrong."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from made import TINY, fails
from PIL import Image

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.live import tent
from zsntta_cli.methods.live.base import adapting, entropy, norm_layers
from zsntta_cli.simulation.live import GradientNorms
from zsntta_cli.simulation.stream import Stream

LIVE = ("tent", "sotta", "tpt", "rosita", "unient", "ostta", "adand+tent")
STREAM = (*TINY, "--ood", "glyphs", "--limit", 96)
# Small enough for 96 samples to hold a few steps of each.
TENT, TPT = ("--set", "batch-size=16"), ("--set", "views=3")
SMALL = (*TENT, *TPT, "--set", "update-every=8", "--set", "memory=16", "--set", "warmup=2")


def scores_of(path):
    return list(csv.DictReader(Path(path).read_text().splitlines()))


def test_all_live_methods_give_the_same_twice(cached):
    rate = ("--set", "learning-rate=0.003")  # of all: a few steps are to show
    command = ("simulate", "--method", ",".join(LIVE), *STREAM, *SMALL, *rate, "--format", "json")
    first, again = cached(*command), cached(*command, "--fresh")
    assert first.exit_code == 0, first.stderr
    records, repeated = json.loads(first.stdout), json.loads(again.stdout)
    for name in ("settings", "accuracies", "detection", "counts", "digests"):
        assert [r[name] for r in records] == [r[name] for r in repeated]
    noise = {r["settings"]["method"]: r["counts"]["noise"] for r in records}
    assert noise == {**dict.fromkeys(LIVE, 0), "adand+tent": 12}
    for record in records:
        assert record["counts"]["id"] + record["counts"]["ood"] == 96
        assert record["accuracies"]["acc_h"] > 0.3
    assert len({r["detection"]["auroc"] for r in records}) >= 4  # each adapts in its own way


def test_scores_hold_the_analysis_of_the_figures(cached):
    result = cached("simulate", "--method", "tent", *STREAM, *TENT, "--scores", "items.csv")
    assert result.exit_code == 0, result.stderr
    rows = scores_of("items.csv")
    assert len(rows) == 96
    steps = [i for i, row in enumerate(rows) if row["gradient_clean"] or row["gradient_noisy"]]
    assert steps
    assert all(i % 16 == 0 for i in steps)  # in the row of a batch's first item
    for i in steps:
        norms = [float(rows[i][f"gradient_{k}"] or "nan") for k in ("clean", "noisy")]
        assert np.nanmin(norms) > 0
    assert cached("simulate", "--method", "zs-clip", *STREAM, "--scores", "f.csv").exit_code == 0
    before = [row["id_score"] for row in scores_of("f.csv")]
    assert [row["zero_shot_id_score"] for row in rows] == before
    assert [row["id_score"] for row in rows] != before


def test_gradients_are_of_the_entropy_of_each_kind(tiny):
    """Against autograd on the last layer alone."""
    layers = list(norm_layers(tiny.model.visual).values())
    images = torch.randn(4, 3, tiny.image_size, tiny.image_size, generator=torch.manual_seed(0))
    stream = Stream(np.array([0, 1, 0, 1], np.int8), np.arange(4))
    watch = GradientNorms(stream, tiny.model.visual)
    with adapting(tiny, layers):
        entropies = entropy(tiny.image_features(images)[:, :5])
        watch.item = 2
        watch(entropies, np.arange(4))
        for column, rows in ((watch.clean, [0, 2]), (watch.noisy, [1, 3])):
            parameters = list(layers[-1].parameters())
            loss = entropies[rows].mean()
            gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
            norm = sum(float(g.square().sum()) for g in gradients) ** 0.5
            assert column[2] == pytest.approx(norm, rel=1e-5)
            assert np.isnan(np.delete(column, 2)).all()


# Images of one's own


def test_folders_of_images(zsntta, picture_folder, tmp_path):
    (tmp_path / "other").mkdir()
    for i in range(8):
        pixels = np.random.default_rng(i).integers(0, 256, (50, 40, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "other" / f"{i}.png")
    (picture_folder / "dog" / "0.jpg").write_bytes(b"no image")
    where = ("--dataset", f"mine={picture_folder}", "--dataset", "theirs=other")
    assert zsntta("extract", *TINY, *where, "--skip-broken").exit_code == 0
    command = ("simulate", *TINY, "--method", "tent", "--id", "mine", "--ood", "theirs", *TENT)
    result = zsntta(*command, *where)
    assert result.exit_code == 0, result.stderr
    assert "theirs" in result.stdout
    assert zsntta(*command).stdout == result.stdout, "kept from before"
    items = zsntta(*command, *where, "--ratio", 0, "--scores", "items.csv")
    assert items.exit_code == 0, items.stderr
    assert len(scores_of("items.csv")) == 11, "one was left out"
    fails(zsntta(*command, *where[:2], "--fresh"), "'theirs'", "--dataset NAME=PATH", stdout=None)
    Image.new("RGB", (30, 30)).save(picture_folder / "dog" / "1.jpg")
    fails(zsntta(*command, *where, "--fresh"), "mine.h5", "--overwrite\n", stdout=None)


# Ctrl-C


def test_a_partial_run_is_marked_in_the_table(cached, monkeypatch):
    def stopped_after(parts):
        def run(method):
            for i, part in enumerate(tent.run(method)):
                if i == parts:
                    raise KeyboardInterrupt
                yield part

        monkeypatch.setattr(METHODS["tent"], "run", run)
        run_both = ("simulate", "--method", "tent", "--method", "sotta", *STREAM, *SMALL[:2])
        return cached(*run_both)

    result = stopped_after(3)
    assert result.exit_code == 130
    title = " ".join(result.stdout.split())  # it is folded to the table's width
    assert "PARTIAL: tent against glyphs was stopped after 48 of 96 items" in title
    assert "sotta" not in result.stdout
    assert "interrupted" in result.stderr
    result = stopped_after(0)
    assert (result.exit_code, result.stdout) == (130, "")
