"""AdaND, "Noisy Test-Time Adaptation in Vision-Language Models", Sec. 4 and Algorithm 1.

A linear noise detector learns online, on raw image features, from the decisions of ZS-CLIP; the
classifier stays frozen. Injected noise images are noise by definition. In stage 1 ZS-CLIP decides.
In stage 2, from the N-th optimisation step on, the detector decides, by a threshold of its own.

The loop runs over updates, not over items, because between two updates the detector is constant
and thresholds depend only on the scores.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.detectors.linear import LinearDetector, sigmoid
from zsntta_cli.methods.settings import AdaNDSettings
from zsntta_cli.methods.state import State, checked, nested, within
from zsntta_cli.methods.threshold import OnlineThreshold, is_sure
from zsntta_cli.settings import ThresholdSettings


def run(data: StreamData, options: AdaNDSettings, threshold: ThresholdSettings) -> Decisions:
    """Decide on every item of the stream as if it ran online."""
    return stepper(data, options, threshold).push(data)


def stepper(
    data: StreamData, options: AdaNDSettings, threshold: ThresholdSettings
) -> "AdaNDStepper":
    """Make a stepper of AdaND before the first item."""
    return AdaNDStepper(options, threshold, initial_detector(data, options))


def initial_detector(data: StreamData, options: AdaNDSettings) -> LinearDetector:
    """The detector before the first item."""
    dim = data.pool.image_features.shape[1]
    start = LinearDetector.zero if options.detector_init == "zero" else LinearDetector.random
    return start(dim, data.seed)


def adapt(
    data: StreamData, options: AdaNDSettings, threshold: ThresholdSettings, detector: LinearDetector
) -> Decisions:
    """Run Algorithm 1, starting from a given detector."""
    return AdaNDStepper(options, threshold, detector).push(data)


def pseudo_labels(
    data: StreamData, options: AdaNDSettings, threshold: ThresholdSettings
) -> NDArray[np.bool_]:
    """Items (T,) that ZS-CLIP calls noise or that are injected; features have no influence."""
    u = data.noise_score
    return (u > OnlineThreshold(threshold, options.batch_size)(u)) | data.injected


@dataclass(frozen=True)
class Held:
    """Items in the queue, from one piece or several."""

    features: NDArray[np.float32]  # (B, D) raw
    score: NDArray[np.float64]  # (B,) v, each by the detector when the item came
    evidence: NDArray[np.float64]  # (B,) weighted log odds of the frozen model
    label: NDArray[np.bool_]  # (B,) pseudo-labels from ZS-CLIP
    injected: NDArray[np.bool_]  # (B,)
    sure: NDArray[np.bool_]  # (B,) whether the detector learns from the label

    @classmethod
    def joined(cls, parts: list["Held"], dim: int) -> "Held":
        """Join the items of several pieces; features have `dim` dims."""
        if not parts:
            return cls(np.empty((0, dim), np.float32), *np.empty((2, 0)), *np.empty((3, 0), bool))
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return parts[0] if len(parts) == 1 else cls(*map(np.concatenate, columns))

    def state(self, has_gap: bool) -> State:
        """The columns; without a gap all labels are sure, and `sure` is left out."""
        return {name: v for name, v in vars(self).items() if has_gap or name != "sure"}

    @classmethod
    def restored(cls, state: State) -> "Held":
        """Make items from a state that was checked against that of other items."""
        columns: dict[str, Any] = dict(state)
        return cls(**{"sure": np.ones(len(columns["score"]), np.bool_), **columns})


@dataclass(frozen=True)
class AdaNDJudge:
    """The detector and the thresholds of one moment; in stage 1 ZS-CLIP decides."""

    options: AdaNDSettings
    detector: LinearDetector
    zero_shot: float  # threshold on u
    threshold: float  # on v, nan in stage 1

    def __call__(self, data: StreamData) -> Decisions:
        """Decide on items, which do not enter the queue."""
        u, zero_shot = data.noise_score, np.full(len(data), self.zero_shot)
        thresholds = np.full(len(data), self.threshold)
        if np.isnan(self.threshold):
            return Decisions(data.class_index, u > zero_shot, 1 - u, zero_shot, thresholds)
        logits = self.detector.logits(data.features(slice(None)))
        v = _score(logits, _evidence(u, zero_shot, self.options), self.options)
        return Decisions(data.class_index, v > thresholds, 1 - v, zero_shot, thresholds)


class AdaNDStepper:
    """Algorithm 1 while the stream runs, in pieces of whole batches."""

    def __init__(
        self, options: AdaNDSettings, threshold: ThresholdSettings, detector: LinearDetector
    ) -> None:
        size = options.batch_size
        self._options, self._detector = options, detector
        self._zero_shot, self._threshold, self._label_threshold = (
            OnlineThreshold(threshold, size) for _ in "uvv"
        )
        self._held: list[Held] = []  # the queue
        self._waiting = self._seen = 0  # items in the queue, and all items

    @property
    def warm_up(self) -> int:
        """The number of items of stage 1."""
        return self._options.stage1_items

    @property
    def adapted(self) -> bool:
        """Whether stage 1 is over."""
        return self._seen >= self.warm_up

    @property
    def evidence(self) -> None:
        """None, because a threshold does not tell whether there is noise."""

    def push(self, data: StreamData) -> Decisions:
        """Decide on the next items, in stage 1 as ZS-CLIP does; learn when the queue is full."""
        u, first = data.noise_score, self._seen
        zero_shot = self._zero_shot(u)
        is_noise = u > zero_shot
        sure = is_sure(u, zero_shot, self._options.gap) | data.injected
        evidence = _evidence(u, zero_shot, self._options)
        v = self._learn(data, is_noise | data.injected, sure, evidence)
        stage1 = np.arange(first, first + len(u)) < self._options.stage1_items
        thresholds = np.full(len(v), np.nan)
        thresholds[~stage1] = self._threshold(v[~stage1])
        # As in the released code, injected noise is called noise in batches but not one by one;
        # it enters no metric.
        is_known_noise = data.injected & (self._options.batch_size > 1)
        return Decisions(
            data.class_index, np.where(stage1, is_noise | is_known_noise, v > thresholds),
            1 - np.where(stage1, u, v), zero_shot, thresholds,
        )  # fmt: skip

    def _learn(
        self,
        data: StreamData,
        label: NDArray[np.bool_],
        sure: NDArray[np.bool_],
        evidence: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """The detector's noise scores v (T,) of the next items, which pass through the queue."""
        v = np.empty(len(data))
        start = 0
        while start < len(v):
            part = slice(start, start + self._room)
            features = data.features(part)
            score = _score(self._detector.logits(features), evidence[part], self._options)
            held = Held(
                features, score, evidence[part], label[part], data.injected[part], sure[part]
            )
            self._enter(held)
            v[part] = held.score  # after the step, which may have scored the last items again
            start += len(score)
        return v

    @property
    def _room(self) -> int:
        """The number of items until the queue is full; a late start leaves the first item out."""
        return 1 if self._is_late else self._options.queue_items - self._waiting

    @property
    def _is_late(self) -> bool:
        return not self._seen and self._options.late_start and self._options.batch_size == 1

    def _enter(self, held: Held) -> None:
        """Put items into the queue, and learn when it is full."""
        counts, size = not self._is_late, len(held.score)
        self._seen += size
        if counts:
            self._held.append(held)
            self._waiting += size
        if self._waiting == self._options.queue_items:
            self._step()
            self._held, self._waiting = [], 0

    def _step(self) -> None:
        """Take a step of the detector on the full queue."""
        options, queue = self._options, self._queue()
        start, labels, sure = self._seen - self._waiting, queue.label, queue.sure
        is_own = options.pseudo_labels == "detector" and start >= options.stage1_items
        if is_own:
            v = queue.score
            thresholds = copy.deepcopy(self._label_threshold)(v)
            labels, sure = (
                rule | queue.injected
                for rule in (v > thresholds, is_sure(v, thresholds, options.gap))
            )
        if sure.any():  # otherwise there is nothing to learn from
            learned = slice(None) if sure.all() else sure
            self._detector = self._detector.after(
                queue.features[learned], labels[learned], options.learning_rate
            )
        if options.reevaluate:
            self._judge_anew(self._held[-1])
        if is_own:
            self._label_threshold(self._queue().score)

    def _queue(self) -> Held:
        return Held.joined(self._held, self._detector.dim)

    def _judge_anew(self, held: Held) -> None:
        """Score the items that triggered the step again, by the new detector."""
        last = slice(-self._options.batch_size, None)
        logits = self._detector.logits(held.features[last])
        held.score[last] = _score(logits, held.evidence[last], self._options)

    def judge(self) -> AdaNDJudge:
        """The rule at this moment."""
        threshold = self._threshold.latest if self.adapted else np.nan
        return AdaNDJudge(self._options, self._detector, self._zero_shot.latest, threshold)

    def state(self) -> State:
        """The detector, the thresholds and the queue."""
        return nested(
            detector=self._detector.state(),
            zero_shot=self._zero_shot.state(),
            threshold=self._threshold.state(),
            label_threshold=self._label_threshold.state(),
            items={"seen": self._seen},
            waiting=self._queue().state(bool(self._options.gap)),
        )

    def restore(self, state: State) -> None:
        """Continue from a state; raise ValueError if it is not one of AdaND's."""
        new = checked(state, self.state())
        held = Held.restored(within(new, "waiting"))
        seen = int(new["items.seen"])
        if len(held.score) != _waiting_at(seen, self._options):
            raise ValueError(f"{len(held.score)} items wait after {seen}")
        self._detector = LinearDetector.restored(within(new, "detector"))
        self._zero_shot.restore(within(new, "zero_shot"))
        self._threshold.restore(within(new, "threshold"))
        self._label_threshold.restore(within(new, "label_threshold"))
        self._held, self._waiting, self._seen = [held], len(held.score), seen


def _evidence(
    u: NDArray[np.float64], threshold: NDArray[np.float64], options: AdaNDSettings
) -> NDArray[np.float64]:
    """The weighted log odds of noise (B,) of the frozen model, minus its threshold's."""
    return options.evidence * (_logit(u, 1e-4) - _logit(threshold, 1e-2))


def _score(
    logits: NDArray[np.float64], evidence: NDArray[np.float64], options: AdaNDSettings
) -> NDArray[np.float64]:
    return sigmoid((logits + evidence) / options.score_temperature)


def _logit(probability: NDArray[np.float64], lowest: float) -> NDArray[np.float64]:
    """The log odds of probabilities, which are kept at least `lowest` from 0 and 1."""
    kept = np.clip(probability, lowest, 1 - lowest)
    return np.log(kept / (1 - kept))


def _waiting_at(seen: int, options: AdaNDSettings) -> int:
    """The number of items in the queue after `seen` items."""
    is_late = options.late_start and options.batch_size == 1
    return max(seen - is_late, 0) % options.queue_items
