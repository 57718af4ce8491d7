"""Results that are kept: keys, the store, what is taken from it and what is not."""

import base64
import dataclasses
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import MADE_UP, PROMPT, fails

import zsntta_cli as z
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, Text
from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.results.curves import BINS, curves_of, histogram
from zsntta_cli.results.database import KIND
from zsntta_cli.results.exchange import line, read_lines
from zsntta_cli.results.grid import Grid
from zsntta_cli.results.items import Items
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.kept import Kept, kept_of, run_key
from zsntta_cli.results.obtain import run_all
from zsntta_cli.results.store import RecordStore
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.simulation import revision
from zsntta_cli.simulation.digests import Foreseen
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

ROOT = Path(__file__).parents[2]
PAIR = ("--id", "pets", "--ood", "sky")
SCHEMA = json.loads((ROOT / "docs" / "record.schema.json").read_text())


def grid(features, methods=("zs-clip",), **axes):
    made = EncoderChoice(folder="made")
    return Grid(methods, made, ["pets"], ["sky"], [PROMPT], axes=axes).runs(features)


def kept_run(features, method="zs-clip", with_items=False, **axes):
    [run] = grid(features, [method], **axes)
    return kept_of(Simulator(features).replay(run), with_items)


@pytest.fixture
def counted(monkeypatch):
    """How many runs are really run."""
    runs = []
    plain = Simulator.replay

    def replay(self, run, analyse=False):
        runs.append(run)
        return plain(self, run, analyse)

    monkeypatch.setattr(Simulator, "replay", replay)
    return runs


# Keys


def test_a_setting_at_its_default_does_not_enter_the_key_and_any_other_value_does():
    def key(**values):
        return run_key(build_run("adand", "e", "i", "o", PROMPT, **values), {}, "1.1")

    assert key() == key(warmup=10) == key(ratio=0.5)
    assert key(score_temperature=2) == key(score_temperature=2.0)
    others = [
        key(warmup=11), key(ratio=0.25), key(seed=1), key(queue=256), key(fixed=0.5), key(limit=9),
    ]  # fmt: skip
    assert len({key(), *others}) == 1 + len(others)


def test_digests_revision_and_prompt_enter_the_key():
    run = build_run("adand", "e", "i", "o", PROMPT)
    keys = {
        run_key(run, {"i": "0"}, "1.1"), run_key(run, {"i": "1"}, "1.1"),
        run_key(run, {"i": "0"}, "1.2"), run_key(run, {"j": "0"}, "1.1"),
        run_key(dataclasses.replace(run, prompt="art of a {}."), {"i": "0"}, "1.1"),
    }  # fmt: skip
    assert len(keys) == 5


@pytest.mark.parametrize("method", ["zs-clip", "adand", "tda", "neglabel"])
@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_the_digests_of_a_run_are_known_before_it(features, method, ratio):
    [run] = grid(features, [method], ratio=[ratio])
    assert Foreseen(features).digests(run) == Simulator(features).replay(run).digests


def test_a_run_that_would_fail_has_no_digests(features):
    run = build_run("zs-clip", "made", "pets", "nothing", PROMPT)
    assert Foreseen(features).digests(run) is None
    run = build_run("zs-clip", "made", "pets", "sky", "no such {}.")
    assert Foreseen(features).digests(run) is None


# What is taken from the store


def test_what_is_there_is_not_run_again(features, tmp_path, counted):
    keeping = Keeping(tmp_path / "kept.sqlite")
    first = run_all(features, grid(features, ratio=[0.25]), keeping=keeping)
    assert len(counted) == 1
    both = run_all(features, grid(features, ratio=[0.25, 0.5]), keeping=keeping)
    assert [run.stream.ratio for run in counted] == [0.25, 0.5]
    assert both[0] == first[0]
    again = run_all(features, grid(features, ratio=[0.5, 0.25]), keeping=keeping)
    assert len(counted) == 2
    assert again == both[::-1]


