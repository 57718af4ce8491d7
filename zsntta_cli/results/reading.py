"""Records as JSON has them, back to records: each value of what comes from elsewhere is checked."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError, StoreError, first_line, short
from zsntta_cli.files import read_input
from zsntta_cli.settings.options import check
from zsntta_cli.simulation.metrics import METRICS, Measures
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.runs import RunSettings, run_from_record

LARGEST_FILE = 2**28  # bytes of records: some hundred thousand


@dataclass(frozen=True)
class Recorded:
    """A run that a record describes, and the features that it saw."""

    settings: RunSettings
    digests: dict[str, str]

    def check(self, record: Record) -> None:
        """A repeated run must have seen the features of the first one.

        Raises:
            StoreError: a feature file has changed.
        """
        for name, digest in record.digests.items():
            is_new = "/" in name  # older records do not have these
            if self.digests.get(name, digest if is_new else "") != digest:
                raise StoreError(
                    f"the feature file of '{name.rpartition('/')[2]}' has changed since the "
                    f"record was made: extract or import what it was made from",
                    remedy="run-anew",
                )


def read_records(path: Path) -> list[Recorded]:
    """The runs of a file that `--format json` wrote, or a single one.

    Raises:
        StoreError: the file holds no records.
    """
    try:
        content = json.loads(read_input(path, LARGEST_FILE))
        records = content if isinstance(content, list) else [content]
        check(bool(records), "it is empty")
        return [recorded(record) for record in records]
    except (SettingsError, OSError, ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, SettingsError) else first_line(error)
        raise StoreError(
            f"{path} holds no records of runs in JSON ({short(reason.removesuffix('.'), 200)})."
        ) from error


def recorded(record: Any) -> Recorded:
    """The run of a record: SettingsError where it is none."""
    check(isinstance(record, dict), "one is no JSON object")
    return Recorded(run_from_record(record.get("settings")), _texts(record, "digests"))


def record_from(plain: Any) -> Record:
    """A record from its plain values, as `Record.to_dict` gives them.

    Raises:
        SettingsError: they are no record.
    """
    run = recorded(plain)
    counts = {name: int(n) for name, n in _numbers(plain, "counts").items()}
    check(set(counts) == {"id", "ood", "noise"}, "its counts are not of id, ood and noise")
    return Record(
        run.settings,
        _metrics(plain, "accuracies"),
        _metrics(plain, "detection"),
        _metrics(plain, "flags"),
        counts,
        _numbers(plain, "repeated"),
        run.digests,
        _number(plain, "seconds"),
        _text(plain, "created"),
        _texts(plain, "versions"),
        int(_number(plain, "unfinished")),
        _text(plain, "revision"),
        int(_number(plain, "memory")),
        _text(plain, "device"),
    )


def _metrics(plain: dict[str, Any], name: str) -> Measures:
    """A group of metrics; a missing one is nan, as in records from before it was measured."""
    given = plain.get(name, {})
    check(isinstance(given, dict), f"its {name} are no object")
    names = [metric.name for metric in METRICS.values() if metric.group == name]
    values = {metric: given.get(metric) for metric in names}
    for value in values.values():
        check(value is None or _is_number(value), f"its {name} are no numbers")
    return Measures((k, math.nan if value is None else float(value)) for k, value in values.items())


def _numbers(plain: dict[str, Any], name: str) -> dict[str, float]:
    given = plain.get(name, {})
    known = isinstance(given, dict) and all(_is_number(value) for value in given.values())
    check(known, f"its {name} are no object of numbers")
    return dict(given)


def _number(plain: dict[str, Any], name: str) -> float:
    value = plain.get(name, 0)
    check(_is_number(value), f"its {name} is no number")
    return value


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and 0 <= value < 2**62  # nan, too, is none


def _texts(plain: dict[str, Any], name: str) -> dict[str, str]:
    given = plain.get(name)
    known = isinstance(given, dict) and all(isinstance(value, str) for value in given.values())
    check(known, f"its {name} are no object of texts")
    return dict(given or {})


def _text(plain: dict[str, Any], name: str) -> str:
    value = plain.get(name, "")
    check(isinstance(value, str), f"its {name} is no text")
    return value
