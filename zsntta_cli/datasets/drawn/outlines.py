"""Outlines of shapes, printed characters and handwritten digits, drawn as masks of ink.

Coordinates are in units of half a picture, x to the right and y down, so that an
outline of size 1 lies in [-1, 1] x [-1, 1] before it is placed.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

SIZE = 32  # pixels a side of every built-in picture
_FINE = 3  # outlines are drawn this many times larger and then averaged
_GLYPH = 64  # pixels a side of a cached character

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """A polygon (`width` None), a hole in the parts before it (0) or a stroke (> 0)."""

    points: Points
    width: float | None = None


@dataclass(frozen=True)
class Placement:
    """The placement of an outline in the picture: x -> matrix @ x + shift."""

    matrix: Points  # (2, 2)
    shift: Points  # (2,)
    weight: float = 1.0  # thickness of strokes and arms, 1 = usual
    wobble: float = 0.0  # standard deviation of every corner, for hand-drawn lines

    @property
    def reach(self) -> float:
        """The factor by which lengths grow, averaged over directions."""
        return float(np.sqrt(abs(np.linalg.det(self.matrix))))


def _polar(radius: float | Points, angle: NDArray[np.floating]) -> Points:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _arc(radius: float, start: float = 0.0, stop: float = 2 * np.pi, count: int = 24) -> Points:
    return _polar(radius, np.linspace(start, stop, count))


def _points(*numbers: float) -> Points:
    return np.array(numbers, dtype=np.float64).reshape(-1, 2)


SHAPES = (
    "circle", "square", "triangle", "star", "heart", "cross", "ring", "crescent", "arrow", "spiral",
    "hourglass", "lightning bolt", "raindrop", "house", "half circle", "flower", "fish", "tree",
    "zigzag", "flag",
)  # fmt: skip


def outline(name: str, weight: float) -> list[Part]:
    """Return the parts of a shape; `weight` is the thickness of strokes and arms, usually 1."""
    match name:
        case "circle":
            return [Part(_arc(0.9))]
        case "square":
            return [Part(_points(-0.8, -0.8, 0.8, -0.8, 0.8, 0.8, -0.8, 0.8))]
        case "triangle":
            return [Part(_points(0, -0.95, 0.95, 0.75, -0.95, 0.75))]
        case "star":
            angle = np.arange(10) * np.pi / 5 - np.pi / 2
            return [Part(_polar(np.where(np.arange(10) % 2 == 0, 1.0, 0.42), angle))]
        case "heart":
            t = np.linspace(0, 2 * np.pi, 28)
            y = -(13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) / 16
            return [Part(np.stack([np.sin(t) ** 3, y], axis=1) * 0.95)]
        case "cross":
            a = 0.28 * weight
            half = (-a, -1, a, -1, a, -a, 1, -a, 1, a, a, a)
            return [Part(_points(*half, a, 1, -a, 1, -a, a, -1, a, -1, -a, -a, -a))]
        case "ring":
            return [Part(_arc(0.95)), Part(_arc(0.95 - 0.36 * weight), 0)]
        case "crescent":
            return [Part(_arc(0.95)), Part(_arc(0.82) + _points(0.48 / weight, 0), 0)]
        case "arrow":
            a = 0.2 * weight
            return [Part(_points(-1, -a, 0.1, -a, 0.1, -0.7, 1, 0, 0.1, 0.7, 0.1, a, -1, a))]
        case "spiral":
            t = np.linspace(0.35, 1.0, 40)
            radius = ((t - 0.35) / 0.65) * 0.85 + 0.03
            return [Part(_polar(radius, t * 4.6 * np.pi), 0.2 * weight)]
        case "hourglass":
            return [Part(_points(-0.75, -0.95, 0.75, -0.95, -0.75, 0.95, 0.75, 0.95))]
        case "lightning bolt":
            left = (0.15, -1, -0.6, 0.15, -0.08, 0.15, -0.2, 1)
            return [Part(_points(*left, 0.6, -0.25, 0.08, -0.25, 0.5, -1))]
        case "raindrop":
            round_side = _arc(0.62, -0.15 * np.pi, 1.15 * np.pi, 18) + np.array([0, 0.35])
            return [Part(np.concatenate([round_side, _points(0, -1)]))]
        case "house":
            roof, walls = (-0.95, -0.1, 0, -1, 0.95, -0.1), (0.7, -0.1, 0.7, 0.9, -0.7, 0.9)
            door = _points(-0.2, 0.9, -0.2, 0.3, 0.2, 0.3, 0.2, 0.9)
            return [Part(_points(-0.7, -0.1, *roof, *walls)), Part(door, 0)]
        case "half circle":
            return [Part(_arc(0.95, 0, np.pi) - np.array([0, 0.4]))]
        case "flower":
            turns = np.arange(5) * 0.4 * np.pi - 0.5 * np.pi
            petals = [Part(_arc(0.38) + middle) for middle in _polar(0.58, turns)]
            return [*petals, Part(_arc(0.24), 0)]
        case "fish":
            body = _arc(1.0, count=20) * np.array([0.65, 0.45]) - np.array([0.3, 0])
            tail = _points(0.2, 0, 1, -0.55, 0.8, 0, 1, 0.55)
            return [Part(body), Part(tail), Part(_arc(0.1) + _points(-0.62, -0.1), 0)]
        case "tree":
            a, top = 0.16 * weight, _points(0, -1, 0.55, -0.2, -0.55, -0.2)
            trunk = _points(-a, 0.5, a, 0.5, a, 1, -a, 1)
            return [Part(top), Part(_points(0, -0.6, 0.8, 0.5, -0.8, 0.5)), Part(trunk)]
        case "zigzag":
            way = _points(-1, 0.35, -0.6, -0.35, -0.2, 0.35, 0.2, -0.35, 0.6, 0.35, 1, -0.35)
            return [Part(way, 0.24 * weight)]
    assert name == "flag"
    cloth = _points(-0.6, -0.95, 0.9, -0.7, 0.9, 0.1, -0.6, -0.1)
    return [Part(cloth), Part(_points(-0.65, -1, -0.65, 1), 0.18 * weight)]


def draw_parts(parts: list[Part], place: Placement, gen: np.random.Generator) -> Image.Image:
    """Draw parts into a SIZE x SIZE mask (mode L, 255 = ink)."""
    side = SIZE * _FINE
    canvas = Image.new("L", (side, side))
    pencil = ImageDraw.Draw(canvas)
    for part in parts:
        points = part.points @ place.matrix.T + place.shift
        if place.wobble:
            points = points + place.wobble * gen.standard_normal(points.shape)
        flat = ((points + 1) * (side / 2)).ravel().tolist()
        if part.width:
            joint = "curve" if len(points) < 8 else None  # dense curves need no round joints
            width = max(2, round(part.width * (place.reach * side / 2)))
            pencil.line(flat, fill=255, width=width, joint=joint)
        else:
            pencil.polygon(flat, fill=255 if part.width is None else 0)
    return canvas.reduce(_FINE)


@cache
def _glyph(character: str, boldness: int) -> Image.Image:
    """Return a character of Pillow's own font, centred in a _GLYPH x _GLYPH mask."""
    canvas = Image.new("L", (_GLYPH, _GLYPH))
    font = ImageFont.load_default(_GLYPH * 0.9)
    pencil = ImageDraw.Draw(canvas)
    box = pencil.textbbox((0, 0), character, font=font)
    corner = ((_GLYPH - box[0] - box[2]) / 2, (_GLYPH - box[1] - box[3]) / 2)
    pencil.text(corner, character, fill=255, font=font, stroke_width=boldness)
    return canvas


def draw_glyph(character: str, place: Placement) -> Image.Image:
    """Draw a printed letter or figure into a SIZE x SIZE mask (mode L)."""
    fine, half = SIZE * 2, _GLYPH / 2
    inverse = np.linalg.inv(place.matrix)
    step = inverse * (0.85 * _GLYPH / fine)  # a capital fills about 3/4 of its box
    centre = half - step @ ((place.shift + 1) * fine / 2)
    boldness = min(max(round(4 * (place.weight - 0.6)), 0), 3)
    data = (*step[0], centre[0], *step[1], centre[1])
    turned = _glyph(character, boldness).transform(
        (fine, fine), Image.Transform.AFFINE, tuple(data), Image.Resampling.BILINEAR
    )
    return turned.reduce(2)
