"""Runs of methods of one's own: shown and kept without their code, and told by its source."""

import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made import Notes, fails
from replayed import grid, kept_run

from zsntta_cli.errors import StoreError, UnknownMethod
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.report import plots
from zsntta_cli.report.page.page import page
from zsntta_cli.results import frame, tidy
from zsntta_cli.results.exchange import export_text, read_lines, read_recorded, to_line
from zsntta_cli.results.executor import run_all
from zsntta_cli.results.keeping import Keeping, kept_before
from zsntta_cli.results.kept import kept_of
from zsntta_cli.results.store import RecordStore
from zsntta_cli.simulation.revision import revision, source_digests, syntax_digest
from zsntta_cli.simulation.simulator import Simulator

OWN = '''"""A method."""
from dataclasses import dataclass
from zsntta_cli.methods.base import Decisions
from zsntta_cli.settings.options import Settings, option
from weights import SHIFT

@dataclass(frozen=True)
class OwnSettings(Settings):
    cut: float = option(0.5, "Where noise begins.")
    times: int = option(1, "How often.")

def run(data, options, threshold):
    u = data.noise_score
    return Decisions(data.class_index, u > options.cut + SHIFT, 1 - u)
'''


@pytest.fixture
def register(tmp_path, monkeypatch):
    """Write the script of a method and register it, as it would be after a start."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "weights.py").write_text("SHIFT = 0.0\n")

    def write(source=OWN, **facts):
        (tmp_path / "ownmethod.py").write_text(source)
        sys.modules.pop("weights", None)
        spec = importlib.util.spec_from_file_location("ownmethod", tmp_path / "ownmethod.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "ownmethod", module)
        spec.loader.exec_module(module)
        monkeypatch.setitem(METHODS, "own", Method(module.run, module.OwnSettings, **facts))

    yield write
    sys.modules.pop("weights", None)


@pytest.fixture
def lines(features, tmp_path, register, monkeypatch):
    """Exported runs of a method of one's own beside one of the package, and their keys."""
    register()
    runs = [kept_of(Simulator(features).replay(run))
            for run in grid(features, ["own"], cut=[0.5, 0.25], seed=[0, 1])]  # fmt: skip
    runs.append(kept_run(features, "zs-clip"))
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{to_line(kept)}\n" for kept in runs))
    return path, [kept.key for kept in runs]


@pytest.fixture
def without_code(lines, monkeypatch):
    """The same on a machine that has not the method's code."""
    monkeypatch.delitem(METHODS, "own")
    return lines


def test_without_its_code_a_run_is_what_it_was(without_code):
    path, keys = without_code
    again = read_lines(path)
    assert "".join(f"{to_line(kept)}\n" for kept in again) == path.read_text()
    assert [kept.key for kept in again] == keys
    assert vars(again[2].record.settings.options) == {"cut": 0.25, "times": 1}
    assert len({kept.record.settings for kept in again}) == len(again)


def test_equal_runs_are_one_in_a_store_with_the_code_and_without(lines, tmp_path, monkeypatch):
    path, keys = lines
    records = tmp_path / "records.json"
    records.write_text(export_text(read_lines(path), "json"))  # which has no keys
    with RecordStore(tmp_path / "kept.sqlite", create=True) as store:
        assert store.add_new(read_lines(path)) == 0
        with monkeypatch.context() as elsewhere:
            elsewhere.delitem(METHODS, "own")
            assert [kept.key for kept in store.all()] == keys
            for file in (path, records):
                assert store.add_new(read_lines(file)) == len(keys)
            again = tmp_path / "again.jsonl"
            again.write_text("".join(f"{to_line(kept)}\n" for kept in store.all()))
        assert store.add_new(read_lines(again)) == len(keys)


def test_a_line_of_an_older_version_keeps_the_key_that_it_has(without_code, tmp_path):
    path, keys = without_code
    plain = json.loads(path.read_text().splitlines()[0])
    del plain["record"]["own"]
    (tmp_path / "old.jsonl").write_text(json.dumps(plain))
    [kept] = read_lines(tmp_path / "old.jsonl")
    assert (kept.key, kept.record.own) == (keys[0], None)


def test_without_its_code_it_is_in_tables_page_and_plots(without_code, tmp_path):
    runs = read_lines(without_code[0])
    [table] = frame.tables(runs)
    own = [row for row in table.rows if row.method == "own"]
    assert [row.settings["cut"] for row in own] == [0.25, 0.5]
    assert all(row.competes and row.decides and len(row.on("sky")) == 2 for row in own)
    assert frame.label(own[0], frame.varying(table.rows)) == "own (cut 0.25)"
    assert "cut=0.25;times=1" in [row["settings"] for row in tidy.run_rows(runs)]
    scripts = []
    shown = page(runs, lambda runs, script: scripts.append(script) or "again")
    assert (shown.runs, shown.left_out) == (5, ())
    assert "own (cut 0.25)" in shown.html
    assert scripts == ["", "ownmethod.py", "ownmethod.py"], "zs-clip comes first"
    wanted = plots.Filters(methods=("own",), settings={"cut": ["0.25"]})
    figure = plots.plot(runs, "scores", wanted)
    assert [panel.title for panel in figure.panels]


