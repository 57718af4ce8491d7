"""Zero-shot OOD detection: scores of single images, without a decision rule (Sec. 5.2).

Max-logit (arXiv 1911.11132), Energy (arXiv 2010.03759), MCM (arXiv 2211.13445), NegLabel
(arXiv 2403.20078) and CLIPN (arXiv 2308.12213) on the same features. Higher = more ID.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods import scores
from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.methods.scores import cosine_logits, softmax
from zsntta_cli.methods.settings import NegLabelSettings
from zsntta_cli.settings import ThresholdSettings

_CHUNK = 1024  # images at a time: bounds memory where there are many words
Array = NDArray[np.float32]


def max_logit(data: StreamData, *_: object) -> Decisions:
    """The largest scaled cosine."""
    return _decisions(data, scores.max_logit)


def energy(data: StreamData, *_: object) -> Decisions:
    """Minus the free energy at temperature 1: log Σ exp(logit)."""
    return _decisions(data, scores.energy)


def maximum_concept_matching(data: StreamData, *_: object) -> Decisions:
    """The largest softmax value."""
    return _decisions(data, scores.mcm)


def neglabel(data: StreamData, options: NegLabelSettings, _: ThresholdSettings) -> Decisions:
    """The softmax mass of the ID names against groups of mined negative words, averaged."""
    words = data.pool.more_text
    assert words is not None
    names = data.pool.text_features
    mined = mine_negatives(words, names, options.negatives, options.percentile)
    groups = np.array_split(np.arange(len(mined)), min(options.groups, len(mined)))
    classes = len(names)

    def score(logits: Array) -> Array:
        id_mass = scores.energy(logits[:, :classes])
        negatives = logits[:, classes:]
        shares = [1 / (1 + np.exp(scores.energy(negatives[:, g]) - id_mass)) for g in groups]
        return np.mean(shares, axis=0)

    return _decisions(data, score, np.concatenate([names, words[mined]]))


def clipn(data: StreamData, *_: object) -> Decisions:
    """Agreeing-to-differ: Σ p(class) · p("yes" | class), the probability of no "no"."""
    no = data.pool.more_text
    assert no is not None
    names = data.pool.text_features

    def score(logits: Array) -> Array:
        yes_logits, no_logits = logits[:, : len(names)], logits[:, len(names) :]
        says_yes = 1 / (1 + np.exp(np.clip(no_logits - yes_logits, -80, 80)))
        return (softmax(yes_logits) * says_yes).sum(axis=1)

    return _decisions(data, score, np.concatenate([names, no]))


def mine_negatives(words: Array, names: Array, count: int, percentile: float) -> NDArray[np.intp]:
    """NegMining: rows of the `count` words (W, D) farthest from the ID names (C, D).

    A word's distance is the η-percentile of its negative cosines to all names: nearly that to the
    nearest one, but for outliers.
    """
    distance = np.concatenate(
        [
            np.quantile(-words[start : start + _CHUNK] @ names.T, percentile, axis=1)
            for start in range(0, len(words), _CHUNK)
        ]
    )
    return np.argsort(-distance, kind="stable")[:count]


def _decisions(
    data: StreamData, score: Callable[[Array], Array], text: Array | None = None
) -> Decisions:
    """Score every image of the pool once, whatever often the stream shows it."""
    per_image = _score_pool(data.pool, score, data.pool.text_features if text is None else text)
    return Decisions(data.class_index, None, per_image[data.index])


def _score_pool(pool: Pool, score: Callable[[Array], Array], text: Array) -> NDArray[np.float64]:
    images = pool.image_features
    parts = [
        score(cosine_logits(images[start : start + _CHUNK], text, pool.logit_scale))
        for start in range(0, len(images), _CHUNK)
    ]
    return np.concatenate(parts).astype(np.float64)
