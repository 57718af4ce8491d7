"""Online methods: whatever the pieces and wherever a state goes on, the decisions of a run."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from learned import equal
from streams import assert_same, near_words, stream

from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.scores import cosine_logits, zero_shot
from zsntta_cli.settings import ThresholdSettings

QUEUE = ThresholdSettings(queue=64)


def pieces(data, bounds):
    """The stream cut at some items."""
    cuts = [0, *sorted(min(b, len(data)) for b in bounds), len(data)]
    return [data.part(slice(a, b)) for a, b in itertools.pairwise(cuts)]


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("method", ["zs-clip", "adand"])
def test_pieces_of_whole_batches_give_the_decisions_of_a_run(method, size):
    options = METHODS[method].settings(batch_size=size)
    data = stream(2, 390)  # the last batch is not full
    online = METHODS[method](data, options, QUEUE)
    joined = Decisions.joined([online.push(p) for p in pieces(data, range(48, 390, 48))])
    assert_same(joined, METHODS[method](data, options, QUEUE).push(data))
    with pytest.raises(AssertionError, match="ended within a batch"):
        online.push(data.part(slice(0, 1)))


@pytest.mark.parametrize("classes", [1, 2, 7, 8, 24, 200])
def test_scores_of_an_image_hardly_depend_on_the_images_beside_it(classes):
    """With AVX-512 not in a bit; elsewhere BLAS may add up products of another size otherwise."""
    rng = np.random.default_rng(classes)
    text = rng.normal(size=(classes, 96)).astype(np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    features = rng.normal(size=(1100, 96)).astype(np.float32)
    whole = zero_shot(features, text, 100.0)
    for start, stop in [(0, 1), (5, 6), (1099, 1100), (1, 3), (30, 94), (1000, 1100)]:
        part = zero_shot(features[start:stop], text, 100.0)
        np.testing.assert_allclose(part.noise_score, whole.noise_score[start:stop], atol=1e-5)
        np.testing.assert_array_equal(part.class_index, whole.class_index[start:stop])
        np.testing.assert_allclose(part.entropy, whole.entropy[start:stop], atol=1e-5)
        np.testing.assert_allclose(part.top_logits, whole.top_logits[start:stop], atol=1e-4)
    unit = features.astype(float) / np.linalg.norm(features, axis=1, keepdims=True)
    exact = 100 * unit @ text.T.astype(float)
    np.testing.assert_allclose(cosine_logits(features[:1], text, 100.0), exact[:1], atol=1e-4)


SMALL = {"groups": 2, "mined_share": 0.5, "dde_cache": 64, "tanl_ring": 32, "warmup": 1}
SMALL |= {"update_every": 32, "oodd_items": 40, "batch_size": 1}
ONLINE = [name for name, method in METHODS.items() if method.online]


@pytest.mark.parametrize("name", [*ONLINE, "adand+tda", "oodd+bca", "neglabel+oga"])
def test_every_online_method_decides_in_pieces_as_in_one_from_pickles_and_frozen(name):
    method = METHODS[name]
    few = {f.name: SMALL[f.name] for f in method.fields().values() if f.name in SMALL}
    options, data = method.settings(**few), near_words(7)
    whole = method(data, options, QUEUE).push(data)
    for cuts in ((1, 2, 3, 64, 65, 200), (128,), ()):
        online, parts = method(data, options, QUEUE), []
        for part in pieces(data, cuts):
            parts.append(online.push(part))
            before = pickle.dumps(online)
            frozen = copy.deepcopy(online)
            alone = frozen.push(data.part(slice(5, 9)), learn=False)
            one = frozen.push(data.part(slice(6, 7)), learn=False)
            assert (alone.class_index[1], alone.is_noise[1]) == (one.class_index, one.is_noise)
            np.testing.assert_allclose(alone.id_score[1], one.id_score[0], atol=1e-6)
            assert equal(frozen, online)
            online = pickle.loads(before)
        joined = Decisions.joined(parts)
        np.testing.assert_array_equal(joined.class_index, whole.class_index)
        np.testing.assert_array_equal(joined.is_noise, whole.is_noise)
        np.testing.assert_allclose(joined.id_score, whole.id_score, atol=1e-6)
