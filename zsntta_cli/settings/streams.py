"""The settings of a stream and of the noise score's threshold."""

from dataclasses import dataclass

from zsntta_cli.settings.options import Range, Settings, option

NOISE_TYPES = ("gaussian", "uniform", "salt-and-pepper", "poisson")
NO_NOISE = "none"
LARGEST_QUEUE = 1 << 20
MCM, MATCH = SCORES = ("mcm", "match")


@dataclass(frozen=True)
class StreamSettings(Settings):
    """Which items a stream has and in which order (see simulation/stream.py)."""

    # The paper: 0, 0.25, 0.5, 0.75; seeds 0 … 4; M = 8 (Sec. 5.1); noise images of Sec. 4.2.
    ratio: float = option(
        0.5, "OOD share of the stream.", within=Range(least=0, below=1), example="0.25 for 25 %"
    )
    seed: int = option(0, "Order of the stream, and of a random detector.", within=Range(least=0))
    order: str = option(  # the paper's is shuffled; real streams are sorted, bursty, clean at first
        "shuffled", "Of the stream (docs/detector.md).",
        choices=("shuffled", "class", "burst", "late", "first"),
    )  # fmt: skip
    noise: str = option(
        NO_NOISE, "Type of the injected noise images.", choices=(*NOISE_TYPES, NO_NOISE)
    )
    noise_every: int = option(8, "M: one noise image after M samples.", within=Range(least=1))
    placement: str = option(
        "periodic", "Where noise images go: after every M-th, or anywhere.",
        choices=("periodic", "shuffled"),
    )  # fmt: skip
    ood_fill: str = option(
        "repeat", "Too few OOD images: repeat them, or cap the ratio.", choices=("repeat", "cap")
    )
    rounded_odds: bool = option(False, "OOD:ID odds rounded to two digits: 0.33, not 1/3.")
    limit: int | None = option(None, "Only the first so many samples.", within=Range(least=1))


@dataclass(frozen=True)
class ThresholdSettings(Settings):
    """The noise score, and how its threshold is found (see methods/threshold.py)."""

    score: str = option(  # Eq. 1, or by the best class's logit alone (methods/match.py)
        MCM, "Noise score of the frozen model.", choices=SCORES
    )
    fixed: float | None = option(
        None,
        "A fixed ID score, or 'adaptive'.",
        within=Range(least=0, most=1),
        name="threshold",
        shown="adaptive",
    )
    # Eq. 1: clean iff the ID score is λ or more; the released code: noise iff u is above λ.
    fixed_on: str = option(
        "id-score", "What a fixed threshold is on.", choices=("id-score", "noise-score")
    )
    queue: int = option(  # Sec. 5.1
        512, "N_q, scores it is found on.", within=Range(least=1, most=LARGEST_QUEUE)
    )
    criterion: str = option(
        "otsu", "Weighted by size, or Eq. 3 to the letter.", choices=("otsu", "unweighted")
    )
    degenerate: str = option(
        "hold", "Where no split is valid: hold the last threshold, or zero.",
        choices=("hold", "zero"),
    )  # fmt: skip
