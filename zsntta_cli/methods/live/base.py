"""What a live method is given: a stream with its images, and the encoder that it may change."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.live.pipelines import adapts_on
from zsntta_cli.methods.live.progress import Progress
from zsntta_cli.methods.live.tuned import TunedPool
from zsntta_cli.methods.match import match

# Told the entropies (B,) that a step minimises, with their graph, the items (B,) they are of, and
# the encoder's image tower. A method hands it on and learns nothing from it.
Watch = Callable[[torch.Tensor, NDArray[np.int64], torch.nn.Module], None]


def _unwatched(_entropies: Any, _items: Any, _tower: Any) -> None:
    pass


@dataclass(frozen=True)
class LiveData:
    """A stream of T items with their images: no labels, but for the gt pipeline's mask."""

    stream: StreamData  # the order, cached features, zero-shot scores
    encoder: Encoder
    images: ImageSet  # image t is the stream's item t
    class_names: Sequence[str]
    prompt: str  # template that the class names are put into
    workers: int = 2  # threads that read images
    truly_clean: NDArray[np.bool_] | None = None  # (T,) only in the gt pipeline (Sec. 3)
    watch: Watch = _unwatched
    match_bias: float | None = None  # of a sigmoid model, where noise is scored by "match"
    set_names: Sequence[str] | None = None  # (T,) of the items' sets; None: all of the images'
    tuned: TunedPool | None = None  # answers of TPT that are there already, and kept
    progress: Progress = field(default_factory=Progress)

    def __len__(self) -> int:
        return len(self.stream)

    def batches(
        self, batches: Sequence[NDArray[np.int64]]
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """Items (B,) and encoder input (B, 3, H, W) of each batch, read ahead by threads."""
        rows = [batch.tolist() for batch in batches]
        loaded = load_batches(self.images, rows, self.encoder.resize, self.workers, False)
        for batch, (pixels, _) in zip(batches, loaded, strict=True):
            yield batch, self.encoder.normalize(pixels)

    def text_features(self) -> torch.Tensor:
        """Cached text features (C, D) of unit norm: nothing that is live here changes them."""
        return torch.from_numpy(self.stream.pool.text_features).to(self.encoder.device)

    def logits(self, features: torch.Tensor, text_features: torch.Tensor) -> torch.Tensor:
        """Scaled cosines (B, C) of raw image features (B, D) and unit text features (C, D)."""
        unit = torch.nn.functional.normalize(features, dim=-1)
        with self.encoder.autocast():
            logits = self.stream.pool.logit_scale * unit @ text_features.T
        return logits.float()

    def adapts_on(
        self, pipeline: str, items: NDArray[np.int64], is_noise: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which items (B,) a method adapts on, given its noise decisions (B,)."""
        return adapts_on(self.stream, pipeline, items, is_noise, self.truly_clean)


def in_batches(items: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Items cut into batches; the last one may be smaller."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def zero_shot_scores(
    logits: torch.Tensor, bias: float | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Classes (B,) and noise scores u (B,) of logits (B, C): 1 - MCM, or "match" by a bias."""
    if bias is not None:
        best, class_index = logits.max(dim=-1)
        return class_index.int().cpu().numpy(), match(best.double().cpu().numpy(), bias)
    probability, class_index = logits.softmax(dim=-1).max(dim=-1)
    return class_index.int().cpu().numpy(), 1 - probability.double().cpu().numpy()
