"""What happens along a stream: gradients of steps, thresholds, accuracies."""

from collections.abc import Sequence
from typing import Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.plots.distributions import ID_LOOK, OOD_LOOK
from zsntta_cli.report.plots.figure import LINE, POINTS, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.selection import (
    check_lines,
    first_seed,
    grouped,
    mean_std,
    on_pair,
    pair_title,
    pairs,
)
from zsntta_cli.simulation.metrics import harmonic_mean
from zsntta_cli.simulation.records.kept import Kept

_ITEMS = Axis("samples seen", low=0)
_KINDS = {"clean": ID_LOOK, "noisy": OOD_LOOK}
METRICS = {"acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H"}
_THRESHOLDS = {"zero_shot": "zero-shot", "detector": "detector"}
Values = list[float | None]


def gradients(runs: Sequence[Kept]) -> Figure:
    """Norms of the gradient that a step's clean and noisy samples give, in one panel a run.

    A step on no noisy sample has no point of these: the method filtered them all out.

    Raises:
        SettingsError: no run has its gradients kept.
    """
    return Figure(
        tuple(
            Panel(
                title,
                Axis("step", low=0),
                Axis("gradient norm", is_log=True),
                tuple(_norms(kept, kind) for kind in _KINDS),
            )
            for title, kept in _with_gradients(runs)
        )
    )


def gradients_apart(runs: Sequence[Kept], most: float) -> Figure:
    """The same in a panel for clean and one for noisy samples, norms up to `most` only."""
    panels, notes = [], []
    for title, kept in _with_gradients(runs):
        for kind in _KINDS:
            whole = _norms(kept, kind)
            shown = [(x, y) for x, y in zip(whole.x, whole.y, strict=True) if y is not None]
            low = [(x, y) for x, y in shown if y <= most]
            x, y = zip(*low, strict=True) if low else ((), ())
            series = Series(whole.name, x, y, POINTS, look=whole.look)
            axes = Axis("step", low=0), Axis("gradient norm", 0, most)
            panels.append(Panel(f"{title}: {kind}", *axes, (series,)))
            if len(low) < len(shown):
                above = len(shown) - len(low)
                notes.append(
                    f"{title}: {above:,} of {len(shown):,} norms of {kind} samples are above "
                    f"{most:g} and not shown"
                )
    return Figure(tuple(panels), tuple(notes))


def _with_gradients(runs: Sequence[Kept]) -> list[tuple[str, Kept]]:
    """Runs with gradients, by what their panels are called."""
    several = len(pairs(runs)) > 1
    found = [
        (", ".join([name, *([pair_title(pair)] if several else [])]), first_seed(some))
        for pair in pairs(runs)
        for name, some in grouped(
            [k for k in on_pair(runs, pair) if curve(k, "gradients", ("item", "clean", "noisy"))]
        ).items()
    ]
    if not found:
        raise SettingsError("no kept run that fits has its gradients kept", remedy="keep-gradients")
    return found


def _norms(kept: Kept, kind: str) -> Series:
    """Steps are numbered from 1 where the run has them, not by their items."""
    values: Values = kept.curves["gradients"][kind]
    known = [(i, v) for i, v in enumerate(values, 1) if v is not None]
    steps, norms = zip(*known, strict=True) if known else ((), ())
    return Series(f"{kind} samples", steps, norms, POINTS, look=_KINDS[kind])


def thresholds(runs: Sequence[Kept]) -> Figure:
    """Thresholds on the ID score along the stream, a panel a pair; seeds folded.

    Raises:
        SettingsError: no run has its thresholds kept, or there are too many.
    """
    panels = []
    for pair in pairs(runs):
        lines = [
            _folded(f"{name}: {words}" if which == "detector" else name, some, which, name)
            for name, some in grouped(_with(on_pair(runs, pair), "thresholds")).items()
            for which, words in _THRESHOLDS.items()
            if which in some[0].curves["thresholds"]
        ]
        if lines:
            check_lines(len(lines))
            axis = Axis("threshold on the ID score", 0, 1)
            panels.append(Panel(pair_title(pair), _ITEMS, axis, tuple(lines)))
    return _figure(panels, "thresholds")


def accuracy(runs: Sequence[Kept], metric: str = "acc_h") -> Figure:
    """An accuracy over all samples so far along the stream, a panel a pair; seeds folded.

    Raises:
        SettingsError: no run has its accuracies kept, or there are too many.
    """
    panels = []
    for pair in pairs(runs):
        groups = grouped(_with(on_pair(runs, pair), "running"))
        check_lines(len(groups))
        lines = [_folded(name, some, metric, name) for name, some in groups.items()]
        if lines:
            axis = Axis(f"{METRICS[metric]} so far (%)")
            panels.append(Panel(pair_title(pair), _ITEMS, axis, tuple(lines)))
    return _figure(panels, "accuracies along the stream")


def _figure(panels: Sequence[Panel], what: str) -> Figure:
    if not panels:
        raise SettingsError(f"no kept run that fits has its {what} kept", remedy="keep-curves")
    return Figure(tuple(panels))


_NEEDED = {"thresholds": ("item",), "running": ("item", "acc_s", "acc_n")}


def _with(runs: Sequence[Kept], name: str) -> list[Kept]:
    return [kept for kept in runs if curve(kept, name, _NEEDED[name])]


def curve(kept: Kept, name: str, columns: Sequence[str]) -> dict[str, Any] | None:
    """A curve with these columns, none of them empty."""
    found: dict[str, Any] | None = kept.curves.get(name)
    return found if found and all(found.get(column) for column in columns) else None


def _folded(name: str, runs: Sequence[Kept], which: str, look: str) -> Series:
    """A line over the stream: its mean over seeds and their deviation, at the items of the first.

    Streams of other lengths than the first one's are left out.
    """
    columns = [(kept, _column(kept, which)) for kept in runs]
    items = columns[0][1][0]
    values = [column for _, (where, column) in columns if where == items]
    points = [mean_std([v for v in some if v is not None]) for some in zip(*values, strict=True)]
    known = [(item, *point) for item, point in zip(items, points, strict=True) if point[0] == point[0]]
    x, y, std = zip(*known, strict=True) if known else ((), (), ())
    return Series(name, x, y, LINE, std if len(values) > 1 else (), look)


def _column(kept: Kept, which: str) -> tuple[list[int], Values]:
    """Where a run's curve has points, and its values: thresholds as they are, else percent."""
    if which in _THRESHOLDS:
        found = kept.curves["thresholds"]
        return found["item"], found.get(which) or [None] * len(found["item"])
    found = kept.curves["running"]
    both = list(zip(found["acc_s"], found["acc_n"], strict=True))
    values = {
        "acc_s": found["acc_s"],
        "acc_n": found["acc_n"],
        "acc_h": [None if None in one else harmonic_mean(*one) for one in both],
    }[which]
    return found["item"], [None if value is None else 100 * value for value in values]
