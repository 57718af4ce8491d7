"""Textures that fill a whole picture, backgrounds and static, as arrays in [0, 1]."""

from collections.abc import Callable

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
    step: Field = np.clip(field / softness + 0.5, 0, 1)
    return step


def smooth_noise(gen: np.random.Generator, cells: int) -> Field:
    """Return smooth random hills, about `cells` of them a side."""
    coarse = Image.fromarray(gen.random((cells + 1, cells + 1), dtype=np.float32))
    hills: Field = np.asarray(coarse.resize((SIZE, SIZE), Image.Resampling.BICUBIC))
    return np.clip(hills, 0, 1)


def _striped(u: Field, _v: Field, gen: np.random.Generator) -> Field:
    return _edge(np.sin(3.1 * u) + 0.6 * (gen.random() - 0.5), 0.7)


def _checkered(u: Field, v: Field, _gen: np.random.Generator) -> Field:
    return _edge(np.sin(2.4 * u) * np.sin(2.4 * v), 0.35)


def _dotted(u: Field, v: Field, gen: np.random.Generator) -> Field:
    radius = np.hypot(u - np.round(u), v - np.round(v))
    return _edge(0.22 + 0.12 * gen.random() - radius, 0.2)


def _wavy(u: Field, v: Field, gen: np.random.Generator) -> Field:
    return _edge(np.sin(3.4 * u + (1.5 + gen.random()) * np.sin(2.2 * v)), 0.7)


def _meshed(u: Field, v: Field, gen: np.random.Generator) -> Field:
    nearest = np.minimum(np.abs(u - np.round(u)), np.abs(v - np.round(v)))
    return _edge(0.1 + 0.06 * gen.random() - nearest, 0.14)


def _brick(u: Field, v: Field, gen: np.random.Generator) -> Field:
    row = np.floor(v)
    across = u / 1.8 + 0.5 * (row % 2)
    joint = np.minimum(np.abs(across - np.round(across)) * 1.8, np.minimum(v - row, row + 1 - v))
    return _edge(0.09 + 0.04 * gen.random() - joint, 0.12)


def _marbled(u: Field, _v: Field, gen: np.random.Generator) -> Field:
    veins = np.abs(np.sin(1.1 * u + 9 * smooth_noise(gen, 4)))
    return np.clip(1.15 - 1.4 * veins, 0, 1)


def _cloudy(_u: Field, _v: Field, gen: np.random.Generator) -> Field:
    hills = 0.7 * smooth_noise(gen, 4) + 0.3 * smooth_noise(gen, 9)
    return np.clip((hills - 0.5) * 2.2 + 0.5, 0, 1)


def _cracked(_u: Field, _v: Field, gen: np.random.Generator) -> Field:
    seeds = 2.4 * gen.random((14, 2), dtype=np.float32) - 1.2
    square = (_X[..., None] - seeds[:, 0]) ** 2 + (_Y[..., None] - seeds[:, 1]) ** 2
    nearest = np.sqrt(np.partition(square, 1, axis=2)[..., :2])
    return _edge(0.06 - (nearest[..., 1] - nearest[..., 0]), 0.1)


def _scaly(u: Field, v: Field, _gen: np.random.Generator) -> Field:
    row = np.floor(v)
    across = u + 0.5 * (row % 2)
    arch = np.hypot(across - np.round(across), (v - row) * 0.9)
    rim: Field = np.abs(arch - 0.5) - 0.02
    return np.clip(rim * 5, 0, 1)


TEXTURES: dict[str, Callable[[Field, Field, np.random.Generator], Field]] = {
    "striped": _striped,
    "checkered": _checkered,
    "dotted": _dotted,
    "wavy": _wavy,
    "meshed": _meshed,
    "brick": _brick,
    "marbled": _marbled,
    "cloudy": _cloudy,
    "cracked": _cracked,
    "scaly": _scaly,
}


def texture(name: str, scale: float, gen: np.random.Generator) -> Field:
    """Return a texture, turned and shifted at random, about `scale` repeats a half side."""
    angle = 2 * np.pi * gen.random()
    cos, sin = np.cos(angle) * scale, np.sin(angle) * scale
    shift_u, shift_v = 10 * gen.random(), 10 * gen.random()
    u = (cos * _X + sin * _Y + shift_u).astype(np.float32)
    v = (cos * _Y - sin * _X + shift_v).astype(np.float32)
    return TEXTURES[name](u, v, gen)


def _blobs(gen: np.random.Generator) -> Field:
    x, y, size = gen.random((3, 5, 1, 1), dtype=np.float32)
    distance = np.hypot(_X - 2 * x + 1, _Y - 2 * y + 1)
    blobs: Field = np.clip((0.15 + 0.35 * size - distance) * 8, 0, 1).max(axis=0)
    return blobs


def _scribbled(gen: np.random.Generator) -> Field:
    angle, offset = np.pi * gen.random((4, 1, 1)), gen.random((4, 1, 1)) * 1.6 - 0.8
    distance = np.abs(np.cos(angle) * _X + np.sin(angle) * _Y - offset)
    lines: Field = np.clip((0.08 - distance) * 20, 0, 1).max(axis=0).astype(np.float32)
    return lines


def _ramp(gen: np.random.Generator) -> Field:
    angle = 2 * np.pi * gen.random()
    ramp: Field = 0.5 + 0.5 * (np.cos(angle) * _X + np.sin(angle) * _Y)
    return np.clip(ramp, 0, 1)


def _two_tone(gen: np.random.Generator) -> Field:
    return _edge(_ramp(gen) - 0.3 - 0.4 * np.float32(gen.random()), 0.06)


# How each kind of background mixes its two colours.
BACKGROUNDS: dict[str, Callable[[np.random.Generator], Field]] = {
    "plain": lambda _: np.zeros((SIZE, SIZE), np.float32),
    "gradient": _ramp,
    "cloudy": lambda gen: smooth_noise(gen, 4),
    "two-tone": _two_tone,
    "striped": lambda gen: texture("striped", 2 + 2 * gen.random(), gen),
    "checkered": lambda gen: texture("checkered", 1.5 + 1.5 * gen.random(), gen),
    "speckled": lambda gen: _edge(gen.random((SIZE, SIZE), dtype=np.float32) - 0.9, 0.05),
    "scribbled": _scribbled,
    "blotchy": _blobs,
}


def blend(field: Field, first: Pixels | Colour, second: Colour) -> Pixels:
    """Mix a picture or colour with a colour by a field: 0 gives the first, 1 the second."""
    below = first if first.ndim == 3 else first[:, None, None]
    mixed: Pixels = below + field * (second[:, None, None] - below)
    return mixed


def static(gen: np.random.Generator) -> Pixels:
    """Return random static: uniform, bell-shaped or in grey, of any contrast."""
    shape = (SIZE, SIZE, 3) if gen.random() < 0.7 else (SIZE, SIZE, 1)
    if gen.random() < 0.3:
        grain = gen.random(shape, dtype=np.float32)
    else:
        contrast = np.float32(0.1 + 0.2 * gen.random())
        grain = 0.5 + contrast * gen.standard_normal(shape, dtype=np.float32)
    return np.moveaxis(np.clip(np.broadcast_to(grain, (SIZE, SIZE, 3)), 0, 1), 2, 0)
