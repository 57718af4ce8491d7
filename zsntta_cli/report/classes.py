"""A run by class: how many images of each are classified right, called noise, taken for another."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from zsntta_cli.report.forms import in_form
from zsntta_cli.report.sheet import Sheet, SheetRow
from zsntta_cli.simulation.metrics import Judged
from zsntta_cli.simulation.record import Replay

OOD = "(OOD)"  # the row of images of no class
_HEADS = ("Images", "ID acc", "Called noise", "Most confused with", "Confused")


def class_rows(names: Sequence[str], samples: Judged) -> list[dict[str, Any]]:
    """A row for each of C classes that has samples, and one for the OOD samples.

    `accuracy` is the share that is classified right, whatever is called noise; `called_noise` is
    None for a method without decisions. `confused_with` is the class that most others were taken
    for, and `confused` the share of the row's samples; both are None where there is none.
    """
    rows = []
    for label in np.unique(samples.labels).tolist():
        here = samples.labels == label
        taken_for = np.bincount(samples.class_index[here], minlength=len(names))
        images = int(here.sum())
        right = int(taken_for[label]) if label >= 0 else None
        if right is not None:
            taken_for[label] = 0
        other = int(taken_for.argmax())
        noise = None if samples.is_noise is None else float(samples.is_noise[here].mean())
        rows.append({
            "class": names[label] if label >= 0 else OOD,
            "images": images,
            "accuracy": None if right is None else right / images,
            "called_noise": noise,
            "confused_with": names[other] if taken_for[other] else None,
            "confused": float(taken_for[other] / images) if taken_for[other] else None,
        })  # fmt: skip
    return rows if not rows or rows[0]["class"] != OOD else [*rows[1:], rows[0]]


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


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"
