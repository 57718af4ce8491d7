"""The input of a live method: a stream with its images, and the encoder that it may change."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.live.pipelines import adapts_on
from zsntta_cli.methods.live.tuned import StreamAnswers
from zsntta_cli.methods.match import match

# It gets the entropies (B,) that a step minimises, with their graph, their items (B,), and the
# encoder's image tower. A method calls it and learns nothing from it.
Watch = Callable[[torch.Tensor, NDArray[np.int64], torch.nn.Module], None]


def _unwatched(_entropies: Any, _items: Any, _tower: Any) -> None:
    pass


@dataclass(frozen=True)
class LiveData:
    """A stream of T items with their images, without labels except the gt pipeline's mask."""

    stream: StreamData  # the order, cached features, zero-shot scores
    encoder: Encoder
    images: ImageSet  # image t is item t of the stream
    class_names: Sequence[str]
    prompt: str  # template for the class names
    workers: int = 2  # threads that read images
    truly_clean: NDArray[np.bool_] | None = None  # (T,) only in the gt pipeline (Sec. 3)
    watch: Watch = _unwatched
    match_bias: float | None = None  # of a sigmoid model, if noise is scored by "match"
    view_seeds: Sequence[int] = ()  # (T,) of the random views of an image, the same in any stream
    answers: StreamAnswers | None = None  # of TPT, that were kept before

    def __len__(self) -> int:
        return len(self.stream)

    def batches(
        self, batches: Sequence[NDArray[np.int64]]
    ) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
        """Yield the items (B,) and input (B, 3, H, W) of each batch, which threads read ahead."""
        rows = [batch.tolist() for batch in batches]
        loaded = load_batches(self.images, rows, self.encoder.resize, self.workers, False)
        for batch, (pixels, _) in zip(batches, loaded, strict=True):
            yield batch, self.encoder.normalize(pixels)

    def text_features(self) -> torch.Tensor:
        """The cached text features (C, D) of unit norm, which no method that uses them changes."""
        return torch.from_numpy(self.stream.pool.text_features).to(self.encoder.device)

    def logits(self, features: torch.Tensor, text_features: torch.Tensor) -> torch.Tensor:
        """The scaled cosines (B, C) of raw image features (B, D) and unit text features (C, D)."""
        unit = torch.nn.functional.normalize(features, dim=-1)
        with self.encoder.autocast():
            logits = self.stream.pool.logit_scale * unit @ text_features.T
        return logits.float()

    def adapts_on(
        self, pipeline: str, items: NDArray[np.int64], is_noise: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The items, as a mask (B,), on which a method adapts, given its noise decisions (B,)."""
        return adapts_on(self.stream, pipeline, items, is_noise, self.truly_clean)


def in_batches(items: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """Cut items into batches; the last one may be smaller."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def zero_shot_scores(
    logits: torch.Tensor, bias: float | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return classes (B,) and noise scores u (B,) of logits (B, C): 1 - MCM, or "match"."""
    if bias is not None:
        best, class_index = logits.max(dim=-1)
        return class_index.int().cpu().numpy(), match(best.double().cpu().numpy(), bias)
    probability, class_index = logits.softmax(dim=-1).max(dim=-1)
    return class_index.int().cpu().numpy(), 1 - probability.double().cpu().numpy()
