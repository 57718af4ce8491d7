"""Scripts of a user's own that register methods."""

import importlib.util
import sys
from pathlib import Path

from zsntta_cli.errors import SettingsError, first_line
from zsntta_cli.methods import METHODS


def load_script(path: Path) -> list[str]:
    """Execute a script as a module, and name the methods that it registered."""
    before = dict(METHODS)
    name = f"zsntta_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SettingsError(f"{path} cannot be run ({first_line(error)}).") from error
    return [name for name, line in METHODS.items() if before.get(name) is not line]
