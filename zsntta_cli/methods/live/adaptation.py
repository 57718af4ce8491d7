"""What the live methods share: which parameters change, entropy, gradients, and the way back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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
    found: dict[str, nn.Module] = {
        name: module
        for name, module in tower.named_modules()
        if isinstance(module, NORMS) and module.weight is not None
    }
    if not found:
        raise EncoderError("the image tower has no normalisation layers that could be adapted.")
    return found


def has_batch_norm(layers: Sequence[nn.Module]) -> bool:
    """Whether an image's features depend on the others of its batch."""
    return any(isinstance(layer, _BatchNorm) for layer in layers)


def use_batch_statistics(
    layers: Sequence[nn.Module], used: bool, momentum: float | None = None
) -> None:
    """BatchNorm on the statistics of the batch, or on the running ones.

    A single image is no batch: where a layer sees one value a channel, it has no variance.
    """
    for layer in layers:
        if isinstance(layer, _BatchNorm):
            layer.train(used)
            layer.momentum = momentum


@contextmanager
def adapting(encoder: Encoder, layers: Sequence[nn.Module]) -> Iterator[list[nn.Parameter]]:
    """The parameters of some layers, free to change; all else is frozen.

    The encoder gets back all that it had, bit for bit, however the block is left.
    """
    parameters = [p for layer in layers for p in layer.parameters(recurse=False)]
    buffers = [b for layer in layers for b in layer.buffers(recurse=False)]
    before = [(tensor, tensor.detach().clone()) for tensor in (*parameters, *buffers)]
    frozen = [(p, p.requires_grad) for p in encoder.model.parameters()]
    momenta = [(layer, layer.momentum) for layer in layers if isinstance(layer, _BatchNorm)]
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
        for layer, momentum in momenta:
            layer.momentum = momentum
            layer.eval()


def entropy(logits: torch.Tensor, inside: float = 0.0) -> torch.Tensor:
    """Entropy (B,) in nats of the softmax of logits (B, C); `inside` is added within the log."""
    probability = logits.softmax(dim=-1)
    logarithm = (probability + inside).log() if inside else logits.log_softmax(dim=-1)
    return -(probability * logarithm).sum(dim=-1)


class Adapted:
    """Parameters that an optimiser changes: of those in half precision, float32 masters."""

    def __init__(self, parameters: Sequence[torch.Tensor], precision: str) -> None:
        """`precision` of the encoder: "fp32", "fp16" or "bf16"."""
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
