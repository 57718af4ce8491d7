"""UniEnt and OSTTA: Tent's batches, layers and optimiser, with losses for open sets.

A batch is classified, ZS-CLIP's rule (Eq. 1) decides on its samples, and one step follows. The
loss, not that decision, chooses the samples whose entropy is lowered; it also raises the entropy of
the batch's mean probability. Injected noise gets decisions but enters no loss.

UniEnt, "Unified Entropy Optimization for Open-Set Test-Time Adaptation", arXiv 2404.06065: a
mixture of two Gaussians on the original encoder's largest logits, scaled to 0 … 1 within a batch,
separates covariate-shifted ID samples, whose entropy falls, from covariate-shifted OOD samples,
whose entropy rises. The loss is the mean entropy of ID, minus `unient-ood` times that of OOD, minus
`unient-marginal` times the entropy of the batch's mean probability. A group without samples counts
as 0, and a batch of equal logits takes no step. UniEnt+ counts each sample in both groups, by the
mixture's probabilities.

OSTTA, "… Utilizing the Wisdom of Crowds in Entropy Minimization", arXiv 2308.06879: entropy
minimisation makes most samples more confident; those that become less confident disagree with this
crowd and are left out: the samples whose class, as the original encoder predicts it, is less
probable by the adapted encoder. The loss is the mean entropy of the other samples, minus
`ostta-marginal` times the entropy of the batch's mean probability.

The original encoder encodes each batch too, because cached features are rounded to float16 and do
not have the statistics of the batch.
"""

import warnings
from collections.abc import Callable, Generator

import numpy as np
import torch

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.settings import UniEnt
from zsntta_cli.methods.live.tent import adaptable
from zsntta_cli.methods.method import Live
from zsntta_cli.methods.scores import Floats, Mask

# From the logits (N, C) of the items of a batch that enter the loss, and theirs by the original
# encoder, it gives the loss, and the items (N,) whose entropy it lowers; None: no step.
Loss = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, Mask] | None]


def unient(method: Live) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts by UniEnt."""

    def loss_of(logits: torch.Tensor, before: torch.Tensor) -> tuple[torch.Tensor, Mask] | None:
        largest = before.max(dim=1).values.double().cpu().numpy()
        is_id = id_probability(largest, method.data.stream.seed)
        return None if is_id is None else unified_entropy(logits, is_id, method.options)

    return _run(method, loss_of)


def ostta(method: Live) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts by OSTTA."""
    marginal = method.options.ostta_marginal
    return _run(method, lambda logits, before: crowd_entropy(logits, before, marginal))


def _run(method: Live, loss_of: Loss) -> Generator[Decisions]:
    data = method.data
    with adaptable(data, method.options) as tent:
        originals = [parameter.detach().clone() for parameter in tent.parameters]
        for items, images in data.batches(tent.batches):
            logits = data.logits(data.encoder.image_features(images))
            decisions, counts = live.decide(logits, method.threshold), ~data.stream.injected[items]
            if counts.any():
                with live.at(tent.parameters, originals), torch.no_grad():
                    before = data.logits(data.encoder.image_features(images))
                kept = logits[counts]
                if terms := loss_of(kept, before[counts]):
                    loss, lowered = terms
                    if lowered.any():
                        data.watch(live.entropy(kept[lowered]), items[counts][lowered])
                    live.step(tent.optimizer, loss)
            yield decisions


def id_probability(scores: Floats, seed: int = 0) -> Floats | None:
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
        probability: Floats = mixture.fit(column).predict_proba(column)
    return probability[:, int(mixture.means_[:, 0].argmax())]


def unified_entropy(
    logits: torch.Tensor, is_id: Floats, options: UniEnt.Settings
) -> tuple[torch.Tensor, Mask]:
    """UniEnt's loss, and the items that count as ID, given their probabilities (N,)."""
    likely = is_id >= 0.5
    entropies, loss = live.entropy(logits), -options.unient_marginal * live.mean_entropy(logits)
    if options.unient_soft:
        weight = torch.from_numpy(is_id).to(entropies)
        signed = weight - options.unient_ood * (1 - weight)
        return loss + (signed * entropies).mean(), likely
    for share, mask in ((1.0, likely), (-options.unient_ood, ~likely)):
        if mask.any():
            loss = loss + share * entropies[mask].mean()
    return loss, likely


def crowd_entropy(
    logits: torch.Tensor, before: torch.Tensor, marginal: float
) -> tuple[torch.Tensor, Mask]:
    """OSTTA's loss and the items that it minimises, given the original logits (N, C)."""
    confidence, class_index = before.softmax(dim=-1).max(dim=-1)
    now = logits.detach().softmax(dim=-1).gather(1, class_index[:, None])[:, 0]
    chosen = (now >= confidence).cpu().numpy()
    entropies, loss = live.entropy(logits), -marginal * live.mean_entropy(logits)
    if chosen.any():
        loss = loss + entropies[chosen].mean()
    return loss, chosen
