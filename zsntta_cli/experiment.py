"""What `zsntta simulate` does: a grid, or the runs of a record, to a text and files."""

import json
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.formats import render
from zsntta_cli.grid import Grid
from zsntta_cli.report import KINDS
from zsntta_cli.scorefile import write_scores
from zsntta_cli.settings import run_from_record
from zsntta_cli.simulate import Simulator, run_all
from zsntta_cli.store import write_whole


def simulate(
    root: Path,
    grid: Grid,
    record: Path | None,
    scores: Path | None,
    report: str,
    form: str,
    output: Path | None,
    jobs: int = 1,
) -> str:
    """Run a grid, or what `record` holds, and give the text to print; nothing where it is a file.

    Raises:
        SettingsError: a score file for more than one run, an unusable record.
    """
    if jobs < 1:
        raise SettingsError(f"jobs is {jobs}, must be 1 or more.")
    old = read_records(record) if record else []
    runs = [run_from_record(plain["settings"]) for plain in old] if record else grid.runs(root)
    if scores and len(runs) != 1:
        raise SettingsError(f"--scores takes one run, these options make {len(runs)}.")
    options = grid.encoder.options
    records = run_all(root, runs, options, jobs)
    for before, after in zip(old, records, strict=False):
        _check_digests(before["digests"], after.digests)
    if scores:
        write_scores(scores, Simulator(root, options).replay(runs[0]))
    text = render(records, form, KINDS[report], to_file=output is not None)
    if output:
        write_whole(output, text.encode())
    return "" if output else text


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file that `--format json` wrote, or a single one.

    Raises:
        SettingsError: the file holds no records.
    """
    try:
        content = json.loads(path.read_bytes())
        records = content if isinstance(content, list) else [content]
        for plain in records:
            run_from_record(plain["settings"])
            dict(plain["digests"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{path} holds no records of `--format json` ({error!r}).") from error
    return records


def _check_digests(before: dict[str, str], after: dict[str, str]) -> None:
    """A repeated run must see the features of the first one."""
    for name, digest in after.items():
        if before.get(name) != digest:
            raise SettingsError(
                f"the feature file of '{name}' has changed since the record was made: extract or "
                f"import what it was made from, or run the settings anew without --from."
            )
