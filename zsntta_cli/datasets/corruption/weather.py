"""Snow, frost and fog.

Frost is an image of ice laid over the picture. The published sets have crops of six photographs;
here are textures that are drawn, so frost is like theirs in strength but not in its pixels.
"""

from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.corruption.blurs import enlarged, streaked
from zsntta_cli.datasets.corruption.pixelwise import Pixels, to_bytes, to_pixels
from zsntta_cli.datasets.corruption.strengths import is_small

_SEED = 1903  # of the textures
_TEXTURES, _SIDE = 5, 640  # of ice, and pixels of each
_SHRUNK = 5  # times, for small images, as the published ones are
_WOBBLE = 100.0  # of a fractal's first step
_ICE = np.array([0.86, 0.97, 1.04], np.float32)  # a little blue


def snow(
    pixels: Pixels, generator: np.random.Generator, mean: float, deviation: float, zoom: float,
    threshold: float, radius: float, sigma: float, share: float,
) -> Pixels:  # fmt: skip
    """Flakes that fall in streaks over a picture that is paler, from two sides."""
    drawn = generator.standard_normal(pixels.shape[:2], np.float32)
    layer = enlarged(drawn * np.float32(deviation) + np.float32(mean), zoom)
    layer[layer < threshold] = 0
    flakes = to_pixels(to_bytes(layer))
    flakes = streaked(flakes, radius, sigma, generator.uniform(-135, -45))[..., None]
    red, green, blue = (pixels[..., i : i + 1] for i in range(3))
    grey = np.float32(0.299) * red + np.float32(0.587) * green + np.float32(0.114) * blue
    pale = np.maximum(pixels, grey * np.float32(1.5) + np.float32(0.5))
    return np.float32(share) * pixels + np.float32(1 - share) * pale + flakes + flakes[::-1, ::-1]


def fog(pixels: Pixels, generator: np.random.Generator, height: float, decay: float) -> Pixels:
    """Clouds of a plasma fractal, brought back to the brightest value of the picture."""
    side = 1 << max(max(pixels.shape[:2]) - 1, 1).bit_length()
    side = max(side, 32 if is_small(*pixels.shape[:2]) else 256)
    clouds = plasma(side, decay, generator)[: pixels.shape[0], : pixels.shape[1], None]
    brightest = pixels.max()
    return (pixels + np.float32(height) * clouds) * (brightest / (brightest + np.float32(height)))


def plasma(side: int, decay: float, generator: np.random.Generator) -> Pixels:
    """A plasma fractal (side, side) from 0 to 1, by the diamond-square algorithm on a torus.

    `side` is a power of two; a random part falls by `decay` from each step to the next.
    """
    heights = np.zeros((side, side), np.float32)
    step, reach = side, _WOBBLE
    while step >= 2:
        half = step // 2
        wobble = partial(_wobbling_mean, generator, reach)
        corners = heights[::step, ::step]
        above, beside = corners + np.roll(corners, -1, 0), corners + np.roll(corners, -1, 1)
        centres = wobble(above + np.roll(above, -1, 1))
        heights[half::step, half::step] = centres
        heights[::step, half::step] = wobble(beside + centres + np.roll(centres, 1, 0))
        heights[half::step, ::step] = wobble(above + centres + np.roll(centres, 1, 1))
        step, reach = half, reach / decay
    heights -= heights.min()
    return heights / (heights.max() or np.float32(1))


def _wobbling_mean(generator: np.random.Generator, reach: float, sums: Pixels) -> Pixels:
    """The mean of four, given their sum, and a random part: of the square, as it was published."""
    return sums / 4 + np.float32(reach**2) * (2 * generator.random(sums.shape, np.float32) - 1)


def frost(
    pixels: Pixels, generator: np.random.Generator, share: float, texture_share: float
) -> Pixels:
    """Ice over the picture, a random part of one of five textures."""
    height, width = pixels.shape[:2]
    texture = ice(int(generator.integers(_TEXTURES)), is_small(height, width))
    top, left = generator.integers(len(texture), size=2)
    rows, columns = (
        (first + np.arange(size)) % len(texture)  # it goes on at its other side
        for first, size in ((top, height), (left, width))
    )
    over = texture[rows[:, None], columns]
    return np.float32(share) * pixels + np.float32(texture_share) * over


@cache
def ice(number: int, shrunk: bool) -> Pixels:
    """A texture of ice that can be laid side by side, the same one each time.

    Needles are where waves of three lengths pass through zero, rime is a fine noise, and both are
    on a cover that is thick in some places and thin in others.
    """
    if shrunk:
        large = ice(number, False)
        side = _SIDE // _SHRUNK
        return large.reshape(side, _SHRUNK, side, _SHRUNK, 3).mean(axis=(1, 3), dtype=np.float32)
    generator = np.random.Generator(np.random.PCG64([_SEED, number]))
    needles = sum(
        weight * np.clip(1 - 2 * np.abs(_waves(generator, scale)), 0, 1) ** 3
        for weight, scale in ((0.5, 60), (0.35, 25), (0.25, 10))
    )
    cover = np.clip(0.5 + _waves(generator, 120), 0, 1)
    rime = 0.12 * _waves(generator, 2)
    grey = np.clip(0.22 + 0.3 * cover + needles * (0.3 + 0.7 * cover) + rime, 0, 1)
    return np.clip(grey[..., None].astype(np.float32) * _ICE, 0, 1)


def _waves(generator: np.random.Generator, scale: float) -> NDArray[np.float64]:
    """Noise (640, 640) of deviation 1/2 without an edge, whose waves are about `scale` pixels."""
    frequencies = np.fft.fftfreq(_SIDE)
    lengths = np.hypot(frequencies[:, None], frequencies[: _SIDE // 2 + 1])
    spectrum = np.fft.rfft2(generator.standard_normal((_SIDE, _SIDE)))
    noise = np.fft.irfft2(spectrum * np.exp(-((lengths * scale) ** 2) * 4), (_SIDE, _SIDE))
    noise -= noise.mean()
    return noise / (2 * noise.std())