def test_fresh_runs_again_and_takes_the_place_of_the_old(simulate, tmp_path, counted):
    command = ("--method", "adand", *PAIR, "--ratio", 0.25, "--ratio", 0.5)
    first = simulate(*command)
    assert "kept from before" not in first.stderr
    again = simulate(*command)
    assert "2 of 2 runs were kept from before\n" in again.stderr
    assert again.stdout == first.stdout
    assert len(counted) == 2
    fresh = simulate(*command, "--fresh")
    assert "kept" not in fresh.stderr
    assert fresh.stdout == first.stdout
    assert len(counted) == 4
    with RecordStore(tmp_path / "kept.sqlite") as store:
        assert len(store.lines()) == 2


def test_another_revision_is_not_taken(features, tmp_path, counted, monkeypatch):
    """A record that another version made, whose method decided otherwise."""
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, ["zs-clip", "adand"])
    run_all(features, runs, keeping=keeping)
    monkeypatch.setitem(METHODS, "adand", dataclasses.replace(METHODS["adand"], revision=2))
    assert [run.method for run in kept_before(features, runs, keeping)] == ["zs-clip"]
    [_, adand] = run_all(features, runs, keeping=keeping)
    assert len(counted) == 3
    assert adand.revision == "1.2"
    with RecordStore(keeping.path) as store:
        assert len(store.lines()) == 3, "the old one stays"
    monkeypatch.setattr(revision, "RULES", 2)
    assert not kept_before(features, runs, keeping)


def test_a_default_that_has_changed_since_gives_no_stale_record(features, tmp_path, monkeypatch):
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, ["adand"])
    run_all(features, runs, keeping=keeping)
    [run] = runs
    changed = dataclasses.replace(run.options, warmup=20)
    later = dataclasses.replace(run, options=changed)
    fields = {f.name: f for f in dataclasses.fields(changed)}
    monkeypatch.setattr(fields["warmup"], "default", 20)
    digests = Foreseen(features).digests(later)
    with RecordStore(keeping.path) as store:
        assert store.find([run_key(later, digests, "1.1")]), "the key is the same"
    assert not kept_before(features, [later], keeping)


@pytest.mark.parametrize("change", ["features", "text", "scale", "normalized"])
def test_other_features_of_the_same_name_are_not_taken(features, tmp_path, change):
    """Even where only the text, the scale or a mark differ, which no digest of features shows."""
    root = tmp_path / "features"
    write(root, "pets", "")
    write(root, "sky", "")
    runs = grid(root, noise=["none"])
    keeping = Keeping.beside(root)
    run_all(root, runs, keeping=keeping)
    assert len(kept_before(root, runs, keeping)) == 1
    write(root, "pets", change)
    write(root, "sky", change if change in ("scale", "normalized") else "")
    assert not kept_before(root, runs, keeping)


def write(root, name, change):
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((60, 16))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    text = np.eye(16, dtype=np.float32)[:3]
    hdf5.write_features(
        root / "made" / f"{name}.h5", kind=DATASET, name=name, source={},
        encoder=MADE_UP | ({"logit_scale": 50.0} if change == "scale" else {}),
        blocks=[(rows[::-1] if change == "features" else rows).astype(np.float32)],
        labels=np.arange(60, dtype=np.int32) % 3, sample_ids=[str(i) for i in range(60)],
        class_names=["cat", "dog", "ox"], normalized=change == "normalized",
        texts=[Text(PROMPT, text[::-1].copy() if change == "text" else text)],
    )  # fmt: skip


def test_a_live_run_that_was_stopped_is_not_kept(features, tmp_path, monkeypatch):
    plain = Simulator.replay
    monkeypatch.setattr(
        Simulator, "replay",
        lambda self, run, analyse: dataclasses.replace(plain(self, run), unfinished=3),
    )  # fmt: skip
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features)
    [record] = run_all(features, runs, keeping=keeping)
    assert record.unfinished == 3
    assert not kept_before(features, runs, keeping)


