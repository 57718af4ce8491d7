"""TPT, "Test-Time Prompt Tuning for Zero-Shot Generalization", arXiv 2209.07511.

Each sample that passes the filter gets augmented views. One step of AdamW tunes the embeddings of
the words before the class name. The loss is the entropy of the mean class probabilities over the
most confident views, those of lowest entropy. The sample is classified by the tuned prompt, and the
prompt is reset.

A view is a random crop, resized and perhaps flipped, and mixed with AugMix's changes of it (arXiv
1912.02781): three chains of one to three random operations. Each item has its own generator, so the
views do not depend on the method, the pipeline or the threads. It is seeded by the image's set and
name, so that an image has the same views in every stream, or by the stream's seed and the item's
place.

To save time, the filter and view 0, the image itself, use cached features, so a sample that does
not pass costs nothing. The other views are encoded once, without gradients. If views are drawn for
each image, the prompt is tuned on it once, and the answer serves every stream (tuned.py).
"""

import math
from collections.abc import Callable, Generator, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from zsntta_cli.encoders.batches import read_ahead
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.settings import BY_IMAGE, TPT
from zsntta_cli.methods.live.tuned import TunedStream
from zsntta_cli.methods.method import Live
from zsntta_cli.settings.prompts import class_prompts

_LARGE_ON_CPU = 16  # views in a pass: 1.3 times as fast as 63 for a ViT-B/16, as layers stay cached
_AREA = (0.08, 1.0)  # of a crop, as a share of the image
_ASPECT = (3 / 4, 4 / 3)
_LOG_ASPECT = (math.log(_ASPECT[0]), math.log(_ASPECT[1]))
_ATTEMPTS = 10  # to draw a crop that fits
_CHAINS, _LONGEST_CHAIN = 3, 3
_LEVEL = (0.1, 1.0)  # level of the operations, at most 10; TPT's severity
Random = np.random.Generator
Picture = Image.Image


def run(method: Live) -> Generator[Decisions]:
    """Decide on every item; yield the items up to each one on which the prompt is tuned."""
    data, options, start = method.data, method.options, 0
    tuned = data.tuned or TunedStream(
        data.stream, options, method.threshold.settings, data.truly_clean
    )
    with live.adapting(data.encoder, []):  # everything is frozen, so there are no gradients
        tuning = PromptTuning(data, options)
        for item, views in load_views(
            data, tuned.lacking, options.views - 1, options.augmix, options.views_by
        ):
            tuned.add(item, *live.zero_shot_scores(tuning(item, views)))
            yield tuned.decide(slice(start, item + 1))
            start = item + 1
    yield tuned.decide(slice(start, len(data)))


class PromptTuning:
    """Classify a sample by a prompt that is tuned on its views and then reset."""

    def __init__(self, data: live.LiveData, options: TPT.Settings) -> None:
        self._data, self._options = data, options
        self._tokens, self._context = prompt_context(data.encoder, data.prompt, data.class_names)
        is_large = data.encoder.device.type == "cpu" and data.encoder.image_size >= 224
        self._at_once = _LARGE_ON_CPU if is_large else options.views

    def __call__(self, item: int, views: torch.Tensor) -> torch.Tensor:
        """The logits (1, C) of an item, given its augmented views (V - 1, 3, H, W)."""
        data, encoder = self._data, self._data.encoder
        itself = torch.from_numpy(data.stream.features(slice(item, item + 1))).to(encoder.device)
        with torch.no_grad():
            parts = torch.split(views, self._at_once) if len(views) else ()
            features = torch.cat([itself, *map(encoder.image_features, parts)])
        # The views of lowest entropy by the initial prompt.
        entropies = live.entropy(data.logits(features))
        confident = entropies.argsort()[: max(1, int(len(features) * self._options.keep))]
        return data.logits(itself, self._tuned_text(features[confident]))

    def _tuned_text(self, features: torch.Tensor) -> torch.Tensor:
        """The text features (C, D) by a context that is tuned on these views' features."""
        encoder, options = self._data.encoder, self._options
        context = self._context.clone().requires_grad_()
        optimizer = torch.optim.AdamW([context], lr=options.learning_rate)
        for _ in range(options.steps):
            text = encoder.text.features(self._tokens, context)
            live.step(optimizer, live.mean_entropy(self._data.logits(features, text)))
        with torch.no_grad():
            return encoder.text.features(self._tokens, context)


