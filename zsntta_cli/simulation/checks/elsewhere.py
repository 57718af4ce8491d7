"""A method's decisions in a process of its own, which runs this module."""

import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

from zsntta_cli.methods.base import Decisions
from zsntta_cli.plugins import load_script
from zsntta_cli.simulation.checks.examined import Examined, Failed, NotRun

_HASH_SEED = "24"  # of texts: the order of a set of them is another


def decided_elsewhere(examined: Examined) -> Decisions:
    """What a process decides that has just begun.

    Raises:
        Failed: it ended with an error, whose last line is the evidence.
        NotRun: no file has the method's code.
    """
    task = (_script(examined), examined.name, examined.material, examined.threshold,
            vars(examined.options))  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", __name__], input=pickle.dumps(task), capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": _HASH_SEED}, check=False,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"another process ended with {done.stderr.decode().splitlines()[-1]}")
    decisions: Decisions = pickle.loads(done.stdout)
    return decisions


def _script(examined: Examined) -> Path | None:
    """The file that registers a method of one's own."""
    own = examined.method.own_code
    try:
        return Path(inspect.getsourcefile(own[0]) or "").resolve() if own else None
    except (OSError, TypeError) as error:
        raise NotRun("its code is in no file that another process could read") from error


def _decide() -> None:
    """Decide as the task on stdin says."""
    script, name, images, threshold, values = pickle.load(sys.stdin.buffer)
    stdout, sys.stdout = sys.stdout, sys.stderr  # what a script prints is no answer
    if script:
        load_script(script)
    from zsntta_cli.methods import METHODS

    method = METHODS[name]
    examined = Examined(name, method.settings(**values), images, threshold)
    stdout.buffer.write(pickle.dumps(examined.decide(examined.stream())))


if __name__ == "__main__":
    _decide()
