"""Kept runs on the terminal: a line each, and a card. A list needs no NumPy and no rich."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zsntta_cli.errors import printable
from zsntta_cli.results.store import RunSummary

if TYPE_CHECKING:
    from rich.table import Table

    from zsntta_cli.results.kept import Kept

DIGITS = 8  # of a key, as it is shown
_HEADS = (
    "Key", "Method", "ID", "OOD", "Noise", "Seed", "Acc_S", "Acc_N", "Acc_H", "AUROC", "Encoder",
    "Made",
)  # fmt: skip
_NUMBERS = range(4, 10)  # columns to the right


def run_lines(runs: Sequence[RunSummary]) -> Iterator[str]:
    """A table as plain lines."""
    rows = [_HEADS, *map(_row, runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"%{'' if i in _NUMBERS else '-'}{width}s" for i, width in enumerate(widths))
    for row in rows:
        yield (line % row).rstrip()


def _row(run: RunSummary) -> tuple[str, ...]:
    names = (run.method, run.id_set, run.ood_set or "-", run.encoder, run.created[:16])
    method, id_set, ood_set, encoder, made = map(printable, names)
    metrics = map(_percent, (run.acc_s, run.acc_n, run.acc_h, run.auroc))
    return (
        run.key[:DIGITS], method, id_set, ood_set, f"{run.ratio:.4g}", str(run.seed), *metrics,
        encoder, made.replace("T", " "),
    )  # fmt: skip


def _percent(value: float | None) -> str:
    """A fraction in percent; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.2f}"


def run_card(kept: "Kept") -> "Table":
    """Everything about one run."""
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
    facts["items"] = "kept" if kept.items else "not kept"
    facts["features"] = _origins(plain["features"])
    facts["notes"] = "\n".join(note.text for note in kept.record.notes)
    return card(f"run {kept.key}", {name: _fact(value) for name, value in facts.items()})


def _origins(features: Mapping[str, Any]) -> dict[str, str]:
    """How features came to be: what all sets share, and in a line each what is a set's own."""
    from zsntta_cli.cache.origin import origins_in, shared_once

    shared, sets = shared_once(origins_in(features)).values()  # of a stranger's record, too
    return {name: _listed(value) for name, value in (*shared.items(), *sets.items())}


def _listed(value: Any) -> str:
    """A value in one line, one of several names as these with theirs."""
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{name} {value[name]}" for name in value)


def _fact(value: Any) -> str:
    """A fact of a card; a group of settings has a line each."""
    if isinstance(value, Mapping):
        return "\n".join(f"{name} = {value[name]}" for name in value)
    return "" if value in (None, 0) else str(value)
