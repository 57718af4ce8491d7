"""The code that UniEnt and OSTTA share: Tent's batches, layers and optimiser, with another loss.

A batch is classified, ZS-CLIP's rule (Eq. 1) decides on its samples, and one step follows. The
loss, not that decision, chooses the samples whose entropy is minimised, so all have their graph.
Injected noise gets decisions but enters no loss.

The original encoder encodes each batch too, because cached features are rounded to float16 and do
not have the statistics of the batch.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live.adaptation import entropy, norm_layers
from zsntta_cli.methods.live.base import LiveData, in_batches, zero_shot_scores
from zsntta_cli.methods.live.settings import BatchSettings
from zsntta_cli.methods.live.tent import EntropySteps, Mask, adaptable
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import ThresholdSettings


@dataclass(frozen=True, eq=False)
class OpenSetBatch:
    """A batch of B items; N of them enter the loss, and their logits have a graph."""

    images: torch.Tensor  # (B, 3, H, W)
    counts: Mask  # (B,)
    items: NDArray[np.int64]  # (N,)
    logits: torch.Tensor  # (N, C)
    entropies: torch.Tensor  # (N,)


# From a batch and its logits (N, C) by the original encoder it gives the loss, and the items (N,)
# whose entropy it minimises; None: no step.
Loss = Callable[[OpenSetBatch, torch.Tensor], tuple[torch.Tensor, Mask] | None]


def run(
    data: LiveData,
    options: BatchSettings,
    threshold: ThresholdSettings,
    loss_of: Loss,
) -> Generator[Decisions]:
    """Decide on every item, a batch at a time, while the encoder adapts."""
    online = OnlineThreshold(threshold, options.batch_size)
    with adaptable(data, options) as tent:
        original = Original(data.encoder, tent)
        batches = in_batches(np.arange(len(data)), options.batch_size)
        for items, images in data.batches(batches):
            logits = tent.logits(data.encoder.image_features(images))
            class_index, u = zero_shot_scores(logits.detach(), data.match_bias)
            thresholds = online(u)
            counts = ~data.stream.injected[items]
            if counts.any():
                kept = logits[torch.from_numpy(counts).to(logits.device)]
                batch = OpenSetBatch(images, counts, items[counts], kept, entropy(kept))
                if terms := loss_of(batch, original.logits(batch)):
                    _step(data, tent, batch, *terms)
            yield Decisions(class_index, u > thresholds, 1 - u, thresholds)


def _step(
    data: LiveData, tent: EntropySteps, batch: OpenSetBatch, loss: torch.Tensor, minimised: Mask
) -> None:
    if minimised.any():
        data.watch(
            batch.entropies[rows(minimised, batch)], batch.items[minimised],
            data.encoder.model.visual,
        )  # fmt: skip
    tent.minimise(loss)


class Original:
    """The encoder as it came, beside the one that adapts."""

    def __init__(self, encoder: Encoder, tent: EntropySteps) -> None:
        """Keep the present values of all parameters that will adapt."""
        self._encoder, self._tent = encoder, tent
        layers = norm_layers(encoder.model.visual).values()
        self._parameters = [p for layer in layers for p in layer.parameters(recurse=False)]
        self._values = [parameter.detach().clone() for parameter in self._parameters]

    def logits(self, batch: OpenSetBatch) -> torch.Tensor:
        """The original logits (N, C) of the items that enter the loss."""
        changed = [parameter.data for parameter in self._parameters]
        for parameter, value in zip(self._parameters, self._values, strict=True):
            parameter.data = value
        try:
            with torch.no_grad():
                logits = self._tent.logits(self._encoder.image_features(batch.images))
        finally:
            for parameter, value in zip(self._parameters, changed, strict=True):
                parameter.data = value
        return logits[torch.from_numpy(batch.counts).to(logits.device)]


def rows(mask: Mask, batch: OpenSetBatch) -> torch.Tensor:
    """A mask (N,) of a batch, on the device of its logits."""
    return torch.from_numpy(mask).to(batch.logits.device)
