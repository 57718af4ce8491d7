"""What a run was and what is kept of it: stream and decisions, judged, with all that made them."""

import dataclasses
import json
import math
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import __version__
from zsntta_cli.errors import SettingsError, StoreError, first_line, short
from zsntta_cli.files import read_input
from zsntta_cli.methods.base import Decisions
from zsntta_cli.settings.checks import check
from zsntta_cli.simulation.metrics import (
    Accuracies,
    Detection,
    Flags,
    accuracies,
    detection,
    flags,
)
from zsntta_cli.simulation.runs import RunSettings, run_from_record
from zsntta_cli.simulation.sources import Sources
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream

Columns = dict[str, NDArray[Any]]

_KINDS = {"id": ID, "ood": OOD, "noise": NOISE}
_LARGEST_FILE = 2**28  # bytes of records: some hundred thousand
_NO_ACCURACIES = Accuracies(math.nan, math.nan, math.nan)
_NO_FLAGS = Flags(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Record:
    """What one run gave, with all that it takes to run it again."""

    settings: RunSettings
    accuracies: Accuracies
    detection: Detection
    flags: Flags
    counts: dict[str, int]  # items of each kind in the stream
    repeated: dict[str, float]  # sets that were too small: how often their images were shown
    digests: dict[str, str]  # of the feature files
    seconds: float  # of the method alone
    created: str
    versions: dict[str, str]
    unfinished: int = 0  # items of the stream that a Ctrl-C kept a live method from

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values; a metric without samples is None."""
        plain = dataclasses.asdict(self)
        for group in ("accuracies", "detection", "flags"):
            plain[group] = {k: None if np.isnan(v) else v for k, v in plain[group].items()}
        return plain


@dataclass(frozen=True)
class Replay:
    """A run: what the stream was, what the method decided."""

    settings: RunSettings
    sources: Sources
    stream: Stream
    decisions: Decisions
    digests: dict[str, str]
    seconds: float
    columns: Columns = field(default_factory=dict)  # what else a live method's items have
    unfinished: int = 0  # items that a Ctrl-C cut off

    @property
    def labels(self) -> NDArray[np.int64]:
        """True class of all items (T,); -1 where an item belongs to none."""
        return true_labels(self.sources, self.stream)

    def _repeated(self) -> dict[str, float]:
        sources = zip((OOD, NOISE), (self.sources.ood_set, self.sources.noise), strict=True)
        shown = {s.name: int((self.stream.kind == k).sum()) / len(s) for k, s in sources if s}
        return {name: round(times, 3) for name, times in shown.items() if times > 1}

    def record(self) -> Record:
        """The decisions judged on the test samples, as of now; injected items do not count."""
        tests = self.stream.kind != NOISE
        decisions, labels = self.decisions, self.labels[tests]
        judged, flagged = _NO_ACCURACIES, _NO_FLAGS
        if decisions.is_noise is not None:
            is_noise = decisions.is_noise[tests]
            judged = accuracies(labels, decisions.class_index[tests], is_noise)
            flagged = flags(labels, is_noise)
        return Record(
            self.settings,
            judged,
            detection(decisions.id_score[tests], labels >= 0),
            flagged,
            {name: int((self.stream.kind == kind).sum()) for name, kind in _KINDS.items()},
            self._repeated(),
            self.digests,
            self.seconds,
            datetime.now(UTC).isoformat(timespec="seconds"),
            {"zsntta": __version__, "numpy": np.__version__, "python": platform.python_version()},
            self.unfinished,
        )


def true_labels(sources: Sources, stream: Stream) -> NDArray[np.int64]:
    """True class of all items (T,); -1 where an item belongs to none."""
    is_id = stream.kind == ID
    rows = np.where(is_id, stream.row, 0)
    return np.where(is_id, sources.id_set.labels[rows], -1)


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
            if self.digests.get(name) != digest:
                raise StoreError(
                    f"the feature file of '{name}' has changed since the record was made: extract "
                    f"or import what it was made from",
                    remedy="run-anew",
                )


def read_records(path: Path) -> list[Recorded]:
    """The runs of a file that `--format json` wrote, or a single one.

    Raises:
        StoreError: the file holds no records.
    """
    try:
        content = json.loads(read_input(path, _LARGEST_FILE))
        records = content if isinstance(content, list) else [content]
        check(bool(records), "it is empty")
        return [_recorded(record) for record in records]
    except (SettingsError, OSError, ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, SettingsError) else first_line(error)
        raise StoreError(
            f"{path} holds no records of runs in JSON ({short(reason.removesuffix('.'), 200)})."
        ) from error


def _recorded(record: Any) -> Recorded:
    check(isinstance(record, dict), "one is no JSON object")
    digests = record.get("digests")
    known = isinstance(digests, dict) and all(isinstance(d, str) for d in digests.values())
    check(known, "its digests are no object of texts")
    return Recorded(run_from_record(record.get("settings")), digests)
