"""Kept runs on the terminal: a line each, or a card. A list needs no NumPy and no rich."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zsntta_cli.errors import printable, short
from zsntta_cli.results.frame import setting_name
from zsntta_cli.results.listing import setting_text, varying_settings
from zsntta_cli.results.store import RunSummary
from zsntta_cli.settings.ratios import ratio_text

if TYPE_CHECKING:
    from rich.table import Table

    from zsntta_cli.results.kept import Kept

DIGITS = 8  # of a key, as it is shown
_IN_FRONT = ("Key", "Method", "ID", "OOD", "Noise", "Seed")
METRICS = {"acc_s": "Acc_S", "acc_n": "Acc_N", "acc_h": "Acc_H", "auroc": "AUROC"}
_TO_THE_RIGHT = {"Noise", "Seed", "Runs", "Kept", "To run", "Lacking", *METRICS.values()}
_LONGEST = 40  # characters of a setting's value


def run_lines(
    runs: Sequence[RunSummary], more: str = "", values: Mapping[str, float | None] | None = None
) -> list[str]:
    """Runs as plain lines, with the settings that vary; `values`, by key, are a further column."""
    settings, extra = varying_settings(runs), [more] * bool(more)
    heads = (*_IN_FRONT, *map(_head, settings), *METRICS.values(), *extra, "Encoder", "Made")
    rows, texts_of = [], dict[Any, list[str]]()
    for run in runs:
        metrics = [getattr(run, name) for name in METRICS]
        metrics += [(values or {}).get(run.key)] * len(extra)
        like = run.method, run.prompt, run.stream, run.threshold, run.options
        if (texts := texts_of.get(like)) is None:  # thousands of runs differ in their sets alone
            value_texts = (printable(setting_text(run, name)) for name in settings)
            texts = texts_of[like] = [short(text, _LONGEST) for text in value_texts]
        rows.append((*_in_front(run), *texts, *map(_percent, metrics), *_behind(run)))
    return aligned_lines(heads, rows, {*_TO_THE_RIGHT, *extra})


def head_of_more(name: str) -> str:
    """The head of a metric that lines do not have anyway; empty for anything else."""
    if not name or name in METRICS:
        return ""
    from zsntta_cli.simulation import metrics

    return metrics.METRICS[name].head if name in metrics.METRICS else ""


def aligned_lines(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    to_the_right: Collection[str] = _TO_THE_RIGHT,
) -> list[str]:
    """A table as plain lines under its heads."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    signs = ["" if head in to_the_right else "-" for head in heads]
    line = "  ".join(f"%{sign}{width}s" for sign, width in zip(signs, widths, strict=True))
    return [(line % tuple(row)).rstrip() for row in (heads, *rows)]


def _head(setting: str) -> str:
    return setting_name(setting).capitalize()


def _in_front(run: RunSummary) -> tuple[str, ...]:
    sets = (printable(run.id_set), printable(run.ood_set or "-"))
    numbers = (ratio_text(run.ratio), str(run.seed))
    return (run.key[:DIGITS], printable(run.method), *sets, *numbers)


def _behind(run: RunSummary) -> tuple[str, str]:
    return printable(run.encoder), printable(run.created[:16]).replace("T", " ")


def _percent(value: float | None) -> str:
    """A fraction in percent; a dash if there is none."""
    return "-" if value is None else f"{100 * value:.2f}"


def run_card(kept: "Kept") -> "Table":
    """All facts about one run."""
    from zsntta_cli.report.cards import card

    plain = kept.record.to_dict()
    settings = plain["settings"]
    groups = {name: settings.pop(name) for name in ("stream", "threshold", "options")}
    facts = {**settings, **groups}
    for name in ("accuracies", "detection", "flags"):
        facts[name] = {metric: _percent(value) for metric, value in plain.pop(name).items()}
    facts |= {name: value for name, value in plain.items() if name not in ("settings", "memory")}
    facts["memory"] = f"{kept.record.memory / 2**20:,.0f} MiB"
    facts["seconds"] = f"{kept.record.seconds:.3f}"
    facts["features"] = _origins(plain["features"])
    facts["notes"] = "\n".join(note.text for note in kept.record.notes)
    return card(f"run {kept.key}", {name: _fact(value) for name, value in facts.items()})


def _origins(features: Mapping[str, Any]) -> dict[str, str]:
    """The origins of features: what all sets share, then a line for each set's own facts."""
    from zsntta_cli.cache.origin import origins_in, shared_once

    shared, sets = shared_once(origins_in(features)).values()  # of a stranger's record, too
    return {name: _listed(value) for name, value in (*shared.items(), *sets.items())}


def _listed(value: Any) -> str:
    """A value in one line; equal values of several names are grouped."""
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{name} {value[name]}" for name in value)


def _fact(value: Any) -> str:
    """A fact of a card; a group of settings has a line for each."""
    if isinstance(value, Mapping):
        return "\n".join(f"{name} = {value[name]}" for name in value)
    return "" if value in (None, 0) else str(value)
