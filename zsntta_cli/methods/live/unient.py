"""UniEnt, "Unified Entropy Optimization for Open-Set Test-Time Adaptation", arXiv 2404.06065.

A mixture of two Gaussians on the frozen encoder's largest cosines, scaled to 0 … 1 within a batch,
separates covariate-shifted ID samples from covariate-shifted OOD samples. One step lowers the mean
entropy of the ID samples, and raises that of the OOD samples and of the batch's mean probability.
UniEnt+ counts each sample in both entropies, by the mixture's probabilities.
"""

import warnings
from collections.abc import Generator

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import open_set
from zsntta_cli.methods.live.adaptation import mean_entropy
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.methods.live.open_set import OpenSetBatch, rows
from zsntta_cli.methods.live.settings import UnientSettings
from zsntta_cli.methods.live.tent import Mask
from zsntta_cli.settings import ThresholdSettings

_LEAST_VARIANCE = 1e-6  # added to that of each Gaussian


def run(
    data: LiveData, options: UnientSettings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""

    def loss_of(batch: OpenSetBatch) -> tuple[torch.Tensor, Mask] | None:
        stream = data.stream
        is_id = id_probability(stream.pool.detail.top_logits[stream.index[batch.items], 0])
        return None if is_id is None else unified_entropy(batch, is_id, options)

    return open_set.run(data, options, threshold, lambda _: loss_of)


def id_probability(scores: NDArray[np.floating]) -> NDArray[np.float64] | None:
    """The probability (N,) of the higher of two Gaussians, or None if all scores are equal.

    The Gaussians start from the two groups of least variance, so the start is not random.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    span = float(np.ptp(scores))
    if not span:
        return None
    values = (scores.astype(np.float64) - scores.min()) / span
    groups = _split(np.sort(values))
    mixture = GaussianMixture(
        2,
        weights_init=[len(group) / len(values) for group in groups],
        means_init=[[group.mean()] for group in groups],
        precisions_init=[[[1 / (group.var() + _LEAST_VARIANCE)]] for group in groups],
        reg_covar=_LEAST_VARIANCE,
    )
    column = values[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        probability: NDArray[np.float64] = mixture.fit(column).predict_proba(column)
    return probability[:, int(mixture.means_[:, 0].argmax())]


def _split(values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Cut sorted values (N,) into the two parts with the least variance within them."""
    sizes, sums = np.arange(1, len(values)), np.cumsum(values)[:-1]
    between = sizes * (len(values) - sizes)
    distance = sums / sizes - (values.sum() - sums) / (len(values) - sizes)
    return np.split(values, [1 + int((between * distance**2).argmax())])


def unified_entropy(
    batch: OpenSetBatch, is_id: NDArray[np.float64], options: UnientSettings
) -> tuple[torch.Tensor, Mask]:
    """The loss of a batch and the items that count as ID, given their probabilities (N,)."""
    likely = is_id >= 0.5
    entropies, loss = batch.entropies, -options.unient_marginal * mean_entropy(batch.logits)
    if options.unient_soft:
        weight = torch.from_numpy(is_id).to(entropies)
        signed = weight - options.unient_ood * (1 - weight)
        return loss + (signed * entropies).mean(), likely
    for share, mask in ((1.0, likely), (-options.unient_ood, ~likely)):
        if mask.any():
            loss = loss + share * entropies[rows(mask, batch)].mean()
    return loss, likely
