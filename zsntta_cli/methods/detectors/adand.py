"""AdaND, "Noisy Test-Time Adaptation in Vision-Language Models", Sec. 4 and Algorithm 1.

A linear noise detector f learns online, on raw image features I(x), from the decisions of ZS-CLIP;
the classifier stays frozen. `push` is Algorithm 1, in the order of its lines:

    S(x), λ of ZS-CLIP (Eq. 1 and 3)       noise scores u = 1 - S, thresholds `zero_shot`
    pseudo-label y                         `label`, true for noise
    logit = f(I(x)), its softmax           noise scores v, by `detector`
    queue Q of L items, loss, update       `queue`, `_learn`, `_step`
    injected noise g, labelled -1          items that are `injected`
    stage 1, before the N-th update        the first `warm_up` items
    λ of the detector (Sec. 4.1)           thresholds `detector`, on v in stage 2
"""

import copy

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.method import AT_ONCE, FROZEN, Method, MethodSettings
from zsntta_cli.methods.scores import Features, Floats, Mask, sigmoid
from zsntta_cli.settings.options import amount, choice, count, option, positive


class AdaND(Method):
    """AdaND, Sec. 4 and Algorithm 1: a linear noise detector learns from ZS-CLIP's decisions."""

    class Settings(MethodSettings):
        warm_up_by = "warmup x update-every"

        batch_size: int = count(1, AT_ONCE)
        # At batch sizes above 1 each batch is one queue.
        update_every: int = count(128, "L: number of items in a step, the length of the queue.")
        warmup: int = amount(10, "N: number of steps before the detector decides.")  # Sec. 5.1
        # Adam, no weight decay (Sec. 5.1)
        learning_rate: float = positive(5e-4, "Learning rate of the detector.")
        # Sec. 4.1
        reevaluate: bool = option(True, "Decide on the items that trigger an update only after it.")
        # As in the released code.
        late_start: bool = option(
            False,
            "Let the detector begin to decide one item later, and leave the first item out of all "
            "steps. With batches, let it begin one batch later.",
        )
        # appendix
        pseudo_labels: str = choice(
            "Pseudo-labels of the detector: ZS-CLIP's, or in stage 2 its own.", "frozen", "detector"
        )

        @property
        def queue_items(self) -> int:
            """The number of items in an update: L at batch size 1, and else a batch."""
            return self.update_every if self.batch_size == 1 else self.batch_size

        @property
        def warm_up(self) -> int:
            """The number of items of stage 1, which ZS-CLIP decides: those up to the N-th step."""
            late = (1 if self.batch_size == 1 else self.queue_items) if self.late_start else 0
            return self.warmup * self.queue_items + late

    cites = ("cao2025noisy",)
    cost = "keeps a layer of D + 1 numbers, Adam's moments, L items and the last N_q scores"
    defaults = {"noise": "gaussian"}  # injected by the method itself; by others on request
    official = {"reevaluate": False, "late_start": True}
    is_probability = True
    class_probability = FROZEN

    def start(self, data: StreamData) -> None:
        """Start before the first item; of the stream only D and the seed matter."""
        self.seen = 0
        generator = np.random.Generator(np.random.PCG64(data.seed))
        # f starts as torch's linear layers do: uniform in ±1/sqrt(D).
        bound = 1 / np.sqrt(data.image_features.shape[1])
        weight = generator.uniform(-bound, bound, (2, data.image_features.shape[1]))
        self.detector = LinearDetector(weight, generator.uniform(-bound, bound, 2))
        self.zero_shot = copy.copy(self.threshold)  # on u
        self.label_threshold = copy.copy(self.threshold)  # on v, as `threshold`
        # Q in pieces: raw features (B, D), scores v by the detector at their time, pseudo-labels
        # of ZS-CLIP, and which items are injected.
        self.queue: list[tuple[Features, Floats, Mask, Mask]] = []
        self.room = self.options.queue_items  # items that still fit

    @property
    def adapted(self) -> bool:
        """Whether stage 1 is over."""
        return bool(self.seen >= self.options.warm_up)

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items, in stage 1 as ZS-CLIP does; learn when the queue is full."""
        u = items.noise_score
        stage1 = self.seen + learn * np.arange(len(u)) < self.options.warm_up
        zero_shot = self.zero_shot(u, learn)
        label = (u > zero_shot) | items.injected
        v = self._learn(items, label) if learn else self.detector.scores(items.features())
        detector = np.full(len(v), np.nan)
        detector[~stage1] = self.threshold(v[~stage1], learn)
        # As in the released code, injected noise is called noise in batches but not one by one;
        # it enters no metric.
        injected = items.injected & (self.options.batch_size > 1)
        is_noise = np.where(stage1, (u > zero_shot) | injected, v > detector)
        id_score = 1 - np.where(stage1, u, v)
        return Decisions(items.class_index, is_noise, id_score, zero_shot, detector)

    def _learn(self, items: StreamData, label: Mask) -> Floats:
        """The detector's noise scores v (T,) of the next items, which pass through the queue.

        The loop runs over updates and not over items, because between two updates the detector is
        constant.
        """
        options, v, start = self.options, np.empty(len(items)), 0
        while start < len(v):
            is_late = options.late_start and options.batch_size == 1 and not self.seen
            part = slice(start, min(start + (1 if is_late else self.room), len(v)))
            features = items.features(part)
            v[part] = self.detector.scores(features)
            self.seen, start = self.seen + len(features), part.stop
            if not is_late:  # a late start leaves the first item out of all steps
                self.queue.append((features, v[part].copy(), label[part], items.injected[part]))
                self.room -= len(features)
                if not self.room:
                    last = self._step()
                    v[start - len(last) : start] = last
        return v

    def _step(self) -> Floats:
        """Update the detector by the full queue; return v of the items that triggered it."""
        options = self.options
        features, v, label, injected = map(np.concatenate, zip(*self.queue, strict=True))
        self.queue, self.room = [], options.queue_items
        is_own = options.pseudo_labels == "detector" and self.seen - len(v) >= options.warm_up
        if is_own:
            label = (v > copy.deepcopy(self.label_threshold)(v)) | injected
        self.detector.learn(features, label, options.learning_rate)
        if options.reevaluate:  # Sec. 4.1
            v[-options.batch_size :] = self.detector.scores(features[-options.batch_size :])
        if is_own:
            self.label_threshold(v)
        return np.asarray(v[-options.batch_size :])


class LinearDetector:
    """f: `Linear(D, 2)` on raw features under softmax and cross-entropy, trained by Adam (Sec. 4).

    Output 0 is noise, 1 is clean. Softmax over two outputs depends on their difference alone, and
    the two rows get opposite gradients, hence opposite Adam steps. So only the difference
    `weight[0] - weight[1]` is kept, and a step moves it twice as far. The bias is the last entry.
    """

    def __init__(self, weight: NDArray[np.floating], bias: NDArray[np.floating]) -> None:
        """Start from the layer's weight (2, D) and bias (2,)."""
        self.weight = np.append(weight[0] - weight[1], bias[0] - bias[1]).astype(np.float64)
        self.mean, self.square = np.zeros_like(self.weight), np.zeros_like(self.weight)
        self.steps = 0

    def scores(self, features: Features) -> Floats:
        """The noise scores v (B,) of raw image features (B, D)."""
        # Row by row, because a product of several rows adds up in an order that depends on them.
        return sigmoid(np.vecdot(features, self.weight[:-1].astype(np.float32)) + self.weight[-1])

    def learn(self, features: Features, is_noise: Mask, learning_rate: float) -> None:
        """Take an Adam step (β 0.9/0.999, no weight decay) on the mean cross-entropy.

        `features` (B, D) are raw, and `is_noise` (B,) are pseudo-labels.
        """
        logits = features @ self.weight[:-1].astype(np.float32) + self.weight[-1]
        error = ((sigmoid(logits) - is_noise) / len(features)).astype(np.float32)
        gradient = np.append(error @ features, error.sum()).astype(np.float64)
        self.steps += 1
        self.mean = self.mean + 0.1 * (gradient - self.mean)
        self.square = self.square + 0.001 * (gradient**2 - self.square)
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        self.weight = self.weight - 2 * learning_rate * mean / (np.sqrt(square) + 1e-8)
