"""The course of a stream: gradients of steps, thresholds, accuracies."""

import functools
import math
from collections.abc import Callable, Sequence

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import detector_of
from zsntta_cli.report.figure import LINE, POINTS, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.distributions import ID_LOOK, OOD_LOOK
from zsntta_cli.report.plots.groups import (
    DrawnRow,
    Groups,
    check_lines,
    finished,
    on_pairs,
    pair_titles,
    pairs_of,
)
from zsntta_cli.results.curves import Curves
from zsntta_cli.results.frame import fold, tables
from zsntta_cli.simulation.metrics import METRICS, harmonic_mean
from zsntta_cli.simulation.record import Record

_KINDS = {"clean": ID_LOOK, "noisy": OOD_LOOK}
Values = Sequence[float | None]


def gradients(runs: Sequence[Record]) -> Figure:
    """Norms of the gradients that a step's clean and noisy samples give, a panel for each run.

    A step without noisy samples, which the method filtered out, has no point for them.

    Raises:
        SettingsError: no run has its gradients kept.
    """
    norms = Axis("gradient norm", is_log=True)
    return Figure(
        tuple(
            Panel(title, _steps(run), norms, tuple(_norms(run, kind) for kind in _KINDS))
            for title, run in _with_gradients(runs).items()
        )
    )


def gradients_apart(runs: Sequence[Record], most: float) -> Figure:
    """The same norms, up to `most`, in one panel for clean and one for noisy samples."""
    panels, notes = [], []
    for title, run in _with_gradients(runs).items():
        for kind in _KINDS:
            shown_norms, total = _norms(run, kind, most), len(_norms(run, kind).x)
            axes = _steps(run), Axis("gradient norm", 0, most)
            panels.append(Panel(f"{title}: {kind}", *axes, (shown_norms,)))
            if above := total - len(shown_norms.x):
                notes.append(
                    f"{title}: {above:,} of {total:,} norms of {kind} samples are above {most:g} "
                    "and not shown"
                )
    return Figure(tuple(panels), tuple(notes))


def _with_gradients(runs: Sequence[Record]) -> dict[str, Record]:
    """The runs of the lowest seed with gradients, by the titles of their panels."""
    frame = tables([run for run in runs if _has_gradients(run)])
    titles = pair_titles(pairs_of(frame))
    by_title = {
        name + f", {titles[pair]}" * (len(titles) > 1): having[0]
        for pair, groups in on_pairs(frame)
        for name, rows in groups.items()
        if (having := finished(rows, pair[1]))
    }
    if not by_title:
        raise SettingsError("no kept run that fits has its gradients kept", remedy="keep-gradients")
    return by_title


def _has_gradients(run: Record) -> bool:
    return {*_KINDS} <= {*run.curves.get("gradients", ())}


def _steps(run: Record) -> Axis:
    return Axis("step", 0, len(run.curves["gradients"]["item"]) + 1, is_count=True)


def _norms(run: Record, kind: str, most: float = math.inf) -> Series:
    """Norms up to `most`; steps are numbered from 1 if the run counts them, else by item."""
    values: Values = run.curves["gradients"][kind]
    norms = {step: v for step, v in enumerate(values, 1) if v is not None and v <= most}
    points = tuple(norms), tuple(norms.values())
    return Series(f"{kind} samples", *points, POINTS, look=_KINDS[kind])


def thresholds(runs: Sequence[Record]) -> Figure:
    """Thresholds along the stream, a panel for each pair and scale, averaged over seeds.

    Raises:
        SettingsError: no run has its thresholds kept, or there are too many.
    """
    panels = _on_all_pairs(runs, "thresholds", _threshold_panels)
    scales = list(dict.fromkeys(panel.y for panel in panels))  # those of one beside each other
    return Figure(tuple(sorted(panels, key=lambda panel: scales.index(panel.y))))


def accuracy(runs: Sequence[Record], metric: str = "acc_h") -> Figure:
    """An accuracy over all samples so far along the stream, a panel for each pair.

    Raises:
        SettingsError: no run has its accuracies kept, or there are too many.
    """
    panels_of = functools.partial(_accuracy_panels, metric=metric)
    return Figure(tuple(_on_all_pairs(runs, "running", panels_of)))


