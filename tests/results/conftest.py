"""What the tests of results have in common."""

import pytest
from joblib.externals.loky import get_reusable_executor

from zsntta_cli import plugins
from zsntta_cli.methods import METHODS
from zsntta_cli.plugins import load_script
from zsntta_cli.simulation.simulator import Simulator


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


DYING = '''"""It kills its process at its first run of many items, or at each run if cut is high."""
import os, signal
from dataclasses import dataclass
from pathlib import Path
from zsntta_cli.methods import METHODS, Method, MethodSettings
from zsntta_cli.methods.base import Decisions
from zsntta_cli.settings.options import option

DEATH = Path(__file__).with_name("death")

@dataclass(frozen=True)
class DyingSettings(MethodSettings):
    cut: float = option(0.5, "Where noise begins.")

def is_first():
    try:
        DEATH.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

class Dying(Method):
    Settings = DyingSettings

    def push(self, items, learn=True):
        cut, u = self.options.cut, items.noise_score
        if cut > 0.8 or (len(u) > 2 and is_first()):
            os.kill(os.getpid(), signal.SIGKILL)
        return Decisions(items.class_index, u > cut, 1 - u)

class Wrong:
    def __bool__(self):
        return 1 / 0

class Failing(METHODS["zs-clip"]):
    is_probability = Wrong()  # not asked for by what words a script's errors

METHODS["dying"] = Dying
METHODS["failing"] = Failing
'''


@pytest.fixture
def dying(tmp_path, monkeypatch):
    """Those methods, loaded from a script."""
    monkeypatch.setattr(plugins, "_added", {})
    for name in ("dying", "failing"):
        monkeypatch.setitem(METHODS, name, None)
        del METHODS[name]  # so that it is taken away again
    get_reusable_executor().shutdown()  # whose processes may have loaded another script
    path = tmp_path / "dying.py"
    path.write_text(DYING)
    load_script(path)
    return path
