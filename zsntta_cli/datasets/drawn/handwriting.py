"""Digits as a pen writes them: strokes along shaken and smoothed control points."""

from functools import cache

import numpy as np

from zsntta_cli.datasets.drawn.outlines import Part, Points

# Handwritten digits: control points of the pen's way, one list a stroke.
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
DIGITS = tuple(_PEN)


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


def pen_strokes(digit: str, weight: float, gen: np.random.Generator) -> list[Part]:
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
