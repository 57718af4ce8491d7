"""Zero-shot OOD detection: scores of single images, without a decision rule (Sec. 5.2).

All use the same features: Max-logit (arXiv 1911.11132), Energy (arXiv 2010.03759), MCM (arXiv
2211.13445), LogitGap (arXiv 2510.20134) and CLIPN (arXiv 2308.12213). Higher scores mean more ID.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods import scores
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.scores import cosine_logits, softmax
from zsntta_cli.methods.settings import FROM_ONE, SHARE, MethodSettings
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.settings.options import Range, option


@dataclass(frozen=True)
class MaxLogitSettings(MethodSettings):
    """Max-logit, arXiv 1911.11132: the largest scaled cosine of an image and a class."""


@dataclass(frozen=True)
class EnergySettings(MethodSettings):
    """Energy, arXiv 2010.03759: minus the free energy, log Σ exp of the scaled cosines."""


@dataclass(frozen=True)
class LogitGapSettings(MethodSettings):
    """LogitGap, arXiv 2510.20134: the largest logit minus the mean of the next N."""

    logitgap_share: float = option(
        0.2, "N: number of other classes in the gap, as a share of the classes.", within=SHARE
    )
    logitgap_others: int | None = option(  # `official`: 88 on ImageNet and 5 on CIFAR-10
        None, "N: number of other classes in the gap; none: by the share.", within=FROM_ONE
    )


@dataclass(frozen=True)
class McmSettings(MethodSettings):
    """MCM, arXiv 2211.13445: the largest softmax value of cosines over a temperature."""

    # Table 5 of the ZS-NTTA paper quotes MCM's own results, for temperature 1. None: its Eq. 1.
    temperature: float | None = option(
        None,
        "Temperature of the softmax over cosines; none: 1 / logit scale.",
        within=Range(least=1e-4),
    )


@dataclass(frozen=True)
class ClipnSettings(MethodSettings):
    """CLIPN, arXiv 2308.12213: it needs the features of its own "no" text encoder."""

    no_text: str = option(
        "", "File .npy of 'no' text features (C, D), in the order of the classes."
    )


_CHUNK = 1024  # images at a time: it limits memory if there are many words
Array = NDArray[np.float32]


def max_logit(data: StreamData, *_: object) -> Decisions:
    """Score each item by its largest scaled cosine."""
    return _decisions(data, scores.max_logit)


def energy(data: StreamData, *_: object) -> Decisions:
    """Score each item by minus the free energy at temperature 1: log Σ exp(logit)."""
    return _decisions(data, scores.energy)


def logit_gap(data: StreamData, options: LogitGapSettings, _: ThresholdSettings) -> Decisions:
    """Score each item by its largest logit minus the mean of the next N, a number or a share."""
    classes = len(data.pool.text_features)
    others = options.logitgap_others or max(1, round(options.logitgap_share * classes))
    return _decisions(data, partial(scores.logit_gap, others=others))


def maximum_concept_matching(
    data: StreamData, options: McmSettings, _: ThresholdSettings
) -> Decisions:
    """Score each item by max_c exp(cos_c / τ) / Σ_k exp(cos_k / τ).

    Without a temperature τ the model's logits take the place of cos / τ. They are the logit scale
    times the cosines, so the default temperature is 1 / scale, which is 0.01 for CLIP.
    """
    scale = None if options.temperature is None else 1 / options.temperature
    return _decisions(data, scores.mcm, scale=scale)


def clipn(data: StreamData, *_: object) -> Decisions:
    """Score each item by Σ p(class) · p("yes" | class), CLIPN's agreeing-to-differ."""
    no = data.pool.more_text
    assert no is not None
    names = data.pool.text_features

    def score(logits: Array) -> Array:
        yes_logits, no_logits = logits[:, : len(names)], logits[:, len(names) :]
        says_yes = 1 / (1 + np.exp(np.clip(no_logits - yes_logits, -80, 80)))
        return (softmax(yes_logits) * says_yes).sum(axis=1)

    return _decisions(data, score, np.concatenate([names, no]))


def image_scores(
    data: StreamData,
    score: Callable[[Array], Array],
    text: Array | None = None,
    scale: float | None = None,
) -> NDArray[np.float64]:
    """The scores (T,) of the items; each of their images is scored once, even if it is repeated.

    `score` takes logits (B, W) for W texts. By default the texts are the class names, and the scale
    of the logits is the model's.
    """
    pool = data.pool
    images, scale = pool.image_features, pool.logit_scale if scale is None else scale
    text = pool.text_features if text is None else text
    rows, place = np.unique(data.index, return_inverse=True)
    scores = np.empty(len(rows))
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        scores[part] = score(cosine_logits(images[rows[part]], text, scale))
    return scores[place]


def _decisions(data: StreamData, *how: Any, **more: Any) -> Decisions:
    return Decisions(data.class_index, None, image_scores(data, *how, **more))
