"""Runs to tables of an experiment file and back: exactly these runs, in few tables."""

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made import PROMPT

from zsntta_cli.errors import SettingsError
from zsntta_cli.results.experiment.blocks import blocks_of, experiment_text
from zsntta_cli.results.experiment.reading import read_experiment
from zsntta_cli.settings.protocols import PROTOCOLS
from zsntta_cli.simulation.runs import build_run


def run(method="adand", id_set="shapes", ood="glyphs", encoder="tiny", prompt=PROMPT, **values):
    return build_run(method, encoder, id_set, ood, prompt, **values)


def read_back(path, runs):
    """The runs of the file that says some runs, and how many tables it has."""
    path.write_text(experiment_text(blocks_of(runs), "nowhere"), encoding="utf-8")
    experiment = read_experiment(path)
    return experiment.runs(), len(experiment.blocks)


def is_exact(path, runs):
    back, tables = read_back(path, runs)
    assert len(back) == len(set(runs))
    assert set(back) == set(runs), path.read_text()
    return tables


GRID = {
    "method": ("zs-clip", "adand", "ridge", "adand+tda"),
    "id_set": ("shapes", "cifar10"),
    "ood": ("glyphs", "textures", "svhn"),
    "ratio": (0.0, 0.25, 0.5),
    "seed": (0, 1, 2),
}


def grid(**axes):
    axes = {name: values for name, values in (GRID | axes).items() if values}
    combined = itertools.product(*axes.values())
    return list(dict.fromkeys(run(**dict(zip(axes, values, strict=True))) for values in combined))


def test_a_whole_grid_is_one_table(tmp_path):
    assert is_exact(tmp_path / "e.toml", grid()) == 1
    text = (tmp_path / "e.toml").read_text()
    assert 'methods = ["zs-clip", "adand", "ridge", "adand+tda"]' in text
    assert "seed = [0, 1, 2]" in text


def test_other_ratios_orders_and_protocols_are_said_exactly(tmp_path):
    runs = grid(ratio=("natural", 0.5, "0.1..0.7", "steps:0.1,0.5"), order=("shuffled", "class"))
    assert is_exact(tmp_path / "e.toml", runs) == 1
    mixed = [run(protocol=name) for name in PROTOCOLS] + [
        run(ratio=ratio, order=order, ood="glyphs+digits", reset=reset)
        for ratio, order, reset in (
            ("0.1..0.7", "class", "each"), (0.5, "late", "never"), ("natural", "shuffled", "each"),
        )
    ]  # fmt: skip
    is_exact(tmp_path / "mixed.toml", mixed)


def test_clean_streams_stand_in_the_table_of_the_noisy_ones(tmp_path):
    runs = [run(ratio=0.0, seed=s) for s in (0, 1)] + [
        run(ratio=r, seed=s, ood=o) for r in (0.25, 0.5) for s in (0, 1) for o in ("svhn", "lsun")
    ]
    assert is_exact(tmp_path / "e.toml", runs) == 1
    assert is_exact(tmp_path / "e.toml", [*runs, run(ratio=0.0, seed=2)]) == 2


def test_methods_with_settings_of_their_own_share_a_table(tmp_path):
    runs = [run("adand", warmup=w, seed=s) for w in (5, 10) for s in (0, 1)]
    runs += [run("zs-clip", seed=s, fixed=f) for s in (0, 1) for f in (None, 0.5)]
    assert is_exact(tmp_path / "e.toml", runs) == 1
    assert 'threshold = ["adaptive", 0.5]' in (tmp_path / "e.toml").read_text()
    # Another seed of one method alone is another table.
    assert is_exact(tmp_path / "e.toml", [*runs, run("zs-clip", seed=7)]) == 2


def test_pairs_of_several_id_sets_share_a_table(tmp_path):
    pairs = (("shapes", "glyphs"), ("shapes", "textures"), ("cifar10", "svhn"))
    runs = [run(m, i, o, ratio=0.25) for m in ("zs-clip", "adand") for i, o in pairs]
    assert is_exact(tmp_path / "e.toml", runs) == 1
    assert 'ood = ["textures", "glyphs"]' in (tmp_path / "e.toml").read_text().replace(
        '["glyphs", "textures"]', '["textures", "glyphs"]'
    )


def test_presets_that_change_nothing_of_a_method_are_joined(tmp_path):
    runs = [run(m, preset=p) for m in ("zs-clip", "adand") for p in ("paper", "tuned")]
    assert is_exact(tmp_path / "e.toml", runs) == 1


def test_encoders_and_prompts_stand_apart(tmp_path):
    runs = [run(encoder=e) for e in ("tiny", "ViT-B-16-openai")]
    runs += [run(prompt=p) for p in ("a drawing of a {}.", "a {}", 'say "{}" \\ \x7f é 🐱')]
    assert is_exact(tmp_path / "e.toml", runs) == 3
    assert (tmp_path / "e.toml").read_text().count("encoder = ") == 3


def test_what_toml_cannot_say_is_refused():
    with pytest.raises(SettingsError, match="not UTF-8"):
        experiment_text(blocks_of([run(ood="caf\udce9")]), "features")


@st.composite
def partial_runs(draw):
    """Some runs of a wide grid, whatever they have in common."""
    some = draw(st.lists(
        st.fixed_dictionaries({
            "method": st.sampled_from(GRID["method"]),
            "id_set": st.sampled_from(("shapes", "cifar10", "imagenet")),
            "ood": st.sampled_from(GRID["ood"]),
            "ratio": st.sampled_from((0.0, 0.05, 0.5)),
            "seed": st.integers(0, 3),
            "preset": st.sampled_from(("paper", "official", "tuned")),
            "prompt": st.sampled_from((PROMPT, "a {}")),
            "values": st.sampled_from((
                {}, {"warmup": 5}, {"fixed": 0.5}, {"limit": 100}, {"noise": "none"},
                {"noise": "uniform", "noise_every": 4}, {"order": "burst", "reevaluate": False},
            )),
        }), min_size=1, max_size=30,
    ))  # fmt: skip
    return [run(**{k: v for k, v in one.items() if k != "values"}, **one["values"]) for one in some]


@given(partial_runs())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_runs_are_read_back(tmp_path, runs):
    tables = is_exact(tmp_path / "e.toml", runs)
    assert tables <= len(set(runs))


@given(st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_part_of_a_grid_is_read_back(tmp_path, data):
    """Where a run or two are missing the tables stay few."""
    whole = grid(method=("zs-clip", "adand"), id_set=("shapes",))
    missing = data.draw(st.sets(st.sampled_from(whole), max_size=3))
    runs = [one for one in whole if one not in missing]
    assert is_exact(tmp_path / "e.toml", runs) <= 1 + 4 * len(missing)


def test_the_order_of_the_runs_does_not_matter():
    runs = grid(ratio=(0.25, 0.5))[:40]
    texts = {experiment_text(blocks_of(some), "f") for some in (runs, runs[::-1])}
    assert len(texts) == 1


def test_a_path_is_told_from_the_files_folder(tmp_path):
    from zsntta_cli.results.experiment.blocks import relative_to

    assert relative_to(tmp_path / "a" / "features", tmp_path / "b") == str(Path("../a/features"))
