"""What `zsntta simulate` runs: a grid, or the runs of a record again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.grid import Grid
from zsntta_cli.scorefile import write_scores
from zsntta_cli.settings import run_from_record
from zsntta_cli.simulate import LiveFactory, Record, Simulator, run_all


def run(
    root: Path,
    grid: Grid,
    record: Path | None = None,
    jobs: int = 1,
    scores: Path | None = None,
    live: LiveFactory | None = None,
) -> list[Record]:
    """The runs of a grid or, where a `record` is given, its runs again.

    `scores`: where to write the items of the single run that there is to be.

    Raises:
        SettingsError: an unusable record, other features than it had, or more than a single run.
    """
    if jobs < 1:
        raise SettingsError(f"jobs is {jobs}, must be 1 or more.")
    before = read_records(record) if record else []
    runs = [run_from_record(old["settings"]) for old in before] or grid.runs(root)
    if scores and len(runs) != 1:
        raise SettingsError(f"--scores takes one run, these options make {len(runs)}.")
    replay = None
    if scores:
        replay = Simulator(root, grid.encoder.options, live).replay(runs[0], analyse=True)
    records = [replay.record] if replay else run_all(root, runs, grid.encoder.options, jobs, live)
    for old, new in zip(before, records, strict=False):  # fewer records where Ctrl-C stopped them
        _check_digests(old["digests"], new.digests)
    if scores and replay:
        write_scores(scores, replay)
    return records


def repeats(records: Sequence[Record]) -> list[str]:
    """A line for each set that was too small for a stream and whose images were shown again."""
    most: dict[str, float] = {}
    for record in records:
        for name, times in record.repeated.items():
            most[name] = max(times, most.get(name, 0))
    return [
        f"note: '{name}' is smaller than the streams need: its images are shown up to "
        f"{times:.2f} times."
        for name, times in most.items()
    ]


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
