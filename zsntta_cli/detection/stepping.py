"""The layer between a detector and its method: noise scores, passes of a folder, BLAS threads."""

import threading
from dataclasses import replace
from functools import partial

import numpy as np
from threadpoolctl import ThreadpoolController

from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.match import Floats, Moments, by_moments, match, standardised
from zsntta_cli.methods.method import Method
from zsntta_cli.settings import MATCH

_SEEN = 64  # images before the last pass: where cull's own rule begins
_MOST = 12  # passes


class BestClass(Method):
    """A method with noise scores from the best class's logit (methods/match.py).

    With one class MCM is 1 for every image, so these are the only possible scores.
    """

    def __init__(self, method: Method, bias: float | None) -> None:
        self.method, self.moments = method, Moments()
        self.score = None if bias is None else partial(match, bias=bias)

    @property
    def adapted(self) -> bool:
        """Whether the method's own rule decides."""
        return self.method.adapted

    def push(self, items: StreamData, learn: bool = True) -> Decisions:
        """Decide on the next items; without learning they do not change the moments."""
        logits = _logits(items)
        if self.score is not None:
            u = self.score(logits)
        elif learn:
            u, self.moments = standardised(logits, self.moments)
        else:
            count = max(self.moments.count, 1)
            sums = (self.moments.total, self.moments.square)
            mean, square = (np.full(len(logits), total / count) for total in sums)
            u = by_moments(logits, mean, square)
        return self.method.push(replace(items, own_score=u), learn)


def rescored(method: Method, score: str, bias: float | None, classes: int) -> Method:
    """A method with the requested noise score."""
    if score == MATCH or classes == 1:
        return BestClass(method, bias if score == MATCH else None)
    return method


def _logits(data: StreamData) -> Floats:
    return data.detail(slice(None)).top_logits[:, 0].astype(np.float64)


def passes_for(count: int) -> int:
    """How often a folder with `count` images is shown, so that cull's own rule decides all.

    Measured, more passes bring nothing and cost clean images: repeated images are no new evidence.
    AdaND gains nothing from repeats, and gets no more passes.
    """
    return min(1 + -(-_SEEN // max(count, 1)), _MOST)


def fewest_for(warm_up: int) -> int:
    """The smallest folder whose images are all decided by the rule of a method with this warm-up.

    All images shown before the last pass count, including repeats.
    """
    counts = (-(-warm_up // shown) for shown in range(_MOST - 1, 0, -1))
    return next(n for n in counts if (passes_for(n) - 1) * n >= warm_up)


def last_pass(method: Method, data: StreamData, passes: int, seed: int) -> Decisions:
    """Decisions on all items of a stream in its order, from the last of `passes` passes.

    Each pass has another random order, by the seed: a sorted folder would be the worst stream.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    for _ in range(passes):
        order = generator.permutation(len(data))
        decisions = method.push(replace(data, index=data.index[order]))
    return decisions.part(np.argsort(order))


class OneThread:
    """Let BLAS use one thread within the context.

    The number of threads is a setting of the whole process: the first to enter sets it, and the
    last to leave restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._libraries: ThreadpoolController | None = None  # looking takes milliseconds
        self._within = 0

    def look_again(self) -> None:
        """Search for BLAS again: a method that was loaded may have brought another, as SciPy's."""
        with self._lock:
            if not self._within:
                self._libraries = None

    def __enter__(self) -> None:
        with self._lock:
            if self._libraries is None:
                self._libraries = ThreadpoolController()
            if not self._within:
                self._limits = self._libraries.limit(limits=1, user_api="blas")
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._limits.restore_original_limits()


ONE_THREAD = OneThread()
