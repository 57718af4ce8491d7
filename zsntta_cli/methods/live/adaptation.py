"""What the live methods share: which parameters change, entropy, gradients, and the way back."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.errors import EncoderError

NORMS = (nn.LayerNorm, nn.GroupNorm, _BatchNorm)
_LOSS_SCALE = 2.0**12  # of losses in half precision; halved where a gradient overflows


def norm_layers(tower: nn.Module) -> dict[str, nn.Module]:
    """The normalisation layers of an image tower that have affine parameters, in order.

    Raises:
        EncoderError: it has none.
    """
    layers: dict[str, nn.Module] = {
        name: module
        for name, module in tower.named_modules()
        if isinstance(module, NORMS) and module.weight is not None
    }
    if not layers:
        raise EncoderError("the image tower has no normalisation layers that could be adapted.")
    return layers


def batch_norms(tower: nn.Module) -> list[_BatchNorm]:
    """All BatchNorms of an image tower; if it has any, an image's features depend on its batch."""
    return [module for module in tower.modules() if isinstance(module, _BatchNorm)]


@contextmanager
def batch_statistics(tower: nn.Module, momentum: float) -> Iterator[None]:
    """Every BatchNorm of a tower on the statistics of what it sees, adapted or not.

    The running ones move meanwhile, by `momentum`; `adapting` takes that back. One image is a
    batch too, of H*W values a channel; only a layer that sees one value a channel, which has no
    variance, stays on its running statistics.
    """
    layers = batch_norms(tower)
    momenta = [layer.momentum for layer in layers]
    hooks = [layer.register_forward_pre_hook(_use_the_batch) for layer in layers]
    for layer in layers:
        layer.momentum = momentum
    try:
        yield
    finally:
        for layer, before, hook in zip(layers, momenta, hooks, strict=True):
            hook.remove()
            layer.momentum = before
            layer.eval()


def _use_the_batch(layer: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    values = inputs[0]
    layer.train(values.numel() > values.shape[1])


@contextmanager
def adapting(encoder: Encoder, layers: Sequence[nn.Module]) -> Iterator[list[nn.Parameter]]:
    """The parameters of some layers, free to change; all else is frozen.

    The encoder gets back all that it had, bit for bit, however the block is left: the running
    statistics of all its BatchNorms, not only of those layers.
    """
    parameters = [p for layer in layers for p in layer.parameters(recurse=False)]
    buffers = encoder.model.visual.buffers()
    before = [(tensor, tensor.detach().clone()) for tensor in (*parameters, *buffers)]
    frozen = [(p, p.requires_grad) for p in encoder.model.parameters()]
    try:
        encoder.model.requires_grad_(False)
        for parameter in parameters:
            parameter.requires_grad_(True)
        yield parameters
    finally:
        with torch.no_grad():
            for tensor, value in before:
                tensor.copy_(value)
        for parameter, required in frozen:
            parameter.requires_grad_(required)
            parameter.grad = None


def entropy(logits: torch.Tensor, inside: float = 0.0) -> torch.Tensor:
    """Entropy (B,) in nats of the softmax of logits (B, C); `inside` is added within the log."""
    probability = logits.softmax(dim=-1)
    logarithm = (probability + inside).log() if inside else logits.log_softmax(dim=-1)
    return -(probability * logarithm).sum(dim=-1)


def mean_entropy(logits: torch.Tensor) -> torch.Tensor:
    """Entropy of the mean probability over views or samples, of logits (V, C)."""
    log_mean = logits.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(logits))
    return -(log_mean.exp() * log_mean).sum()


class Adapted:
    """Parameters that an optimiser changes: of those in half precision, float32 masters."""

    def __init__(self, parameters: Sequence[torch.Tensor], precision: str) -> None:
        """`precision` of the encoder; under amp no loss is scaled, as in the released code."""
        self._parameters = parameters
        self.masters = [
            p if p.dtype == torch.float32 else p.detach().float().requires_grad_()
            for p in parameters
        ]
        self._scale = _LOSS_SCALE if precision == "fp16" else 1.0

    def backward(self, loss: torch.Tensor) -> bool:
        """Set the masters' gradients; False where one overflowed: then no step is to be made.

        In half precision the loss is scaled meanwhile, so that small gradients do not vanish.
        """
        for parameter in self._parameters:
            parameter.grad = None
        (loss * self._scale).backward()  # type: ignore[no-untyped-call]
        is_finite = True
        for parameter, master in zip(self._parameters, self.masters, strict=True):
            if parameter.grad is not None:
                master.grad = parameter.grad.float() / self._scale
                is_finite &= self._scale == 1 or bool(master.grad.isfinite().all())
        if not is_finite:
            self._scale = max(self._scale / 2, 1.0)
        return is_finite

    @torch.no_grad()
    def publish(self) -> None:
        """Give the model what the masters are now."""
        for parameter, master in zip(self._parameters, self.masters, strict=True):
            if parameter is not master:
                parameter.copy_(master)

    def state(self) -> dict[str, Any]:
        """The masters themselves, which the next step changes, and the scale of losses."""
        masters = [master.detach() for master in self.masters]
        return {"masters": masters, "scale": self._scale}

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of as many parameters, and publish it."""
        for master, value in zip(self.masters, state["masters"], strict=True):
            master.copy_(value)
        self._scale = state["scale"]
        self.publish()


class AdaptedTower:
    """What adaptation changes of an image tower, as a state: parameters, optimiser, statistics."""

    def __init__(
        self, tower: nn.Module, adapted: Adapted, optimizer: torch.optim.Optimizer
    ) -> None:
        self._adapted, self._optimizer = adapted, optimizer
        self._buffers = list(tower.buffers())  # of BatchNorms: running statistics

    def state(self) -> dict[str, Any]:
        """All of it, in the very tensors that the next step changes."""
        return {
            "adapted": self._adapted.state(),
            "optimizer": self._optimizer.state_dict(),
            "buffers": self._buffers,
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same tower."""
        self._adapted.restore(state["adapted"])
        self._optimizer.load_state_dict(state["optimizer"])
        for buffer, value in zip(self._buffers, state["buffers"], strict=True):
            buffer.copy_(value)
