"""Draw one 32 x 32 picture of a concept.

A `Distribution` determines how hard the pictures are. The embedded encoder learned from easier ones
(tools/tiny_drawing.py); the built-in sets have backgrounds the training never shows, occlusion,
thinner strokes and stronger blur and noise.
All randomness comes from the generator passed in. Nothing here imports torch.
"""

import bisect
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from zsntta_cli.datasets.drawn import outlines, textures
from zsntta_cli.datasets.drawn.outlines import SIZE, Part, Placement
from zsntta_cli.datasets.drawn.textures import Colour, Field, Pixels

# --- What the built-in pictures can show, and the words for it ---

PALETTE = {
    "red": (0.86, 0.12, 0.12), "orange": (0.97, 0.55, 0.08), "yellow": (0.96, 0.88, 0.16),
    "green": (0.15, 0.65, 0.2), "turquoise": (0.15, 0.78, 0.76), "blue": (0.13, 0.25, 0.85),
    "purple": (0.5, 0.15, 0.65), "pink": (0.97, 0.55, 0.72), "brown": (0.45, 0.27, 0.12),
    "white": (0.96, 0.96, 0.96), "grey": (0.5, 0.5, 0.5), "black": (0.05, 0.05, 0.05),
}  # fmt: skip

STYLES = (
    "plain", "outlined", "sketched", "handwritten", "blurry", "grainy", "dark", "faded",
    "pixelated", "colourless",
)  # fmt: skip

# Styles that a kind of concept cannot have.
_IMPOSSIBLE: dict[str, tuple[str, ...]] = {
    "letter": ("sketched",), "digit": ("sketched",), "texture": ("sketched", "outlined")
}  # fmt: skip


@dataclass(frozen=True)
class Concept:
    """Something that can be drawn: `kind` is shape, letter, digit, texture or static."""

    kind: str
    name: str

    @property
    def noun(self) -> str:
        """Its name in a caption."""
        if self.kind in ("letter", "digit"):
            return f"{self.kind} {self.name}"
        nouns = {"texture": f"{self.name} texture", "static": "random static"}
        return nouns.get(self.kind, self.name)


SHAPES = tuple(map(partial(Concept, "shape"), outlines.SHAPES[:10]))
OTHER_SHAPES = tuple(map(partial(Concept, "shape"), outlines.SHAPES[10:]))
# Without the letters that look like a shape: C, I, O, T, V, X.
LETTERS = tuple(map(partial(Concept, "letter"), "ABDEFGHJKLMNPQRSUWYZ"))
NUMERALS = tuple(map(partial(Concept, "digit"), (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
)))  # fmt: skip
SURFACES = tuple(map(partial(Concept, "texture"), textures.TEXTURES))
STATIC = Concept("static", "static")


# --- How it is drawn ---

Span = tuple[float, float]

_COLOURS = tuple(PALETTE)
_RGB = np.array(list(PALETTE.values()), dtype=np.float32)
_HAZE = np.float32(0.85)  # what faded pictures fade to
_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
# Only the digits that the training draws are handwritten.
_STYLE_WEIGHTS = dict.fromkeys(STYLES, 1.0) | {"plain": 3.0, "handwritten": 0.0}


@dataclass(frozen=True)
class Distribution:
    """How pictures vary, by default those of the built-in sets.

    Spans are uniform ranges; lengths are in half pictures.
    """

    size: Span = (0.45, 0.95)
    shift: float = 0.25
    weight: Span = (0.6, 1.0)  # thickness of strokes and arms
    squeeze: float = 0.16  # standard deviation of the aspect and shear
    contrast: Span = (0.3, 0.9)  # least distance of the ink from the background
    backgrounds: tuple[str, ...] = (
        "gradient", "striped", "checkered", "speckled", "scribbled", "blotchy"
    )  # fmt: skip
    relief: Span = (0.1, 0.5)  # contrast of the background's own two colours
    styles: Mapping[str, float] = field(default_factory=_STYLE_WEIGHTS.copy)
    strength: Span = (0.35, 0.95)  # of the style's effect
    blur: Span = (0.2, 0.9)  # pixels, every picture
    noise: Span = (0.02, 0.07)  # standard deviation, every picture
    occlusion: float = 0.25  # probability that a bar lies over the concept


