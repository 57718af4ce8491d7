"""What a method is: a class with its settings, its facts and its equations in one file.

`Method(data, settings, threshold)` is made before the first item, and `push(items)` decides on the
next ones. A `Classifier` only names classes; a `Pair` is a detector with a classifier behind it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, replace
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from zsntta_cli.settings.options import Range, Settings, option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from zsntta_cli.methods.base import Decisions, StreamData
    from zsntta_cli.methods.scores import Floats, Mask

WORDS, NO_TEXT = "words", "no-text"  # texts that a method may need besides the class names
FROZEN, BY_SCORE = "frozen", "score"  # where the probability of the chosen class comes from

cosine_temperature = partial(
    option, None, "Temperature of the softmax over cosines; none means 1 / logit scale.",
    within=Range(least=1e-4),
)  # fmt: skip
AT_ONCE = "Number of items decided together."
WORD_LIST = "Word list of `extract --words`: wordnet, NAME or NAME,NAME; by default the cached one."


@dataclass(frozen=True)
class MethodSettings(Settings):
    """The base class of a method's settings, with what depends on them alone."""

    warm_up_by = ""  # the settings that determine the warm-up, in words

    def values(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(vars(self))

    @property
    def warm_up(self) -> int:
        """The number of first items on which ZS-CLIP decides."""
        return 0

    @property
    def at_once(self) -> int:
        """The number of items that are decided together."""
        return int(vars(self).get("batch_size", 1))

    def note(self, has_generic: bool, is_level_known: bool) -> str:
        """A note on runs by an encoder with or without a generic text, or a known level; or ""."""
        return ""


def fields_of(settings: Any) -> Mapping[str, "Field[Any]"]:
    """The fields of a class of settings, by name."""
    fields: Mapping[str, Field[Any]] = settings.__dataclass_fields__
    return fields


class _Described:
    """The facts that methods and classifiers have in common."""

    Settings: ClassVar[type[MethodSettings]] = MethodSettings  # a subclass of it, with fields
    online: ClassVar[bool] = True  # False: it gets a stream in one piece
    official: ClassVar[Mapping[str, Any]] = {}  # its values in the preset `official`
    revision: ClassVar[int] = 1  # goes up when decisions change; older results are then not shown
    cites: ClassVar[tuple[str, ...]] = ()  # keys of report/references.bib, or new entries
    cost: ClassVar[str] = ""  # in words: the memory that it takes, and the work for an item
    is_own: ClassVar[bool]  # whether its code is from outside the package

    def __init_subclass__(cls, **more: Any) -> None:
        """Make its Settings a frozen dataclass, with those that it inherits from."""
        super().__init_subclass__(**more)
        cls.is_own = not cls.__module__.startswith("zsntta_cli.")
        for kind in reversed(cls.Settings.__mro__):
            if issubclass(kind, MethodSettings) and "__dataclass_fields__" not in vars(kind):
                dataclass(frozen=True)(kind)

    @classmethod
    def fields(cls) -> Mapping[str, "Field[Any]"]:
        """The fields of its settings, by name."""
        return fields_of(cls.Settings)

    @classmethod
    def settings(cls, **values: Any) -> MethodSettings:
        """Its settings; those that are not given have their defaults."""
        return cls.Settings(**values)


class Method(_Described):
    """A method of noisy test-time adaptation: it says which items are noise, and names the others.

    All that it has learned is in its attributes, so it can be pickled and copied. Its decisions do
    not depend on the pieces in which a stream is pushed; with a batch size above 1 all pieces but
    the last one are whole batches.
    """

    live: ClassVar[bool] = False  # it encodes images, and may change the encoder
    offline: ClassVar[bool] = False  # a reference: it sees the whole stream before it decides
    decides: ClassVar[bool] = True  # False: it gives a score without a decision rule
    needs: ClassVar[str] = ""  # WORDS, NO_TEXT, or nothing
    reads_generic: ClassVar[bool] = False  # the encoder's generic text, where it is known
    defaults: ClassVar[Mapping[str, Any]] = {}  # they replace those of streams and thresholds
    imagenet: ClassVar[Mapping[str, Any]] = {}  # defaults for ID sets of that family
    is_probability: ClassVar[bool] = False  # whether its ID score is a share, in [0, 1]
    # The probability that the chosen class is right: MCM, where classes are the frozen model's
    # (FROZEN), the ID score itself (BY_SCORE), or none.
    class_probability: ClassVar[str] = ""

    def __init__(self, data: "StreamData", settings: Any, threshold: Any) -> None:
        """Start before the first item of `data`, which may be empty, by ThresholdSettings."""
        from zsntta_cli.methods.threshold import OnlineThreshold  # a help page needs no NumPy

        self.options, self.threshold = settings, OnlineThreshold(threshold, settings.at_once)
        self.start(data)

    def start(self, data: "StreamData") -> None:
        """Set up its state before the first item."""

    def scores(self, items: "StreamData", learn: bool) -> "Floats":
        """The ID scores S (T,) of the next items, in [0, 1] where it decides by them."""
        raise NotImplementedError("a method must have scores(items, learn) or push(items, learn)")

    def push(self, items: "StreamData", learn: bool = True) -> "Decisions":
        """Decide on the next items, in order, and learn from them.

        Without learning each item is decided by itself, by what was learned before all of them.
        Where a method does not say otherwise, classes are the frozen model's, and an item is noise
        iff u = 1 - S is above the online threshold of these scores.
        """
        from zsntta_cli.methods.base import Decisions

        score = self.scores(items, learn)
        if not self.decides:
            return Decisions(items.class_index, None, score)
        thresholds = self.threshold(1 - score, learn)
        is_noise = 1 - score > thresholds
        return Decisions(items.class_index, is_noise, score, detector_threshold=thresholds)

    @property
    def adapted(self) -> bool:
        """Whether its own rule decides on the next item, not that of the warm-up."""
        return True


class Live(Method):
    """A method that encodes images; `data` is a LiveData."""

    live = True
    online = False
    place: ClassVar[str] = ""  # of its function in methods/live: "open_set:ostta"

    def __init__(self, data: Any, settings: Any, threshold: Any) -> None:
        """Take what `run` needs."""
        self.data = data
        super().__init__(data, settings, threshold)

    def run(self) -> "Iterator[Decisions]":
        """Yield the decisions on all items, in order, as they are made."""
        function = resolve_name(f"zsntta_cli.methods.live.{self.place}")  # it imports torch
        decided: Iterator[Decisions] = function(self)
        return decided


class Classifier(_Described, ABC):
    """A classifier that learns from the items of a stream that a detector calls clean."""

    def __init__(self, data: "StreamData", settings: Any) -> None:
        """Start before the first item, as a method does."""
        self.options = settings
        self.text = data.text_features.astype("float64")  # (C, D) unit norm
        self.start(data)

    def start(self, data: "StreamData") -> None:
        """Set up its state before the first item."""

    @abstractmethod
    def classify(self, items: "StreamData", offered: "Mask") -> "NDArray[np.int32]":
        """The classes (T,) of the next items; it learns from those that are `offered` (T,)."""


@dataclass(frozen=True)
class PairSettings:
    """The settings of a detector and of its classifier, which has the detector's where both do."""

    detector: MethodSettings
    classifier: MethodSettings

    def values(self) -> dict[str, Any]:
        """The settings of both by name."""
        return {**self.classifier.values(), **self.detector.values()}

    @property
    def at_once(self) -> int:
        """A number of items that is whole batches of one and whole blocks of the other."""
        return math.lcm(self.detector.at_once, self.classifier.at_once)

    def __getattr__(self, name: str) -> Any:
        """Warm-up and notes are the detector's."""
        if name.startswith("_"):  # what copying and pickling ask for
            raise AttributeError(name)
        return getattr(self.detector, name)


class Behind(Method):
    """A detector and the classifier behind it while their stream runs."""

    def __init__(self, detector: Method, classifier: Classifier, offers_all: bool) -> None:
        self.detector, self.classifier, self.offers_all = detector, classifier, offers_all

    def push(self, items: "StreamData", learn: bool = True) -> "Decisions":
        """Decide on noise as the detector does; the classifier learns from clean samples."""
        decisions = self.detector.push(items, learn)
        assert decisions.is_noise is not None
        offered = (~decisions.is_noise | self.offers_all) & ~items.injected & learn
        return replace(decisions, class_index=self.classifier.classify(items, offered))

    @property
    def adapted(self) -> bool:
        """Whether the detector's own rule decides."""
        return self.detector.adapted


class Pair:
    """A detector with a classifier behind it, with the facts that the class of a method has."""

    live, decides, class_probability = False, True, ""

    def __init__(
        self, detector: type[Method], classifier: type[Classifier], offers_all: bool = False
    ) -> None:
        # The classifier is offered what the detector calls clean, or all but injected noise.
        self.detector, self.classifier, self.offers_all = detector, classifier, offers_all
        self.online = detector.online and classifier.online
        self.official = {**classifier.official, **detector.official}
        self.revision = detector.revision + classifier.revision - 1
        self.cites = detector.cites + classifier.cites
        self.cost = "; ".join(filter(None, (detector.cost, classifier.cost)))

    def __getattr__(self, fact: str) -> Any:
        """Every other fact is the detector's."""
        if fact.startswith("_"):  # what copying and pickling ask for
            raise AttributeError(fact)
        return getattr(self.detector, fact)

    def fields(self) -> Mapping[str, "Field[Any]"]:
        """The fields of the settings of both, by name."""
        return {**self.classifier.fields(), **self.detector.fields()}

    def settings(self, **values: Any) -> PairSettings:
        """The settings of both; those that are not given have their defaults."""
        of_detector = {name: values.pop(name) for name in self.detector.fields() if name in values}
        detector, of_classifier = self.detector.settings(**of_detector), self.classifier.fields()
        values |= {k: v for k, v in detector.values().items() if k in of_classifier}
        return PairSettings(detector, self.classifier.settings(**values))

    def __call__(self, data: "StreamData", settings: Any, threshold: Any) -> Behind:
        """Start both before the first item."""
        classifier = self.classifier(data, settings.classifier)
        detector = self.detector(data, settings.detector, threshold)
        return Behind(detector, classifier, self.offers_all)


def fault(line: object, kind: type[_Described]) -> str:
    """Why a value cannot be a line of METHODS or CLASSIFIERS; "" if it can."""
    what = getattr(line, "__name__", type(line).__name__)
    if not (isinstance(line, type) and issubclass(line, kind)):
        return f"{what} is not a {kind.__name__}: write class NAME({kind.__name__})"
    options = line.Settings
    if not (issubclass(options, MethodSettings) and "__dataclass_fields__" in vars(options)):
        return f"{what}.Settings has no settings: write class Settings(MethodSettings) in {what}"
    for name, setting in line.fields().items():
        if setting.default is MISSING and setting.default_factory is MISSING:
            return f"{what}.Settings.{name} has no default: write {name}: TYPE = DEFAULT"
    needs = getattr(line, "needs", "")
    if (name := needs.replace("-", "_")) and name not in line.fields():
        return f'{what} needs {needs}: add {name}: str = option("", HELP) to its Settings'
    return ""
