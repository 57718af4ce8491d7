"""Choose images of a folder to ask a person about, and use the answers for the others.

The images are ranked by suspicion. How much the ranks are worth depends on two unknowns: the share
of noise pi, and the power d' of the score, by which noise is shifted from clean images (both
normal, of variance 1). The hypotheses are a grid of both, and "there is no noise". An image with
the share r of all images at its rank or above has the score x that solves pi Phi(d' - x) + (1 - pi)
Phi(-x) = r, and is noise with the probability pi phi(x - d') / (pi phi(x - d') + (1 - pi) phi(x)).
Each question is about the image whose answer says most about the hypotheses; an answer updates
their weights by Bayes' rule.

It needs only NumPy. All constants were set on pets, cars and imagenet.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SHARES = (0.003, 0.01, 0.02, 0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.65, 0.75, 0.85)
_POWERS = (0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.5)
_FEWEST, _MOST = 1e-4, 1 - 1e-4  # chances: no answer rules a hypothesis out
_SLIP = 1e-3  # chance that "noise" is answered where there is none
_NEIGHBOURS = 25  # images over which the accuracy of the classes is smoothed
_PATTERNS = 64  # likeliest patterns of answers that a plan of several questions goes through


@dataclass(frozen=True)
class HypothesisGrid:
    """The H hypotheses on R ranks; the first hypothesis is that there is no noise."""

    rank: Floats  # (R,) share of the folder from the most suspicious image on
    share: Floats  # (H,) of noise, pi
    power: Floats  # (H,) of the score, d'
    chance: Floats  # (H, R) that the image at a rank is noise
    doubt: Floats  # (H, R) entropy of that, in nats

    def cells(self, count: int) -> NDArray[np.int64]:
        """The rank (N,) of the grid for each of `count` images, the most suspicious first."""
        middle = (np.arange(count) + 0.5) / count
        return np.minimum(np.searchsorted(self.rank, middle), len(self.rank) - 1)


@cache
def grid() -> HypothesisGrid:
    """The hypotheses, computed once (5 ms)."""
    rank = np.r_[np.geomspace(2e-4, 0.02, 40), np.linspace(0.0225, 0.9975, 390)]
    pairs = [(0.0, 0.0), *((share, power) for share in _SHARES for power in _POWERS)]
    share, power = np.array(pairs).T
    chance = np.array([np.full(len(rank), _SLIP), *(_chance(rank, *pair) for pair in pairs[1:])])
    return HypothesisGrid(rank, share, power, chance, entropy(chance))


def _chance(rank: Floats, share: float, power: float) -> Floats:
    """The probability (R,) that the image at a rank is noise, given the share and the power."""
    score = np.linspace(-6, 12, 6001)
    step = score[1] - score[0]
    noise, clean = (np.exp(-((score - mean) ** 2) / 2) * step for mean in (power, 0.0))
    density = np.stack([share * noise, (1 - share) * clean]) / np.sqrt(2 * np.pi)
    above = density.sum(0)[::-1].cumsum()  # from the largest score on
    at = np.interp(rank, above, score[::-1])
    ratio = (1 - share) / share * np.exp(power * (power / 2 - at))  # clean to noise, at this score
    return np.clip(1 / (1 + ratio), _FEWEST, _MOST)


def entropy(chance: Floats) -> Floats:
    """Entropies, in nats, of yes-or-no answers with these probabilities."""
    return -(chance * np.log(chance) + (1 - chance) * np.log(1 - chance))


def prior(evidence: float, flagged: float) -> Floats:
    """The weights (H,) before the first answer.

    With evidence for noise of another kind (in [0, 1]) there is well-ranked noise, about as much as
    was flagged (a share of the folder). Without it there may be none, and noise is rather of the
    same kind as the classes.
    """
    hypotheses = grid()
    share, power = hypotheses.share[1:], hypotheses.power[1:]
    near = np.where(power <= 2, 1.0, 0.25) * np.where((power > 2.5) & (share > 0.03), 0.15, 1.0)
    far = np.where(power >= 3, 1.0, 0.15)
    far = far * np.exp(-0.5 * (np.log(share / max(flagged, 0.005)) / 0.7) ** 2)
    without, within = (
        np.r_[none, (1 - none) * some / some.sum()] for none, some in ((0.35, near), (0.02, far))
    )
    return evidence * within + (1 - evidence) * without


def updated(weight: Floats, cell: int, is_noise: bool) -> Floats:
    """The weights (H,) after an answer about the image at a rank of the grid, by Bayes' rule."""
    chance = grid().chance[:, cell]
    weight = weight * (chance if is_noise else 1 - chance)
    return weight / weight.sum()


def most_telling(weight: Floats, cells: NDArray[np.int64], count: int) -> list[int]:
    """The images to ask about, as indices of `cells` (N,), the ranks of the open images.

    They are chosen one after another. Each is the image whose answer is expected to say most about
    the hypotheses (mutual information), averaged over the answers to those before it. Of equal ones
    the most suspicious is chosen.
    """
    hypotheses, chosen = grid(), list[int]()
    patterns = weight[None]  # (P, H) joint probability of the answers so far and each hypothesis
    is_open = np.ones(len(cells), bool)
    while len(chosen) < min(count, len(cells)):
        likely = patterns.sum(1)
        expected = entropy(patterns @ hypotheses.chance / likely[:, None])  # (P, R)
        gain = likely @ expected / likely.sum() - weight @ hypotheses.doubt
        chosen.append(int(np.where(is_open, gain[cells], -1).argmax()))
        is_open[chosen[-1]] = False
        chance = hypotheses.chance[:, cells[chosen[-1]]]
        patterns = np.concatenate([patterns * chance, patterns * (1 - chance)])
        patterns = patterns[np.argsort(-patterns.sum(1), kind="stable")[:_PATTERNS]]
    return chosen


def expected_accuracy(weight: Floats, right: Floats) -> Floats:
    """The expected Acc_H (R,) if all images up to each rank are called noise.

    `right` (R,) is the probability that a clean image at a rank gets its right class. If there is
    no noise, Acc_S replaces Acc_H.
    """
    hypotheses = grid()
    rank = hypotheses.rank
    width = np.diff(np.r_[0, (rank[1:] + rank[:-1]) / 2, 1])
    clean, noise = (1 - hypotheses.chance) * width, hypotheses.chance * width
    named_right = clean * right
    correct = (named_right.sum(1, keepdims=True) - named_right.cumsum(1)) / clean.sum(
        1, keepdims=True
    )
    caught = noise.cumsum(1) / noise.sum(1, keepdims=True)
    harmonic = 2 * correct * caught / (correct + caught + 1e-9)
    harmonic[0] = correct[0]
    return weight @ harmonic


def accuracy_by_rank(likeliest: Floats) -> Floats:
    """The probability (R,) that a class is right, by softmax scores (N,) in order of suspicion."""
    count = len(likeliest)
    if count > 2 * _NEIGHBOURS:
        window = np.ones(_NEIGHBOURS)
        near = np.convolve(np.ones(count), window, mode="same")
        likeliest = np.convolve(likeliest, window, mode="same") / near
    return np.interp(grid().rank, (np.arange(count) + 0.5) / count, likeliest)