def test_items_are_kept_where_they_are_asked_for_and_stay(features, tmp_path, counted):
    path, runs = tmp_path / "kept.sqlite", grid(features, ["adand"])
    run_all(features, runs, keeping=Keeping(path))
    assert kept_before(features, runs, Keeping(path))
    assert not kept_before(features, runs, Keeping(path, items=True))
    run_all(features, runs, keeping=Keeping(path, items=True))
    run_all(features, runs, keeping=Keeping(path, fresh=True))
    [kept] = kept_before(features, runs, Keeping(path, items=True)).values()
    assert len(counted) == 3
    replay = Simulator(features).replay(runs[0])
    tests = replay.stream.kind != 2
    assert (kept.items.class_index == replay.decisions.class_index[tests]).all()
    assert (kept.items.is_noise == replay.decisions.is_noise[tests]).all()
    is_id = replay.labels[tests] >= 0
    assert kept.items.is_right[is_id].mean() == kept.record.accuracies.acc_s
    assert kept.items.is_right[~is_id].mean() == kept.record.accuracies.acc_n


def test_a_method_of_ones_own_is_kept_by_its_source_or_not_at_all(features, tmp_path, monkeypatch):
    path = tmp_path / "own.py"
    path.write_text(OWN)
    sys.path.insert(0, str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    import own

    monkeypatch.setitem(METHODS, "own", Method(own.run, own.OwnSettings))
    keeping, runs = Keeping(tmp_path / "kept.sqlite"), grid(features, ["own"])
    [record] = run_all(features, runs, keeping=keeping)
    assert record.revision.startswith("1.1+")
    assert kept_before(features, runs, keeping)
    path.write_text(OWN.replace("u > 0.5", "u > 0.6"))
    assert not kept_before(features, runs, keeping)

    made = {}
    exec(OWN, made)  # as in a notebook: no file tells what it was
    monkeypatch.setitem(METHODS, "own", Method(made["run"], made["OwnSettings"]))
    runs = grid(features, ["own"])
    run_all(features, runs, keeping=keeping)
    assert not kept_before(features, runs, keeping)


OWN = """
from dataclasses import dataclass
from zsntta_cli.methods.base import Decisions
from zsntta_cli.settings.options import Settings

@dataclass(frozen=True)
class OwnSettings(Settings):
    pass

def run(data, options, threshold):
    u = data.noise_score
    return Decisions(data.class_index, u > 0.5, 1 - u)
"""


# The store


def test_a_kept_run_comes_back_as_it_was(features, tmp_path):
    some = [kept_run(features, m, with_items=True) for m in ("zs-clip", "adand", "mcm")]
    with RecordStore(tmp_path / "a" / "kept.sqlite", create=True) as store:
        store.add(some)
        found = list(store.all())
    assert [kept.key for kept in found] == [kept.key for kept in some]
    for kept, before in zip(found, some, strict=True):
        assert line(kept) == line(before)
        assert (kept.items is None) == (kept.record.settings.method == "mcm")


def test_lists_need_no_record(features, tmp_path):
    kept = kept_run(features, "adand")
    with RecordStore(tmp_path / "kept.sqlite", create=True) as store:
        store.add([kept])
        store._connection.execute("UPDATE contents SET record = 'x'")
        [one] = store.lines(method="adand")
        assert not store.lines(method="tda")
        assert (one.key, one.ratio, one.acc_h) == (kept.key, 0.5, kept.record.accuracies.acc_h)
        assert not list(store.all()), "and one that is broken is none"


def test_files_that_are_no_store(tmp_path, zsntta):
    missing = zsntta("records")
    fails(missing, "there are no kept results at features/records.sqlite", "zsntta simulate")
    (tmp_path / "text").write_text("no database" * 100)
    fails(zsntta("records", "--records", "text"), "the results in text: file is not a database")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE runs (key)")
    other.close()
    fails(zsntta("records", "--records", "other"), "other is a database of another program")
    (tmp_path / "folder").mkdir()
    fails(zsntta("records", "--records", "folder"), "it is a folder")
    os.mkfifo(tmp_path / "pipe")
    fails(zsntta("records", "--records", "pipe"), "pipe is no regular file")


def test_a_store_of_a_newer_format_is_left_alone(features, tmp_path, zsntta):
    path = tmp_path / "kept.sqlite"
    with RecordStore(path, create=True) as store:
        store._connection.execute(f"PRAGMA user_version={KIND.format + 1}")
    before = path.read_bytes()
    fails(zsntta("records", "--records", path), f"is of format {KIND.format + 1}", "update zsntta")
    arguments = ("simulate", "--encoder", "made", "--features-dir", features, "--method", "zs-clip")
    fails(zsntta(*arguments, *PAIR, "--records", path), "update zsntta")
    assert path.read_bytes() == before


def test_an_empty_file_is_an_empty_store(features, tmp_path, zsntta):
    """As a maker that was killed at once leaves it."""
    path = tmp_path / "kept.sqlite"
    path.touch()
    assert len(zsntta("records", "--records", path).stdout.splitlines()) == 1
    assert path.stat().st_size == 0
    run_all(features, grid(features), keeping=Keeping(path))
    assert len(zsntta("records", "--records", path).stdout.splitlines()) == 2


def test_a_store_that_is_cut_off_is_one_line(features, tmp_path, zsntta):
    path = tmp_path / "kept.sqlite"
    run_all(features, grid(features, ["adand"], seed=range(9)), keeping=Keeping(path))
    content = path.read_bytes()
    for keep in (0.3, 0.6, 0.9):
        path.write_bytes(content[: int(keep * len(content))])
        fails(zsntta("records", "export", "--records", path), "the results in", stdout=None)


def test_where_nothing_can_be_kept_results_come_out_all_the_same(features, tmp_path, zsntta):
    """A file in the place of the folder stops root, too."""
    root = tmp_path / "features"
    root.mkdir()
    (root / "made").symlink_to(features / "made")
    (root / "records.sqlite").write_text("something else")
    command = ("simulate", "--encoder", "made", "--method", "zs-clip", *PAIR)
    fails(zsntta(*command), "the results in features/records.sqlite: file is not a database")
    (root / "records.sqlite").unlink()
    (root / "records.sqlite").symlink_to("/proc/nothing")
    result = zsntta(*command)
    assert result.exit_code == 0, result.stderr
    assert "note: results are not kept: " in result.stderr
    assert "zs-clip" in result.stdout
    named = zsntta(*command, "--records", "/proc/nothing")
    fails(named, "/proc/nothing")


def test_processes_share_a_store(features, tmp_path):
    path, runs = tmp_path / "kept.sqlite", grid(features, ["zs-clip", "adand"], seed=range(4))
    children = [
        multiprocessing.get_context("fork").Process(
            target=run_all, args=(features, runs), kwargs={"keeping": Keeping(path)}
        )
        for _ in range(4)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert len(kept_before(features, runs, Keeping(path))) == 8


def test_jobs_keep_each_run_when_it_is_finished(features, tmp_path):
    keeping = Keeping(tmp_path / "kept.sqlite", items=True)
    runs = grid(features, ["zs-clip", "adand"], seed=[*range(5)])
    made = run_all(features, runs, jobs=2, keeping=keeping)
    before = kept_before(features, runs, keeping)
    assert [before[run].record for run in runs] == made


@pytest.mark.slow
def test_kills_lose_nothing_and_make_nothing_wrong(features, tmp_path):
    script = ROOT / "tests" / "whole" / "kill_results.py"
    done = subprocess.run(
        [sys.executable, script, features, "made", "pets", "sky", tmp_path, "200"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kills, part = [int(word) for word in done.stdout.split() if word.isdigit()][:2]
    assert kills >= 200
    assert part >= 10, "kills landed within the work"


# Curves and items


def test_curves_of_a_stream_by_hand(features):
    replay = Simulator(features).replay(grid(features, ["adand"], ratio=[0.25])[0])
    small = dataclasses.replace(replay, stream=stream_of("IOIXO"), decisions=decided())
    curves = curves_of(small)
    assert curves["running"]["item"] == [1, 2, 3, 4]
    right = small.labels[[0, 2]] == 1
    assert curves["running"]["acc_n"] == [None, 1.0, 1.0, 0.5]
    assert curves["running"]["acc_s"] == [0.0, 0.0, pytest.approx(right[1] / 2), right[1] / 2]
    assert curves["thresholds"] == {"item": [1, 2, 3, 4], "zero_shot": [0.5, 0.5, 0.25, 0.5]}
    assert sum(curves["scores"]["id"]) == sum(curves["scores"]["ood"]) == 2
    assert curves["scores"]["id"][5] == 1, "0.1 of 50 cells"


def stream_of(kinds):
    from zsntta_cli.simulation.stream import Stream

    return Stream(np.array(["IOX".index(k) for k in kinds], np.int8), np.zeros(5, np.int64))


def decided():
    from zsntta_cli.methods.base import Decisions

    return Decisions(
        np.array([1, 0, 1, 0, 0], np.int32), np.array([True, True, False, True, False]),
        np.array([0.1, 0.2, 0.9, 0.0, 1.0]), np.array([0.5, 0.5, 0.75, 0.9, 0.5]),
    )  # fmt: skip


def test_a_histogram_of_scores_beyond_0_and_1_has_their_range():
    found = histogram(np.array([-3.0, 7.0, 2.0]), np.array([True, False, False]))
    assert (found["low"], found["high"]) == (-3, 7)
    assert found["id"][0] == found["ood"][BINS - 1] == found["ood"][BINS // 2] == 1
    equal = histogram(np.full(4, 30.0), np.ones(4, bool))
    assert sum(equal["id"]) == 4
    assert sum(histogram(np.empty(0), np.ones(0, bool))["id"]) == 0


@given(st.lists(st.tuples(st.integers(0, 2**16 - 1), st.booleans(), st.booleans())))
def test_items_come_back_in_three_bytes_each(rows):
    columns = [np.array(c) for c in zip(*rows, strict=True)] or [np.empty(0)] * 3
    items = Items(columns[0].astype(np.uint16), columns[1].astype(bool), columns[2].astype(bool))
    packed = items.packed()
    assert len(packed) <= 3 * len(items) + 16
    again = Items.unpacked(packed, len(items))
    for name in ("class_index", "is_noise", "is_right"):
        assert (getattr(again, name) == getattr(items, name)).all()
    with pytest.raises(StoreError, match="they are not"):
        Items.unpacked(packed, len(items) + 1)


# JSON Lines


@pytest.fixture(scope="module")
def exported(features):
    return [kept_run(features, m, with_items=True) for m in ("zs-clip", "adand", "mcm", "tda")]


def test_lines_follow_the_schema_and_come_back(exported, tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(line(kept) for kept in exported))
    for text in path.read_text().splitlines():
        jsonschema.validate(json.loads(text), SCHEMA)
    again = read_lines(path)
    assert [line(kept) for kept in again] == [line(kept) for kept in exported]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2}, {"record": None}, {"record": {}}, {"curves": {"scores": [1]}},
        {"curves": {"x": {}}}, {"items": "no base64!"}, {"items": 3},
        {"items": base64.b64encode(b"no zlib").decode()},
        {"curves": {"running": {"item": [1, 2], "acc_s": ["<img>", 1]}}},
    ],
)  # fmt: skip
def test_lines_of_strangers_are_refused_by_their_number(exported, tmp_path, change):
    plain = json.loads(line(exported[1])) | change
    path = tmp_path / "runs.jsonl"
    path.write_text(f"{line(exported[0])}\n{json.dumps(plain)}\n")
    with pytest.raises(StoreError, match="line 2"):
        read_lines(path)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**plain, "items": None if "items" not in change else 3}, SCHEMA)


