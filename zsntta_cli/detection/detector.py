"""A detector on features, which needs only NumPy: no torch, no images."""

import copy
import dataclasses
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zsntta_cli.detection import inputs
from zsntta_cli.detection.flags import Flag, FlagValue, flagged
from zsntta_cli.detection.knowledge import FrozenModel, Knowledge
from zsntta_cli.detection.questions import ImageId, Questions
from zsntta_cli.detection.stepping import ONE_THREAD, rescored
from zsntta_cli.detection.verdicts import ADAPTED, WARM_UP, Stage, Verdict, Verdicts
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.settings.options import check

Sources = Sequence[str | None]  # what verdicts call the images
Decide = Callable[[StreamData], Verdicts]

_OF_PROCESS = frozenset({"_lock", "_encoder"})  # no pickle has them


class OnlineDetector:
    """Decide which features belong to none of the classes, and learn from those seen.

    It learns from people, too: `feedback` says what some images are. Verdicts on other images then
    have the log-odds of noise as their score, and 0 as their threshold.

    `update` decides, then learns, in order; dividing the images into other pieces changes no
    verdict. `predict` and `score` judge each image by itself, by what was learned so far, and
    change nothing. Threads may call all methods: updates come one after another, and reading
    methods use the state of a single moment. A detector can be pickled, and `copy.deepcopy` copies
    it.

    The parameter `images` below means features (N, D) here, or one feature (D,). A `NoiseDetector`
    has an encoder that computes them from images, and takes features as `features`.
    """

    normalized = False  # whether features come with unit norm

    def __init__(
        self,
        text_features: ArrayLike,
        logit_scale: float,
        method: str = "cull",
        *,
        class_names: Sequence[str] | None = None,
        normalized: bool = False,
        logit_bias: float | None = None,
        generic_text: ArrayLike | None = None,
        is_level_known: bool = False,
        **settings: Any,
    ) -> None:
        """A detector that has seen nothing.

        Args:
            text_features: (C, D), a row for each class; a tensor is accepted.
            logit_scale: the model's scale, exponentiated: about 100 for CLIP; a value that looks
                like the logarithm gives a warning.
            method: one that decides online: zs-clip, adand or cull.
            class_names: (C,) for the verdicts; numbers where none are given.
            normalized: features come with unit norm, not raw.
            logit_bias: a sigmoid model's own (SigLIP), for `score="match"`.
            generic_text: (D,) the mean of the unit features of 50 texts or more on anything, for
                cull; it is not of unit norm.
            is_level_known: the features are of one of OpenAI's ViTs, for which cull knows the
                level below which an image is noise; `cull_low` sets another encoder's.
            settings: those of the method and its threshold, named as for `simulate`; `seed` is for
                a detector that starts at random.

        Raises:
            SettingsError: one of the arguments is out of its range.
        """
        model = FrozenModel.checked(
            text_features, logit_scale, logit_bias, generic_text, is_level_known
        )
        inputs.warn_of_logarithm(logit_scale)
        self._configure(inputs.checked_names(class_names, len(model.text)), method, settings)
        self.normalized = normalized
        self._begin(model)

    @classmethod
    def from_examples(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        method: str = "cull",
        *,
        class_names: Sequence[str] | None = None,
        **more: Any,
    ) -> "OnlineDetector":
        """Make a detector whose classes are made of example images instead of texts.

        A class is the mean of its examples. The scale of the logits is the one that best
        distinguishes the examples when each is left out.

        Args:
            features: (M, D) of the examples, 2 to 8 a class, raw or of unit norm.
            labels: (M,) their classes' numbers, 0 to C - 1.
            method: one that decides online: zs-clip, adand or cull.
            class_names: (C,) for the verdicts; numbers where none are given.
            more: `normalized`, and the settings of the method, as for `OnlineDetector`.

        Raises:
            SettingsError: one of the arguments is invalid, or no class has two different examples.
        """
        from zsntta_cli.detection.classes.examples import class_features

        classes = class_features(features, labels)
        return OnlineDetector(
            classes.features, classes.scale, method, class_names=class_names, **more
        )

    def _configure(
        self, class_names: tuple[str, ...], method: str, settings: dict[str, Any]
    ) -> None:
        """Take the arguments that need no model; SettingsError if they are invalid."""
        inputs.check_method(method)
        self.class_names, self.method = class_names, method
        self._seed = inputs.checked_seed(settings.pop("seed", 0))
        self._settings = inputs.checked_settings(method, settings)
        self._lock = threading.RLock()
        self._model: FrozenModel | None = None
        self._questions: Questions | None = None  # about what was last decided in hindsight

    def _begin(self, model: FrozenModel) -> None:
        """Start the method; the model is set last, which tells other threads that all is ready."""
        self._knows = self._nothing(model)
        self._model = model

    def _nothing(self, model: FrozenModel) -> Knowledge:
        """The knowledge before the first image."""
        threshold, options = self._settings
        data = model.stream(np.empty((0, model.text.shape[1]), np.float32), self._seed)
        method = METHODS[self.method](data, options, threshold)
        ONE_THREAD.look_again()
        scored = rescored(method, threshold.score, model.bias, len(model.text))
        return Knowledge(model, scored, self.class_names)

    def _prepare(self) -> None:
        """Load the model if it was deferred; here it was given at the start."""

    def _begun(self) -> FrozenModel:
        """The model, after the method has begun."""
        if self._model is None:
            self._prepare()
        assert self._model is not None
        return self._model

    def update(
        self,
        images: Any = None,
        sources: Sources = (),
        *,
        features: Any = None,
    ) -> Verdicts:
        """Decide on the next images, or features (N, D) of images, in order, and learn from them.

        `sources` (N,) are the names of the images in the verdicts; files have their paths.

        Raises:
            DatasetError: a file that cannot be read as an image; nothing is learned then.
            SettingsError: no images, or features of other dims or not finite, likewise.
        """

        def learned(data: StreamData) -> Verdicts:
            with self._lock:
                return self._knows.push(data)

        return self._verdicts(learned, images, features, sources)

    def predict(
        self, images: Any = None, sources: Sources = (), *, features: Any = None
    ) -> Verdicts:
        """Judge images by what was learned, each by itself, without learning."""
        return self._verdicts(lambda data: self._knows.judged(data), images, features, sources)

    def score(self, images: Any = None, *, features: Any = None) -> NDArray[np.float64]:
        """Noise scores (N,), higher = more noise; nothing is learned."""
        return self.predict(images, features=features).score

    def decide_all(
        self,
        images: Any = None,
        passes: int | None = None,
        seed: int = 0,
        sources: Sources = (),
        *,
        features: Any = None,
        flag: FlagValue = None,
        learn: bool = False,
    ) -> Verdicts:
        """Decide on the images of a whole folder in hindsight; verdicts are in their order.

        The images are shown `passes` times, each time in a random order by the seed; the last pass
        decides. If `passes` is None, it depends on the number of images. `questions` are about
        these images from now on, unless a flag says how many are noise.

        Args:
            images: the folder's, or `features` (N, D) of them.
            passes: how often the images are shown.
            seed: of the orders.
            sources: (N,) names of the images in the verdicts.
            features: (N, D) of the images, instead of `images`.
            flag: how many to call noise instead of the method's own decision: a share ("5%" or
                0.05), or a number (50).
            learn: keep what was learned from the images; else nothing is learned.

        Raises:
            SettingsError: invalid passes or flag, or images as for `update`.
        """
        check(passes is None or passes >= 1, f"passes is {passes}, must be 1 or more.")
        seed, wanted = inputs.checked_seed(seed), Flag.of(flag)
        decide = partial(self._in_hindsight, passes=passes, seed=seed, learn=learn)
        verdicts, _ = flagged(self._verdicts(decide, images, features, sources), wanted)
        self._questions = Questions(verdicts) if wanted == Flag() else None
        return verdicts

    def _in_hindsight(
        self, data: StreamData, passes: int | None, seed: int, learn: bool
    ) -> Verdicts:
        with self._lock:
            method, answers = self._knows.snapshot()
            if learn:  # nobody else learns from the first pass to the end
                verdicts = self._knows.in_hindsight(data, method, answers, passes, seed)
                self._knows.go_on_from(method, data, seed)
                return verdicts
        return self._knows.in_hindsight(data, method, answers, passes, seed)

    def questions(self, count: int = 10) -> list[tuple[ImageId, Verdict]]:
        """At most `count` images of `decide_all` to ask a person about: ids and verdicts.

        Images that are nearest to their threshold come first, equal ones once. An id is the image's
        source if that is unique, else its number.

        Raises:
            SettingsError: nothing was decided in hindsight yet.
        """
        check(count >= 1, f"count is {count}, must be 1 or more.")
        return self._asked().named(count)

    def answer(self, image: ImageId, belongs: bool | str) -> None:
        """Say whether an image of `decide_all`, by its id, belongs to one of the classes.

        `belongs` is true, false, or the class to which it belongs.

        Raises:
            SettingsError: there is no such image, the answer is another value, or nothing was
                decided in hindsight yet.
        """
        questions = self._asked()
        is_of_class = inputs.checked_answer("belongs", belongs, self.class_names)
        questions.answer(questions.number(image), is_of_class)

    def answered(self) -> Verdicts:
        """The verdicts of `decide_all` with the answers.

        Answered images, and those equal to them, are as they were answered. If any answer was
        noise, unsure images are noise.

        Raises:
            SettingsError: nothing was decided in hindsight yet.
        """
        return self._asked().verdicts()

    def _asked(self) -> Questions:
        wanted = "decide on a whole folder first: call decide_all, without a flag."
        check(self._questions is not None, wanted)
        assert self._questions is not None
        return self._questions

    def feedback(self, images: Any = None, noise: ArrayLike = (), *, features: Any = None) -> None:
        """Learn what a person says of images: `noise` (N,) marks those of none of the classes.

        A value is true, false, or the class to which the image belongs.

        The order of the answers does not matter, nor whether the images were seen before; the last
        answer about an image counts. Verdicts on other images change as far as the answers
        distinguish noise from clean images better than the method alone.

        Raises:
            DatasetError: a file that cannot be read as an image; nothing is learned then.
            SettingsError: not one answer an image, or another value, likewise.
        """
        rows, _ = self._checked(images, features, ())
        answers = inputs.checked_feedback(noise, len(rows), self.class_names)
        if not len(rows):
            return
        with self._lock, ONE_THREAD:
            self._knows.teach(rows, answers)

    def _verdicts(self, decide: Decide, images: Any, features: Any, sources: Sources) -> Verdicts:
        """The verdicts on images, or on features of images."""
        rows, sources = self._checked(images, features, sources)
        return dataclasses.replace(self._decided(decide, rows), sources=tuple(sources))

    def _decided(self, decide: Decide, rows: NDArray[np.float32]) -> Verdicts:
        with ONE_THREAD:
            return decide(self._begun().stream(rows))

    def _checked(
        self, images: Any, features: Any, sources: Sources
    ) -> tuple[NDArray[np.float32], Sources]:
        """Raw features (N, D) of images, or those that were given, and the images' names."""
        if (images is None) == (features is None):
            raise SettingsError("give either images or features.")
        dim = self._begun().text.shape[1]
        if features is None:
            features, sources = self._features_of(images, sources)
        rows = inputs.checked_features(features, dim, self.normalized)
        is_one_each = len(sources) == len(rows) and not isinstance(sources, str)
        check(not sources or is_one_each, f"{len(sources):,} sources for {len(rows):,} images.")
        return rows, sources

    def _features_of(self, images: Any, sources: Sources) -> tuple[Any, Sources]:
        """Features of images, and their sources; without an encoder, images are features."""
        return images, sources

    @property
    def seen(self) -> int:
        """How many images it has learned from."""
        return self._knows.seen if self._model is not None else 0

    @property
    def labelled(self) -> int:
        """How many images a person has labelled."""
        return len(self._knows.learner.answers) if self._model is not None else 0

    @property
    def warm_up(self) -> int:
        """How many images ZS-CLIP decides before the method's own rule does."""
        self._begun()
        warm_up: int = self._settings[1].warm_up
        return warm_up

    @property
    def ready(self) -> bool:
        """Whether the method's own rule, and no longer ZS-CLIP's, decides on the next image."""
        return self._model is not None and self._knows.method.adapted

    @property
    def note(self) -> str:
        """What is to be known of the method on this encoder; empty if nothing is."""
        model = self._begun()
        phrase = self._settings[1].note(model.generic is not None, model.is_level_known)
        return f"{self.method} {phrase}." if phrase else ""

    @property
    def stage(self) -> Stage:
        """The stage of the next image: "warm-up" while ZS-CLIP decides, then "adapted"."""
        return ADAPTED if self.ready else WARM_UP

    def reset(self) -> None:
        """Forget everything that was learned."""
        with self._lock:
            if self._model is not None:
                self._begin(self._model)

    def __getstate__(self) -> dict[str, Any]:
        """A copy of all but the lock and the encoder, of one moment."""
        with self._lock:
            return copy.deepcopy({k: v for k, v in vars(self).items() if k not in _OF_PROCESS})

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib gives arrays that are files, which nobody can write.
        vars(self).update(copy.deepcopy(state), _lock=threading.RLock())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A detector that learns separately; both have the same encoder."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.__setstate__(self.__getstate__())
        return other

    @property
    def text_features(self) -> NDArray[np.float32]:
        """Text features (C, D) of unit norm."""
        return self._begun().text

    @property
    def logit_scale(self) -> float:
        """The scale by which cosines are multiplied."""
        return self._begun().scale

    @property
    def logit_bias(self) -> float | None:
        """The bias that a sigmoid model adds to a logit."""
        return self._begun().bias

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the method and its threshold, by name."""
        threshold, options = map(dataclasses.asdict, self._settings)
        return {**threshold, **options, "seed": self._seed}

    def __repr__(self) -> str:
        counts = f"{len(self.class_names):,} classes, {self.seen:,} seen, {self.stage}"
        return f"<{type(self).__name__} {self._label()}{self.method}, {counts}>"

    def _label(self) -> str:
        """The description of its encoder in a file."""
        return ""
