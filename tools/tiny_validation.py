"""How good the tiny encoder is on pictures whose seeds neither training nor tests use.

`easy` pictures come from the training distribution. `shifted` pictures lie halfway between it and
the held-out distribution of the built-in sets, which no decision about training uses.
"""

from dataclasses import replace

import numpy as np
import open_clip
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from tiny_captions import article_of, tokenize
from tiny_drawing import HELD_OUT, TRAINING, draw
from torch.nn import functional

from zsntta_cli.datasets.drawn.drawing import (
    LETTERS,
    NUMERALS,
    OTHER_SHAPES,
    SHAPES,
    SURFACES,
    Concept,
    Distribution,
)

Features = NDArray[np.float32]


def _halfway(low: tuple[float, float], high: tuple[float, float]) -> tuple[float, float]:
    return (low[0] + high[0]) / 2, (low[1] + high[1]) / 2


SHIFTED = replace(
    TRAINING,
    size=_halfway(TRAINING.size, HELD_OUT.size),
    weight=_halfway(TRAINING.weight, HELD_OUT.weight),
    contrast=_halfway(TRAINING.contrast, HELD_OUT.contrast),
    relief=_halfway(TRAINING.relief, HELD_OUT.relief),
    strength=_halfway(TRAINING.strength, HELD_OUT.strength),
    blur=_halfway(TRAINING.blur, HELD_OUT.blur),
    noise=_halfway(TRAINING.noise, HELD_OUT.noise),
    backgrounds=("gradient", "cloudy", "two-tone", "striped"),
    occlusion=0.2,
)
DISTRIBUTIONS: dict[str, Distribution] = {"easy": TRAINING, "shifted": SHIFTED}
FAMILIES: dict[str, tuple[Concept, ...]] = {
    "shapes": SHAPES,
    "glyphs": LETTERS,
    "textures": SURFACES,
    "other-shapes": OTHER_SHAPES,
    "digits": NUMERALS,
}


def draw_set(
    concepts: tuple[Concept, ...], dist: Distribution, count: int, seed: tuple[int, ...]
) -> NDArray[np.uint8]:
    """Draw `count` pictures, classes in turn."""
    gen = np.random.Generator(np.random.PCG64(seed))
    return np.stack([draw(concepts[i % len(concepts)], dist, gen).pixels for i in range(count)])


def gaussian_noise(count: int, gen: np.random.Generator) -> NDArray[np.uint8]:
    """Draw normal noise, each image stretched to 0 ... 255, as streams inject it."""
    noise = gen.standard_normal((count, 32, 32, 3))
    low, high = noise.min((1, 2, 3), keepdims=True), noise.max((1, 2, 3), keepdims=True)
    stretched: NDArray[np.uint8] = ((noise - low) / (high - low) * 255).astype(np.uint8)
    return stretched


def softmax(logits: Features) -> Features:
    """Return row-wise probabilities."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Features = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


@torch.no_grad()
def image_features(model: open_clip.CLIP, pixels: NDArray[np.uint8]) -> Features:
    """Return raw features (N, D) in full precision."""
    from train_tiny import normalise

    parts = [model.encode_image(normalise(part)) for part in np.array_split(pixels, 16)]
    return torch.cat(parts).numpy()


@torch.no_grad()
def text_features(
    model: open_clip.CLIP, concepts: tuple[Concept, ...], words: NDArray[np.int32]
) -> Features:
    """Return unit features (C, D) of "a photo of ..."."""
    rows = [tokenize(f"a photo of {article_of(c)} {c.noun}.") for c in concepts]
    tokens = torch.from_numpy(np.searchsorted(words, np.stack(rows)))
    return functional.normalize(model.encode_text(tokens), dim=-1).numpy()


class Validation:
    """Validation pictures of both distributions, drawn once."""

    def __init__(self, seed: int, count: int = 1000) -> None:
        self.pixels = {
            (kind, name): draw_set(concepts, dist, count, (seed, k))
            for k, (kind, dist) in enumerate(DISTRIBUTIONS.items())
            for name, concepts in FAMILIES.items()
        }
        self.noise = gaussian_noise(200, np.random.default_rng(seed))

    def measure(self, model: open_clip.CLIP, words: NDArray[np.int32]) -> dict[str, float]:
        """Return zero-shot accuracies and MCM AUROCs, with shapes as ID."""
        model.eval()
        scale = model.logit_scale.exp().item()
        figures = {"logit_scale": scale}
        for kind in DISTRIBUTIONS:
            scores = {}
            for name, concepts in FAMILIES.items():
                raw = image_features(model, self.pixels[kind, name])
                unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
                if name in ("shapes", "digits"):
                    own = unit @ text_features(model, concepts, words).T
                    truth = np.arange(len(unit)) % len(concepts)
                    figures[f"{kind}/{name}"] = float(np.mean(own.argmax(1) == truth))
                shapes = text_features(model, SHAPES, words)
                scores[name] = softmax(scale * unit @ shapes.T).max(1)
            raw = image_features(model, self.noise)
            unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
            scores["noise"] = softmax(scale * unit @ shapes.T).max(1)
            for name, values in scores.items():
                figures[f"{kind}/u {name}"] = float(1 - values.mean())
                if name != "shapes":
                    both = np.concatenate([scores["shapes"], values])
                    is_id = np.arange(len(both)) < len(scores["shapes"])
                    figures[f"{kind}/auroc {name}"] = float(roc_auc_score(is_id, both))
        model.train()
        return {name: round(value, 4) for name, value in figures.items()}
