"""Kept runs, a line each. It imports no NumPy: ten thousand are listed in a moment."""

from collections.abc import Iterator, Sequence

from zsntta_cli.errors import printable
from zsntta_cli.results.lines import Line

DIGITS = 8  # of a key, as it is shown
_HEADS = (
    "Key", "Method", "ID", "OOD", "Noise", "Seed", "Acc_S", "Acc_N", "Acc_H", "AUROC", "Encoder",
    "Made",
)  # fmt: skip
_NUMBERS = range(4, 10)  # columns to the right


def run_lines(found: Sequence[Line]) -> Iterator[str]:
    """A table as plain lines."""
    rows = [_HEADS, *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"%{'' if i in _NUMBERS else '-'}{width}s" for i, width in enumerate(widths))
    for row in rows:
        yield (line % row).rstrip()


def _row(one: Line) -> tuple[str, ...]:
    names = (one.method, one.id_set, one.ood_set or "-", one.encoder, one.created[:16])
    method, id_set, ood_set, encoder, made = map(printable, names)
    metrics = map(percent, (one.acc_s, one.acc_n, one.acc_h, one.auroc))
    return (
        one.key[:DIGITS], method, id_set, ood_set, f"{one.ratio:.4g}", str(one.seed), *metrics,
        encoder, made.replace("T", " "),
    )  # fmt: skip


def percent(value: float | None) -> str:
    """A fraction in percent; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.2f}"
