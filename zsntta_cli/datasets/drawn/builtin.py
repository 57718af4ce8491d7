"""The built-in image sets: rendered on demand, the same on every machine.

Image i of a set depends on the set's name, `VERSION` and i alone, so it can be drawn in
any order and by any worker. All rendered sets come from the held-out distribution of
`drawing`, which the embedded encoder never saw; as in the real benchmark each set has a
style of its own. `digits` are the real handwritten digits that scikit-learn carries.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.drawn.concepts import (
    LETTERS,
    NUMERALS,
    OTHER_SHAPES,
    SHAPES,
    SURFACES,
    Concept,
)
from zsntta_cli.datasets.drawn.drawing import HELD_OUT, Distribution, draw
from zsntta_cli.datasets.drawn.outlines import SIZE
from zsntta_cli.datasets.images import ImageSet

VERSION = 1  # of the rendering: raise it when pictures change, caches then miss


@dataclass(frozen=True)
class BuiltinSet:
    """One built-in set: its size, its classes in the words of a caption, its drawing."""

    name: str
    role: str  # "id" or "ood": what the demo uses it as
    count: int
    class_names: tuple[str, ...]
    description: str
    prompt: str = "a photo of a {}."
    concepts: tuple[Concept, ...] = field(default=(), repr=False)
    distribution: Distribution | None = field(default=None, repr=False)


def _styled(styles: Mapping[str, float], backgrounds: tuple[str, ...]) -> Distribution:
    return replace(HELD_OUT, styles=styles, backgrounds=backgrounds)


_PRINTED = _styled(
    {"plain": 3, "outlined": 2, "blurry": 1, "faded": 2, "colourless": 2},
    ("gradient", "speckled", "scribbled"),
)
_CLOSE_UP = _styled({"plain": 3, "blurry": 2, "grainy": 1, "dark": 2, "faded": 1}, ())
_SKETCHBOOK = _styled(
    {"sketched": 4, "outlined": 2, "plain": 2, "faded": 1, "pixelated": 1},
    ("gradient", "scribbled", "blotchy", "striped"),
)


def _rendered(
    name: str,
    concepts: tuple[Concept, ...],
    distribution: Distribution,
    description: str,
    role: str = "ood",
    prompt: str = "a photo of a {}.",
) -> BuiltinSet:
    words = tuple(c.name if c.kind in prompt else c.noun for c in concepts)
    return BuiltinSet(name, role, 10_000, words, description, prompt, concepts, distribution)


_SETS = (
    _rendered("shapes", SHAPES, HELD_OUT, "ten shapes in every style and light", "id"),
    _rendered(
        "glyphs",
        LETTERS,
        _PRINTED,
        "printed capital letters",
        prompt="a photo of the letter {}.",
    ),
    _rendered("textures", SURFACES, _CLOSE_UP, "patterns that fill the picture"),
    _rendered("other-shapes", OTHER_SHAPES, _SKETCHBOOK, "ten other things, mostly sketched"),
    BuiltinSet(
        "digits",
        "ood",
        1_797,
        tuple(c.name for c in NUMERALS),
        "handwritten digits of scikit-learn (8 x 8 pixels, enlarged)",
        "a photo of the digit {}.",
    ),
)
BUILTIN: dict[str, BuiltinSet] = {entry.name: entry for entry in _SETS}


class RenderedImages:
    """The images of one built-in set. Cheap to make, to pickle and to share."""

    def __init__(self, entry: BuiltinSet) -> None:
        self.entry = entry
        self._scans: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return self.entry.count

    @property
    def is_drawn(self) -> bool:
        """Whether pictures are drawn, not looked up."""
        return self.entry.distribution is not None

    @property
    def class_names(self) -> list[str]:
        """Words for the classes, as they stand in a caption."""
        return list(self.entry.class_names)

    @property
    def labels(self) -> NDArray[np.int32]:
        """Class of every image: cyclic where rendered, scikit-learn's own for digits."""
        if not self.entry.concepts:
            return _load_digits()[1]
        return (np.arange(len(self)) % len(self.entry.concepts)).astype(np.int32)

    @property
    def sample_ids(self) -> list[str]:
        """Names such as "shapes/00001-square"."""
        slugs = [name.lower().replace(" ", "-") for name in self.entry.class_names]
        return [f"{self.entry.name}/{i:05}-{slugs[k]}" for i, k in enumerate(self.labels)]

    def image(self, i: int) -> Image.Image:
        """Draw image i (RGB, 32 x 32)."""
        if not 0 <= i < len(self):
            raise IndexError(f"{self.entry.name} has {len(self)} images, no image {i}")
        if self.entry.distribution is None:
            return self._scan(i)
        seed = (zlib.crc32(self.entry.name.encode()), VERSION, i)
        gen = np.random.Generator(np.random.PCG64(seed))
        concept = self.entry.concepts[i % len(self.entry.concepts)]
        return Image.fromarray(draw(concept, self.entry.distribution, gen).pixels)

    __call__ = image

    def _scan(self, i: int) -> Image.Image:
        if self._scans is None:
            self._scans = _load_digits()[0]
        grey = np.rint(self._scans[i] * (255 / 16)).astype(np.uint8)
        large = Image.fromarray(grey).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
        return large.convert("RGB")


def _load_digits() -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return scikit-learn's digits, (1797, 8, 8) in 0 ... 16, and their labels."""
    from sklearn.datasets import load_digits  # slow to import, and only digits need it

    data = load_digits()
    return data.images, data.target.astype(np.int32)


def read(name: str, _root: Path) -> ImageSet:
    """A built-in set; needs no files."""
    images = render(name)
    return ImageSet(
        name, images, images.labels, images.sample_ids, images.class_names,
        f"rendering {VERSION}",
    )  # fmt: skip


def render(name: str) -> RenderedImages:
    """Return the images of a built-in set. Raises KeyError for a name not in BUILTIN."""
    return RenderedImages(BUILTIN[name])
