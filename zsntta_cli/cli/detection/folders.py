"""What is said of a dry run: what would be done with images in folders."""

import json
import sys
from collections import Counter
from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from zsntta_cli.cli.command import say
from zsntta_cli.errors import printable
from zsntta_cli.progress import console
from zsntta_cli.report.verdict_folders import Sorter, Step, told_counts
from zsntta_cli.report.verdicts import SHOWN

NOTHING_PUT = "Nothing was copied, removed or written (--dry-run)."


def say_plan(sorter: Sorter, unwritten: Sequence[str] = ()) -> None:
    """Say what would be done: a table of some on a terminal, else a line of JSON each.

    `unwritten` are files that would be written besides.
    """
    steps = [step for step in sorter.steps if step.act != "keep"]
    rows = [_row(step, sorter) for step in steps]
    if sys.stdout.isatty():
        typer.echo(_table(rows[:SHOWN]), nl=False)
        if len(rows) > SHOWN:
            say(f"Shown are the first {SHOWN} of {len(rows):,}.", err=True)
    else:
        typer.echo("".join(json.dumps(row) + "\n" for row in rows), nl=False)
    counts = Counter(step.act for step in sorter.steps)
    what = told_counts(counts) or "nothing to do"
    say(f"{sorter.root} would be filled: {what}.", err=True)
    for path in unwritten:
        say(f"{path} would be written.", err=True)
    say(NOTHING_PUT, err=True)


def _row(step: Step, sorter: Sorter) -> dict[str, str]:
    place = str(sorter.root / step.image.copy)
    if step.act == "remove":
        return {"act": "remove", "from": place, "to": ""}
    if step.act == "rename":
        return {"act": "move", "from": str(sorter.root / step.places[0].copy), "to": place}
    return {"act": "copy", "from": step.image.source, "to": place}


def _table(rows: Sequence[dict[str, str]]) -> str:
    table = Table(box=None, pad_edge=False)
    for name in ("act", "from", "to"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row.values()))
    screen = console()
    with screen.capture() as captured:
        if rows:
            screen.print(table)
    return captured.get()
