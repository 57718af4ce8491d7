"""A method's decisions in a process of its own, which runs this module."""

import os
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions
from zsntta_cli.plugins import LoadedScripts, load_script
from zsntta_cli.simulation.checks.examined import Examined, Failed, NotRun

_HASH_SEED = "24"  # of texts: the order of a set of them is another


def decided_elsewhere(examined: Examined) -> Decisions:
    """The decisions of a process that has just begun.

    Raises:
        Failed: the process ended with an error, whose last line is the evidence.
        NotRun: the method's code is in no file.
    """
    task = (sys.path, LoadedScripts(), *_registered_by(examined), examined.name, examined.material,
            examined.threshold, vars(examined.options))  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", __name__], input=pickle.dumps(task), capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": _HASH_SEED}, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"another process ended with {done.stderr.decode().splitlines()[-1]}")
    decisions: Decisions = pickle.loads(done.stdout)
    return decisions


def _registered_by(examined: Examined) -> tuple[Path | None, list[str]]:
    """The script or modules in which a method from outside the package is written.

    Scripts that were loaded as plugins, and installed distributions, need not be named.
    """
    modules = {code.__module__ for code in examined.method.own_code}
    script = getattr(sys.modules["__main__"], "__file__", None)
    if "__main__" in modules and not script:
        raise NotRun("its code is in no file that another process could read")
    named = sorted(name for name in modules if not name.startswith(("zsntta_", "__main__")))
    return Path(script or "").resolve() if "__main__" in modules else None, named


def _decide() -> None:
    """Decide as the task on stdin says."""
    stdout, sys.stdout = sys.stdout, sys.stderr  # what a script prints is no answer
    folders, _, script, modules, name, *images, values = pickle.load(sys.stdin.buffer)
    sys.path[:] = folders
    if script:
        load_script(script)
    for module in modules:
        import_module(module)
    examined = Examined(name, METHODS[name].settings(**values), *images)
    stdout.buffer.write(pickle.dumps(examined.decide(examined.stream())))


if __name__ == "__main__":
    _decide()
