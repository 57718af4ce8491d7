"""What live methods share: a stream with its images, and the encoder that they may change."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.errors import EncoderError
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.live.tuned import TunedStream
from zsntta_cli.methods.scores import Floats, Mask, blocks
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings import AMP, FP32

NORMS = (nn.LayerNorm, nn.GroupNorm, _BatchNorm)

Items = NDArray[np.int64]
# It gets the entropies (B,) that a step minimises, with their graph, and their items (B,). A method
# calls it and learns nothing from it.
Watch = Callable[[torch.Tensor, Items], object]


@dataclass(frozen=True)
class LiveData:
    """A stream of T items with their images, without labels except the gt pipeline's mask."""

    stream: StreamData  # the order, cached features, zero-shot scores
    encoder: Encoder
    images: ImageSet  # image t is item t of the stream
    class_names: Sequence[str]
    prompt: str  # template for the class names
    workers: int = 2  # threads that read images
    truly_clean: Mask | None = None  # (T,) only in the gt pipeline (Sec. 3)
    watch: Watch = lambda _entropies, _items: None
    view_seeds: Sequence[int] = ()  # (T,) of the random views of an image, the same in any stream
    tuned: TunedStream | None = None  # of TPT, with the answers that were kept before

    def __len__(self) -> int:
        return len(self.stream)

    def batches(self, batches: Sequence[Items]) -> Iterator[tuple[Items, torch.Tensor]]:
        """Yield the items (B,) and input (B, 3, H, W) of each batch, which threads read ahead."""
        rows = [batch.tolist() for batch in batches]
        loaded = load_batches(self.images, rows, self.encoder.resize, self.workers, False)
        for batch, (pixels, _) in zip(batches, loaded, strict=True):
            yield batch, self.encoder.normalize(pixels)

    @cached_property
    def text_features(self) -> torch.Tensor:
        """The cached text features (C, D) of unit norm, which no method that uses them changes."""
        return torch.from_numpy(self.stream.text_features).to(self.encoder.device)

    def logits(self, features: torch.Tensor, text: torch.Tensor | None = None) -> torch.Tensor:
        """The scaled cosines (B, C) of raw image features (B, D) and unit text features (C, D).

        By default these are the cached ones.
        """
        unit = nn.functional.normalize(features, dim=-1)
        text = self.text_features if text is None else text
        with self.encoder.autocast():
            logits = self.stream.logit_scale * unit @ text.T
        return logits.float()


def in_batches(items: Items, size: int) -> list[Items]:
    """Cut items into batches; the last one may be smaller."""
    return [items[block] for block in blocks(len(items), size) if len(items)]


def zero_shot_scores(logits: torch.Tensor) -> tuple[NDArray[np.int32], Floats]:
    """Return classes (B,) and noise scores u = 1 - MCM (B,) of logits (B, C), Eq. 1."""
    best, class_index = logits.detach().softmax(dim=-1).max(dim=-1)
    return class_index.int().cpu().numpy(), 1 - best.double().cpu().numpy()


def decide(logits: torch.Tensor, online: OnlineThreshold) -> Decisions:
    """ZS-CLIP's rule on the next items of logits (B, C): noise iff u is above the threshold."""
    class_index, u = zero_shot_scores(logits)
    thresholds = online(u)
    return Decisions(class_index, u > thresholds, 1 - u, thresholds)


def norm_layers(tower: nn.Module) -> dict[str, nn.Module]:
    """The normalisation layers of an image tower that have affine parameters, in order.

    Raises:
        EncoderError: there are none.
    """
    layers: dict[str, nn.Module] = {
        name: module
        for name, module in tower.named_modules()
        if isinstance(module, NORMS) and module.weight is not None
    }
    if not layers:
        raise EncoderError(
            "this model's image tower has no normalisation layers to adapt: choose another."
        )
    return layers


def batch_norms(tower: nn.Module) -> list[_BatchNorm]:
    """All BatchNorms of a tower; if there are any, an image's features depend on its batch."""
    return [module for module in tower.modules() if isinstance(module, _BatchNorm)]


@contextmanager
def batch_statistics(tower: nn.Module, momentum: float) -> Iterator[None]:
    """Let every BatchNorm of a tower use the statistics of its input, adapted or not.

    The running statistics move by `momentum`; `adapting` undoes that. A single image is a batch
    too, of H*W values for each channel. A layer that gets one value for each channel, which has no
    variance, keeps using its running statistics.
    """

    def use_the_batch(layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        layer.train(inputs[0].numel() > inputs[0].shape[1])

    with ExitStack() as undo:
        for layer in batch_norms(tower):
            undo.callback(layer.eval)
            undo.callback(setattr, layer, "momentum", layer.momentum)
            undo.callback(layer.register_forward_pre_hook(use_the_batch).remove)
            layer.momentum = momentum
        yield


@contextmanager
def adapting(encoder: Encoder, layers: Sequence[nn.Module]) -> Iterator[list[nn.Parameter]]:
    """Free the parameters of some layers, which it yields, and freeze all others.

    At the end, even after an error, the encoder is restored bit for bit, with the running
    statistics of all its BatchNorms, not only of those layers.

    Raises:
        EncoderError: the weights are in half precision, where small steps vanish.
    """
    precision = encoder.identity["precision"]
    if precision not in (FP32, AMP):
        raise EncoderError(
            f"a live method changes weights in float32, and this encoder's are {precision}: "
            f"extract the sets with --precision {FP32} or {AMP}."
        )
    parameters = [p for layer in layers for p in layer.parameters(recurse=False)]
    changing = *parameters, *encoder.model.visual.buffers()
    before = [tensor.detach().clone() for tensor in changing]
    required = [(p, p.requires_grad) for p in encoder.model.parameters()]
    try:
        encoder.model.requires_grad_(False)
        for parameter in parameters:
            parameter.requires_grad_(True)
        yield parameters
    finally:
        with torch.no_grad():
            for tensor, value in zip(changing, before, strict=True):
                tensor.copy_(value)
        for parameter, requires_grad in required:
            parameter.requires_grad_(requires_grad)
            parameter.grad = None


@contextmanager
def at(parameters: Sequence[nn.Parameter], values: Sequence[torch.Tensor]) -> Iterator[None]:
    """Give parameters other values for a while."""
    before = [parameter.data for parameter in parameters]
    for parameter, value in zip(parameters, values, strict=True):
        parameter.data = value
    try:
        yield
    finally:
        for parameter, value in zip(parameters, before, strict=True):
            parameter.data = value


def entropy(logits: torch.Tensor, inside: float = 0.0) -> torch.Tensor:
    """The entropies (B,) in nats of logits (B, C); `inside` is added inside the logarithm."""
    probability = logits.softmax(dim=-1)
    logarithm = (probability + inside).log() if inside else logits.log_softmax(dim=-1)
    return -(probability * logarithm).sum(dim=-1)


def mean_entropy(logits: torch.Tensor) -> torch.Tensor:
    """The entropy of the mean probability over views or samples, from logits (V, C)."""
    log_mean = logits.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(logits))
    return -(log_mean.exp() * log_mean).sum()


def step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """Take a step of an optimiser down a loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
