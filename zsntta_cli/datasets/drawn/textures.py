"""Textures that fill a whole picture, backgrounds and static, as arrays in [0, 1]."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.drawn.outlines import SIZE

Field = NDArray[np.floating]  # (SIZE, SIZE) in [0, 1]: 0 = first colour, 1 = second
Pixels = NDArray[np.floating]  # (3, SIZE, SIZE) in [0, 1]: a plane a channel, fast to mix
Colour = NDArray[np.floating]  # (3,) in [0, 1]

_AXIS = (np.arange(SIZE, dtype=np.float32) + 0.5) / (SIZE / 2) - 1
_X, _Y = np.meshgrid(_AXIS, _AXIS)


def _edge(field: Field, softness: float) -> Field:
    """Turn a signed field into a step at 0 that is `softness` wide."""
    return np.clip(field / softness + 0.5, 0, 1)


def _hills(gen: np.random.Generator, cells: int) -> Field:
    """Return smooth random hills, about `cells` of them per side."""
    coarse = Image.fromarray(gen.random((cells + 1, cells + 1), dtype=np.float32))
    hills: Field = np.asarray(coarse.resize((SIZE, SIZE), Image.Resampling.BICUBIC))
    return np.clip(hills, 0, 1)


TEXTURES = (
    "striped", "checkered", "dotted", "wavy", "meshed", "brick", "marbled", "cloudy", "cracked",
    "scaly",
)  # fmt: skip


def texture(name: str, scale: float, gen: np.random.Generator) -> Field:
    """Return a texture, rotated and shifted at random, about `scale` repeats per half side."""
    angle = 2 * np.pi * gen.random()
    cos, sin = np.cos(angle) * scale, np.sin(angle) * scale
    shift_u, shift_v = 10 * gen.random(), 10 * gen.random()
    u = (cos * _X + sin * _Y + shift_u).astype(np.float32)
    v = (cos * _Y - sin * _X + shift_v).astype(np.float32)
    match name:
        case "striped":
            return _edge(np.sin(3.1 * u) + 0.6 * (gen.random() - 0.5), 0.7)
        case "checkered":
            return _edge(np.sin(2.4 * u) * np.sin(2.4 * v), 0.35)
        case "dotted":
            radius = np.hypot(u - np.round(u), v - np.round(v))
            return _edge(0.22 + 0.12 * gen.random() - radius, 0.2)
        case "wavy":
            return _edge(np.sin(3.4 * u + (1.5 + gen.random()) * np.sin(2.2 * v)), 0.7)
        case "meshed":
            nearest = np.minimum(np.abs(u - np.round(u)), np.abs(v - np.round(v)))
            return _edge(0.1 + 0.06 * gen.random() - nearest, 0.14)
        case "brick":
            row = np.floor(v)
            across = u / 1.8 + 0.5 * (row % 2)
            joint = np.abs(across - np.round(across)) * 1.8
            joint = np.minimum(joint, np.minimum(v - row, row + 1 - v))
            return _edge(0.09 + 0.04 * gen.random() - joint, 0.12)
        case "marbled":
            veins = np.abs(np.sin(1.1 * u + 9 * _hills(gen, 4)))
            return np.clip(1.15 - 1.4 * veins, 0, 1)
        case "cloudy":
            hills = 0.7 * _hills(gen, 4) + 0.3 * _hills(gen, 9)
            return np.clip((hills - 0.5) * 2.2 + 0.5, 0, 1)
        case "cracked":
            seeds = 2.4 * gen.random((14, 2), dtype=np.float32) - 1.2
            square = (_X[..., None] - seeds[:, 0]) ** 2 + (_Y[..., None] - seeds[:, 1]) ** 2
            nearest = np.sqrt(np.partition(square, 1, axis=2)[..., :2])
            return _edge(0.06 - (nearest[..., 1] - nearest[..., 0]), 0.1)
    assert name == "scaly"
    row = np.floor(v)
    across = u + 0.5 * (row % 2)
    arch = np.hypot(across - np.round(across), (v - row) * 0.9)
    return np.clip((np.abs(arch - 0.5) - 0.02) * 5, 0, 1)


BACKGROUNDS = (
    "plain", "gradient", "cloudy", "two-tone", "striped", "checkered", "speckled", "scribbled",
    "blotchy",
)  # fmt: skip


def background(name: str, gen: np.random.Generator) -> Field:
    """Return how a kind of background mixes its two colours."""
    match name:
        case "plain":
            return np.zeros((SIZE, SIZE), np.float32)
        case "gradient":
            return _ramp(gen)
        case "cloudy":
            return _hills(gen, 4)
        case "two-tone":
            return _edge(_ramp(gen) - 0.3 - 0.4 * np.float32(gen.random()), 0.06)
        case "striped":
            return texture("striped", 2 + 2 * gen.random(), gen)
        case "checkered":
            return texture("checkered", 1.5 + 1.5 * gen.random(), gen)
        case "speckled":
            return _edge(gen.random((SIZE, SIZE), dtype=np.float32) - 0.9, 0.05)
        case "scribbled":
            angle, offset = np.pi * gen.random((4, 1, 1)), gen.random((4, 1, 1)) * 1.6 - 0.8
            distance = np.abs(np.cos(angle) * _X + np.sin(angle) * _Y - offset)
            return np.clip((0.08 - distance) * 20, 0, 1).max(axis=0).astype(np.float32)
    assert name == "blotchy"
    x, y, size = gen.random((3, 5, 1, 1), dtype=np.float32)
    distance = np.hypot(_X - 2 * x + 1, _Y - 2 * y + 1)
    return np.clip((0.15 + 0.35 * size - distance) * 8, 0, 1).max(axis=0)


def _ramp(gen: np.random.Generator) -> Field:
    angle = 2 * np.pi * gen.random()
    return np.clip(0.5 + 0.5 * (np.cos(angle) * _X + np.sin(angle) * _Y), 0, 1)


def blend(field: Field, first: Pixels | Colour, second: Colour) -> Pixels:
    """Mix a picture or colour with a colour by a field: 0 gives the first, 1 the second."""
    below = first if first.ndim == 3 else first[:, None, None]
    mixed: Pixels = below + field * (second[:, None, None] - below)
    return mixed
