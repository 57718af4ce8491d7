"""The time that the command line takes to start, compared with Python importing the same libraries.

Usage: start.py [--times 11]

The commands run alternately, so all of them see the same load. A busy machine affects the
processor's seconds in user mode least; wall-clock seconds are given, too. The replay is AdaND on
the built-in sets, with features that `zsntta extract` caches first, and without kept results unless
the row says so.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import typer
from rich.console import Console
from rich.table import Table

ZSNTTA = (sys.executable, "-m", "zsntta_cli")
REPLAY = (*ZSNTTA, "simulate", "--model", "tiny", "--dataset", "shapes", "--ood", "glyphs")
PAIRS = {  # by name: the command, and the import of its libraries alone
    "zsntta --help": ((*ZSNTTA, "--help"), "import typer, rich.table"),
    "zsntta simulate --method adand": (
        (*REPLAY, "--method", "adand", "--fresh"), "import numpy, h5py, typer",
    ),
    "the same, its record kept": ((*REPLAY, "--method", "adand"), "import numpy, h5py, typer"),
}  # fmt: skip
# An installed package is compiled once; a checkout would be compiled at each start without this.
_COMPILED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def seconds(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """The processor's seconds in user mode and the wall-clock seconds of one run of a command."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, env=_COMPILED, check=True, stdout=subprocess.DEVNULL)
    return os.times().children_user - before.children_user, time.perf_counter() - started


def main(times: int = 11) -> None:
    """Measure and print medians and ratios."""
    table = Table(title=f"Medians of {times} runs in turn")
    for head in ("command", "beside", "user s", "beside", "ratio", "clock s", "beside", "ratio"):
        table.add_column(head)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for dataset in ("shapes", "glyphs"):
            extract = (*ZSNTTA, "extract", "--model", "tiny", "--dataset", dataset)
            subprocess.run(extract, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for name, (command, libraries) in PAIRS.items():
            alone = (sys.executable, "-c", libraries)
            seconds(command, folder), seconds(alone, folder)  # so that files are in memory
            runs = [(seconds(command, folder), seconds(alone, folder)) for _ in range(times)]
            row = [name, f'python -c "{libraries}"']
            for kind in (0, 1):
                own, bare = (median(run[side][kind] for run in runs) for side in (0, 1))
                row += [f"{own:.3f}", f"{bare:.3f}", f"{own / bare:.2f}"]
            table.add_row(*row)
    Console(width=140).print(table)


if __name__ == "__main__":
    typer.run(main)
