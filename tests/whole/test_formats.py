"""What earlier versions wrote is read: one file of each kind, of each version."""

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = sorted((ROOT / "tests" / "formats").iterdir())
METHODS = ("adand", "ridge", "zs-clip")


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def wrote(request, zsntta, tmp_path):
    """The files of a version, in the folder that the command line runs in."""
    shutil.copytree(request.param, tmp_path, dirs_exist_ok=True)
    return zsntta


def exported(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_kept_results_are_listed_and_imported(wrote):
    runs = exported("runs.jsonl")
    assert len(runs) == 2 * len(METHODS)
    wrote("records", "import", "runs.jsonl", "--records", "other.sqlite")
    for store in ("features/records.sqlite", "other.sqlite"):
        assert wrote("records", "verify", "--records", store).exit_code == 0
        wrote("records", "export", "--records", store, "--output", "again.jsonl")
        again = {run["key"]: run["record"]["counts"] for run in exported("again.jsonl")}
        assert again == {run["key"]: run["record"]["counts"] for run in runs}
    schema = json.loads((ROOT / "docs" / "record.schema.json").read_text(encoding="utf-8"))
    for run in runs:
        jsonschema.validate(run, schema)


def test_records_come_out_as_they_were_to_the_bit(wrote):
    answer = wrote("simulate", "--from", "runs.jsonl", "--fresh", "--records", "new.sqlite")
    assert answer.exit_code == 0, answer.output
    assert "6 of 6 records came out the same to the bit." in answer.stdout


def test_a_file_of_a_later_format_is_refused_in_a_line(wrote):
    later = Path("runs.jsonl").read_text(encoding="utf-8").replace('"format": 1', '"format": 99')
    Path("later.jsonl").write_text(later, encoding="utf-8")
    answer = wrote("records", "import", "later.jsonl", "--records", "new.sqlite")
    assert answer.exit_code == 1
    assert "99" in answer.stderr
    assert answer.stderr.count("\n") == 1
