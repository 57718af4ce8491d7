"""Runs of methods of one's own: shown and kept without their code, and told by its source."""

import importlib.util
import sys

import pytest
from made import fails
from replayed import grid, kept_run, run_all

from zsntta_cli.methods import METHODS
from zsntta_cli.report.figures import plot
from zsntta_cli.report.page.page import page
from zsntta_cli.results.exchange import to_line
from zsntta_cli.results.store import Keeping, RecordStore, kept_before
from zsntta_cli.simulation.simulator import Simulator

OWN = '''"""A method."""
from dataclasses import dataclass
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods import Method, MethodSettings
from zsntta_cli.settings.options import option

SHIFT = 0.0

@dataclass(frozen=True)
class OwnSettings(MethodSettings):
    cut: float = option(0.5, "Where noise begins.")
    times: int = option(1, "How often.")

class Own(Method):
    Settings = OwnSettings

    def push(self, items, learn=True):
        u = items.noise_score
        return Decisions(items.class_index, u > self.options.cut + SHIFT, 1 - u)
'''


@pytest.fixture
def register(tmp_path, monkeypatch):
    """Write the script of a method and register it, as it would be after a start."""

    def write(source=OWN):
        (tmp_path / "ownmethod.py").write_text(source)
        spec = importlib.util.spec_from_file_location("ownmethod", tmp_path / "ownmethod.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "ownmethod", module)
        spec.loader.exec_module(module)
        monkeypatch.setitem(METHODS, "own", module.Own)

    return write


@pytest.fixture
def lines(features, tmp_path, register):
    """Exported runs of a method of one's own beside one of the package, and their keys."""
    register()
    runs = [
        Simulator(features).run(r) for r in grid(features, ["own"], cut=[0.5, 0.25], seed=[0, 1])
    ]
    runs.append(kept_run(features, "zs-clip"))
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(f"{to_line(kept)}\n" for kept in runs))
    return path, [kept.key for kept in runs]


def test_without_its_code_a_run_is_refused_in_a_file_and_counted_in_a_store(
    lines, zsntta, monkeypatch
):
    path, keys = lines
    store = ("--records", "kept.sqlite")
    zsntta("records", "import", path, *store)
    assert len(zsntta("records", "export", *store).stdout.splitlines()) == len(keys)
    assert zsntta("report", *store).stderr == ""
    monkeypatch.delitem(METHODS, "own")
    assert "4 of 5 rows in kept.sqlite are left out" in zsntta("report", *store).stderr
    for command in (("records", "import"), ("cite", "--from"), ("simulate", "--from")):
        fails(zsntta(*command, path), "the code of the method 'own' is missing", code=1)


# Its source


def test_a_script_that_has_changed_makes_other_runs(features, tmp_path, register):
    register()
    runs, keeping = grid(features, ["own"], seed=[0, 1]), Keeping(tmp_path / "kept.sqlite")
    run_all(features, runs, keeping=keeping)
    register()
    assert len(kept_before(features, grid(features, ["own"], seed=[0, 1]), keeping)) == 2
    register(OWN.replace("SHIFT = 0.0", "SHIFT = 0.01"))
    run_all(features, grid(features, ["own"], seed=[0, 2]), keeping=keeping)
    with RecordStore(keeping.path) as store:
        kept = [*store.find().values()]
    assert len(kept) == 4
    [reason] = page(kept).left_out
    assert reason.startswith("2 runs by another version or with other code")
    assert f"left out: {reason}" in plot(kept, "scores", {}).notes
