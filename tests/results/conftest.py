"""What the tests of results have in common."""

import pytest

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
