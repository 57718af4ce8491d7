import sys

import pytest

from zsntta_cli import plugins
from zsntta_cli.methods import CLASSIFIERS, METHODS


@pytest.fixture
def scripted(zsntta, monkeypatch):
    """Run the command line as in a process of its own: what scripts register is gone afterwards."""
    tables = [(table.data, dict(table.data)) for table in (METHODS, CLASSIFIERS)]
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*words):
        monkeypatch.setattr(plugins, "_added", {})
        for table, before in tables:
            table.clear()
            table.update(before)
        return zsntta(*words)

    yield run
    for table, before in tables:
        table.clear()
        table.update(before)
