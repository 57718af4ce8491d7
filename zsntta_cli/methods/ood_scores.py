"""Zero-shot OOD detection: scores of single images, without a decision rule (Sec. 5.2).

Max-logit (arXiv 1911.11132), Energy (arXiv 2010.03759), MCM (arXiv 2211.13445), NegLabel
(arXiv 2403.20078) and CLIPN (arXiv 2308.12213) on the same features. Higher = more ID.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods import scores
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.ood_settings import McmSettings, NegLabelSettings
from zsntta_cli.methods.scores import cosine_logits, softmax
from zsntta_cli.settings import ThresholdSettings

_CHUNK = 1024  # images at a time: bounds memory where there are many words
Array = NDArray[np.float32]


def max_logit(data: StreamData, *_: object) -> Decisions:
    """The largest scaled cosine."""
    return _decisions(data, scores.max_logit)


def energy(data: StreamData, *_: object) -> Decisions:
    """Minus the free energy at temperature 1: log Σ exp(logit)."""
    return _decisions(data, scores.energy)


def maximum_concept_matching(
    data: StreamData, options: McmSettings, _: ThresholdSettings
) -> Decisions:
    """max_c exp(cos_c / τ) / Σ_k exp(cos_k / τ); without a temperature τ, logits for cos / τ.

    The model's logits are its logit scale times the cosines, so 1 / scale, 0.01 for CLIP, is the
    default temperature.
    """
    scale = None if options.temperature is None else 1 / options.temperature
    return _decisions(data, scores.mcm, scale=scale)


def neglabel(data: StreamData, options: NegLabelSettings, _: ThresholdSettings) -> Decisions:
    """The softmax mass of the ID names against groups of mined negative words, averaged."""
    pool, words = data.pool, data.pool.more_text
    assert words is not None
    names = pool.text_features if pool.more_names is None else pool.more_names
    mined = _mined(words, pool.more_sizes or (len(words),), names, options)
    groups = _groups(len(mined), options)
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


def _mined(
    words: Array, sizes: Sequence[int], names: Array, options: NegLabelSettings
) -> NDArray[np.intp]:
    """Rows of the words that are mined: M of all lists, or a share of each one, at least a word."""
    if options.mined_share is None:
        return mine_negatives(words, names, options.negatives, options.percentile)
    starts = np.cumsum([0, *sizes])
    parts = []
    for start, size in zip(starts, sizes, strict=False):
        count = max(1, int(options.mined_share * size + 1e-9))  # rounded down, but not 0.29 * 100
        part = words[start : start + size]
        parts.append(start + mine_negatives(part, names, count, options.percentile))
    return np.concatenate(parts)


def _groups(count: int, options: NegLabelSettings) -> list[NDArray[np.intp]]:
    """Columns of each group: neighbours by distance, or shuffled, where the remainder is left."""
    groups = min(options.groups, count)
    if options.grouping == "ranked":
        return np.array_split(np.arange(count), groups)
    shuffled = np.random.default_rng(0).permutation(count)  # one order for all seeds, as released
    return np.split(shuffled[: count // groups * groups], groups)


def _decisions(
    data: StreamData,
    score: Callable[[Array], Array],
    text: Array | None = None,
    scale: float | None = None,
) -> Decisions:
    """Score every image of the pool once, whatever often the stream shows it.

    Texts are the class names and the scale of logits is the model's where no other is given.
    """
    pool = data.pool
    images, scale = pool.image_features, pool.logit_scale if scale is None else scale
    text = pool.text_features if text is None else text
    parts = [
        score(cosine_logits(images[start : start + _CHUNK], text, scale))
        for start in range(0, len(images), _CHUNK)
    ]
    return Decisions(data.class_index, None, np.concatenate(parts).astype(np.float64)[data.index])
