"""A run by class: how many images of each are classified right, called noise, taken for another."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from zsntta_cli.report.forms import in_form
from zsntta_cli.report.sheet import Sheet, SheetRow
from zsntta_cli.results import frame
from zsntta_cli.results.frame import ResultTable
from zsntta_cli.simulation.metrics import Judged, class_counts
from zsntta_cli.simulation.record import Replay

OOD = "(OOD)"  # the row of images of no class
_HEADS = ("Images", "ID acc", "Called noise", "Most confused with", "Confused")


def class_rows(names: Sequence[str], samples: Judged) -> list[dict[str, Any]]:
    """A row for each of C classes that has samples, and one for the OOD samples.

    `accuracy` is the share that is classified right, whatever is called noise; `called_noise` is
    None for a method without decisions. `confused_with` is the class that most others were taken
    for, and `confused` the share of the row's samples; both are None where there is none.
    """
    counts, rows = class_counts(samples, len(names)), []
    for row in np.flatnonzero(counts.images).tolist():
        is_ood, images, confused = row == len(names), counts.images[row], counts.confused[row]
        rows.append({
            "class": OOD if is_ood else names[row],
            "images": int(images),
            "accuracy": None if is_ood else float(counts.right[row] / images),
            "called_noise": None if counts.noise is None else float(counts.noise[row] / images),
            "confused_with": names[counts.confused_with[row]] if confused else None,
            "confused": float(confused / images) if confused else None,
        })  # fmt: skip
    return rows


def render_classes(replay: Replay, form: str, to_file: bool) -> str:
    """The classes of a run in a form: a table in percent, or rows of fractions."""
    run = replay.settings
    rows = class_rows(replay.sources.id_set.class_names, replay.judged)
    lines = [
        SheetRow((row["class"],), {"": (
            f"{row['images']:,}", _percent(row["accuracy"]), _percent(row["called_noise"]),
            row["confused_with"] or "-", _percent(row["confused"]),
        )})
        for row in rows
    ]  # fmt: skip
    against = f" against {run.ood_set}" if run.ood_set else ""
    title = f"{run.method} on {run.id_set}{against}, by class"
    sheet = Sheet(title, ("Class",), {"": _HEADS}, lines)
    return in_form(form, [sheet], rows, to_file)


def classes_sheet(table: ResultTable) -> Sheet:
    """What each row's finished runs, summed, make of each class; empty where none counted them."""
    lines: dict[tuple[str, str], SheetRow] = {}
    for row in table.rows:
        finished = [run.curves for run in row.records if not run.unfinished]
        runs = [curves["classes"] for curves in finished if "classes" in curves]
        runs = [of for of in runs if of["names"] == runs[0]["names"]]
        decides = all("noise" in of for of in runs)
        for i, name in enumerate(runs[0]["names"] if runs else ()):
            images = sum(of["images"][i] for of in runs)
            if not images:
                continue
            right = sum(of["right"][i] for of in runs) / images
            noise = sum(of["noise"][i] for of in runs) / images if decides else None
            others = Counter(sorted(of["confused_with"][i] for of in runs))
            del others[-1]
            other = [runs[0]["names"][place] for place, _ in others.most_common(1)]
            labels = name, frame.shown("ratio", row.ratio)
            line = lines.setdefault(labels, SheetRow(labels, {}))
            texts = _percent(right), _percent(noise), other[0] if other else "-"
            line.values = {**line.values, row.method: texts}
    columns = {row.method: _HEADS[1:4] for row in table.rows}
    title = f"By class: ID: {table.id_set}, {table.encoder}"
    note = "Runs on all OOD sets and seeds are summed; most confused with: in most of these runs."
    return Sheet(title, ("Class", "Noise"), columns, [*lines.values()], [note])


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"
