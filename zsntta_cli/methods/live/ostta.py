"""OSTTA, "… Utilizing the Wisdom of Crowds in Entropy Minimization", arXiv 2308.06879.

Entropy minimisation makes most samples more confident; samples that become less confident disagree
with this crowd and are left out. One step lowers the mean entropy of the samples whose class, as
the original encoder predicts it, is at least as probable by the adapted encoder. It also raises the
entropy of the batch's mean probability.

The original encoder encodes each batch too, because cached features are rounded to float16 and do
not have the statistics of the batch.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import torch

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import open_set
from zsntta_cli.methods.live.adaptation import mean_entropy, norm_layers
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.methods.live.open_set import Loss, OpenSetBatch, rows
from zsntta_cli.methods.live.settings import OsttaSettings
from zsntta_cli.methods.live.tent import Mask, Tent
from zsntta_cli.settings import ThresholdSettings


def run(
    data: LiveData, options: OsttaSettings, threshold: ThresholdSettings
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""

    def loss_of(tent: Tent) -> Loss:
        layers = norm_layers(data.encoder.model.visual).values()
        original = Original([p for layer in layers for p in layer.parameters(recurse=False)])

        def loss(batch: OpenSetBatch) -> tuple[torch.Tensor, Mask]:
            with torch.no_grad(), original.back():
                logits = tent.logits(data.encoder.image_features(batch.images))
            before = logits[torch.from_numpy(batch.counts).to(logits.device)]
            return crowd_entropy(batch, before, options.ostta_marginal)

        return loss

    return open_set.run(data, options, threshold, loss_of)


class Original:
    """The present values of parameters, for use after these have changed."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        self._parameters = parameters
        self._values = [parameter.detach().clone() for parameter in parameters]

    @contextmanager
    def back(self) -> Iterator[None]:
        """Restore the original values within a block."""
        changed = [parameter.data for parameter in self._parameters]
        for parameter, value in zip(self._parameters, self._values, strict=True):
            parameter.data = value
        try:
            yield
        finally:
            for parameter, value in zip(self._parameters, changed, strict=True):
                parameter.data = value


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
