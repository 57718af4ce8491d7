"""OSTTA, "… Utilizing the Wisdom of Crowds in Entropy Minimization", arXiv 2308.06879.

Entropy minimisation makes most samples more confident; samples that become less confident disagree
with this crowd and are left out. One step lowers the mean entropy of the samples whose class, as
the original encoder predicts it, is at least as probable by the adapted encoder. It also raises the
entropy of the batch's mean probability.
"""

from collections.abc import Generator
from functools import partial

import torch

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import open_set
from zsntta_cli.methods.live.adaptation import mean_entropy
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.methods.live.open_set import OpenSetBatch, rows
from zsntta_cli.methods.live.settings import OsttaSettings
from zsntta_cli.methods.live.tent import Mask
from zsntta_cli.settings import ThresholdSettings


def run(
    data: LiveData, options: OsttaSettings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""
    loss_of = partial(crowd_entropy, marginal=options.ostta_marginal)
    return open_set.run(data, options, threshold, loss_of)


def crowd_entropy(
    batch: OpenSetBatch, before: torch.Tensor, marginal: float
) -> tuple[torch.Tensor, Mask]:
    """The loss of a batch and the items that it minimises, given the original logits (N, C)."""
    confidence, class_index = before.softmax(dim=-1).max(dim=-1)
    now = batch.logits.detach().softmax(dim=-1).gather(1, class_index[:, None])[:, 0]
    chosen = (now >= confidence).cpu().numpy()
    loss = -marginal * mean_entropy(batch.logits)
    if chosen.any():
        loss = loss + batch.entropies[rows(chosen, batch)].mean()
    return loss, chosen
