"""TPT on a stream, by kept answers of tuned prompts. No torch.

An answer belongs to an image and does not depend on the stream. The stream determines, by the
filter, on which of its items the prompt is tuned. So the answers for a pool serve all its streams.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.answers import Answers
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.live.pipelines import adapts_on
from zsntta_cli.methods.live.settings import TptSettings
from zsntta_cli.methods.match import match
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

Keep = Callable[[int, Answers], None]


def _unkept(_row: int, _answer: Answers) -> None:
    pass


@dataclass(frozen=True, eq=False)
class TunedPool:
    """The answers for the P images of a pool, as far as they are known."""

    answers: Answers  # (P,)
    is_answered: NDArray[np.bool_]  # (P,)
    keep: Keep = _unkept  # it gets the row and the answer (1,) of each new one
    rows: NDArray[np.int64] | None = None  # (T,) of a stream's items; None: item t is row t

    @classmethod
    def empty(cls, count: int, keep: Keep = _unkept) -> "TunedPool":
        """Make a pool without answers."""
        return cls(Answers.empty(count), np.zeros(count, bool), keep)

    def of_stream(self, rows: NDArray[np.int64]) -> "TunedPool":
        """The same answers for a stream whose items are in these rows (T,)."""
        return replace(self, rows=rows)

    def add(self, row: int, answer: Answers) -> None:
        """Add the answer (1,) for one image, and keep it."""
        self.fill(np.array([row]), answer)
        self.keep(row, answer)

    def fill(self, rows: NDArray[np.int64], answers: Answers) -> None:
        """Add kept answers for some images."""
        columns: tuple[Any, ...] = self.answers
        for column, values in zip(columns, answers, strict=True):
            column[rows] = values
        self.is_answered[rows] = True


class TunedStream:
    """The items of a stream on which the prompt is tuned, and the decisions on all items."""

    def __init__(
        self,
        stream: StreamData,
        options: TptSettings,
        threshold: ThresholdSettings,
        pool: TunedPool | None = None,
        truly_clean: NDArray[np.bool_] | None = None,
        match_bias: float | None = None,
    ) -> None:
        """`pool`: the answers; without it each item has its own answer."""
        self._stream, self._bias = stream, match_bias
        self._pool = pool or TunedPool.empty(len(stream))
        self._rows = np.arange(len(stream)) if self._pool.rows is None else self._pool.rows
        self._online = OnlineThreshold(threshold)
        self.chosen = chosen_items(stream, options.pipeline, threshold, truly_clean)
        self._is_chosen = np.zeros(len(stream), bool)
        self._is_chosen[self.chosen] = True

    def unanswered(self) -> NDArray[np.int64]:
        """The items on which the prompt must still be tuned: each image at its first place."""
        lacking = self.chosen[~self._pool.is_answered[self._rows[self.chosen]]]
        _, first = np.unique(self._rows[lacking], return_index=True)
        return lacking[np.sort(first)]

    def add(self, item: int, answer: Answers) -> None:
        """Add the answer (1,) for an item's image."""
        self._pool.add(int(self._rows[item]), answer)

    def decide(self, items: slice) -> Decisions:
        """Decide on the next items, all of whose answers are known."""
        class_index = self._stream.class_index[items].copy()
        u = self._stream.noise_score[items].copy()
        tuned, rows = self._is_chosen[items], self._rows[items]
        assert self._pool.is_answered[rows[tuned]].all(), "an item has no answer"
        class_index[tuned], u[tuned] = self._scores(self._pool.answers.at(rows[tuned]))
        thresholds = self._online(u)
        return Decisions(class_index, u > thresholds, 1 - u, thresholds)

    def _scores(self, answers: Answers) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The classes and noise scores: 1 - MCM, or "match" by a bias."""
        if self._bias is None:
            return answers.class_index, answers.noise_score
        return answers.best_class, match(answers.best_logit, self._bias)


def chosen_items(
    stream: StreamData,
    pipeline: str,
    threshold: ThresholdSettings,
    truly_clean: NDArray[np.bool_] | None,
) -> NDArray[np.int64]:
    """The items on which the prompt is tuned; the filter drops u >= λ, as published."""
    u, items = stream.noise_score, np.arange(len(stream))
    is_noise = u >= OnlineThreshold(threshold)(u)
    return np.flatnonzero(adapts_on(stream, pipeline, items, is_noise, truly_clean))
