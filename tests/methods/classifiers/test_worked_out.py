"""Numbers of block classifiers that were worked out beside the product, in float64.

Five items, of three classes of which the last has none, and steps from none to many.
"""

import numpy as np
import pytest
from streams import of_features

from zsntta_cli.methods.classifiers.transductive import LAME, StatA, TransCLIP

ITEMS = np.array([
    [0.9, 0.3, 0.1, 0.3], [0.7, 0.6, 0.2, 0.33], [0.5, 0.8, 0.1, 0.3], [0.6, 0.5, 0.1, -0.6],
    [0.2, 0.9, -0.1, 0.35],
])  # fmt: skip
FEATURES = ITEMS / np.linalg.norm(ITEMS, axis=1, keepdims=True)
TEXTS = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0.6, 0.8]])
LOGITS = 10 * FEATURES @ TEXTS.T
RULES = {"stata": StatA, "transclip": TransCLIP}
GAUSSIANS = {
    ("stata", 0): [[0.99554, 0.002944], [0.682217, 0.300165], [0.050186, 0.94644],
                   [0.743725, 0.256258], [0.00078, 0.998701]],
    ("stata", 1): [[0.995613, 0.002919], [0.686633, 0.296576], [0.05085, 0.945888],
                   [0.751197, 0.248787], [0.000752, 0.998738]],
    ("stata", 3): [[0.995614, 0.002918], [0.68666, 0.296548], [0.050851, 0.945887],
                   [0.751357, 0.248627], [0.000752, 0.998738]],
    ("transclip", 0): [[0.995179, 0.003048], [0.680097, 0.300899], [0.050922, 0.945165],
                       [0.742584, 0.257397], [0.000812, 0.9985]],
    ("transclip", 1): [[0.995565, 0.002656], [0.691197, 0.288622], [0.048974, 0.947015],
                       [0.754906, 0.245073], [0.000678, 0.998701]],
    ("transclip", 3): [[0.995577, 0.002644], [0.691665, 0.288136], [0.048974, 0.947017],
                       [0.755426, 0.244553], [0.000676, 0.998706]],
}  # fmt: skip
SMOOTHED = {
    1: [[0.994922, 0.003877], [0.740453, 0.248383], [0.027496, 0.970636], [0.635922, 0.364067],
        [0.000545, 0.999131]],
    2: [[0.994969, 0.003872], [0.732193, 0.256618], [0.02865, 0.969499], [0.636234, 0.363756],
        [0.000545, 0.999141]],
    100: [[0.994904, 0.003929], [0.732447, 0.256368], [0.028208, 0.969955], [0.632849, 0.367141],
          [0.000537, 0.999151]],
}  # fmt: skip


@pytest.mark.parametrize(("name", "steps"), GAUSSIANS)
def test_gaussians_of_five_items(name, steps):
    kind = RULES[name]
    options = kind.Settings(block_steps=steps)
    z = kind(of_features(FEATURES, TEXTS, 1.0), options).solve(FEATURES, LOGITS)
    np.testing.assert_allclose(z[:, :2], GAUSSIANS[name, steps], atol=1e-6)
    np.testing.assert_allclose(z.sum(axis=1), 1)


@pytest.mark.parametrize("steps", SMOOTHED)
def test_lame_of_five_items(steps):
    options = LAME.Settings(lame_neighbours=2, lame_steps=steps)
    y = LAME(of_features(FEATURES, TEXTS, 1.0), options).solve(FEATURES, LOGITS)
    # It ends where the energy changes by 1e-8 of itself, the numbers where nothing changes.
    np.testing.assert_allclose(y[:, :2], SMOOTHED[steps], atol=1e-6 if steps < 100 else 1e-4)


def test_the_variance_of_transclip_starts_at_one_over_the_dims():
    # Odds of 3 at cosines 1 and 0; D = 2: the density adds 2 / 50 · (1 - 0) to their log.
    options = TransCLIP.Settings(block_steps=0, block_smoothing=0.0)
    item, logits = np.array([[1.0, 0.0]]), np.log([[3.0, 1.0]])
    z = TransCLIP(of_features(item, np.eye(2), 1.0), options).solve(item, logits)
    assert z[0, 0] / z[0, 1] == pytest.approx(3 * np.exp(2 / 50))
