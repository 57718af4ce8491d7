"""Grids of runs: all combinations, in one process or several; which sets they take and lack."""

import csv
import io
import json

import pytest

from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.simulator import Simulator

PAIR = ("--id", "pets", "--ood", "sky")


def test_a_grid_is_all_combinations_and_equals_its_single_runs(simulate, features):
    result = simulate(
        "--method", "adand", "--method", "zs-clip", "--id", "pets", "--id", "birds",
        "--ood", "sky", "--ood", "sand", "--ratio", 0.25, "--ratio", 0.5, "--seed", 0, "--seed", 1,
        "--set", "update-every=16", "--set", "warmup=2", "--set", "warmup=5", "--format", "json",
    )  # fmt: skip
    records = json.loads(result.stdout)
    # zs-clip has no warm-up: its runs are there once.
    assert len(records) == 2 * 2 * 2 * 2 * (2 + 1)
    for record in (records[0], records[7], records[-1]):
        single = Simulator(features).run(RunSettings.of(record["settings"])).to_dict()
        assert single["accuracies"] == record["accuracies"]
        assert single["detection"] == record["detection"]


def test_all_is_every_method_that_needs_nothing_more_and_the_others_are_named(simulate):
    done = simulate("--method", "all", *PAIR, "--limit", 40, "--format", "json")
    methods = {record["settings"]["method"] for record in json.loads(done.stdout)}
    assert {"zs-clip", "adand", "adand+tda"} <= methods
    assert not {"tent", "clipn"} & methods
    [note] = [line for line in done.stderr.splitlines() if "left out" in line]
    assert note.startswith(f"note: all means {len(methods)} methods")
    assert "clipn (needs" in note
    assert "tent, sotta, tpt and 4 more (live" in note


@pytest.mark.parametrize(
    ("id_sets", "ood_sets", "pairs"),
    [("pets,birds", "pets,birds", ["pets birds", "birds pets"]),
     ("pets", "all", ["pets birds", "pets sand", "pets sky"])],
)  # fmt: skip
def test_no_set_is_its_own_ood_set(simulate, id_sets, ood_sets, pairs):
    sets = ("--id", id_sets, "--ood", ood_sets)
    records = json.loads(simulate("--method", "zs-clip", *sets, "--format", "json").stdout)
    run = [record["settings"] for record in records]
    assert [f"{settings['id_set']} {settings['ood_set']}" for settings in run] == pairs


def test_a_pair_that_is_not_listed_takes_the_settings_of_its_parts(simulate):
    command = ("--method", "oodd+bca", *PAIR, "--set", "oodd-items=64", "--format", "csv")
    [row] = csv.DictReader(io.StringIO(simulate(*command).stdout))
    assert (row["method"], row["settings"]) == ("oodd+bca", "oodd_items=64")
