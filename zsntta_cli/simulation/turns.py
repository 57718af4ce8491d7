"""Several sets in turn: a stream that joins the streams of its parts end to end.

`a+b` names sets that come one after the other. Equally many OOD sets and ID sets form pairs. A
single OOD set is divided among the parts, and a single ID set among the OOD sets: each image is in
one part. A part is an ordinary stream with the given ratio, order and injection, and with a random
generator of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings import StreamSettings
from zsntta_cli.simulation.stream import ID, NOISE, OOD, OOD_CHOICE_SEED, Stream, build_stream

Rows = NDArray[np.int64]


class Turn(NamedTuple):
    """The images of a part: rows of the joined ID set and of the joined OOD set."""

    id_rows: Rows
    ood_rows: Rows


def turns(id_sizes: Sequence[int], ood_sizes: Sequence[int]) -> list[Turn]:
    """The parts of a stream over sets of these sizes, in order; OOD sets may be missing.

    Raises:
        SettingsError: there are several ID sets and several OOD sets, but not equally many.
    """
    count = max(len(id_sizes), len(ood_sizes))
    for what, sizes in (("ID", id_sizes), ("OOD", ood_sizes)):
        if len(sizes) not in (0, 1, count):
            raise SettingsError(
                f"{len(id_sizes)} ID sets come in turn and {len(ood_sizes)} OOD sets: {what} sets "
                f"must be one, or {count} as the others."
            )
    id_rows, ood_rows = (_rows(sizes, count) for sizes in (id_sizes, ood_sizes))
    return list(map(Turn, id_rows, ood_rows))


def _rows(sizes: Sequence[int], count: int) -> list[Rows]:
    """The rows of each part: those of its own set, or its share of the only one."""
    if not sizes:
        return [np.empty(0, np.int64)] * count
    if len(sizes) == count:
        return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    generator = np.random.Generator(np.random.PCG64(OOD_CHOICE_SEED))
    return [np.sort(part) for part in np.array_split(generator.permutation(sizes[0]), count)]


def build_turns(
    settings: StreamSettings,
    id_sizes: Sequence[int],
    ood_sizes: Sequence[int],
    n_noise: int,
    labels: NDArray[np.integer],
) -> Stream:
    """The stream over sets in turn; of one ID set and one OOD set an ordinary stream.

    Raises:
        SettingsError: the sets do not form parts, or the stream cannot be built.
    """
    if max(len(id_sizes), len(ood_sizes)) == 1:
        return build_stream(settings, sum(id_sizes), sum(ood_sizes), n_noise, labels)
    parts, used = [], 0
    whole = replace(settings, limit=None)
    for number, turn in enumerate(turns(id_sizes, ood_sizes)):
        sizes = len(turn.id_rows), len(turn.ood_rows)
        seed = (settings.seed, number)
        part = build_stream(whole, *sizes, n_noise, labels[turn.id_rows], seed)
        parts.append(_of_whole_sets(part, turn, number, n_noise, used))
        used += int((part.kind == NOISE).sum())
    stream = Stream(*(np.concatenate(columns) for columns in zip(*(
        (part.kind, part.row, part.turn) for part in parts
    ), strict=True)))  # fmt: skip
    return stream if settings.limit is None else _first_tests(stream, settings.limit)


def _of_whole_sets(part: Stream, turn: Turn, number: int, n_noise: int, used: int) -> Stream:
    """A part's stream with rows of the joined sets; noise images continue in the pool."""
    row = part.row.copy()
    row[part.kind == ID] = turn.id_rows[part.row[part.kind == ID]]
    row[part.kind == OOD] = turn.ood_rows[part.row[part.kind == OOD]]
    row[part.kind == NOISE] = (part.row[part.kind == NOISE] + used) % max(n_noise, 1)
    return Stream(part.kind, row, np.full(len(part), number, np.int16))


def _first_tests(stream: Stream, limit: int) -> Stream:
    """A stream up to its first `limit` test samples, with the noise injected after them."""
    tests = np.flatnonzero(stream.kind != NOISE)
    return stream if len(tests) <= limit else stream.first(int(tests[limit]))
