"""Grids of runs: all combinations, in one process or several; which sets they take and lack."""

import csv
import io
import json

from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import Simulator

PAIR = ("--id", "pets", "--ood", "sky")


def timeless(text):
    return [
        {k: v for k, v in r.items() if k not in ("seconds", "created")} for r in json.loads(text)
    ]


def test_a_grid_is_all_combinations_and_equals_its_single_runs(simulate, features):
    result = simulate(
        "--method", "adand", "--method", "zs-clip", "--id", "pets", "--id", "birds",
        "--ood", "sky", "--ood", "sand", "--ratio", 0.25, "--ratio", 0.5, "--seed", 0, "--seed", 1,
        "--set", "update-every=16", "--set", "warmup=2", "--set", "warmup=5", "--format", "json",
    )  # fmt: skip
    records = timeless(result.stdout)
    # zs-clip has no warm-up: its runs are there once.
    assert len(records) == 2 * 2 * 2 * 2 * (2 + 1)
    for record in (records[0], records[7], records[-1]):
        single = Simulator(features).run(RunSettings.of(record["settings"])).to_dict()
        assert single["accuracies"] == record["accuracies"]
        assert single["detection"] == record["detection"]


def test_all_is_every_method_that_needs_nothing_more_and_the_others_are_named(simulate):
    done = simulate("--method", "all", *PAIR, "--limit", 40, "--format", "json")
    assert done.exit_code == 0, done.stderr
    methods = {record["settings"]["method"] for record in json.loads(done.stdout)}
    assert {"zs-clip", "adand", "adand+tda"} <= methods
    assert not {"tent", "clipn"} & methods
    [note] = [line for line in done.stderr.splitlines() if "left out" in line]
    assert note.startswith(f"note: all means {len(methods)} methods; left out: ")
    assert "tent, sotta, tpt and 4 more (live, they encode images)" in note
    assert "clipn (needs the features of its 'no' text encoder)" in note


def test_no_set_is_its_own_ood_set(simulate):
    both = ("--id", "pets", "--id", "birds", "--ood", "pets", "--ood", "birds")
    records = json.loads(simulate("--method", "zs-clip", *both, "--format", "json").stdout)
    pairs = [(r["settings"]["id_set"], r["settings"]["ood_set"]) for r in records]
    assert pairs == [("pets", "birds"), ("birds", "pets")]
    result = simulate("--method", "zs-clip", "--id", "pets", "--ood", "pets")
    assert "'pets' cannot be its own OOD set" in result.stderr


def test_all_means_every_cached_set_but_the_id_set(simulate):
    result = simulate("--method", "zs-clip", "--id", "pets", "--ood", "all", "--format", "json")
    assert [r["settings"]["ood_set"] for r in json.loads(result.stdout)] == ["birds", "sand", "sky"]


def test_a_pair_that_is_not_listed_takes_the_settings_of_its_parts(simulate):
    command = ("--method", "oodd+bca", *PAIR, "--ratio", 0.25)
    done = simulate(*command, "--set", "oodd-items=64", "--format", "csv")
    assert done.exit_code == 0, done.stderr
    [row] = csv.DictReader(io.StringIO(done.stdout))
    assert (row["method"], row["ratio"], row["settings"]) == ("oodd+bca", "0.25", "oodd_items=64")
    refused = simulate(*command, "--set", "warmup=3")
    assert refused.exit_code == 2
    assert "not of oodd+bca" in refused.stderr
