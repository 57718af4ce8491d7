"""UniEnt, "Unified Entropy Optimization for Open-Set Test-Time Adaptation", arXiv 2404.06065.

A mixture of two Gaussians on the original encoder's largest logits, scaled to 0 … 1 within a batch,
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


def run(
    data: LiveData, options: UnientSettings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""

    def loss_of(batch: OpenSetBatch, before: torch.Tensor) -> tuple[torch.Tensor, Mask] | None:
        largest = before.max(dim=1).values.double().cpu().numpy()
        is_id = id_probability(largest, data.stream.seed)
        return None if is_id is None else unified_entropy(batch, is_id, options)

    return open_set.run(data, options, threshold, loss_of)


def id_probability(scores: NDArray[np.float64], seed: int = 0) -> NDArray[np.float64] | None:
    """The probability (N,) of the higher of two Gaussians, or None if all scores are equal."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    span = float(np.ptp(scores))
    if not span:
        return None
    column = ((scores - scores.min()) / span)[:, None]
    mixture = GaussianMixture(2, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        probability: NDArray[np.float64] = mixture.fit(column).predict_proba(column)
    return probability[:, int(mixture.means_[:, 0].argmax())]


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
