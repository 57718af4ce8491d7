"""TransCLIP, "Boosting Vision-Language Models with Transduction", NeurIPS 2024, arXiv 2406.01837.

This is the zero-shot form in StatA's paper (arXiv 2501.03729). The Gaussians share one variance,
which starts at 1 / D, and are fitted to a block's items alone; no term holds them near the texts.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Floats
from zsntta_cli.methods.classifiers.stata import LEAST, Gaussians, solve
from zsntta_cli.methods.classifiers.transduction import GaussianBlockSettings, classes_by_block
from zsntta_cli.methods.scores import unit


@dataclass(frozen=True)
class TransCLIPSettings(GaussianBlockSettings):
    """TransCLIP as in StatA's paper: Gaussians of one variance are fitted to a block alone."""


def classes(
    data: StreamData, options: TransCLIPSettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classify T items block by block; the detector calls those that are `offered` (T,) clean."""
    texts = data.pool.text_features.astype(np.float64)
    solver = partial(solve, options, texts, spread_of_a_unit_vector, fit_to_items)
    return classes_by_block(data, options, offered, solver)


def spread_of_a_unit_vector(_z: Floats, features: Floats, *_: Floats) -> Floats:
    """The same variance in each dim, 1 / D."""
    dim = features.shape[1]
    return np.full(dim, 1 / dim)


def fit_to_items(
    z: Floats, features: Floats, square: Floats, texts: Floats, _: Floats
) -> Gaussians:
    """Fit the means of all classes by assignments (N, C), and one variance."""
    drawn, total = z.T @ features, z.sum(0)[:, None]
    means = unit(drawn)
    squares = (total * means**2 - 2 * means * drawn).sum(0) + square.sum(0)
    variance = np.maximum(squares / len(features), 0) + LEAST
    return Gaussians(means, np.tile(variance, (len(texts), 1)))
