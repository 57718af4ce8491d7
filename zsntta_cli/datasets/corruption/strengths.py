"""How strong each corruption is: the published parameters of both sizes, by severity.

Those of ImageNet-C are for 224 pixels, those of CIFAR-10-C for 32. Lengths are in pixels of the
image that is corrupted, and are not scaled with it.
"""

from typing import Final

Strength = tuple[float, ...]

_CROP = 244  # of elastic transforms: it was meant to be 224, and the published set has this one

# Radius and sigma of the smoothed disk; sigma, reach and rounds of glass; radius and sigma of
# motion; last zoom (from 1) and step; mean, deviation, zoom, threshold, radius and sigma of the
# streaks and share of the image of snow; shares of image and texture of frost; height and decay of
# fog; alpha, sigma and reach of the corners of elastic transforms.
IMAGENET_C: Final[dict[str, tuple[Strength, ...]]] = {
    "gaussian_noise": ((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)),
    "shot_noise": ((60,), (25,), (12,), (5,), (3,)),
    "impulse_noise": ((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
    "defocus_blur": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "glass_blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "motion_blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "zoom_blur": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    "snow": (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8), (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7), (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    "frost": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    "fog": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "brightness": ((0.1,), (0.2,), (0.3,), (0.4,), (0.5,)),
    "contrast": ((0.4,), (0.3,), (0.2,), (0.1,), (0.05,)),
    "elastic_transform": (
        (_CROP * 2, _CROP * 0.7, _CROP * 0.1), (_CROP * 2, _CROP * 0.08, _CROP * 0.2),
        (_CROP * 0.05, _CROP * 0.01, _CROP * 0.02), (_CROP * 0.07, _CROP * 0.01, _CROP * 0.02),
        (_CROP * 0.12, _CROP * 0.01, _CROP * 0.02),
    ),
    "pixelate": ((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)),
    "jpeg_compression": ((25,), (18,), (15,), (10,), (7,)),
}  # fmt: skip
CIFAR_C: Final[dict[str, tuple[Strength, ...]]] = {
    "gaussian_noise": ((0.04,), (0.06,), (0.08,), (0.09,), (0.10,)),
    "shot_noise": ((500,), (250,), (100,), (75,), (50,)),
    "impulse_noise": ((0.01,), (0.02,), (0.03,), (0.05,), (0.07,)),
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "zoom_blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95), (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9), (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    "frost": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "brightness": ((0.05,), (0.1,), (0.15,), (0.2,), (0.3,)),
    "contrast": ((0.75,), (0.5,), (0.4,), (0.3,), (0.15,)),
    "elastic_transform": (
        (0, 0, 32 * 0.08), (32 * 0.05, 32 * 0.2, 32 * 0.07), (32 * 0.08, 32 * 0.06, 32 * 0.06),
        (32 * 0.1, 32 * 0.04, 32 * 0.05), (32 * 0.1, 32 * 0.03, 32 * 0.03),
    ),
    "pixelate": ((0.95,), (0.9,), (0.85,), (0.75,), (0.65,)),
    "jpeg_compression": ((80,), (65,), (58,), (50,), (40,)),
}  # fmt: skip
LARGEST_OF_CIFAR = 84  # shorter side: nearer to 32 than to 224, as factors


def is_small(height: int, width: int) -> bool:
    """Whether an image of this size is corrupted by CIFAR-10-C's parameters."""
    return min(height, width) <= LARGEST_OF_CIFAR


def strength(name: str, severity: int, height: int, width: int) -> Strength:
    """The parameters of a corruption, for an image of this size."""
    table = CIFAR_C if is_small(height, width) else IMAGENET_C
    return table[name][severity - 1]
