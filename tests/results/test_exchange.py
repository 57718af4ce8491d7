"""Lines of kept runs: written, held to the schema, read, refused."""

import dataclasses
import functools
import json
import math
import operator
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replayed import grid, kept_run, merged

from zsntta_cli.errors import StoreError
from zsntta_cli.results.exchange import read_lines, read_recorded, to_line
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.kept import Kept
from zsntta_cli.results.schema import json_schema
from zsntta_cli.results.store import RecordStore
from zsntta_cli.simulation.metrics import METRICS, Metric

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "record.schema.json").read_text())


@pytest.fixture(scope="module")
def exported(features):
    return [kept_run(features, m) for m in ("zs-clip", "adand", "mcm", "tda")]


@pytest.fixture(scope="module")
def a_line(exported):
    return to_line(exported[1])


def test_the_published_schema_is_that_of_the_reader():
    assert json_schema() == SCHEMA, "python tools/record_schema.py writes it anew"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_lines_follow_the_schema_and_come_back(exported, tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(to_line(kept) for kept in exported))
    for text in path.read_text().splitlines():
        jsonschema.validate(json.loads(text), SCHEMA)
    again = read_lines(path)
    assert [to_line(kept) for kept in again] == [to_line(kept) for kept in exported]


WRONG = [
    ({"format": 2}, "format is 2, must be 1"),
    ({"record": None}, "record is null, must be an object"),
    ({"record": {}}, "settings is missing"),
    ({"record": {"settings": {"method": 3}}}, "settings.method is 3, must be a text"),
    ({"record": {"settings": {"method": [3]}}}, "settings.method is a list, must be a text"),
    ({"record": {"settings": 3}}, "settings is 3, must be an object"),
    ({"record": {"accuracies": {"acc_h": "0.5"}}}, "accuracies.acc_h is '0.5', must be a number"),
    ({"record": {"accuracies": {"acc_h": True}}}, "accuracies.acc_h is true, must be a number"),
    ({"record": {"accuracies": {"acc_h": -1.5}}},
     "accuracies.acc_h is -1.5, must be greater than or equal to -1"),
    ({"record": {"flags": {"flagged": math.nan}}}, "flags.flagged is nan, must be"),
    ({"record": {"counts": {"ood": -1}}}, "counts.ood is -1, must be greater than or equal to 0"),
    ({"record": {"memory": 2.5}}, "memory is 2.5, must be a whole number"),
    ({"record": {"memory": 10**30}}, "memory is 10"),
    ({"record": {"unfinished": 3}}, "unfinished is 3, must be 0"),
    ({"record": {"digests": {"pets": ["x"]}}}, "digests.pets is a list, must be a text"),
    ({"record": {"settings": {"id_set": "../x"}}}, "id_set is '../x', which cannot be"),
    ({"record": {"settings": {"id_set": "\ud800"}}}, r"a text has \ud800, half a character"),
    ({"record": {"settings": {"stream": {"ratio": 2}}}}, "ratio is 2, must be in [0, 1)"),
    ({"record": {"settings": {"options": {"speed": 2}}}}, "'speed' is no setting of options"),
    ({"curves": {"scores": [1]}}, "curves.scores is a list, must be an object"),
    ({"curves": {"x": {}}}, "curves.x is not known"),
    ({"curves": {"running": {"item": [1, 2], "acc_s": ["<img>", 1]}}},
     "curves.running.acc_s.0 is '<img>', must be a number"),
    ({"curves": {"running": {"item": [1, 2], "acc_s": [0.5], "acc_n": [0.5, None]}}},
     "curves.running is an object, must be lists of one length"),
]  # fmt: skip


BARE = [{"record": {}}]  # in the place of the record, and not merged with it
# What JSON Schema cannot say.
UNTYPED = ("id_set", "ratio", "speed", "length", "nan", "half")


@pytest.mark.parametrize(("change", "words"), WRONG, ids=range(len(WRONG)))
def test_lines_of_strangers_are_refused_by_their_number(exported, tmp_path, change, words):
    plain = json.loads(to_line(exported[1]))
    plain = {**plain, **change} if change in BARE else merged(plain, change)
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{to_line(exported[0])}\n{json.dumps(plain)}\n")
    with pytest.raises(StoreError) as refused:
        read_lines(path)
    assert str(refused.value).startswith(f"{path} holds no results (line 2: {words}")
    assert "\n" not in str(refused.value)
    if not any(word in words for word in UNTYPED):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(plain, SCHEMA)


