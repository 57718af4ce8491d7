"""What stands between a detector and its method: noise scores, passes of a folder, BLAS threads."""

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
    """A method's stepper behind noise scores of the best class's logit alone (methods/match.py).

    Of one class MCM is 1 whatever the image, so there they are the only ones.
    """

    def __init__(self, stepper: Stepper, bias: float | None) -> None:
        self._stepper, self._moments, self._bias = stepper, Moments(), bias

    @property
    def warm_up(self) -> int:
        """Items before there is a rule."""
        return self._stepper.warm_up

    @property
    def adapted(self) -> bool:
        """Whether the method's own rule decides."""
        return self._stepper.adapted

    @property
    def evidence(self) -> Evidence | None:
        """What the method says for noise of another kind."""
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
        """What decides now: items enter no moments."""
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
        """The moments, and the method's own."""
        return nested(moments=vars(self._moments), method=self._stepper.state())

    def restore(self, state: State) -> None:
        """Go on from a state: ValueError where it is another's."""
        own = checked(state, self.state())
        self._stepper.restore(within(own, "method"))
        self._moments = Moments(**within(own, "moments"))  # type: ignore[arg-type]


def rescored(stepper: Stepper, score: str, bias: float | None, classes: int) -> Stepper:
    """A method's stepper behind the noise score that is asked for."""
    if score == MATCH or classes == 1:
        return BestClassStepper(stepper, bias if score == MATCH else None)
    return stepper


def _logits(data: StreamData) -> Floats:
    return data.detail(slice(None)).top_logits[:, 0].astype(np.float64)


def passes_for(count: int) -> int:
    """How often a folder of so many images is shown: ridge's own rule is to decide all of it.

    More was measured to bring nothing and to cost clean images: what is shown again is no new
    evidence (docs/detector-why.md). AdaND learns nothing good from repeats, and gets no more.
    """
    return min(1 + -(-_SEEN // max(count, 1)), _MOST)


def fewest_for(warm_up: int) -> int:
    """The least images of a folder, all of which a method with this warm-up decides by its rule.

    What was shown before the last pass counts, repeats as well.
    """
    counts = (-(-warm_up // shown) for shown in range(_MOST - 1, 0, -1))
    return next(n for n in counts if (passes_for(n) - 1) * n >= warm_up)


def last_pass(stepper: Stepper, data: StreamData, passes: int, seed: int) -> Decisions:
    """Decisions on all items of a stream in its own order, after it was shown `passes` times.

    Each time in another order, drawn by the seed: a folder that is sorted would be the worst
    stream.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    for _ in range(passes):
        order = generator.permutation(len(data))
        decisions = stepper.push(replace(data, index=data.index[order]))
    return decisions.part(np.argsort(order))


class OneThread:
    """Has BLAS take one thread within it.

    How many it takes is the whole process's: whoever comes first sets it, and whoever leaves last
    puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._libraries: ThreadpoolController | None = None  # looking takes milliseconds
        self._within = 0

    def look_again(self) -> None:
        """Look for BLAS again: a method that was loaded may have brought its own, as SciPy's is."""
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