def test_without_its_code_a_reference_is_no_rival(features, register, monkeypatch):
    register(offline=True)
    [run] = grid(features, ["own"])
    runs = [kept_of(Simulator(features).replay(run)), kept_run(features, "zs-clip")]
    monkeypatch.delitem(METHODS, "own")
    [table] = frame.tables(runs)
    assert {row.method: row.competes for row in table.rows} == {"zs-clip": True, "own": False}


def test_a_score_without_a_decision_is_told_by_its_numbers(features, monkeypatch):
    monkeypatch.setitem(METHODS, "theirs", METHODS["mcm"])
    kept = kept_run(features, "theirs")
    monkeypatch.delitem(METHODS, "theirs")
    [table] = frame.tables([kept])
    assert [row.decides for row in table.rows] == [False]


def test_the_commands_know_it_and_only_running_it_needs_its_code(without_code, zsntta):
    path, keys = without_code
    store = ("--records", "kept.sqlite")
    assert zsntta("records", "import", path, *store).stdout.endswith("5 runs, 0 there before\n")
    assert zsntta("records", "list", *store).stdout.count("own ") == 4
    shown = zsntta("records", "show", keys[0], *store).stdout
    assert "cut = 0.5" in shown
    assert "ownmethod.py" in shown
    exported = zsntta("records", "export", *store).stdout
    assert [json.loads(line)["key"] for line in exported.splitlines()] == keys
    made = zsntta("report", *store)
    assert (made.exit_code, made.stderr) == (0, "")
    command = re.search(
        r"zsntta --plugin ownmethod.py simulate[^<]+", Path("report.html").read_text()
    )
    assert "--method own" in command[0]
    assert "--cut 0.25 --times 1" in command[0]
    drawn = zsntta("plot", "scores", *store, "--setting", "cut=0.25", "--output", "one.csv")
    assert drawn.exit_code == 0, drawn.stderr
    assert "own" in Path("one.csv").read_text()
    fails(zsntta("plot", "scores", *store, "--setting", "size=1"), "setting is 'size'", code=2)
    cited = zsntta("cite", "--from", path)
    assert (cited.exit_code, "no reference is known of own" in cited.stderr) == (0, True)
    again = zsntta("simulate", "--from", path)
    fails(
        again, "the code of the method 'own' is not here: name its script, "
        f"zsntta --plugin ownmethod.py simulate --from {path}", code=2,
    )  # fmt: skip
    with pytest.raises(UnknownMethod):
        read_recorded(path)


HOSTILE = [
    ({"a b": 1}, "'a b' cannot be the name of a setting"),
    ({"_x": 1}, "'_x' cannot be the name of a setting"),
    ({"ratio": "all"}, "'ratio' cannot be the name of a setting"),
    ({"x" * 101: 1}, "cannot be the name of a setting"),
    ({"cut": [0.5]}, "options.cut must be a number"),
    ({"cut": float("nan")}, "options.cut must be a number"),
    ({"cut": 10**400}, "options.cut must be a number"),
    ({"cut": "x" * 1001}, "options.cut must be a number"),
]


@pytest.mark.parametrize(("options", "words"), HOSTILE, ids=range(len(HOSTILE)))
def test_settings_of_strangers_are_names_and_plain_values(without_code, tmp_path, options, words):
    plain = json.loads(without_code[0].read_text().splitlines()[0])
    plain["record"]["settings"]["options"] = options
    (tmp_path / "theirs.jsonl").write_text(json.dumps(plain))
    with pytest.raises(StoreError, match=re.escape(words)):
        read_lines(tmp_path / "theirs.jsonl")


def test_a_setting_that_a_newer_version_added_is_shown_and_not_run(features, tmp_path):
    plain = json.loads(to_line(kept_run(features, "adand")))
    for group in ("options", "stream"):
        plain["record"]["settings"][group]["slope_of_later"] = 0.25
    plain["key"] = "5" * 64
    path = tmp_path / "newer.jsonl"
    path.write_text(json.dumps(plain))
    [kept] = read_lines(path)
    assert json.loads(to_line(kept)) == plain
    [table] = frame.tables([kept, kept_run(features, "zs-clip")])
    later = next(row for row in table.rows if row.method == "adand")
    assert later.settings["slope_of_later"] == 0.25
    assert len(table.contests()) == 2, "a stream that may be another one"
    assert tidy.settings_text(kept.record.settings).endswith("slope_of_later=0.25")
    with pytest.raises(StoreError, match="'slope_of_later' is no setting of stream"):
        read_recorded(path)


# Its source


