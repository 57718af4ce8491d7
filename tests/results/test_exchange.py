"""Lines of records: written, held to the schema, read, refused."""

import functools
import json
import math
import operator
import sys
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replayed import kept_run, merged

from zsntta_cli.errors import StoreError
from zsntta_cli.results.exchange import read_records, to_line
from zsntta_cli.results.store import RecordStore

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from record_schema import PATH, json_schema  # noqa: E402

SCHEMA = json.loads(PATH.read_text())


@pytest.fixture(scope="module")
def exported(features):
    return [kept_run(features, m) for m in ("zs-clip", "adand", "mcm", "tda")]


@pytest.fixture(scope="module")
def a_line(exported):
    return to_line(exported[1])


def test_the_published_schema_is_that_of_the_reader():
    assert json_schema() == SCHEMA, "python tools/record_schema.py writes it anew"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_lines_follow_the_schema_and_come_back_from_a_file_and_a_store(exported, tmp_path):
    (path := tmp_path / "runs.jsonl").write_text("\n".join(map(to_line, exported)))
    for text in path.read_text().splitlines():
        jsonschema.validate(json.loads(text), SCHEMA)
    assert [*map(to_line, read_records(path))] == [*map(to_line, exported)]
    path.write_text(json.dumps([record.to_dict() for record in exported]))
    assert [r.to_dict() for r in read_records(path)] == [r.to_dict() for r in exported]
    with RecordStore(tmp_path / "kept.sqlite", create=True) as store:
        store.add(exported)
        assert [*map(to_line, store.find().values())] == [*map(to_line, exported)]
        assert not any(record.curves for record in store.find(curves=False).values())


BY_CLASS = {
    "names": ["cat", "dog"], "images": [2, 1], "right": [2, 0], "noise": [0, 1],
    "confused_with": [-1, 0],
}  # fmt: skip
WRONG = [
    ({"settings": None}, "settings: Input should be"),
    ({"settings": {"id_set": "../x"}}, "settings: id_set is '../x', must be"),
    ({"settings": {"options": {"speed": 2}}}, "settings: 'speed' is not"),
    ({"counts": {"ood": -1}}, "counts.ood: Input should be greater than or equal to 0 (it is -1)"),
    ({"unfinished": 3}, "its run was stopped"),
    ({"curves": {"classes": {**BY_CLASS, "right": [1]}}}, "curves.classes: must be"),
    ({"curves": {"classes": {**BY_CLASS, "confused_with": [2, 0]}}}, "curves.classes: must have"),
    ({"curves": {"thresholds": {"item": [1, 2], "detector": ["<img>", 1]}}},
     "curves.thresholds.detector.1: "),
    ({"curves": {"thresholds": {"item": [2, 1], "detector": [0.5, 0.5], "zero_shot": [0.5, 0.5]}}},
     "curves.thresholds: must have"),
    ({"curves": {"scores": {"low": 1.0, "high": 0.0}}}, "curves.scores: must have"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), WRONG, ids=range(len(WRONG)))
def test_records_of_strangers_are_refused_by_their_number(exported, tmp_path, change, words):
    plain = json.loads(to_line(exported[1]))
    plain = {**plain, **change} if change == WRONG[0][0] else merged(plain, change)
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{to_line(exported[0])}\n{json.dumps(plain)}\n")
    with pytest.raises(StoreError) as refused:
        read_records(path)
    assert str(refused.value).startswith(f"{path} holds no results (record 2: {words}")
    assert "\n" not in str(refused.value)


def test_half_a_character_is_refused_and_names_of_files_that_are_no_utf_8_are_read(
    a_line, tmp_path
):
    path, before = tmp_path / "r.jsonl", '"created": "'
    path.write_text(a_line + "\n" + a_line.replace(before, before + "\\ud800"))
    with pytest.raises(StoreError, match=r"line 2: .*surrogates not allowed"):
        read_records(path)
    path.write_text(a_line.replace(before, before + "\\udcff\\ud83d\\ude00"))
    assert read_records(path)[0].created.startswith("\udcff\U0001f600")


def test_what_a_newer_version_measures_stays_in_a_record(a_line, tmp_path):
    plain = json.loads(a_line)
    plain["flags"] |= {"regret": -0.25, "unmeasured": None}
    plain["weather"] = {"sun": 3}
    (path := tmp_path / "new.jsonl").write_text(json.dumps(plain))
    with RecordStore(tmp_path / "kept.sqlite", create=True) as store:
        store.add(read_records(path))
        [record] = store.find().values()
    assert record.to_dict()["flags"] == plain["flags"]
    assert math.isnan(record.flags["unmeasured"])


PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9),
        st.sampled_from([10**400, 2**62, "\ud800", "pets", "adand", [[]] * 3]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)  # fmt: skip


@given(value=PLAIN, where=st.integers(0, 999))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_value_at_any_place_is_a_record_or_one_line(a_line, tmp_path, value, where):
    plain = json.loads(a_line)
    path = tmp_path / "runs.jsonl"
    paths = list(places(plain))
    *names, last = paths[where % len(paths)]
    functools.reduce(operator.getitem, names, plain)[last] = value
    path.write_text(json.dumps(plain))
    assert len(words_against(path)) < 400 + len(str(path))


def words_against(path):
    """By which a file is refused; none against one that is read, and can be written again."""
    try:
        [record] = read_records(path)
    except StoreError as error:
        return str(error)
    return "" if to_line(record) else "?"


def places(tree, before=()):
    """The paths of all values of a tree of objects."""
    for name, value in tree.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from places(value, (*before, name))
