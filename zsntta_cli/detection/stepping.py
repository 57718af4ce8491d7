"""The layer between a detector and its method: noise scores, passes of a folder, BLAS threads."""

import threading
from dataclasses import replace

import numpy as np
from threadpoolctl import ThreadpoolController

from zsntta_cli.methods.base import Decisions, Evidence, Judge, Stepper, StreamData
from zsntta_cli.methods.match import Floats, Moments, by_moments, match, standardised
from zsntta_cli.methods.state import State, checked, nested, within
from zsntta_cli.settings import MATCH

_SEEN = 64  # images before the last pass: where ridge's own rule begins
_MOST = 12  # passes


class BestClassStepper:
    """A method's stepper with noise scores from the best class's logit (methods/match.py).

    With one class MCM is 1 for every image, so these are the only possible scores.
    """

    def __init__(self, stepper: Stepper, bias: float | None) -> None:
        self._stepper, self._moments, self._bias = stepper, Moments(), bias

    @property
    def warm_up(self) -> int:
        """The number of items before the method's own rule decides."""
        return self._stepper.warm_up

    @property
    def adapted(self) -> bool:
        """Whether the method's own rule decides."""
        return self._stepper.adapted

    @property
    def evidence(self) -> Evidence | None:
        """The method's evidence for noise of another kind."""
        return self._stepper.evidence

    def push(self, data: StreamData) -> Decisions:
        """Decide on the next items, and learn from them."""
        logits = _logits(data)
        if self._bias is None:
            u, self._moments = standardised(logits, self._moments)
        else:
            u = match(logits, self._bias)
        return self._stepper.push(replace(data, own_score=u))

    def judge(self) -> Judge:
        """The current decision function; items do not change the moments."""
        moments, bias, judge = self._moments, self._bias, self._stepper.judge()

        def decide(data: StreamData) -> Decisions:
            logits, count = _logits(data), max(moments.count, 1)
            if bias is not None:
                return judge(replace(data, own_score=match(logits, bias)))
            sums = (moments.total, moments.square)
            mean, square = (np.full(len(logits), total / count) for total in sums)
            return judge(replace(data, own_score=by_moments(logits, mean, square)))

        return decide

    def state(self) -> State:
        """The moments, and the method's state."""
        return nested(moments=vars(self._moments), method=self._stepper.state())

    def restore(self, state: State) -> None:
        """Continue from a state; ValueError if it is of another detector."""
        parts = checked(state, self.state())
        self._stepper.restore(within(parts, "method"))
        self._moments = Moments(**within(parts, "moments"))  # type: ignore[arg-type]


def rescored(stepper: Stepper, score: str, bias: float | None, classes: int) -> Stepper:
    """A method's stepper with the requested noise score."""
    if score == MATCH or classes == 1:
        return BestClassStepper(stepper, bias if score == MATCH else None)
    return stepper


def _logits(data: StreamData) -> Floats:
    return data.detail(slice(None)).top_logits[:, 0].astype(np.float64)


def passes_for(count: int) -> int:
    """How often a folder with `count` images is shown, so that ridge's own rule decides all.

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


def last_pass(stepper: Stepper, data: StreamData, passes: int, seed: int) -> Decisions:
    """Decisions on all items of a stream in its order, from the last of `passes` passes.

    Each pass has another random order, by the seed: a sorted folder would be the worst stream.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    for _ in range(passes):
        order = generator.permutation(len(data))
        decisions = stepper.push(replace(data, index=data.index[order]))
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
