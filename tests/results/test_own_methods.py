"""Runs of methods of one's own: shown and kept without their code, and told by its source."""

import importlib.util
import json
import sys

import pytest
from made import fails
from replayed import grid, kept_run

from zsntta_cli.errors import StoreError, UnknownMethod
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.report import plots
from zsntta_cli.report.page.page import page
from zsntta_cli.results.exchange import read_lines, read_recorded, to_line
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


def test_without_its_code_a_run_is_refused_in_a_file_and_counted_in_a_store(
    lines, tmp_path, zsntta, monkeypatch
):
    path, keys = lines
    store = ("--records", "kept.sqlite")
    made = zsntta("records", "import", path, *store)
    assert made.stdout.endswith("5 runs, 0 there before\n")
    exported = zsntta("records", "export", *store).stdout
    assert [json.loads(line)["key"] for line in exported.splitlines()] == keys
    assert zsntta("report", *store).stderr == ""
    monkeypatch.delitem(METHODS, "own")
    without = zsntta("report", *store)
    assert without.exit_code == 0, without.stderr
    assert without.stderr == (
        "note: 4 of 5 rows in kept.sqlite are left out: damaged, or made by another version or by "
        "a method that is not loaded here. Run them again.\n"
    )
    for command in (("records", "import"), ("cite", "--from"), ("simulate", "--from")):
        fails(zsntta(*command, path), "the code of the method 'own' is not here", code=2)
    with pytest.raises(UnknownMethod):
        read_recorded(path)


@pytest.mark.parametrize("group", ["options", "stream"])
def test_a_setting_that_is_not_known_is_refused_in_a_line(features, tmp_path, group):
    plain = json.loads(to_line(kept_run(features, "adand")))
    plain["record"]["settings"][group]["slope_of_later"] = 0.25
    path = tmp_path / "newer.jsonl"
    path.write_text(json.dumps(plain))
    words = f"'slope_of_later' is no setting of {group}: another version made this, so run it again"
    for read in (read_lines, read_recorded):
        with pytest.raises(StoreError, match=words):
            read(path)


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
    run_all(features, grid(features, ["own"], seed=[0, 2]), keeping=keeping)
    changed = "of own: weights.py has changed since"
    with RecordStore(keeping.path) as store:
        kept = list(store.all())
    assert len(kept) == 4
    assert page(kept).left_out == [f"2 runs {changed}"]
    assert f"left out: 2 runs {changed}" in plots.plot(kept, "scores", plots.Filters()).notes


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