def test_a_threshold_that_beats_every_fixed_one_is_kept(exported, tmp_path):
    plain = json.loads(to_line(exported[1]))
    plain["record"]["accuracies"]["acc_h_gap"] = -0.01
    jsonschema.validate(plain, SCHEMA)
    path, store_path = tmp_path / "runs.jsonl", tmp_path / "kept.sqlite"
    path.write_text(json.dumps(plain))
    with RecordStore(store_path, create=True) as store:
        store.add(read_lines(path))
        [kept] = store.all()
    assert kept.record.accuracies.acc_h_gap == -0.01


def test_what_a_newer_version_measures_stays_in_a_record(exported, tmp_path):
    plain = json.loads(to_line(exported[1]))
    plain["record"]["flags"]["regret"] = 0.25
    plain["record"]["weather"] = {"sun": 3}
    path, store_path = tmp_path / "new.jsonl", tmp_path / "kept.sqlite"
    path.write_text(json.dumps(plain))
    with RecordStore(store_path, create=True) as store:
        store.add(read_lines(path))
        [kept] = store.all()
    assert kept.record.to_dict()["flags"] == plain["record"]["flags"]


def test_a_metric_more_is_in_records_store_and_lines(features, tmp_path, monkeypatch):
    line = Metric("halves", "Halves", "flags", lambda samples: 0.5, ())
    old = kept_run(features, "adand")
    monkeypatch.setitem(METRICS, "halves", line)
    new, path = kept_run(features, "zs-clip"), tmp_path / "runs.jsonl"
    with RecordStore(tmp_path / "kept.sqlite", create=True) as store:
        store.add([old, new])
        path.write_text("".join(f"{to_line(kept)}\n" for kept in store.all()))
    jsonschema.validate(json.loads(path.read_text().splitlines()[1]), SCHEMA)
    first, second = (kept.record.flags.halves for kept in read_lines(path))
    assert math.isnan(first)
    assert second == 0.5


PLAIN = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9),
        st.sampled_from([10**400, 2**62, "\ud800", "pets", "adand", [[]] * 3]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)  # fmt: skip


@pytest.mark.parametrize("read", [read_lines, read_recorded])
@given(value=PLAIN, where=st.integers(0, 999))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_value_at_any_place_is_a_run_or_one_line(a_line, tmp_path, read, value, where):
    plain = json.loads(a_line)
    path = tmp_path / "runs.jsonl"
    paths = list(places(plain))
    *names, last = paths[where % len(paths)]
    functools.reduce(operator.getitem, names, plain)[last] = value
    path.write_text(json.dumps(plain))
    assert len(words_against(read, path)) < 400 + len(str(path))


def places(tree, before=()):
    """The paths of all values of a tree of objects."""
    for name, value in tree.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from places(value, (*before, name))


def words_against(read, path):
    """By which a file is refused; none against one that is read, and can be written again."""
    try:
        runs = read(path)
    except StoreError as error:
        return str(error)
    return "".join("" if to_line(kept) else "?" for kept in runs if read is read_lines)


def test_two_peoples_stores_merge_and_other_features_stay_apart(features, tmp_path, zsntta):
    kept = {"records": kept_run(features, "zs-clip"), "more": kept_run(features, "adand")}
    theirs = dataclasses.replace(kept["more"].record, digests={"pets": "0" * 64, "sky": "1" * 64})
    both = [kept["more"], Kept(theirs, kept["more"].curves)]
    Path("theirs.jsonl").write_text("".join(f"{to_line(one)}\n" for one in both))
    with RecordStore(Path("mine.sqlite"), create=True) as store:
        store.add(kept.values())
    result = zsntta("records", "import", "theirs.jsonl", "--records", "mine.sqlite")
    assert result.stdout == "theirs.jsonl: 2 runs, 1 there before\n"
    runs = grid(features, ["zs-clip", "adand"])
    taken = kept_before(features, runs, Keeping(Path("mine.sqlite")))
    assert taken[runs[1]].record.digests == kept["more"].record.digests
    with RecordStore(Path("mine.sqlite")) as store:
        assert len(list(store.all())) == 3


@pytest.mark.parametrize("half", ["\\ud800", "\\uDBFF", "\\udc00", "\\ud800\\ud800"])
@pytest.mark.parametrize("before", ['"pets', '"adand', '"versions": {"', '"created": "'])
def test_half_a_character_is_refused_in_one_line(a_line, tmp_path, half, before):
    (path := tmp_path / "r.jsonl").write_text(a_line + "\n" + a_line.replace(before, before + half))
    for read in (read_lines, read_recorded):
        with pytest.raises(StoreError, match=r"line 2: .*half a character: must be UTF-8"):
            read(path)


def test_names_of_files_that_are_no_utf_8_and_pairs_are_read(a_line, tmp_path):
    (path := tmp_path / "r.jsonl").write_text(
        a_line.replace('"created": "', '"created": "\\udcff\\ud83d\\ude00')
    )
    assert read_lines(path)[0].record.created.startswith("\udcff\U0001f600")
