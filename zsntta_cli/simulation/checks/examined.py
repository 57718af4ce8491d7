"""A method under examination: its decisions on copies of streams, and how they differ."""

import dataclasses
import functools
import pickle
import random
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from zsntta_cli.errors import counted, first_line
from zsntta_cli.methods import METHODS, Method
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.scores import ZeroShot
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.simulation.checks.material import Material

HELD, FAILED, NOT_RUN = "held", "FAILED", "not run"
_ROUNDING = {"rtol": 1e-4, "atol": 1e-5}  # of scores: products of other shapes add up otherwise
_ROUNDED = 0.002  # share of items that such last bits may decide


@dataclass(frozen=True)
class CheckResult:
    """The result of one check."""

    check: str
    outcome: str  # HELD, FAILED or NOT_RUN
    evidence: str  # on what, or which item first differed


class Failed(Exception):
    """A check failed; its text is the evidence."""


class NotRun(Exception):
    """A check does not apply; its text says why."""


@dataclass
class Examined:
    """A method, its settings, and the images on which it is checked."""

    name: str
    options: Any
    material: Material
    threshold: ThresholdSettings = field(default_factory=ThresholdSettings)
    changed: set[str] = field(default_factory=set)  # arrays that it was given and wrote to

    @property
    def method(self) -> Method:
        """The method's entry in METHODS."""
        return METHODS[self.name]

    def stream(self) -> StreamData:
        """The stream that most checks use."""
        return self.material.stream(self.method.needs)

    def one_thread(self) -> AbstractContextManager[Any]:
        """One BLAS thread, as runs have: two may add up a product of other shapes otherwise."""
        self.method.load()
        limited: AbstractContextManager[Any] = _blas(self.name).limit(limits=1, user_api="blas")
        return limited

    def decide(self, data: StreamData) -> Decisions:
        """The decisions on a copy of a stream; arrays that the method changes are remembered."""
        copy = _copied(data)
        with warnings.catch_warnings():  # of NumPy, where a stream is empty: what counts is checked
            warnings.simplefilter("ignore")
            with self.one_thread():
                decisions: Decisions = self.method.load()(copy, self.options, self.threshold)
        self.changed |= _written(data, copy)
        return decisions


@functools.cache
def _blas(_method: str) -> ThreadpoolController:
    """The BLAS libraries of the process after a method was loaded: it may bring SciPy's."""
    return ThreadpoolController()


def tried(check: str, run: Callable[[], str]) -> CheckResult:
    """The result of a check that returns evidence or raises; any other error is a failure, too."""
    try:
        return CheckResult(check, HELD, run())
    except NotRun as reason:
        return CheckResult(check, NOT_RUN, str(reason))
    except Failed as finding:
        return CheckResult(check, FAILED, str(finding))
    except Exception as error:  # the method is someone else's code
        return CheckResult(check, FAILED, f"it raised {type(error).__name__}: {first_line(error)}")


def _copied(data: StreamData) -> StreamData:
    """A stream with its own copies of the arrays."""
    pool, scores = data.pool, data.pool.zero_shot
    pool = dataclasses.replace(
        pool,
        image_features=pool.image_features[:].copy(),
        text_features=pool.text_features.copy(),
        zero_shot=ZeroShot(scores.class_index.copy(), scores.noise_score.copy()),
        more_text=None if pool.more_text is None else pool.more_text.copy(),
    )
    own_score = None if data.own_score is None else data.own_score.copy()
    return StreamData(pool, data.index.copy(), data.injected.copy(), data.seed, own_score)


def _arrays(data: StreamData) -> dict[str, Any]:
    pool, scores = data.pool, data.pool.zero_shot
    return {
        "image_features": pool.image_features[:], "text_features": pool.text_features,
        "more_text": pool.more_text, "zero-shot classes": scores.class_index,
        "zero-shot scores": scores.noise_score, "index": data.index, "injected": data.injected,
        "own_score": data.own_score,
    }  # fmt: skip


def _written(before: StreamData, after: StreamData) -> set[str]:
    pairs = zip(_arrays(before).items(), _arrays(after).values(), strict=True)
    return {name for (name, one), other in pairs if not np.array_equal(one, other)}


def difference(one: Decisions, other: Decisions, exact: bool = False) -> str:
    """The first item with another decision, and how many differ; empty if all are equal.

    Unless `exact`, scores may differ in their last bits, and a few decisions because of that.
    """
    differs, decided = _differing(one, other)
    if exact:
        differs |= decided | ~_same(one.id_score, other.id_score)
    elif decided.mean() > _ROUNDED:
        differs |= decided
    if not differs.any():
        return ""
    item = int(np.flatnonzero(differs)[0])
    items = counted(int(differs.sum()), "item")
    return f"item {item:,}: {_change(one, other, item)}; {items} in all"


def slight(one: Decisions, other: Decisions) -> int:
    """How many decisions differ although scores are equal except for their last bits."""
    return int(_differing(one, other)[1].sum()) if len(one.id_score) else 0


def _differing(one: Decisions, other: Decisions) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Items whose scores differ by more than rounding, and those whose decisions differ."""
    if len(one.id_score) != len(other.id_score) or (one.is_noise is None) != (
        other.is_noise is None
    ):
        raise Failed(f"{_shape(one)} became {_shape(other)}")
    scores = ~np.isclose(one.id_score, other.id_score, equal_nan=True, **_ROUNDING)
    decided = one.class_index != other.class_index
    if one.is_noise is not None:
        decided |= one.is_noise != other.is_noise
    return scores, decided


def _shape(decisions: Decisions) -> str:
    ruled = "scores alone" if decisions.is_noise is None else "decisions"
    return f"{ruled} on {len(decisions.id_score):,} items"


def _same(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    return (one == other) | (np.isnan(one) & np.isnan(other))


def _change(one: Decisions, other: Decisions, item: int) -> str:
    changes = []
    for name in ("class_index", "is_noise", "id_score"):
        before, after = getattr(one, name), getattr(other, name)
        if before is not None and before[item] != after[item]:
            values = before[item], after[item]
            digits = 6 if _value(values[0], 6) != _value(values[1], 6) else 17
            old, new = (_value(value, digits) for value in values)
            changes.append(f"{name} {old} became {new}")
    return ", ".join(changes)


def _value(value: Any, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


@dataclass
class GlobalRandomness:
    """The random states that a whole process shares, set and restored."""

    seed: int
    _states: tuple[Any, ...] = ()
    _begun: tuple[Any, ...] = ()

    def __enter__(self) -> "GlobalRandomness":
        self._states = _random_states()
        random.seed(self.seed)
        np.random.seed(self.seed)  # noqa: NPY002  the state that no method may know
        self._begun = _random_states()
        return self

    def __exit__(self, *_: object) -> None:
        random.setstate(self._states[0])
        np.random.set_state(self._states[1])  # noqa: NPY002

    def changed(self) -> list[str]:
        """Which of the random states were used or set since."""
        now, names = _random_states(), ("random's", "NumPy's")
        return [
            n
            for n, a, b in zip(names, self._begun, now, strict=True)
            if pickle.dumps(a) != pickle.dumps(b)
        ]


def _random_states() -> tuple[Any, ...]:
    return random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
