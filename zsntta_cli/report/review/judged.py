"""What corrections say, as text: a table, and what it must not be taken for."""

import math
from collections.abc import Iterable, Sequence

from zsntta_cli.report.page.markup import percent
from zsntta_cli.report.review.judging import (
    Interval,
    Judgement,
    Share,
    between_both,
    wilson,
)


def table(found: Judgement) -> str:
    """Accuracies in percent, with their intervals and of how many images."""
    lines = [_line(name, share.value, wilson(share), _of(share)) for name, share in (
        ("Acc_S", found.acc_s), ("Acc_N", found.acc_n), ("precision", found.precision),
    )]  # fmt: skip
    both = between_both(found.acc_s, found.acc_n)
    lines.insert(2, _line("Acc_H", found.acc_h, both, ""))
    return "\n".join([f"{'':<10}{'%':>7}  {'95 % interval':>15}", *lines])


def _line(name: str, value: float, interval: Interval, of: str) -> str:
    low, high = percent(interval.low), percent(interval.high)
    between = low if math.isnan(value) else f"{low} – {high}"
    return f"{name:<10}{percent(value):>7}  {between:>15}  {of}".rstrip()


def _of(share: Share) -> str:
    return f"{share.right:,} of {share.of:,}"


def notes(found: Judgement, replaced: int) -> Sequence[str]:
    """What is to be said beside the table."""
    return list(_notes(found, replaced))


def _notes(found: Judgement, replaced: int) -> Iterable[str]:
    yield (
        f"{_images(found.acc_s.of + found.acc_n.of)} labelled, {found.acc_s.of:,} clean and "
        f"{found.acc_n.of:,} noise. The figures are of these: whoever looks at borderline and "
        f"suspicious images first sees harder ones than the folder has."
    )
    if found.assumed:
        yield (
            f"{_images(found.assumed)} labelled clean without another class: the one that was said "
            f"counts as right."
        )
    if replaced:
        yield f"{replaced:,} of the lines gave way to a later one of the same image."


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"
