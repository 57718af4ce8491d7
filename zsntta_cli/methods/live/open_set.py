"""UniEnt and OSTTA: Tent's batches, layers and optimiser, with losses for open sets.

A batch is classified, ZS-CLIP's rule (Eq. 1) decides on its samples, and one step follows. The
loss, not that decision, chooses the samples whose entropy is lowered; it also raises the entropy of
the batch's mean probability. Injected noise gets decisions but enters no loss.

- UniEnt, "Unified Entropy Optimization for Open-Set Test-Time Adaptation", arXiv 2404.06065: a
  mixture of two Gaussians on the original encoder's largest logits, scaled to 0 … 1 within a batch,
  separates covariate-shifted ID samples, whose entropy falls, from covariate-shifted OOD samples,
  whose entropy rises. UniEnt+ counts each sample in both, by the mixture's probabilities.
- OSTTA, "… Utilizing the Wisdom of Crowds in Entropy Minimization", arXiv 2308.06879: entropy
  minimisation makes most samples more confident; those that become less confident disagree with
  this crowd and are left out: the samples whose class, as the original encoder predicts it, is less
  probable by the adapted encoder.

The original encoder encodes each batch too, because cached features are rounded to float16 and do
not have the statistics of the batch.
"""

import warnings
from collections.abc import Callable, Generator

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live.base import (
    LiveData,
    Mask,
    entropy,
    in_batches,
    mean_entropy,
    norm_layers,
    zero_shot_scores,
)
from zsntta_cli.methods.live.settings import OSTTA, BatchSettings, UniEnt
from zsntta_cli.methods.live.tent import adaptable
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings

# From the logits (N, C) of the items of a batch that enter the loss, and theirs by the original
# encoder, it gives the loss, and the items (N,) whose entropy it lowers; None: no step.
Loss = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, Mask] | None]


def unient(
    data: LiveData, options: UniEnt.Settings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts by UniEnt."""

    def loss_of(logits: torch.Tensor, before: torch.Tensor) -> tuple[torch.Tensor, Mask] | None:
        largest = before.max(dim=1).values.double().cpu().numpy()
        is_id = id_probability(largest, data.stream.seed)
        return None if is_id is None else unified_entropy(logits, is_id, options)

    return _run(data, options, threshold, loss_of)


def ostta(
    data: LiveData, options: OSTTA.Settings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts by OSTTA."""

    def loss_of(logits: torch.Tensor, before: torch.Tensor) -> tuple[torch.Tensor, Mask]:
        return crowd_entropy(logits, before, options.ostta_marginal)

    return _run(data, options, threshold, loss_of)


def _run(
    data: LiveData, options: BatchSettings, threshold: ThresholdSettings, loss_of: Loss
) -> Generator[Decisions]:
    online, tower = OnlineThreshold(threshold, options.batch_size), data.encoder.model.visual
    with adaptable(data, options) as tent:
        layers = norm_layers(tower).values()
        parameters = [p for layer in layers for p in layer.parameters(recurse=False)]
        originals = [parameter.detach().clone() for parameter in parameters]

        def original_logits(images: torch.Tensor) -> torch.Tensor:
            """The logits (B, C) by the encoder as it came."""
            adapted = [parameter.data for parameter in parameters]
            _put(parameters, originals)
            try:
                with torch.no_grad():
                    return tent.logits(data.encoder.image_features(images))
            finally:
                _put(parameters, adapted)

        for items, images in data.batches(in_batches(np.arange(len(data)), options.batch_size)):
            logits = tent.logits(data.encoder.image_features(images))
            class_index, u = zero_shot_scores(logits.detach(), data.match_bias)
            thresholds, counts = online(u), ~data.stream.injected[items]
            if counts.any():
                kept = _rows(logits, counts)
                if terms := loss_of(kept, _rows(original_logits(images), counts)):
                    loss, lowered = terms
                    if lowered.any():
                        data.watch(entropy(_rows(kept, lowered)), items[counts][lowered], tower)
                    tent.minimise(loss)
            yield Decisions(class_index, u > thresholds, 1 - u, thresholds)


def _put(parameters: list[torch.nn.Parameter], values: list[torch.Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.data = value


def _rows(values: torch.Tensor, mask: Mask) -> torch.Tensor:
    return values[torch.from_numpy(mask).to(values.device)]


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
    logits: torch.Tensor, is_id: NDArray[np.float64], options: UniEnt.Settings
) -> tuple[torch.Tensor, Mask]:
    """UniEnt's loss, and the items that count as ID, given their probabilities (N,)."""
    likely = is_id >= 0.5
    entropies, loss = entropy(logits), -options.unient_marginal * mean_entropy(logits)
    if options.unient_soft:
        weight = torch.from_numpy(is_id).to(entropies)
        signed = weight - options.unient_ood * (1 - weight)
        return loss + (signed * entropies).mean(), likely
    for share, mask in ((1.0, likely), (-options.unient_ood, ~likely)):
        if mask.any():
            loss = loss + share * _rows(entropies, mask).mean()
    return loss, likely


def crowd_entropy(
    logits: torch.Tensor, before: torch.Tensor, marginal: float
) -> tuple[torch.Tensor, Mask]:
    """OSTTA's loss and the items that it minimises, given the original logits (N, C)."""
    confidence, class_index = before.softmax(dim=-1).max(dim=-1)
    now = logits.detach().softmax(dim=-1).gather(1, class_index[:, None])[:, 0]
    chosen = (now >= confidence).cpu().numpy()
    entropies, loss = entropy(logits), -marginal * mean_entropy(logits)
    if chosen.any():
        loss = loss + _rows(entropies, chosen).mean()
    return loss, chosen