class Seen(NamedTuple):
    """A picture before the camera, and words that describe it ("" if none apply)."""

    picture: Pixels
    colour: str
    size: str = ""
    background: str = ""


def _between(span: Span, gen: np.random.Generator) -> float:
    return span[0] + (span[1] - span[0]) * gen.random()


def pick_style(concept: Concept, dist: Distribution, gen: np.random.Generator) -> str:
    """Draw one of the styles that the concept can have, by weight."""
    impossible = _IMPOSSIBLE.get(concept.kind, ())
    allowed = {name: weight for name, weight in dist.styles.items() if name not in impossible}
    bounds = [*itertools.accumulate(allowed.values())]
    return [*allowed][bisect.bisect(bounds, gen.random() * bounds[-1])]


def _pick_ink(dist: Distribution, base: Colour, gen: np.random.Generator) -> tuple[str, Colour]:
    """Draw a colour that stands out from the colour `base`, and vary it a little."""
    least = _between(dist.contrast, gen)
    distance = np.abs(_RGB - base).max(axis=1)
    allowed = np.flatnonzero(distance >= min(least, float(distance.max())))
    index = int(allowed[int(gen.random() * len(allowed))])
    return _COLOURS[index], _vary(_RGB[index], gen)


def _vary(colour: Colour, gen: np.random.Generator) -> Colour:
    return np.clip(colour + 0.05 * gen.standard_normal(3, dtype=np.float32), 0, 1)


def _any_colour(gen: np.random.Generator) -> Colour:
    return _vary(_RGB[int(gen.random() * len(_RGB))], gen)


def place_of(
    dist: Distribution, concept: Concept, wobble: float, gen: np.random.Generator
) -> tuple[Placement, float]:
    """Draw size, rotation (any for shapes, small for characters) and position."""
    size = _between(dist.size, gen)
    turn = np.pi if concept.kind == "shape" else 0.3
    angle = turn * (2 * gen.random() - 1)
    stretch, shear = dist.squeeze * gen.standard_normal(2)
    cos, sin = np.cos(angle), np.sin(angle)
    bent = np.array([[np.exp(stretch), shear], [0, np.exp(-stretch)]])
    room = dist.shift + max(0.0, 0.9 - size) * 0.5
    shift = room * (2 * gen.random(2) - 1)
    matrix = size * np.array([[cos, -sin], [sin, cos]]) @ bent
    return Placement(matrix, shift, _between(dist.weight, gen), wobble), size


def _mask(concept: Concept, place: Placement, gen: np.random.Generator) -> Image.Image:
    if concept.kind == "letter":
        return outlines.draw_glyph(concept.name, place)
    return outlines.draw_parts(outlines.outline(concept.name, place.weight), place, gen)


def as_field(mask: Image.Image) -> Field:
    """A mask of ink as shares in [0, 1]."""
    return np.asarray(mask, dtype=np.float32) / np.float32(255)


def _occlude(picture: Pixels, place: Placement, gen: np.random.Generator) -> Pixels:
    """Lay a bar of one colour across the concept, off its centre."""
    angle = 2 * np.pi * gen.random()
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]])
    middle = place.shift + across * place.reach * (0.25 + 0.6 * gen.random())
    bar = Part(np.stack([middle - 2 * along, middle + 2 * along]), 0.1 + 0.25 * gen.random())
    mask = outlines.draw_parts([bar], Placement(np.eye(2), np.zeros(2)), gen)
    return textures.blend(as_field(mask), picture, _any_colour(gen))


