"""ROSITA, "Effectiveness of Vision Language Models for Open-World …", arXiv 2406.00481.

Images come one by one. An image's score is its largest cosine with a class text. The threshold on
the last N_q scores decides whether the image is desired. An image beyond the mean of its group is
sure: its feature enters a bank of its kind, and one step of SGD changes the image tower's
normalisation layers. The changed tower chooses the class; score and decision are by the tower
before the step.

The loss has two terms. The first pulls a desired image to its predicted class: the cross-entropies
of the cosines (temperature 1) of the image and of a random crop of it. The second pulls any sure
image to its bank and away from the other: `rosita-weight` times the mean, over its k nearest
features in its own bank, of log Σ exp(its cosines with the k nearest of the other bank) minus the
cosine. For a desired image, neighbours of another class count as 0. The image is in its bank and so
its own first neighbour. This term is left out until both banks have more than k features. With a
single class they never have, so nothing is learned.

Image and crop share one pass: the gradient of a single image would differ in its last bits each
time, because libraries split the product of one row among threads, in no fixed order. To save time,
the image is encoded again only after a step.
"""

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.settings import BY_STREAM
from zsntta_cli.methods.live.tpt import load_views
from zsntta_cli.methods.method import Live
from zsntta_cli.methods.threshold import OnlineThreshold

_SHORTCUT = "downsample"  # of a ResNet, whose normalisation the released code leaves as it is
Bank = deque[tuple[torch.Tensor, torch.Tensor]]  # the last unit features (1, D), classes (1,)


def run(method: Live) -> Generator[Decisions]:
    """Decide on every item, one at a time, while the encoder adapts."""
    data, items = method.data, np.arange(len(method.data))
    layers = live.norm_layers(data.encoder.model.visual).items()
    adapted = [layer for name, layer in layers if _SHORTCUT not in name]
    with live.adapting(data.encoder, adapted) as parameters:
        rosita, images = Rosita(method, parameters), data.batches(live.in_batches(items, 1))
        crops = load_views(data, items, 1, False, BY_STREAM)
        for (_, image), (item, crop) in zip(images, crops, strict=True):
            yield rosita.decide(item, image, crop)


class Rosita:
    """The tower, the threshold and the banks, which change with each item."""

    def __init__(self, method: Live, parameters: Sequence[nn.Parameter]) -> None:
        data, options, threshold = method.data, method.options, method.threshold.settings
        self._data, self._options, self._text = data, options, data.text_features
        # Its grid has steps of 0.01, and CLIP's largest cosines span some twenty of them. While
        # there is no split all items are desired, as in the released code.
        self._online = OnlineThreshold(replace(threshold, fixed=None, degenerate="zero"))
        fixed, is_cosine = threshold.fixed, threshold.fixed_on == "id-score"
        self._fixed = fixed if fixed is None or is_cosine else 1 - fixed
        self._desired: Bank = deque(maxlen=options.rosita_neighbours * len(self._text))
        self._undesired: Bank = deque(maxlen=options.rosita_undesired)
        self._optimizer = torch.optim.SGD(parameters, lr=options.learning_rate)

    def decide(self, item: int, image: torch.Tensor, crop: torch.Tensor) -> Decisions:
        """Decide on the next item, given image and crop (1, 3, H, W), and learn from it."""
        features = self._encode(torch.cat([image, crop]))
        cosines = features @ self._text.T
        best, class_index = (part.detach() for part in cosines[:1].max(dim=-1))
        cosine = float(best)
        [threshold] = self._online(np.array([cosine])).tolist()
        threshold = threshold if self._fixed is None else self._fixed
        queue = self._online.queue
        is_above, is_desired = queue >= threshold, cosine >= threshold
        is_sure = False  # unless both groups have items
        if is_above.any() and not is_above.all():
            mean = float(queue[is_above == is_desired].mean())
            is_sure = cosine > mean if is_desired else cosine < mean
        if is_sure and not self._data.stream.injected[item]:
            bank = self._desired if is_desired else self._undesired
            bank.append((features[:1].detach(), class_index))
            losses = self._of_neighbours(features[:1], class_index, is_desired)
            if is_desired:
                losses.append(cross_entropy(cosines, class_index.expand(2), reduction="sum"))
            if losses:
                loss = torch.stack(losses).sum()
                self._data.watch(loss[None], np.array([item]))
                live.step(self._optimizer, loss)
                with torch.no_grad():
                    class_index = (self._encode(image) @ self._text.T).argmax(dim=-1)
        label, is_noise = class_index.int().cpu().numpy(), np.array([not is_desired])
        return Decisions(label, is_noise, np.array([cosine]), np.array([1 - threshold]))

    def _encode(self, images: torch.Tensor) -> torch.Tensor:
        """The unit features (B, D) by the current tower."""
        return normalize(self._data.encoder.image_features(images), dim=-1)

    def _of_neighbours(
        self, feature: torch.Tensor, class_index: torch.Tensor, is_desired: bool
    ) -> list[torch.Tensor]:
        """The loss of a sure item by its neighbours, or [] if a bank has too few of them."""
        count, banks = self._options.rosita_neighbours, (self._undesired, self._desired)
        same_bank, other_bank = banks[::-1] if is_desired else banks
        if min(len(same_bank), len(other_bank)) <= count:
            return []
        near, classes = _nearest(same_bank, feature, count)
        far, _ = _nearest(other_bank, feature, count)
        losses = far.logsumexp(dim=0) - near
        if is_desired:  # neighbours of another class count as zero
            losses = losses * (classes == class_index)
        return [self._options.rosita_weight * losses.mean()]


def _nearest(bank: Bank, feature: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The cosines (k,) of a feature (1, D) with its nearest ones in a bank, and their classes."""
    features, classes = map(torch.cat, zip(*bank, strict=True))
    cosines, places = (feature @ features.T)[0].topk(count)
    return cosines, classes[places]