def test_two_peoples_stores_merge_and_other_features_stay_apart(features, tmp_path, zsntta):
    kept = {"records": kept_run(features, "zs-clip"), "more": kept_run(features, "adand")}
    theirs = dataclasses.replace(kept["more"].record, digests={"pets": "0" * 64, "sky": "1" * 64})
    both = [kept["more"], Kept(theirs, kept["more"].curves)]
    Path("theirs.jsonl").write_text("".join(f"{line(one)}\n" for one in both))
    with RecordStore(Path("mine.sqlite"), create=True) as store:
        store.add(kept.values())
    result = zsntta("records", "import", "theirs.jsonl", "--records", "mine.sqlite")
    assert result.stdout == "theirs.jsonl: 2 runs, 1 of them were there\n"
    runs = grid(features, ["zs-clip", "adand"])
    taken = kept_before(features, runs, Keeping(Path("mine.sqlite")))
    assert taken[runs[1]].record.digests == kept["more"].record.digests
    with RecordStore(Path("mine.sqlite")) as store:
        assert len(store.lines()) == 3


def test_runs_of_methods_that_are_not_known_here_are_left_out(exported, tmp_path, zsntta):
    plain = json.loads(line(exported[0]))
    plain["record"]["settings"]["method"] = "theirs"
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(plain) + "\n" + line(exported[1]))
    result = zsntta("records", "import", path)
    assert "1 runs of methods that are not known here are left out: theirs" in result.stderr
    assert "1 runs, 0 of them were there" in result.stdout


