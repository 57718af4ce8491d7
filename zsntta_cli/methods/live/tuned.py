"""TPT on a stream, by the answers of tuned prompts. No torch.

An answer belongs to an image and does not depend on the stream. The stream determines, by the
filter, on which of its items the prompt is tuned. So the answers for a pool serve all its streams.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.answers import COLUMNS, Answers, is_known, unknown
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.live.settings import TPT
from zsntta_cli.methods.match import match
from zsntta_cli.methods.scores import Mask
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

_CLASS, _NOISE_SCORE, _BEST_CLASS, _BEST_LOGIT, _ = range(len(COLUMNS))
Items = NDArray[np.int64]


class StreamAnswers:
    """The answers for the items of a stream, as far as they are known."""

    def __init__(self, pool: Answers, rows: Items, keep: Callable[[], None] | None = None) -> None:
        """`pool` (P, 5) has the answers of all images, and item t is in row `rows[t]` (T,).

        `keep` is called after each new answer.
        """
        self._pool, self._rows, self._keep = pool, rows, keep

    def of(self, items: slice | NDArray[np.integer]) -> Answers:
        """The answers (B, 5) for some items."""
        return self._pool[self._rows[items]]

    def add(self, item: int, answer: Answers) -> None:
        """Add the answer (5,) for an item's image."""
        self._pool[self._rows[item]] = answer
        if self._keep:
            self._keep()

    def unanswered(self, items: Items) -> Items:
        """Those of the items that have no answer yet: each image at its first place."""
        lacking = items[~is_known(self.of(items))]
        _, first = np.unique(self._rows[lacking], return_index=True)
        return lacking[np.sort(first)]


class TunedStream:
    """The items of a stream on which the prompt is tuned, and the decisions on all items."""

    def __init__(
        self,
        stream: StreamData,
        options: TPT.Settings,
        threshold: ThresholdSettings,
        answers: StreamAnswers | None = None,
        truly_clean: Mask | None = None,
        match_bias: float | None = None,
    ) -> None:
        """Without `answers` each item has its own, and none is known."""
        items, self._stream, self._bias = np.arange(len(stream)), stream, match_bias
        self.answers = answers or StreamAnswers(unknown(len(stream)), items)
        self._online = OnlineThreshold(threshold)
        self._is_chosen = is_tuned(stream, options.pipeline, threshold, truly_clean)
        self.unanswered = self.answers.unanswered(items[self._is_chosen])

    def decide(self, items: slice) -> Decisions:
        """Decide on the next items, all of whose answers are known."""
        class_index = self._stream.class_index[items].copy()
        u = self._stream.noise_score[items].copy()
        chosen = self._is_chosen[items]
        answers = self.answers.of(items)[chosen]
        assert is_known(answers).all(), "an item has no answer"
        if self._bias is None:
            class_index[chosen], u[chosen] = answers[:, _CLASS], answers[:, _NOISE_SCORE]
        else:
            class_index[chosen] = answers[:, _BEST_CLASS]
            u[chosen] = match(answers[:, _BEST_LOGIT], self._bias)
        thresholds = self._online(u)
        return Decisions(class_index, u > thresholds, 1 - u, thresholds)


def adapts_on(
    stream: StreamData, pipeline: str, items: Items, is_noise: Mask, truly_clean: Mask | None
) -> Mask:
    """The items, as a mask (B,), on which a method adapts, given its noise decisions (B,), Sec. 3.

    "normal" takes the items that it calls clean, "gt" those of the mask `truly_clean` (T,), and
    "all" takes all items.
    """
    if pipeline == "all":
        return np.ones(len(items), bool)
    if pipeline == "gt":
        assert truly_clean is not None
        return truly_clean[items]
    return ~is_noise & ~stream.injected[items]


def is_tuned(
    stream: StreamData, pipeline: str, threshold: ThresholdSettings, truly_clean: Mask | None
) -> Mask:
    """The items (T,) on which the prompt is tuned; the filter drops u >= λ, as published."""
    u, items = stream.noise_score, np.arange(len(stream))
    is_noise = u >= OnlineThreshold(threshold)(u)
    return adapts_on(stream, pipeline, items, is_noise, truly_clean)
