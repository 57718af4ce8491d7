"""Pictures for training the embedded encoder, besides the built-in sets' shapes and letters.

They are printed and handwritten digits, some of them as if scanned, and random static. `TRAINING`
is the easier distribution from which all of them come.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.drawn import drawing
from zsntta_cli.datasets.drawn.drawing import (
    NUMERALS,
    STYLES,
    Concept,
    Distribution,
    Seen,
)
from zsntta_cli.datasets.drawn.outlines import (
    SIZE,
    Part,
    Placement,
    Points,
    draw_glyph,
    draw_parts,
)
from zsntta_cli.datasets.drawn.textures import Pixels

__all__ = ["HELD_OUT", "TRAINING", "draw"]

HELD_OUT = Distribution()
TRAINING = Distribution(
    size=(0.5, 0.95),
    shift=0.2,
    weight=(0.75, 1.3),
    squeeze=0.12,
    contrast=(0.3, 1.0),
    backgrounds=("plain", "gradient", "cloudy", "two-tone"),
    relief=(0.1, 0.5),
    strength=(0.1, 0.8),
    blur=(0.0, 0.7),
    noise=(0.0, 0.05),
    occlusion=0.0,
)
# More than half of the digits are handwritten.
_OF_DIGITS = dict.fromkeys(STYLES, 1.0) | {"plain": 3.0, "handwritten": 8.0}


@dataclass(frozen=True)
class Drawing:
    """A picture, and facts about it for captions ("" if none apply)."""

    pixels: NDArray[np.uint8]  # (SIZE, SIZE, 3)
    concept: Concept
    colour: str
    size: str
    background: str
    style: str


def draw(concept: Concept, dist: Distribution, gen: np.random.Generator) -> Drawing:
    """Draw one picture of any concept, as the distribution says."""
    if concept.kind == "static":
        style = drawing.pick_style(concept, replace(dist, styles={"plain": 3.0}), gen)
        seen = Seen(_static(gen), "")
    elif concept.kind == "digit":
        style = drawing.pick_style(concept, replace(dist, styles=_OF_DIGITS), gen)
        if style != "handwritten":
            seen = drawing.scene(concept, style, dist, gen, _printed)
        elif gen.random() < 0.5:
            seen = _scan_of_handwriting(concept, dist, gen)
        else:
            seen = drawing.scene(concept, style, dist, gen, _handwritten)
    else:
        style = drawing.pick_style(concept, dist, gen)
        seen = drawing.scene(concept, style, dist, gen)
    pixels = drawing.photograph(seen.picture, style, dist, gen)
    colour = "" if style == "colourless" else seen.colour
    return Drawing(pixels, concept, colour, seen.size, seen.background, style)


def _printed(concept: Concept, place: Placement, _: np.random.Generator) -> Image.Image:
    return draw_glyph(str(NUMERALS.index(concept)), place)


def _handwritten(concept: Concept, place: Placement, gen: np.random.Generator) -> Image.Image:
    return draw_parts(_pen_strokes(concept.name, place.weight, gen), place, gen)


def _scan_of_handwriting(concept: Concept, dist: Distribution, gen: np.random.Generator) -> Seen:
    """Draw a digit as if scanned: bright on black, filling a coarse frame."""
    place, _ = drawing.place_of(replace(dist, size=(0.75, 1.0), shift=0.0), concept, 0.0, gen)
    mask = _handwritten(concept, place, gen)
    if gen.random() < 0.7:
        mask = mask.reduce(4).resize((SIZE, SIZE), Image.Resampling.BICUBIC)
    picture = np.broadcast_to(drawing.as_field(mask), (3, SIZE, SIZE))
    return Seen(picture, "white", "large", "plain")


def _static(gen: np.random.Generator) -> Pixels:
    """Return random static: uniform, bell-shaped or in grey, of any contrast."""
    shape = (SIZE, SIZE, 3) if gen.random() < 0.7 else (SIZE, SIZE, 1)
    if gen.random() < 0.3:
        grain = gen.random(shape, dtype=np.float32)
    else:
        contrast = np.float32(0.1 + 0.2 * gen.random())
        grain = 0.5 + contrast * gen.standard_normal(shape, dtype=np.float32)
    return np.moveaxis(np.clip(np.broadcast_to(grain, (SIZE, SIZE, 3)), 0, 1), 2, 0)


# Handwritten digits: control points of the pen's way, shaken and smoothed; one list a stroke.
_PEN: dict[str, tuple[tuple[float, ...], ...]] = {
    "zero": ((0, -1, -0.55, -0.5, -0.55, 0.5, 0, 1, 0.55, 0.5, 0.55, -0.5, 0, -1),),
    "one": ((-0.35, -0.6, 0.1, -1, 0.08, 0, 0.05, 1),),
    "two": ((-0.5, -0.6, -0.1, -1, 0.45, -0.7, 0.3, -0.1, -0.55, 0.95, 0, 0.9, 0.65, 0.95),),
    "three": ((-0.5, -0.85, 0.1, -1, 0.45, -0.6, -0.05, -0.08, 0.5, 0.35, 0.2, 0.95, -0.5, 0.85),),
    "four": ((0.05, -1, -0.3, -0.4, -0.6, 0.25, 0.1, 0.22, 0.65, 0.2), (0.3, -0.3, 0.25, 1)),
    "five": ((0.5, -0.95, -0.4, -0.95, -0.45, -0.15, 0.15, -0.25, 0.5, 0.3, 0.1, 1, -0.5, 0.85),),
    "six": ((0.3, -1, -0.3, -0.4, -0.5, 0.4, 0, 1, 0.5, 0.6, 0.2, 0.1, -0.4, 0.45),),
    "seven": ((-0.55, -0.9, 0, -0.95, 0.55, -0.9, 0.15, 0, -0.1, 1), (-0.25, 0.1, 0.5, 0.05)),
    "eight": (
        (0.4, -0.7, -0.1, -1, -0.4, -0.6, 0, -0.1, 0.45, 0.5, 0, 1, -0.45, 0.5, 0, -0.1, 0.4, -0.7),
    ),
    "nine": ((0.45, -0.7, 0, -1, -0.4, -0.55, 0, -0.15, 0.45, -0.6, 0.45, 0.2, 0.25, 1),),
}


@cache
def _catmull_rom(count: int, steps: int = 5) -> Points:
    """Return the (samples, count) weights of a smooth curve through `count` points."""
    rows = []
    for segment in range(count - 1):
        for t in np.arange(steps) / steps:
            row = np.zeros(count)
            outer = (-t + 2 * t**2 - t**3, -(t**2) + t**3)
            inner = (2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3)
            basis = (outer[0], *inner, outer[1])
            for offset, value in zip((-1, 0, 1, 2), basis, strict=True):
                row[min(max(segment + offset, 0), count - 1)] += value / 2
            rows.append(row)
    return np.array([*rows, np.eye(count)[-1]])


def _pen_strokes(digit: str, weight: float, gen: np.random.Generator) -> list[Part]:
    """Return one writer's strokes of a digit: shaken control points, smoothed."""
    strokes = list(_PEN[digit])
    if digit == "seven" and gen.random() < 0.6:
        strokes.pop()  # most writers do not bar the seven
    parts = []
    for numbers in strokes:
        points = np.array(numbers, dtype=np.float64).reshape(-1, 2)
        points = points + 0.07 * gen.standard_normal(points.shape)
        parts.append(Part(_catmull_rom(len(points)) @ points, 0.3 * weight))
    return parts