def scene(
    concept: Concept,
    style: str,
    dist: Distribution,
    gen: np.random.Generator,
    mask_of: Callable[[Concept, Placement, np.random.Generator], Image.Image] = _mask,
) -> Seen:
    """Draw a texture, or a concept with ink inside its mask, at its place on a background."""
    base = _any_colour(gen)
    if concept.kind == "texture":
        colour, ink = _pick_ink(dist, base, gen)
        pattern = textures.texture(concept.name, 1.5 + 2.5 * gen.random(), gen)
        return Seen(textures.blend(pattern, base, ink), colour)
    behind = dist.backgrounds[int(gen.random() * len(dist.backgrounds))]
    other = _RGB[int(gen.random() * len(_RGB))]
    second = base + np.float32(_between(dist.relief, gen)) * (other - base)
    picture = textures.blend(textures.background(behind, gen), base, second)
    colour, ink = _pick_ink(dist, base, gen)
    place, size = place_of(dist, concept, 0.04 if style == "sketched" else 0.0, gen)
    mask = mask_of(concept, place, gen)
    if style == "outlined":
        border = as_field(mask.filter(ImageFilter.MaxFilter(3)))
        picture = textures.blend(border, picture, _pick_ink(dist, ink, gen)[1])
    share = as_field(mask)
    if style == "sketched":
        share = share * (0.55 + 0.45 * textures.texture("striped", 5.0, gen))
    picture = textures.blend(share, picture, ink)
    if gen.random() < dist.occlusion:
        picture = _occlude(picture, place, gen)
    return Seen(picture, colour, "small" if size < 0.6 else "large" if size > 0.8 else "", behind)


def draw(concept: Concept, dist: Distribution, gen: np.random.Generator) -> NDArray[np.uint8]:
    """Draw the pixels (SIZE, SIZE, 3) of a picture of a shape, a letter or a texture."""
    style = pick_style(concept, dist, gen)
    return photograph(scene(concept, style, dist, gen).picture, style, dist, gen)


# --- What happens to a drawn picture on its way to pixels: style, blur, noise, bytes ---


def photograph(
    picture: Pixels, style: str, dist: Distribution, gen: np.random.Generator
) -> NDArray[np.uint8]:
    """Apply the style, then blur and noise, and round to bytes (SIZE, SIZE, 3)."""
    strength, factor = _between(dist.strength, gen), 1
    blur, noise = _between(dist.blur, gen), _between(dist.noise, gen)
    match style:
        case "dark":
            picture = picture * np.float32(0.75 - 0.55 * strength)
        case "faded":
            picture = _HAZE + np.float32(1 - 0.75 * strength) * (picture - _HAZE)
        case "colourless":
            picture = np.broadcast_to(_interleaved(picture) @ _LUMA, picture.shape)
        case "blurry":
            blur += 0.5 + 1.3 * strength
        case "grainy":
            noise += 0.04 + 0.16 * strength
        case "pixelated":
            factor = 2 if strength < 0.4 else 4
    is_sharp = blur <= 0.2 and factor == 1
    pixels = _interleaved(picture) if is_sharp else _soften(picture, blur, factor)
    grain = gen.standard_normal((SIZE, SIZE, 3), dtype=np.float32)
    return _to_bytes(pixels + np.float32(noise) * grain)


def _soften(picture: Pixels, radius: float, factor: int) -> NDArray[np.float32]:
    """Blur with PIL, and coarsen to squares of `factor` pixels if it is above 1."""
    image = Image.fromarray(_to_bytes(_interleaved(picture)))
    if radius > 0.2:
        image = image.filter(ImageFilter.GaussianBlur(radius))
    if factor > 1:
        image = image.reduce(factor).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def _to_bytes(values: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Round values in [0, 1] to bytes."""
    return (np.clip(values, 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def _interleaved(planes: Pixels) -> NDArray[np.floating]:
    """The pixels (SIZE, SIZE, 3) of a picture's planes (3, SIZE, SIZE)."""
    return np.ascontiguousarray(planes.transpose(1, 2, 0))
