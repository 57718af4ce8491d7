"""A detector on features, as its stream runs: NumPy alone, no torch, no images."""

import copy
import dataclasses
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zsntta_cli.detection import inputs, kept
from zsntta_cli.detection.best_class import rescored
from zsntta_cli.detection.hindsight import last_pass, passes_for
from zsntta_cli.detection.scoring import Classes, verdicts_of
from zsntta_cli.detection.threads import ONE_THREAD
from zsntta_cli.detection.verdicts import ADAPTED, WARM_UP, Stage, Verdicts
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Stepper
from zsntta_cli.methods.state import State, checked, copied, nested, within
from zsntta_cli.settings.options import check


class OnlineDetector:
    """Decides which features are of none of the classes, and learns from what it sees.

    `update` decides, then learns, in order; what is pushed in which pieces changes no verdict.
    `predict` and `score` judge each image by itself, by what was learned up to now, and change
    nothing. Threads may call all of it: updates come one after another, and whoever reads meanwhile
    gets what one moment would have said.
    """

    def __init__(
        self,
        text_features: ArrayLike,
        logit_scale: float,
        method: str = "ridge",
        *,
        class_names: Sequence[str] | None = None,
        normalized: bool = False,
        logit_bias: float | None = None,
        **settings: Any,
    ) -> None:
        """A detector that has seen nothing.

        Args:
            text_features: (C, D), a row a class; a tensor will do.
            logit_scale: the model's own, exponentiated: about 100 for CLIP.
            method: one that decides online: zs-clip, adand or ridge.
            class_names: (C,) for the verdicts; numbers where none are given.
            normalized: features come with unit norm, not raw.
            logit_bias: a sigmoid model's own (SigLIP), for `score="match"`.
            settings: of the method and its threshold, named as for `simulate`; `seed` is that of
                a detector that starts at random.

        Raises:
            SettingsError: one of them is out of its range.
        """
        self.method, self.normalized = method, normalized
        inputs.check_method(method)
        self._seed = inputs.checked_seed(settings.pop("seed", 0))
        self._settings = inputs.checked_settings(method, settings)
        text = inputs.checked_text(text_features)
        names = inputs.checked_names(class_names, len(text))
        self._classes = Classes(names, text, inputs.checked_scale(logit_scale))
        self.logit_bias = inputs.checked_bias(logit_bias)
        self.identity: Mapping[str, Any] = {}  # of the encoder, where it is known: saved, compared
        self._lock = threading.RLock()
        self._set(self._start(), 0)

    def _start(self) -> Stepper:
        """The method before its first item."""
        nothing = np.empty((0, self._classes.text.shape[1]), np.float32)
        threshold, options = self._settings
        data = self._classes.stream(nothing, self._seed)
        stepper = METHODS[self.method].start(data, options, threshold)
        ONE_THREAD.look_again()
        return rescored(stepper, threshold.score, self.logit_bias, len(self._classes.names))

    def _set(self, stepper: Stepper, seen: int) -> None:
        """What is known now; a reader takes the judge, which never changes, at once."""
        self._stepper, self._judge, self._seen = stepper, stepper.judge(), seen

    def update(self, features: ArrayLike, sources: Sequence[str | None] = ()) -> Verdicts:
        """Decide on the next features (N, D), or one (D,), in order, and learn from them.

        `sources` (N,) are what the verdicts call the images.

        Raises:
            SettingsError: features of other dims, or not finite; nothing is learned then.
        """
        rows = self._checked(features, sources)
        with ONE_THREAD:
            data = self._classes.stream(rows, self._seed)
            with self._lock:
                decisions = self._stepper.push(data)
                self._set(self._stepper, self._seen + len(data))
        return verdicts_of(data, decisions, self._classes, sources)

    def predict(self, features: ArrayLike, sources: Sequence[str | None] = ()) -> Verdicts:
        """Judge features (N, D) by what was learned, each by itself; nothing is learned."""
        rows = self._checked(features, sources)
        with ONE_THREAD:
            data = self._classes.stream(rows, self._seed)
            decisions = self._judge(data)
        return verdicts_of(data, decisions, self._classes, sources)

    def score(self, features: ArrayLike) -> NDArray[np.float64]:
        """Noise scores (N,) of features (N, D), higher = more noise; nothing is learned."""
        return self.predict(features).score

    def decide_all(
        self,
        features: ArrayLike,
        passes: int | None = None,
        seed: int = 0,
        sources: Sequence[str | None] = (),
    ) -> Verdicts:
        """Decide on a whole folder's features (N, D) in hindsight; answers are in their order.

        They are shown `passes` times, as often as is good for so many where None is given, each
        time in an order drawn by the seed; the last pass decides. This detector stays as it is.

        Raises:
            SettingsError: no passes, or features as for `update`.
        """
        rows, seed = self._checked(features, sources), inputs.checked_seed(seed)
        passes = passes_for(len(rows)) if passes is None else passes
        check(passes >= 1, f"passes is {passes}, must be 1 or more.")
        with self._lock:
            stepper = copy.deepcopy(self._stepper)
        with ONE_THREAD:
            data = self._classes.stream(rows, self._seed)
            decisions = last_pass(stepper, data, passes, seed)
        return verdicts_of(data, decisions, self._classes, sources)

    def _checked(self, features: ArrayLike, sources: Sequence[str | None]) -> NDArray[np.float32]:
        dim = self._classes.text.shape[1]
        rows = inputs.checked_features(features, dim, self.normalized)
        inputs.check_sources(sources, len(rows))
        return rows

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the C classes."""
        return self._classes.names

    @property
    def seen(self) -> int:
        """How many images it has learned from."""
        return self._seen

    @property
    def warm_up(self) -> int:
        """How many images ZS-CLIP decides before there is a rule of the method's own."""
        return self._stepper.warm_up

    @property
    def ready(self) -> bool:
        """Whether the method's own rule decides on the next image, and no more ZS-CLIP's."""
        return self._stepper.adapted

    @property
    def stage(self) -> Stage:
        """The stage of the next image: "warm-up" as long as ZS-CLIP decides, then "adapted"."""
        return ADAPTED if self.ready else WARM_UP

    def reset(self) -> None:
        """Forget all that was learned."""
        with self._lock:
            self._set(self._start(), 0)

    def copy(self) -> "OnlineDetector":
        """Another detector that knows the same, and learns by itself from then on."""
        other = copy.copy(self)
        other._lock = threading.RLock()
        with self._lock:
            other._set(copy.deepcopy(self._stepper), self._seen)
        return other

    @property
    def text_features(self) -> NDArray[np.float32]:
        """Text features (C, D) of unit norm."""
        return self._classes.text

    @property
    def logit_scale(self) -> float:
        """What cosines are multiplied by."""
        return self._classes.scale

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the method and its threshold, by name."""
        named = (dataclasses.asdict(group) for group in self._settings)
        return {**{k: v for group in named for k, v in group.items()}, "seed": self._seed}

    def state(self) -> State:
        """All that was learned, as arrays and numbers of its own."""
        with self._lock:
            return copied(nested(images={"seen": self._seen}, method=self._stepper.state()))

    def restore(self, state: State) -> None:
        """Go on from the state of a detector of the same classes, method and settings.

        Raises:
            SettingsError: it is another's; nothing is changed then.
        """
        stepper = self._start()
        try:
            for name in state:
                if name.partition(".")[0] not in ("images", "method"):
                    raise ValueError(f"{name} is unknown")
            checked(within(state, "images"), {"seen": 0})
            stepper.restore(within(state, "method"))
        except ValueError as error:
            raise SettingsError(f"this is no state of such a detector: {error}.") from error
        with self._lock:
            self._set(stepper, int(state["images.seen"]))

    def save(self, path: str | Path) -> None:
        """Write all of it to an HDF5 file, whole or not at all.

        Raises:
            StoreError: it cannot be written; what was there before still is.
        """
        kept.write(Path(path), self)

    @classmethod
    def load(cls, path: str | Path) -> "OnlineDetector":
        """The detector that a file keeps.

        Raises:
            StoreError: there is none, it is broken, or of a newer version.
        """
        return kept.read(Path(path))[0]

    def resume(self, path: str | Path) -> None:
        """Go on from a file that a detector of the same classes, encoder and settings was saved to.

        Raises:
            StoreError: it is of others, broken, or of a newer version; nothing is changed then.
        """
        kept.resume(Path(path), self)

    def __repr__(self) -> str:
        known = f"{len(self.class_names):,} classes, {self.seen:,} seen"
        return f"<OnlineDetector {self.method}, {known}, {self.stage}>"
