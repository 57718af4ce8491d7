"""What is watched of a live run: accuracies, whose gradients are large (Sec. 3), the machine."""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live.adaptation import norm_layers
from zsntta_cli.simulation.metrics import harmonic_mean
from zsntta_cli.simulation.record import Machine
from zsntta_cli.simulation.stream import ID, NOISE, Stream

_SCALE = 2.0**10  # of the entropies, against underflow in half precision; divided out again


class Running:
    """Accuracies of the decisions so far; injected items do not count."""

    def __init__(self, stream: Stream, labels: NDArray[np.int64]) -> None:
        """`labels` (T,), -1 where an item belongs to no class."""
        self._kind, self._labels = stream.kind, labels
        self._right, self._seen = np.zeros(2), np.zeros(2)  # of ID and of OOD samples
        self.items = 0

    def add(self, part: Decisions) -> None:
        """Count the decisions on the next items."""
        items = slice(self.items, self.items + len(part.class_index))
        kind, labels = self._kind[items], self._labels[items]
        assert part.is_noise is not None
        right = np.where(kind == ID, ~part.is_noise & (part.class_index == labels), part.is_noise)
        for i, mask in enumerate((kind == ID, (kind != ID) & (kind != NOISE))):
            self._right[i] += right[mask].sum()
            self._seen[i] += mask.sum()
        self.items = items.stop

    @property
    def text(self) -> str:
        """Acc_S, Acc_N and Acc_H in percent, a dash for a kind that has not come yet."""
        with np.errstate(invalid="ignore"):
            acc_s, acc_n = (100 * self._right / self._seen).tolist()
        values = (acc_s, acc_n, harmonic_mean(acc_s, acc_n))
        return "S/N/H " + "/".join("-" if math.isnan(v) else f"{v:.1f}" for v in values)


class GradientNorms:
    """Norms of the gradient that clean and noisy samples give the last adapted norm layer.

    For the figures of the gradient analysis: of the mean entropy over those of a step's samples
    that are truly clean, and over those that are truly noisy. A method knows nothing of it.
    """

    def __init__(self, stream: Stream) -> None:
        self._is_id = stream.kind == ID
        self.clean, self.noisy = (np.full(len(stream), np.nan) for _ in range(2))
        self.item = 0  # the first one of the batch that the next step follows: the step's row

    def __call__(
        self, entropies: torch.Tensor, items: NDArray[np.int64], tower: torch.nn.Module
    ) -> None:
        """Note a step on the entropies (B,) of some items (B,)."""
        layers = [x for x in norm_layers(tower).values() if x.weight.requires_grad]
        parameters = list(layers[-1].parameters())
        is_id = self._is_id[items]
        for column, mask in ((self.clean, is_id), (self.noisy, ~is_id)):
            if mask.any():
                loss = entropies[mask].mean() * _SCALE
                gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
                norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
                column[self.item] = float(norm) / _SCALE


def forget_peak() -> None:
    """Count a GPU's peak memory from here on."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def machine_of(device: torch.device) -> Machine:
    """What a run on a device ran on; the peak of a GPU's memory is since `forget_peak`."""
    versions = {"torch": torch.__version__}
    if device.type != "cuda":
        return Machine(device.type, 0, versions)
    peak = torch.cuda.max_memory_allocated(device)
    return Machine(torch.cuda.get_device_name(device), peak, versions)
