"""DMN-weak, the dynamic memory of "Dual Memory Networks", CVPR 2024, without its trained part.

A class keeps up to N features of the items that the frozen model takes for it, the surest ones. A
class's vector is read out for each item: the mean of its memory and its text, by weights that grow
with their likeness to the item. Its probabilities are the frozen model's and those of these
vectors, added. An item is stored before it is read, as in the released code.
"""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks, entropy_of, to_softmax
from zsntta_cli.methods.settings import DMNSettings


def classes(
    data: StreamData, options: DMNSettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classes (T,) by both probabilities; `offered` (T,): the items that are stored."""
    texts = data.pool.text_features.astype(np.float64)
    count, dim = texts.shape
    rows = np.zeros((count, 1 + options.dmn_shots, dim))  # of a class: its text, then its memory
    rows[:, 0] = texts
    gram = np.zeros((count, rows.shape[1], rows.shape[1]))  # of a class: its rows' products
    gram[:, 0, 0] = np.einsum("cd,cd->c", texts, texts)
    filled, entropies = np.ones(count, np.intp), np.full((count, options.dmn_shots), np.inf)
    values = np.array([float(data.pool.logit_scale), options.dmn_sharpness])
    class_index, room = np.empty(len(data), np.int32), np.empty((2, max(count, rows.shape[1])))
    for part in blocks(len(data)):
        frozen = Frozen.of(data, part)
        v, probability = frozen.features, frozen.probability
        likeness = (rows.reshape(-1, dim) @ v.T).reshape(count, rows.shape[1], len(v))
        places = np.full((len(v), 2), -1, np.intp)  # where items are stored
        _read(
            class_index[part], probability, entropy_of(probability), likeness, v @ v.T,
            offered[part], gram, filled, entropies, places, values, room,
        )  # fmt: skip
        for item, (c, place) in enumerate(places.tolist()):
            if c >= 0:
                rows[c, place] = v[item]
    return class_index


@compiled
def _read(  # type: ignore[no-untyped-def]
    best, probability, entropy, likeness, among, offered, gram, filled, entropies, places, values,
    room,
):  # fmt: skip
    """Classes (B,) of a block's items, and the places (B, 2) where they are stored.

    `likeness` (C, 1 + N, B) are products of items with the rows of the block's start, `among`
    (B, B) those of its items, `gram` (C, 1 + N, 1 + N) those of a class's rows; these, how many
    rows are `filled` (C,) and their `entropies` (C, N) change in place, `room` (2, ·) is used up.
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
