"""`simulate --from`: records are run again and compared, and strangers' are refused in a line."""

import json

import numpy as np

PAIR = ("--id", "pets", "--ood", "sky")


def test_runs_are_repeated_from_exported_lines(simulate, zsntta, tmp_path):
    first = simulate("--method", "adand", *PAIR, "--seed", 0, "--seed", 1, "--format", "json")
    export = ("records", "export", "--output", "r.jsonl", "--records", tmp_path / "kept.sqlite")
    assert zsntta(*export).exit_code == 0
    again = simulate("--from", "r.jsonl", "--format", "json")
    assert again.stderr.endswith("2 of 2 records came out the same, bit for bit.\n")
    rows = json.loads(again.stdout)
    for record in json.loads(first.stdout):
        seed, values = record["settings"]["stream"]["seed"], record["detection"]
        [auroc] = [r for r in rows if (r["seed"], r["metric"]) == (seed, "auroc")]
        assert (auroc["old"], auroc["new"], auroc["difference"]) == (*[values["auroc"]] * 2, 0)


def test_a_record_of_other_features_is_said_to_be_one(simulate, tmp_path):
    simulate("--method", "zs-clip", *PAIR, "--format", "json", "--output", "r.json")
    records = json.loads((tmp_path / "r.json").read_text())
    records[0]["digests"]["pets"] = "0" * 64
    (tmp_path / "r.json").write_text(json.dumps(records))
    result = simulate("--from", "r.json")
    assert result.exit_code == 0, result.output
    assert "the features of 'pets' differ from the record's" in result.stdout
    assert "1 of 1 records came out the same" in result.stdout, "only its digest differs"


def test_a_record_is_run_again_although_its_run_is_kept(simulate, tmp_path):
    """What was kept is the record itself, and says nothing; what was run here since then does."""
    first = simulate("--method", "zs-clip", *PAIR, "--format", "json", "--output", "r.json")
    record, kept = json.loads((tmp_path / "r.json").read_text())[0], "were already kept"
    (tmp_path / "old.json").write_text(json.dumps([{**record, "created": "2026-01-01"}]))
    assert first.exit_code == 0
    assert "1 run: 0 kept, 1 to run" in simulate("--from", "r.json", "--dry-run").stdout
    assert kept not in simulate("--from", "r.json").stderr
    assert f"1 of 1 runs {kept}" in simulate("--from", "old.json").stderr
    assert kept not in simulate("--from", "old.json", "--fresh").stderr


def test_the_no_text_file_of_a_record_is_never_opened(simulate, tmp_path):
    np.save(tmp_path / "no.npy", np.random.default_rng(0).normal(size=(3, 16)))
    clipn = ("--method", "clipn", *PAIR, "--set", "no-text=no.npy")
    result = simulate(*clipn, "--format", "json", "--output", "r.json")
    assert result.exit_code == 0, result.stderr
    result = simulate("--from", "r.json")
    assert result.exit_code == 2
    assert "a file named in a record is not opened: run it with --method clipn" in result.stderr
