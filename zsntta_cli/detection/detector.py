"""A detector on features, which needs only NumPy: no torch, no images."""

import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zsntta_cli.cache.identity import is_level_known
from zsntta_cli.detection import inputs, learning
from zsntta_cli.detection.inputs import Rows
from zsntta_cli.detection.names import names_of
from zsntta_cli.detection.verdicts import Flag, Verdicts, parsed_flag
from zsntta_cli.errors import counted
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.match import BestClass
from zsntta_cli.methods.method import Method
from zsntta_cli.methods.scores import CLIP_NORM
from zsntta_cli.settings import MATCH, StreamSettings
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_SEEN = 64  # images before the last pass over a folder: where cull's own rule begins
_MOST_PASSES = 12
_STEP = 64  # images between two rules of people's answers, at first; later learning.RECENT

# One detector at a time works, in whatever thread: BLAS's number of threads is the process's.
_LOCK = threading.RLock()


class Detector:
    """Decide which features belong to none of the classes, and learn from those seen.

    `update` decides, then learns, in order; dividing the images into other pieces changes no
    verdict. `predict` judges each image by itself, by what was learned so far, and changes nothing.
    It learns from people, too: `feedback` says what some images are. Verdicts on other images then
    have the log odds of noise as their score, and 0 as their threshold.

    Threads may share it. It pickles, and `copy.deepcopy` copies it; load only pickles of your own.
    """

    def __init__(
        self,
        text: ArrayLike,
        scale: float,
        names: Sequence[str] | None = None,
        method: str = "cull",
        *,
        bias: float | None = None,
        generic: ArrayLike | None = None,
        is_level_known: bool = False,
        normalized: bool = False,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        """A detector that has seen nothing.

        Args:
            text: (C, D) text features, a row for each class; a tensor is accepted.
            scale: the model's logit scale, exponentiated: about 100 for CLIP; a value that looks
                like the logarithm gives a warning.
            names: (C,) of the classes; by default their numbers.
            method: a method that decides online: zs-clip, adand or cull.
            bias: a sigmoid model's logit bias (SigLIP), for `score="match"`.
            generic: (D,) the mean of the unit features of 50 texts or more on anything, for cull;
                its norm is below 1.
            is_level_known: whether the encoder is one of OpenAI's ViTs, for which cull knows the
                level below which an image is noise; `cull_low` sets the level for other encoders.
            normalized: whether features have unit norm instead of being raw.
            seed: the seed of a method that starts at random.
            settings: settings of the method and its threshold, named as for `simulate`.

        Raises:
            SettingsError: an argument is out of its range.
        """
        threshold, self._options = inputs.checked_settings(method, settings)
        self.text, self.scale = inputs.checked_text(text), inputs.checked_scale(scale)
        classes, dim = self.text.shape
        self.bias = None if bias is None else inputs.checked_bias(bias)
        self.generic = None if generic is None else inputs.checked_generic(generic, dim)
        self.names = tuple(map(str, range(classes))) if names is None else names_of(names)
        named = counted(len(self.names), "name")
        check(len(self.names) == classes, f"{named} for {classes:,} rows of text features.")
        self.method, self.normalized, self.is_level_known = method, normalized, bool(is_level_known)
        self.seed, self.seen = StreamSettings(seed=seed).seed, 0
        self._judge: Method = METHODS[method](self._stream(self.text[:0]), self._options, threshold)
        _blas.cache_clear()  # a method may have brought another, as SciPy's
        if threshold.score == MATCH or classes == 1:  # of one class 1 - MCM is always 0
            self._judge = BestClass(self._judge, self.bias if threshold.score == MATCH else None)
        self._labels: learning.Labels | None = None
        self._rule: learning.Rule | None = None
        self._recent = np.zeros((learning.RECENT, dim), np.float32)  # a ring

    @classmethod
    def of(
        cls,
        encoder: Any,
        names: Sequence[str] | None = None,
        photos: Any = None,
        prompt: str = DEFAULT_PROMPT,
        method: str = "cull",
        **more: Any,
    ) -> "Detector":
        """A detector on the features of an encoder that `load_encoder` loaded.

        Its classes have `names` in a `prompt`, which is a template with one {} for the name or the
        name of a template; or `photos`, a folder with a subfolder of 2 to 8 examples per class.
        `method` and `more` are as for a detector.

        Raises:
            SettingsError: an argument is invalid. DatasetError: a photo cannot be read.
        """
        from zsntta_cli.encoders.text import generic_text, prompt_features
        from zsntta_cli.settings.prompts import prompt_template

        check((names is None) != (photos is None), "give either names or photos of your classes.")
        inputs.check_method(method)
        if photos is not None:
            from zsntta_cli.detection.photos import classes_of

            classes = classes_of(encoder, photos)
            return cls(classes.features, classes.scale, classes.names, method, **more)
        names = names_of(names or ())
        encode, template = encoder.encode_texts, prompt_template(prompt)
        facts = facts_of(encoder.identity, method, more, lambda: generic_text(encode)[0])
        text = prompt_features(encode, template, names)
        return cls(text, encoder.identity["logit_scale"], names, method, **{**facts, **more})

    def update(self, features: Any) -> Verdicts:
        """Decide on the next images (N, D), or one (D,), in order, and learn from them.

        Raises:
            SettingsError: features have other dimensions or are not finite; then nothing is
                learned.
        """
        rows, parts = self._checked(features), list[Verdicts]()
        with _working():
            while len(rows) or not parts:
                # The rule of answers is fitted anew at fixed numbers of images, in any pieces.
                step = _STEP if self.seen < learning.RECENT else learning.RECENT
                count = step - self.seen % step if self._labels else len(rows)
                new, rows = rows[:count], rows[count:]
                parts.append(self._by_rule(self._rule, self._decided(self._judge, new), new))
                self._see(new)
                if len(new) and self.seen % step == 0:
                    self._fit()
        return Verdicts.joined(parts)

    def predict(self, features: Any) -> Verdicts:
        """Judge images (N, D) by what was learned, each by itself, without learning."""
        rows = self._checked(features)
        with _working():
            verdicts = self._decided(self._judge, rows, learn=False)
            return self._by_rule(self._rule, verdicts, rows)

    def decide_all(
        self,
        features: Any,
        flag: Flag = None,
        passes: int | None = None,
        seed: int = 0,
        learn: bool = False,
    ) -> Verdicts:
        """Decide on a whole folder (N, D) in hindsight; verdicts are in its order.

        The images are shown several times, each time in another random order by the seed: a sorted
        folder would be the worst stream. The last pass decides.

        Args:
            features: features of the folder's images.
            flag: how many to call noise instead of the method's own decision: a share ("5%" or
                0.05), or a number (50).
            passes: how often the images are shown; by default it depends on their number.
            seed: the seed of the random orders.
            learn: whether to keep what was learned from the images.

        Raises:
            SettingsError: invalid passes or flag, or features as for `update`.
        """
        check(passes is None or passes >= 1, f"passes is {passes}, must be 1 or more.")
        wanted = parsed_flag(flag)
        rows = self._checked(features)
        random = np.random.Generator(np.random.PCG64(StreamSettings(seed=seed).seed))
        with _working():
            data, judge = self._stream(rows), copy.deepcopy(self._judge)
            count = passes or passes_for(len(rows))
            orders = [random.permutation(len(rows)) for _ in range(count)]
            for order in orders:
                decisions = judge.push(data.part(order))
            verdicts = Verdicts.of(data, decisions.part(np.argsort(orders[-1])), self.names)
            if self._labels:
                rule = self._fitted(self._labels, judge, rows, verdicts.margin)
                verdicts = self._by_rule(rule, verdicts, rows)
            if learn:
                self._judge = judge
                self._see(rows[orders[0]])
                self._fit()
        return verdicts.with_flag(wanted)

    def feedback(self, features: Any, noise: Any) -> None:
        """Learn from a person's answers about images (N, D).

        Neither the order of the answers matters, nor whether the images were seen before. The last
        answer about an image counts. Verdicts on other images change as far as the answers
        distinguish noise from clean images better than the method alone.

        Args:
            features: features of the images.
            noise: (N,) for each image, whether it belongs to none of the classes, or its class.

        Raises:
            SettingsError: the answers are not one per image, or have another value; then nothing
                is learned.
        """
        rows = self._checked(features)
        is_noise = inputs.checked_answers(noise, len(rows), self.names)
        if not len(rows):
            return
        with _working():
            if before := self._labels:
                rows = np.concatenate([before.features, rows])
                is_noise = np.concatenate([before.noise, is_noise])
            self._labels = learning.Labels.of(rows, is_noise)
            self._fit()

    @property
    def labelled(self) -> int:
        """How many images a person has labelled."""
        return len(self._labels or ())

    @property
    def ready(self) -> bool:
        """Whether the method's own rule, not ZS-CLIP's, decides on the next image."""
        return self._judge.adapted

    @property
    def warm_up(self) -> int:
        """How many images ZS-CLIP decides before the method's own rule does."""
        return int(self._options.warm_up)

    @property
    def note(self) -> str:
        """A note on the method with this encoder; empty if there is none."""
        phrase = self._options.note(self.generic is not None, self.is_level_known)
        return f"{self.method} {phrase}." if phrase else ""

    def __repr__(self) -> str:
        state = "ready" if self.ready else "in its warm-up"
        return (
            f"<Detector by {self.method}, {len(self.names):,} classes, {self.seen:,} seen, {state}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        """A copy of one moment, whatever other threads do."""
        with _LOCK:
            return copy.deepcopy(vars(self))

    def _stream(self, rows: Rows) -> StreamData:
        """Raw features (N, D) as a stream with zero-shot scores."""
        return StreamData.scored(
            rows,
            self.text,
            self.scale,
            seed=self.seed,
            generic=self.generic,
            is_level_known=self.is_level_known,
        )

    def _decided(self, judge: Method, rows: Rows, learn: bool = True) -> Verdicts:
        data = self._stream(rows)
        return Verdicts.of(data, judge.push(data, learn), self.names)

    def _see(self, rows: Rows) -> None:
        """Remember the next images in a ring, in the place that their number gives them."""
        last = rows[-learning.RECENT :]
        numbers = np.arange(self.seen + len(rows) - len(last), self.seen + len(rows))
        self.seen += len(rows)
        self._recent[numbers % learning.RECENT] = last

    def _fit(self) -> None:
        """Fit the rule of the answers, if there are any, by what is known now."""
        if self._labels:
            recent = self._recent[: self.seen]
            margins = self._decided(self._judge, recent, learn=False).margin
            self._rule = self._fitted(self._labels, self._judge, recent, margins)

    def _fitted(
        self, labels: learning.Labels, judge: Method, rows: Rows, margins: NDArray[np.float64]
    ) -> learning.Rule:
        """The rule of answers among images (N, D), which have margins (N,)."""
        of_labelled = self._decided(judge, labels.features, learn=False).margin
        return learning.fitted(labels, of_labelled, rows, margins)

    def _by_rule(self, rule: learning.Rule | None, verdicts: Verdicts, rows: Rows) -> Verdicts:
        """Verdicts by the rule of answers, if there are any."""
        if rule is None:
            return verdicts
        knows_noise = bool(rule.labels.noise.any())
        return verdicts.by_odds(rule.log_odds(rows, verdicts.margin), knows_noise=knows_noise)

    def _checked(self, features: Any) -> Rows:
        """Raw features (N, D); those of unit norm get the norm of raw ones, as in a replay."""
        rows = inputs.checked_features(features, self.text.shape[1])
        return rows * CLIP_NORM if self.normalized else rows


def facts_of(
    identity: Mapping[str, Any],
    method: str,
    settings: Mapping[str, Any],
    generic: Callable[[], NDArray[np.float32] | None],
) -> dict[str, Any]:
    """The arguments of a detector of class names that an encoder determines, by its identity.

    The encoder's `generic` text is requested if the method reads it and a level is known or set.
    """
    is_known = is_level_known(identity)
    has_level = is_known or settings.get("cull_low") is not None
    reads = has_level and METHODS[method].reads_generic
    return {
        "bias": identity.get("logit_bias"),
        "is_level_known": is_known,
        "generic": generic() if reads else None,
    }


def passes_for(images: int) -> int:
    """How often a folder with that many images is shown, so that cull's own rule decides all.

    Measured, more passes bring nothing and cost clean images: repeated images are not new evidence.
    AdaND gains nothing from repeats, and gets no more passes.
    """
    return min(1 + -(-_SEEN // max(images, 1)), _MOST_PASSES)


def fewest_for(warm_up: int) -> int:
    """The smallest folder whose images are all decided by the rule of a method with this warm-up.

    All images shown before the last pass count, including repeats.
    """
    return next(n for n in count(1) if (passes_for(n) - 1) * n >= warm_up)


@cache
def _blas() -> "ThreadpoolController":
    """The BLAS libraries of the process: looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def _working() -> Iterator[None]:
    """Let one detector work, with BLAS on one thread: more stall each other on small products."""
    with _LOCK, _blas().limit(limits=1, user_api="blas"):
        yield