def prompt_context(
    encoder: Encoder, template: str, class_names: Sequence[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens (C, L) of all prompts, and the embeddings (n, W) of the words before the name.

    Raises:
        SettingsError: there are no such words.
        EncoderError: prompts of this text tower cannot be tuned.
    """
    encoder.text.check_tunable()
    tokens = encoder.text.tokens(class_prompts(template, class_names))
    prefix = encoder.text.tokens([template.partition("{")[0].strip()])
    words = prefix[:, 1 : int(prefix.argmax(dim=1))]
    context = tokens[:1, 1 : 1 + words.shape[1]]
    if not words.numel() or not (tokens[:, 1 : 1 + words.shape[1]] == words).all():
        raise SettingsError(
            f"tpt tunes the words before the class name, and the prompt '{template}' has none: "
            "choose another with --prompt"
        )
    return tokens, encoder.text.word_embeddings(context)[0]


def load_views(
    data: live.LiveData, items: NDArray[np.int64], count: int, augmix: bool, by: str = BY_IMAGE
) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield each item and its views (count, 3, H, W), which threads make ahead.

    `by` tells whether an image has the same views in all streams, or other views in each.
    """
    size = data.encoder.image_size

    def make(item: int) -> NDArray[np.float32]:
        seed = data.view_seeds[item] if by == BY_IMAGE else [data.stream.seed, item]
        generator = np.random.Generator(np.random.PCG64(seed))
        image, views = data.images.read(item), np.empty((count, size, size, 3), np.float32)
        for i in range(count):
            view = _random_crop(image, size, generator)
            views[i] = _mixed(view, generator) if augmix else np.asarray(view)
        return views

    loaded = read_ahead(make, ([item] for item in items.tolist()), data.workers, data.workers)
    for item, [views] in zip(items.tolist(), loaded, strict=True):
        yield item, data.encoder.normalize(views)


def _random_crop(image: Picture, size: int, generator: Random) -> Picture:
    """A crop of random area and aspect ratio, resized to a square, flipped half of the time."""
    crop = image.resize(
        (size, size), Image.Resampling.BILINEAR, box=_random_box(image.size, generator)
    )
    return ImageOps.mirror(crop) if generator.random() < 0.5 else crop


def _random_box(size: tuple[int, int], generator: Random) -> tuple[int, int, int, int]:
    """Left, upper, right, lower of a random crop, or of the largest good one if none fits."""
    width, height = size
    for _ in range(_ATTEMPTS):
        area = width * height * generator.uniform(*_AREA)
        aspect = np.exp(generator.uniform(*_LOG_ASPECT))
        w, h = round(np.sqrt(area * aspect)), round(np.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left = int(generator.integers(0, width - w + 1))
            upper = int(generator.integers(0, height - h + 1))
            return left, upper, left + w, upper + h
    aspect = min(max(width / height, _ASPECT[0]), _ASPECT[1])
    w, h = min(width, round(height * aspect)), min(height, round(width / aspect))
    left, upper = (width - w) // 2, (height - h) // 2
    return left, upper, left + w, upper + h


def _mixed(view: Picture, generator: Random) -> NDArray[np.float32]:
    """A convex combination (H, W, 3) of a view and of chains of operations on it."""
    weights = generator.dirichlet([1.0] * _CHAINS)
    view_weight = generator.beta(1.0, 1.0)
    mix = np.float32(view_weight) * np.asarray(view, np.float32)
    for weight in weights:
        chained = view
        for _ in range(generator.integers(1, _LONGEST_CHAIN + 1)):
            chained = _OPERATIONS[generator.integers(len(_OPERATIONS))](chained, generator)
        mix += np.float32((1 - view_weight) * weight) * np.asarray(chained, np.float32)
    return mix


def _warped(view: Picture, *matrix: float) -> Picture:
    """A view whose point (x, y) is that of (a x + b y + c, d x + e y + f)."""
    return view.transform(view.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


def _amount(most: float, generator: Random) -> float:
    """A random strength; `most` is that of level 10."""
    return float(generator.uniform(*_LEVEL)) * most / 10


def _signed(most: float, generator: Random) -> float:
    amount = _amount(most, generator)
    return -amount if generator.random() < 0.5 else amount


# AugMix's nine operations; none of them is among the corruptions of ImageNet-C.
_OPERATIONS: tuple[Callable[[Picture, Random], Picture], ...] = (
    lambda view, _: ImageOps.autocontrast(view),
    lambda view, _: ImageOps.equalize(view),
    lambda view, g: ImageOps.posterize(view, 4 - int(_amount(4, g))),
    lambda view, g: ImageOps.solarize(view, 256 - int(_amount(256, g))),
    lambda view, g: view.rotate(int(_signed(30, g)), Image.Resampling.BILINEAR),
    lambda view, g: _warped(view, 1, _signed(0.3, g), 0, 0, 1, 0),
    lambda view, g: _warped(view, 1, 0, 0, _signed(0.3, g), 1, 0),
    lambda view, g: _warped(view, 1, 0, -int(_signed(view.width / 3, g)), 0, 1, 0),
    lambda view, g: _warped(view, 1, 0, 0, 0, 1, -int(_signed(view.height / 3, g))),
)