# The command


@pytest.fixture
def some(features, tmp_path, zsntta):
    run_all(features, grid(features, ["zs-clip", "adand"], seed=[0, 1]),
            keeping=Keeping(tmp_path / "features" / "records.sqlite"))  # fmt: skip
    return zsntta


def test_list_has_a_line_a_run(some):
    lines = some("records").stdout.splitlines()
    assert lines[0].split()[:6] == ["Key", "Method", "ID", "OOD", "Noise", "Seed"]
    assert [one.split()[1] for one in lines[1:]] == ["zs-clip", "zs-clip", "adand", "adand"]
    only = some("records", "list", "--method", "adand").stdout.splitlines()
    assert [one.split() for one in only] == [one.split() for one in (lines[0], *lines[3:])]


def test_show_says_everything_by_the_first_digits_of_a_key(some):
    key = some("records").stdout.splitlines()[3].split()[0]
    text = some("records", "show", key).stdout
    for part in ("adand", "warmup = 10", "acc_h = ", "text/pets = ", "python = ", "not kept"):
        assert part in text
    fails(some("records", "show", "xyz"), "no key begins with 'xyz'", "zsntta records list")


def test_export_as_json_gives_what_simulate_gives(some, features):
    given = some("records", "export", "--format", "json", "--method", "adand").stdout
    simulated = some(
        "simulate", "--encoder", "made", "--features-dir", features, "--method", "adand", *PAIR,
        "--prompt", PROMPT, "--seed", 0, "--seed", 1, "--format", "json", "--records",
        "features/records.sqlite",
    )  # fmt: skip
    assert "2 of 2 runs were kept" in simulated.stderr
    assert given == simulated.stdout


def test_remove_wants_to_know_which(some):
    fails(some("records", "remove"), "say which", code=2)
    assert some("records", "remove", "--method", "adand").stdout == "removed 2 runs\n"
    assert len(some("records").stdout.splitlines()) == 3
    assert some("records", "remove", "--all").stdout == "removed 2 runs\n"


def test_the_python_api_keeps_and_takes(features, tmp_path, counted):
    call = {"encoder": "made", "id_set": "pets", "ood_set": "sky", "features_dir": features,
            "records": tmp_path / "kept.sqlite"}  # fmt: skip
    one = z.simulate("zs-clip", **call)
    assert z.simulate("zs-clip", **call) == one
    assert len(counted) == 1
    z.simulate("zs-clip", **call, fresh=True)
    assert len(counted) == 2
