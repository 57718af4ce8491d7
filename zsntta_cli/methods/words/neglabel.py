"""NegLabel, arXiv 2403.20078: ID names against mined negative words. Higher = more ID."""

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods import scores
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.ood_scores import image_scores
from zsntta_cli.methods.words.mining import groups, mined
from zsntta_cli.methods.words.settings import NegLabelSettings
from zsntta_cli.settings import ThresholdSettings

Array = NDArray[np.float32]


def score(data: StreamData, options: NegLabelSettings, _: ThresholdSettings) -> Decisions:
    """The softmax mass of the ID names against groups of mined negative words, averaged."""
    pool, words = data.pool, data.pool.more_text
    assert words is not None
    names = pool.text_features if pool.more_names is None else pool.more_names
    far = mined(words, pool.more_sizes or (len(words),), names, options)
    parts = groups(len(far), options)
    classes = len(names)

    def share(logits: Array) -> Array:
        id_mass = scores.energy(logits[:, :classes])
        negatives = logits[:, classes:]
        shares = [1 / (1 + np.exp(scores.energy(negatives[:, g]) - id_mass)) for g in parts]
        return np.mean(shares, axis=0)

    text = np.concatenate([names, words[far]])
    return Decisions(data.class_index, None, image_scores(data, share, text))
