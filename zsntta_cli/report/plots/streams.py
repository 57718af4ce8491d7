"""What happens along a stream: gradients of steps, thresholds, accuracies."""

from collections.abc import Iterable, Sequence

from zsntta_cli.errors import SettingsError
from zsntta_cli.report.plots.distributions import ID_LOOK, OOD_LOOK
from zsntta_cli.report.plots.figure import LINE, POINTS, Axis, Figure, Panel, Series
from zsntta_cli.report.plots.groups import (
    METRICS,
    by_pair,
    check_lines,
    first_seed,
    mean_std,
    pair_title,
    pairs,
)
from zsntta_cli.results.kept import Kept
from zsntta_cli.simulation.metrics import harmonic_mean

_KINDS = {"clean": ID_LOOK, "noisy": OOD_LOOK}
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
                _steps(kept),
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
            axes = _steps(kept), Axis("gradient norm", 0, most)
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
    having = [kept for kept in runs if _has_curve(kept, "gradients", _KINDS)]
    found = [
        (", ".join([name, *([pair_title(pair)] if several else [])]), first_seed(some))
        for pair, groups in by_pair(having)
        for name, some in groups.items()
    ]
    if not found:
        raise SettingsError("no kept run that fits has its gradients kept", remedy="keep-gradients")
    return found


def _steps(kept: Kept) -> Axis:
    return Axis("step", 0, len(kept.drawable["gradients"]["item"]) + 1)


def _norms(kept: Kept, kind: str) -> Series:
    """Steps are numbered from 1 where the run has them, not by their items."""
    values: Values = kept.drawable["gradients"][kind]
    known = [(i, v) for i, v in enumerate(values, 1) if v is not None]
    steps, norms = zip(*known, strict=True) if known else ((), ())
    return Series(f"{kind} samples", steps, norms, POINTS, look=_KINDS[kind])


def thresholds(runs: Sequence[Kept]) -> Figure:
    """The threshold that decides, on the method's ID score, along the stream; a panel a pair.

    The detector's, and before it has one that on the zero-shot score; seeds folded.

    Raises:
        SettingsError: no run has its thresholds kept, or there are too many.
    """
    return _along(runs, "thresholds", "threshold on the ID score", "")


def accuracy(runs: Sequence[Kept], metric: str = "acc_h") -> Figure:
    """An accuracy over all samples so far along the stream, a panel a pair; seeds folded.

    Raises:
        SettingsError: no run has its accuracies kept, or there are too many.
    """
    return _along(runs, "running", f"{METRICS[metric]} so far (%)", metric)


def _along(runs: Sequence[Kept], name: str, axis: str, metric: str) -> Figure:
    """A curve of each group of runs along the stream, a panel a pair."""
    panels = []
    having = [kept for kept in runs if _has_curve(kept, name, _NEEDED[name])]
    for pair, groups in by_pair(having):
        check_lines(len(groups))
        lines = [_folded(group, some, metric) for group, some in groups.items()]
        if lines := [line for line in lines if line.x]:
            items = Axis("samples seen", 0, max(x for line in lines for x in line.x))
            panels.append(Panel(pair_title(pair), items, Axis(axis), tuple(lines)))
    if not panels:
        raise SettingsError(f"no kept run that fits has its {name} kept", remedy="keep-curves")
    return Figure(tuple(panels))


_NEEDED = {"thresholds": (), "running": ("acc_s", "acc_n")}  # of which any, and both


def _has_curve(kept: Kept, name: str, columns: Iterable[str]) -> bool:
    """Whether a run has a curve that can be drawn with these columns."""
    curve = kept.drawable.get(name)
    return curve is not None and set(columns) <= set(curve)


def _folded(name: str, runs: Sequence[Kept], metric: str) -> Series:
    """A line over the stream: the mean over seeds and its deviation, where the first has points.

    Streams of other lengths than the first one's are left out.
    """
    columns = [_column(kept, metric) for kept in runs]
    items = columns[0][0]
    values = [column for where, column in columns if where == items]
    points = [[v for v in some if v is not None] for some in zip(*values, strict=True)]
    known = [(item, *mean_std(some)) for item, some in zip(items, points, strict=True) if some]
    x, y, std = zip(*known, strict=True) if known else ((), (), ())
    return Series(name, x, y, LINE, std if len(values) > 1 else ())


def _column(kept: Kept, metric: str) -> tuple[list[int], Values]:
    """Where a run's curve has points, and its values: an accuracy in percent, or the threshold."""
    if not metric:
        found = kept.drawable["thresholds"]
        nothing = [None] * len(found["item"])
        own, first = (found.get(name) or nothing for name in ("detector", "zero_shot"))
        both = zip(own, first, strict=True)
        return found["item"], [one if one is not None else other for one, other in both]
    found = kept.drawable["running"]
    accuracies = zip(found["acc_s"], found["acc_n"], strict=True)
    columns = {
        "acc_s": found["acc_s"],
        "acc_n": found["acc_n"],
        "acc_h": [None if None in both else harmonic_mean(*both) for both in accuracies],
    }
    return found["item"], [None if value is None else 100 * value for value in columns[metric]]
