"""The time of commands on kept results: storing a run, listing 10,000, a published table, a report.

Usage: results.py [FOLDER]. Times are those of whole processes, including the start, as medians of
five, next to `zsntta --version`. The runs are synthetic, made with the tests' helpers.
"""

import dataclasses
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from kept import curves, kept_run

from zsntta_cli.results.store import RecordStore
from zsntta_cli.simulation.record import Record

SETS = [f"set{i}" for i in range(11)]
OTHERS = ("sky", "sand", "snow", "soot")
METHODS = ("zs-clip", "adand", "tda", "cull")
ITEMS = 20_000  # test samples of a stream


def made(count: int) -> Iterator[Record]:
    """That many runs: methods on pairs, by seed."""
    usual = {
        name: kept_run(name, samples=ITEMS // 2, known=7000, caught=8000, curves=curves())
        for name in METHODS
    }
    for i in range(count):
        kept = usual[METHODS[i % 4]]
        stream = dataclasses.replace(kept.settings.stream, seed=i // 176)
        settings = dataclasses.replace(
            kept.settings, stream=stream, id_set=SETS[i // 4 % 11],
            ood_set=OTHERS[i // 44 % 4],
        )  # fmt: skip
        yield dataclasses.replace(kept, settings=settings)


def seconds(run: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def command(*words: object) -> Callable[[], object]:
    line = [sys.executable, "-m", "zsntta_cli", *map(str, words)]
    return lambda: subprocess.run(line, check=True, capture_output=True)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    many, some = folder / "many.sqlite", folder / "some.sqlite"
    with RecordStore(many, create=True) as store:
        store.add(made(10_000))
        one = list(made(300))
        each = iter(one)
        storing = seconds(lambda: store.add([next(each)]), len(one))
    with RecordStore(some, create=True) as store:
        store.add(made(5_000))
    table = Table("what", "seconds", "budget")
    table.add_row("zsntta --version", f"{seconds(command('--version')):.2f}", "")
    table.add_row("storing a run", f"{storing:.5f}", "0.002")
    rows = {
        "records, 10,000 of them": (("records", "list", "--records", many), "2"),
        "paper 2 --published": (("paper", 2, "--published"), "0.6"),
        "report of 5,000 runs": (
            ("report", "--records", some, "--output", folder / "report.html"), "5",
        ),
    }  # fmt: skip
    for name, (words, budget) in rows.items():
        table.add_row(name, f"{seconds(command(*words)):.2f}", budget)
    Console().print(table)


if __name__ == "__main__":
    main()