def windows(runs: Sequence[Record], metric: str = "acc_h") -> Figure:
    """An accuracy in each window of the stream, a panel for each pair, averaged over seeds.

    Raises:
        SettingsError: no run has its windows kept, or there are too many.
    """
    panels_of = functools.partial(_window_panels, metric=metric)
    return Figure(tuple(_on_all_pairs(runs, "windows", panels_of)))


def _on_all_pairs(
    runs: Sequence[Record], curve: str, panels_of: Callable[[str, Groups, str], list[Panel]]
) -> list[Panel]:
    frame = tables([run for run in runs if curve in run.curves])
    titles = pair_titles(pairs_of(frame))
    panels = [
        panel
        for pair, groups in on_pairs(frame)
        for panel in panels_of(titles[pair], groups, pair[1])
    ]
    if not panels:
        raise SettingsError(f"no kept run that fits has its {curve} kept", remedy="keep-curves")
    for panel in panels:
        check_lines(len(panel.series))
    return panels


def _threshold_panels(title: str, groups: Groups, ood_set: str) -> list[Panel]:
    """Thresholds along the streams of a pair: a panel for each scale, or none.

    A method's threshold on the zero-shot ID score shares its axis with those of other methods. The
    threshold of its own detector is on an axis of that detector's ID score.
    """
    panels = _along(title, "zero-shot threshold", groups, ood_set, "thresholds", "zero_shot")
    by_detector: dict[str, dict[str, Sequence[DrawnRow]]] = {}
    for name, rows in groups.items():
        by_detector.setdefault(detector_of(rows[0].method), {})[name] = rows
    for detector, by_label in by_detector.items():
        panels += _along(
            title, f"{detector}'s threshold", by_label, ood_set, "thresholds", "detector"
        )
    return panels


def _accuracy_panels(title: str, groups: Groups, ood_set: str, metric: str) -> list[Panel]:
    """The accuracy so far along the streams of a pair: one panel, or none."""
    name = f"{METRICS[metric].head} so far (%)"
    return _along(title, name, groups, ood_set, "running", metric)


def _window_panels(title: str, groups: Groups, ood_set: str, metric: str) -> list[Panel]:
    """The accuracy in each window, drawn at its end: one panel, or none."""
    name = f"{METRICS[metric].head} in windows (%)"
    return _along(title, name, groups, ood_set, "windows", metric)


def _along(
    title: str, axis: str, groups: Groups, ood_set: str, curve: str, column: str
) -> list[Panel]:
    """A panel with lines along the streams of one pair, one for each group; none without lines."""
    lines = []
    for name, rows in groups.items():
        columns = [_column(run.curves.get(curve, {}), column) for run in finished(rows, ood_set)]
        lines.append(_fold_lines(name, [column for column in columns if column[0]]))
    lines = [line for line in lines if line.x]
    if not lines:
        return []
    items = Axis("samples seen", 0, max(max(line.x) for line in lines), is_count=True)
    return [Panel(title, items, Axis(axis), tuple(lines))]


def _column(curve: Curves, name: str) -> tuple[Sequence[int], Values]:
    """The items of a curve's points, and its values: a threshold, or an accuracy in percent."""
    if name == "acc_h" and {"acc_s", "acc_n"} <= {*curve}:
        both = zip(curve["acc_s"], curve["acc_n"], strict=True)
        curve = {**curve, name: [None if None in two else harmonic_mean(*two) for two in both]}
    if name not in curve:
        return (), ()
    times = 100 if name in METRICS else 1
    return curve["item"], [None if value is None else times * value for value in curve[name]]


def _fold_lines(name: str, columns: Sequence[tuple[Sequence[int], Values]]) -> Series:
    """The mean over seeds and its deviation along the stream, at the points of the first.

    Streams with another length than the first are left out.
    """
    items = columns[0][0] if columns else ()
    same = [values for where, values in columns if where == items]
    points = {
        item: fold({i: value for i, value in enumerate(values) if value is not None})
        for item, values in zip(items, zip(*same, strict=True), strict=True)
        if any(value is not None for value in values)
    }
    stds = tuple(value.std for value in points.values()) if len(same) > 1 else ()
    return Series(name, tuple(points), tuple(v.mean for v in points.values()), LINE, stds)
