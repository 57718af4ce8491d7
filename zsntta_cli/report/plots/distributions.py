"""Distributions of scores over the samples of one stream: before and after adaptation, and paired.

A histogram has the ID samples and the OOD samples in percent of their own kind, so that they can be
compared at any noise ratio.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.plots.figure import HISTOGRAM, UPRIGHT, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.groups import by_pair, first_seed, pair_title, pairs
from zsntta_cli.results.kept import Kept

BASELINE = "zs-clip"  # scores before adaptation are its scores
ID_LOOK, OOD_LOOK = "ID", "OOD"  # whose colours they are, in all figures
_SHARE = Axis("share of samples (%)", low=0)


def scores(runs: Sequence[Kept]) -> Figure:
    """Histograms of the ID score, a panel a run: before adaptation first, then each method.

    The dashed line is the median over the stream of the threshold that decided. Of several seeds
    the lowest is shown.

    Raises:
        SettingsError: no run has scores kept.
    """
    panels: list[Panel] = []
    several = len(pairs(runs)) > 1
    for pair, found in by_pair(runs):
        on = pair_title(pair) if several else ""
        groups = {
            name: kept
            for name, some in found.items()
            if "scores" in (kept := first_seed(some)).drawable
        }
        panels += [_panel("before adaptation", kept, "before", on) for kept in _without(groups)]
        panels += [
            _panel(name, kept, "scores", on, threshold(kept))
            for name, kept in sorted(groups.items(), key=_baseline_first)
        ]
    if not panels:
        raise SettingsError("no kept run that fits has its scores kept", remedy="keep-curves")
    return Figure(tuple(panels))


def _baseline_first(group: tuple[str, Kept]) -> bool:
    return group[1].record.settings.method != BASELINE


def _without(groups: Mapping[str, Kept]) -> list[Kept]:
    """A live run whose scores before adaptation stand for ZS-CLIP's, where that is not there."""
    if any(kept.record.settings.method == BASELINE for kept in groups.values()):
        return []
    return [kept for kept in groups.values() if "before" in kept.drawable][:1]


def difference(runs: Sequence[Kept]) -> Figure:
    """Histograms of each sample's ID score after minus before adaptation, a panel a live run.

    Raises:
        SettingsError: no run is of a live method.
    """
    several = len(pairs(runs)) > 1
    panels = [
        _panel(name, kept, "difference", pair_title(pair) if several else "")
        for pair, found in by_pair(runs)
        for name, some in found.items()
        if "difference" in (kept := first_seed(some)).drawable
    ]
    if not panels:
        raise SettingsError(
            "no kept run that fits is of a live method, and only these have scores before and "
            "after adaptation",
            remedy="live",
        )
    return Figure(tuple(panels))


_X = {
    "scores": "ID score",
    "before": "ID score",
    "difference": "ID score, after − before",
}


def _panel(name: str, kept: Kept, curve: str, on: str, cut: float | None = None) -> Panel:
    found = kept.drawable[curve]
    centres = middles(found)
    series = [
        Series(kind, centres, in_percent(found[kind.lower()]), HISTOGRAM, look=kind)
        for kind in (ID_LOOK, OOD_LOOK)
    ]
    if cut is not None:
        series.append(Series("threshold (median)", (cut,), (None,), UPRIGHT, look="threshold"))
    title = ", ".join(part for part in (name, on) if part)
    return Panel(title, Axis(_X[curve], found["low"], found["high"]), _SHARE, tuple(series))


def middles(found: Mapping[str, Any]) -> tuple[float, ...]:
    """Middles of a histogram's cells."""
    low, width = found["low"], (found["high"] - found["low"]) / len(found["id"])
    return tuple(low + (i + 0.5) * width for i in range(len(found["id"])))


def in_percent(counts: Sequence[int]) -> tuple[float, ...]:
    """Counts in percent of their sum; zeros of none."""
    total = sum(counts) or 1
    return tuple(100 * count / total for count in counts)


def threshold(kept: Kept) -> float | None:
    """Median over the stream of the threshold that decided, on the ID score.

    The detector's where it decided, else that on the zero-shot score.
    """
    found = kept.drawable.get("thresholds", {})
    for name in ("detector", "zero_shot"):
        known = [value for value in found.get(name) or () if value is not None]
        if known:
            return float(statistics.median(known))
    return None
