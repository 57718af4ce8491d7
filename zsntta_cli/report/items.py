"""The score file: what a method saw and decided, item by item."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.files import write_whole
from zsntta_cli.simulation.replay import Replay
from zsntta_cli.simulation.stream import NOISE, OOD


def write_scores(path: Path, replay: Replay) -> None:
    """Write the items of a run as CSV.

    Columns: index in the stream, sample_id, truth (a class name, "ood" or "injected"), decision (a
    class name or "noise"), id_score, and the thresholds on the ID score that decided: of ZS-CLIP
    and of the detector (empty or nan where there was none). A live method also has the ID score
    before adaptation and, in the row of the first item of each batch with an optimiser step, the
    norms of the gradients of its clean and noisy samples.
    """
    decisions, stream, sources = replay.made.decisions, replay.stream, replay.sources
    names = np.array([*sources.id_set.class_names, ""], dtype=object)
    truth, decision = names[replay.labels], names[decisions.class_index]
    truth[stream.kind == OOD], truth[stream.kind == NOISE] = "ood", "injected"
    if decisions.is_noise is not None:
        decision[decisions.is_noise] = "noise"
    ids = np.empty(len(stream), dtype=object)
    for kind, file in sources.files.items():
        mask = stream.kind == kind
        if mask.any():
            ids[mask] = np.array(store.read_sample_ids(file.path), object)[stream.row[mask]]
    nothing = np.full(len(stream), np.nan)
    zero_shot, detector = decisions.zero_shot_threshold, decisions.detector_threshold
    columns: dict[str, NDArray[Any]] = {  # each (T,)
        "index": np.arange(len(stream)),
        "sample_id": ids,
        "truth": truth,
        "decision": decision,
        "id_score": decisions.id_score,
        "zero_shot_threshold": nothing if zero_shot is None else 1 - zero_shot,
        "detector_threshold": nothing if detector is None else 1 - detector,
        **replay.made.columns,
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        writer.writerow("" if value != value else value for value in row)  # nan is no number
    write_whole(path, text.getvalue().encode(errors="surrogateescape"))