def test_a_comment_keeps_the_runs_and_a_constant_does_not(features, tmp_path, register):
    register()
    runs, keeping = grid(features, ["own"], seed=[0, 1]), Keeping(tmp_path / "kept.sqlite")
    run_all(features, runs, keeping=keeping)
    register(OWN.replace('"""A method."""', "# Explained\n").replace("u > ", "u  >  "))
    again = grid(features, ["own"], seed=[0, 1])
    assert len(kept_before(features, again, keeping)) == 2

    (tmp_path / "weights.py").write_text("SHIFT = 0.01\n")
    register()
    reporter = Notes()
    run_all(features, grid(features, ["own"], seed=[0, 2]), reporter=reporter, keeping=keeping)
    changed = "of own: weights.py has changed since"
    assert f"note: kept before and run again: 1 run {changed}" in reporter.notes
    with RecordStore(keeping.path) as store:
        kept = list(store.all())
    assert len(kept) == 4
    assert page(kept, lambda *_: "").left_out == (f"2 runs {changed}",)
    assert f"left out: 2 runs {changed}" in plots.plot(kept, "scores", plots.Filters()).notes


def test_a_rule_that_changed_is_said_once(features, tmp_path, monkeypatch):
    runs, keeping = grid(features, ["lame", "zs-clip"], seed=[0, 1]), Keeping(tmp_path / "k.sqlite")
    lame = METHODS["lame"]
    monkeypatch.setitem(METHODS, "lame", replace(lame, revision=lame.revision - 1))
    run_all(features, runs, keeping=keeping)
    monkeypatch.setitem(METHODS, "lame", lame)
    for seeds, notes in ([0], 1), ([0], 0), ([1], 1), ([2], 0):
        reporter = Notes()
        again = grid(features, ["lame", "zs-clip"], seed=seeds)
        run_all(features, again, reporter=reporter, keeping=keeping)
        said = "note: kept before and run again: 1 run of lame, whose rule has changed"
        assert [note for note in reporter.notes if "run again" in note] == [said] * notes


def test_without_the_code_the_newest_source_counts(features, tmp_path, register, monkeypatch):
    register()
    kept = [kept_run(features, "own")]
    register(OWN.replace("u > ", "u >= "))
    kept.append(kept_run(features, "own"))
    newer = kept[1].record.to_dict()["created"]
    monkeypatch.delitem(METHODS, "own")
    kept[0].record.__dict__["created"] = "2020-01-01T00:00:00+00:00"
    shown = page(kept, lambda *_: "")
    assert (shown.runs, shown.left_out) == (1, ("1 run of own: ownmethod.py has changed since",))
    assert newer[:10] in shown.html


def test_runs_that_an_older_version_told_by_bytes_are_left_out_and_said_so(features, register):
    register()
    old = kept_run(features, "own")
    old.record.__dict__.update(revision="1.1+0123456789abcdef", own=None)
    words = "1 run of own that an older version kept, which told its source by its bytes"
    shown = page([old, kept_run(features, "zs-clip")], lambda *_: "")
    assert shown.left_out == (words,)


def test_a_source_is_its_script_and_what_it_imports_from_its_folder(tmp_path, register):
    package = tmp_path / "parts"
    package.mkdir()
    (tmp_path / "unused.py").write_text("x = 1\n")
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from . import second\n")
    (package / "second.py").write_text("from . import first\nimport numpy\n")
    register(f"import parts.first\n{OWN}")
    assert [*source_digests("own")] == [
        "ownmethod.py", "parts/__init__.py", "parts/first.py", "weights.py", "parts/second.py",
    ]  # fmt: skip
    before = revision("own")
    (package / "second.py").write_text("from . import first\nimport numpy as np\n")
    register(f"import parts.first\n{OWN}")
    assert revision("own") != before


SAME = [
    ("x = 1", "x = 1  # one"), ("x = (1 +\n 2)", "x = 1 + 2"), ("x = 'a'", 'x = "a"'),
    ("def f():\n  'It does.'\n  return 1", "def f():\n    return 1"),
    ("class A:\n  'It is.'\n  x: int = 1", "class A:\n  x: int = 1"),
]  # fmt: skip
OTHER = [
    ("x = 1", "x = 1.0"), ("x = 1", "x = True"), ("x = 1", "y = 1"), ("x = None", "x = 0"),
    ("f(a, b)", "f(b, a)"), ("x = 'a'", "x = b'a'"), ("def f(a, *, b=1): 0", "def f(a, b=1): 0"),
    ("{None: 1, **a}", "{**a}"), ("x = not a", "x = -a"), ("for x in y: z", "async def f(): 0"),
]  # fmt: skip


@pytest.mark.parametrize("pair", SAME, ids=range(len(SAME)))
def test_of_one_meaning_two_sources_have_one_digest(pair):
    one, other = pair
    assert syntax_digest(one.encode()) == syntax_digest(other.encode())


@pytest.mark.parametrize("pair", OTHER, ids=range(len(OTHER)))
def test_of_another_meaning_a_source_has_another_digest(pair):
    one, other = pair
    assert syntax_digest(one.encode()) != syntax_digest(other.encode())
