"""TPT's views by Pillow alone, an operation at a time: what the compiled ones are held to."""

import numpy as np
from PIL import Image, ImageOps

from zsntta_cli.methods.live.views import random_crop

CHAINS, LONGEST_CHAIN = 3, 3
LEVEL = (0.1, 1.0)


def image_views(image, size, count, augmix, generator):
    views = np.empty((count, size, size, 3), np.float32)
    for i in range(count):
        view = random_crop(image, size, generator)
        views[i] = mixed(view, generator) if augmix else np.asarray(view)
    return views


def mixed(view, generator):
    weights = generator.dirichlet([1.0] * CHAINS)
    own = generator.beta(1.0, 1.0)
    mix = own * np.asarray(view, np.float32)
    for weight in weights:
        chained = view
        for _ in range(int(generator.integers(1, LONGEST_CHAIN + 1))):
            operation = OPERATIONS[int(generator.integers(len(OPERATIONS)))]
            chained = operation(chained, generator)
        mix += np.float32((1 - own) * weight) * np.asarray(chained, np.float32)
    return mix.astype(np.float32)


def amount(most, generator):
    return float(generator.uniform(*LEVEL)) * most / 10


def signed(value, generator):
    return -value if generator.random() < 0.5 else value


def sheared(view, x, y):
    matrix = (1, x, 0, y, 1, 0)
    return view.transform(view.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


def translated(view, x, y):
    moved = Image.new(view.mode, view.size)
    moved.paste(view, (x, y))
    return moved


OPERATIONS = (
    lambda view, _: ImageOps.autocontrast(view),
    lambda view, _: ImageOps.equalize(view),
    lambda view, g: ImageOps.posterize(view, 4 - int(amount(4, g))),
    lambda view, g: ImageOps.solarize(view, 256 - int(amount(256, g))),
    lambda view, g: view.rotate(signed(int(amount(30, g)), g), Image.Resampling.BILINEAR),
    lambda view, g: sheared(view, signed(amount(0.3, g), g), 0),
    lambda view, g: sheared(view, 0, signed(amount(0.3, g), g)),
    lambda view, g: translated(view, int(signed(amount(view.width / 3, g), g)), 0),
    lambda view, g: translated(view, 0, int(signed(amount(view.height / 3, g), g))),
)
