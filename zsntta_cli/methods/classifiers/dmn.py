"""DMN-weak, the dynamic memory of "Dual Memory Networks", CVPR 2024, without its trained part.

Each class keeps up to N features of the items of lowest entropy that the frozen model predicts as
it. For each item each class gets a vector: the mean of its text and its memory, with weights that
grow with their similarity to the item. The probabilities by these vectors are added to the frozen
model's. As in the released code, an item is stored before it is classified.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, entropy_of, to_softmax
from zsntta_cli.methods.kernels.compiled import compiled
from zsntta_cli.methods.settings import FROM_ONE, FROM_ZERO, MethodSettings
from zsntta_cli.settings.options import option


@dataclass(frozen=True)
class DMNSettings(MethodSettings):
    """DMN-weak, with the released values: each class keeps its most certain images in a memory."""

    dmn_shots: int = option(50, "Images that are kept for each class.", within=FROM_ONE)
    dmn_sharpness: float = option(
        5.5, "β: sharpness of the weights by similarity.", within=FROM_ZERO
    )


class DMN:
    """The classifier while the stream runs."""

    def __init__(self, data: StreamData, options: DMNSettings) -> None:
        texts = data.pool.text_features.astype(np.float64)
        count, dim = texts.shape
        self.values = np.array([float(data.pool.logit_scale), options.dmn_sharpness])
        self.rows = np.zeros((count, 1 + options.dmn_shots, dim))  # each class: text, then memory
        self.rows[:, 0] = texts
        self.gram = np.zeros((count, 1 + options.dmn_shots, 1 + options.dmn_shots))  # of the rows
        self.gram[:, 0, 0] = np.einsum("cd,cd->c", texts, texts)
        self.filled = np.ones(count, np.intp)
        self.entropies = np.full((count, options.dmn_shots), np.inf)

    def classify(self, items: StreamData, offered: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Classify T items by both probabilities; those that are `offered` (T,) are stored."""
        count, kept, dim = self.rows.shape
        class_index, room = np.empty(len(items), np.int32), np.empty((2, max(count, kept)))
        for part in blocks(len(items)):
            frozen = Frozen.of(items, part)
            v, probability = frozen.features, frozen.probability
            likeness = (self.rows.reshape(-1, dim) @ v.T).reshape(count, kept, len(v))
            places = np.full((len(v), 2), -1, np.intp)  # where items are stored
            _read(
                class_index[part], probability, entropy_of(probability), likeness, v @ v.T,
                offered[part], self.gram, self.filled, self.entropies, places, self.values, room,
            )  # fmt: skip
            for item, (c, place) in enumerate(places.tolist()):
                if c >= 0:
                    self.rows[c, place] = v[item]
        return class_index


@compiled
def _read(  # type: ignore[no-untyped-def]
    best, probability, entropy, likeness, among, offered, gram, filled, entropies, places, values,
    room,
):  # fmt: skip
    """Write the classes (B,) of a block's items and the places (B, 2) where they are stored.

    `likeness` (C, 1 + N, B) are the products of items with the rows at the block's start, `among`
    (B, B) those between items, and `gram` (C, 1 + N, 1 + N) those between the rows of a class.
    `gram`, the number of `filled` rows (C,) and the `entropies` (C, N) change, `room` (2, ·) too.
    """
    scale, sharpness = values[0], values[1]
    count, total = probability.shape
    weights, logits = room[0], room[1][:total]
    for i in range(count):
        frozen = 0
        for c in range(1, total):
            if probability[i, c] > probability[i, frozen]:
                frozen = c
        if offered[i]:
            worst = 0
            for n in range(1, entropies.shape[1]):
                if entropies[frozen, n] > entropies[frozen, worst]:
                    worst = n
            if entropy[i] < entropies[frozen, worst]:
                entropies[frozen, worst] = entropy[i]
                places[i, 0], places[i, 1] = frozen, worst + 1
                for n in range(filled[frozen]):
                    gram[frozen, worst + 1, n] = likeness[frozen, n, i]
                    gram[frozen, n, worst + 1] = likeness[frozen, n, i]
                gram[frozen, worst + 1, worst + 1] = among[i, i]
                filled[frozen] = max(filled[frozen], worst + 2)
                for j in range(i, count):
                    likeness[frozen, worst + 1, j] = among[i, j]
        for c in range(total):
            product, square = 0.0, 0.0
            for n in range(filled[c]):
                weights[n] = np.exp(-sharpness * (1 - likeness[c, n, i]))
                product += weights[n] * likeness[c, n, i]
                for m in range(n):
                    square += 2 * weights[n] * weights[m] * gram[c, n, m]
                square += weights[n] * weights[n] * gram[c, n, n]
            logits[c] = scale * product / np.sqrt(max(square, 1e-24))
        to_softmax(logits)
        top = 0
        for c in range(total):
            logits[c] += probability[i, c]
            if logits[c] > logits[top]:
                top = c
        best[i] = top
