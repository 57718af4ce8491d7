"""What a line of METHODS and of CLASSIFIERS says, as plain values; code is imported when it runs.

A place is "module:name" within this package; an own method gives its function or classes instead.
"""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from zsntta_cli.settings.options import NoSettings

if TYPE_CHECKING:
    from zsntta_cli.methods.base import Online, OnlineClassifier, StreamData

Place = str | Callable[..., Any]  # "module:name", or the function or class itself
WORDS, NO_TEXT = "words", "no-text"  # texts that a method may need besides the class names
FROZEN, BY_SCORE = "frozen", "score"  # where a method's class probability comes from


@functools.cache
def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"zsntta_cli.methods.{module}"), name)


def located(place: Place) -> Any:
    """The function or class of a place, imported at this moment."""
    return _imported(place) if isinstance(place, str) else place


def _of_settings(settings: type[Any], name: str, options: Any, default: Any) -> Any:
    """What a class of settings says of values; `default` where it says nothing.

    The values may be of a class that combines this one with others.
    """
    says = getattr(settings, name, None)
    return says.__get__(options) if isinstance(says, property) else default


class _Entry:
    """What methods and classifiers have in common."""

    settings: str | type[Any]
    run: Place

    @property
    def settings_class(self) -> type[Any]:
        """The dataclass of the settings."""
        settings: type[Any] = located(self.settings)
        return settings

    def at_once(self, options: Any) -> int:
        """The number of items that are decided together, with these settings: at least 1."""
        usual = vars(options).get("batch_size", 1)
        return max(int(_of_settings(self.settings_class, "at_once", options, usual)), 1)

    def note(self, options: Any, classes: int, dim: int) -> str:
        """What is to be said before a run on C classes of D dims; "" if there is nothing."""
        says = getattr(self.settings_class, "note", None)
        return says(options, classes, dim) if says else ""

    @property
    def own_code(self) -> tuple[Any, ...]:
        """The functions and classes that are defined outside the package."""
        if isinstance(self.run, str):
            return ()
        return (self.run,) if self.settings is NoSettings else (self.run, self.settings)


@dataclass(frozen=True)
class Classifier(_Entry):
    """A line of CLASSIFIERS: a classifier's place and settings, and its cost.

    It is a class with `classify(items, offered)` that is made of (data, options), or a function
    `classes(data, options, offered)` of whole streams.
    """

    run: Place
    settings: str | type[Any] = NoSettings
    revision: int = 1  # as a method's
    cites: tuple[str, ...] = ()  # as a method's
    cost: str = ""  # as a method's

    def __post_init__(self) -> None:
        """Refuse errors that would otherwise appear only when the classifier runs.

        Raises:
            TypeError: the settings are no dataclass, or the code does not take its arguments.
        """
        _check_settings(self.settings)
        if inspect.isclass(self.run):
            _check_arguments(self.run, _MADE_CLASSIFIER, "data", "options")
            _check_call(self.run, "classify", _CLASSIFY, "items", "offered")
        elif not isinstance(self.run, str):
            _check_arguments(self.run, _CLASSES, "data", "options", "offered")

    def load(self) -> Callable[..., Any]:
        """The function classes(data, options, offered) on whole streams."""
        code = located(self.run)
        if not inspect.isclass(code):
            return code
        return lambda data, options, offered: self.start(data, options).classify(data, offered)

    def start(self, data: "StreamData", options: Any) -> "OnlineClassifier":
        """Make the classifier before the first item; the stream may be empty."""
        made: OnlineClassifier = located(self.run)(data, options)
        return made


@dataclass(frozen=True)
class Method(_Entry):
    """A line of METHODS: a method's place and settings, its needs and its properties.

    It is a class with `push(items, learn=True)` that is made of (data, options, threshold), or a
    function `run(data, options, threshold)` of whole streams.
    """

    run: Place
    settings: str | type[Any] = NoSettings  # a dataclass
    online: bool = False  # its place is a class with `push`; of own classes this is known
    live: bool = False
    decides: bool = True  # False: it gives a score without a decision rule
    offline: bool = False  # it sees the whole stream before it decides, so it is a reference
    needs: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)  # they replace those of its settings
    imagenet: Mapping[str, Any] = field(default_factory=dict)  # defaults for ID sets of that family
    revision: int = 1  # it goes up when decisions change; older results are then not shown
    is_probability: bool = False  # whether its ID score is a share of a softmax or a sigmoid
    class_probability: str = ""  # FROZEN: its classes are the frozen model's; or BY_SCORE
    cites: tuple[str, ...] = ()  # keys of report/references.bib, or new entries
    cost: str = ""  # in words: the memory that it takes, and the work for an item

    def __post_init__(self) -> None:
        """Refuse errors that would otherwise appear only when the method runs.

        Raises:
            TypeError: the settings are no dataclass, or the code does not take its arguments.
        """
        _check_settings(self.settings)
        if inspect.isclass(self.run):
            _check_arguments(self.run, _MADE, "data", "options", "threshold")
            _check_call(self.run, "push", _PUSH, "items", learn=False)
            object.__setattr__(self, "online", True)
        elif not isinstance(self.run, str) and not self.live:
            _check_arguments(self.run, _RUN, "data", "options", "threshold")

    def load(self) -> Callable[..., Any]:
        """The function run(data, options, threshold) on whole streams; a live one yields."""
        if self.online:
            return lambda data, options, threshold: self.start(data, options, threshold).push(data)
        run: Callable[..., Any] = located(self.run)
        return run

    def start(self, data: "StreamData", options: Any, threshold: Any) -> "Online":
        """Make the method before the first item; the stream may be empty."""
        made: Online = located(self.run)(data, options, threshold)
        return made

    def warm_up(self, options: Any) -> int:
        """The number of first items on which ZS-CLIP decides, with these settings."""
        return int(_of_settings(self.settings_class, "warm_up", options, 0))

    @property
    def warm_up_by(self) -> str:
        """The settings that determine the warm-up, in words."""
        return str(getattr(self.settings_class, "warm_up_by", ""))

    def delay(self, options: Any) -> int:
        """The largest number of later items before a decision is known, with these settings."""
        return self.at_once(options) - 1


@dataclass(frozen=True)
class Pair(Method):
    """A detector with a classifier behind it, which learns from the items that it calls clean."""

    detector: Method | None = None
    classifier: Classifier | None = None

    @property
    def both(self) -> tuple[Method, Classifier]:
        """The detector and the classifier."""
        assert self.detector is not None
        assert self.classifier is not None
        return self.detector, self.classifier

    @property
    def settings_class(self) -> type[Any]:
        """The settings of both in one class."""
        detector, classifier = self.both
        first: Any = detector.settings_class
        second: Any = classifier.settings_class
        both: type[Any] = _both_settings(first, second)
        return both

    def load(self) -> Callable[..., Any]:
        """The function run(data, options, threshold) on whole streams."""
        return functools.partial(located(self.run), *self.both)

    def start(self, data: "StreamData", options: Any, threshold: Any) -> "Online":
        """Make both before the first item."""
        made: Online = located("pairs:Behind")(*self.both, data, options, threshold)
        return made

    def at_once(self, options: Any) -> int:
        """A number of items that is whole batches of one and whole blocks of the other."""
        return math.lcm(*(part.at_once(options) for part in self.both))

    def note(self, options: Any, classes: int, dim: int) -> str:
        """What is to be said of either."""
        notes = (part.note(options, classes, dim) for part in self.both)
        return "; ".join(note for note in notes if note)

    def warm_up(self, options: Any) -> int:
        """The detector's."""
        return self.both[0].warm_up(options)

    @property
    def warm_up_by(self) -> str:
        """The detector's."""
        return self.both[0].warm_up_by

    @property
    def own_code(self) -> tuple[Any, ...]:
        """The own code of both."""
        return tuple(one for part in self.both for one in part.own_code)


def behind(detector: Method, classifier: Classifier) -> Pair:
    """Combine a detector with a classifier that learns from the items that it calls clean."""
    return Pair(
        "pairs:decide_both", online=detector.online and _is_online(classifier),
        offline=detector.offline, needs=detector.needs,
        defaults=detector.defaults, imagenet=detector.imagenet,
        revision=detector.revision + classifier.revision - 1,
        is_probability=detector.is_probability, cites=detector.cites + classifier.cites,
        detector=detector, classifier=classifier,
    )  # fmt: skip


def _is_online(classifier: Classifier) -> bool:
    """Whether a classifier gets its items in pieces: ours do, except block classifiers."""
    if isinstance(classifier.run, str):
        return not classifier.run.rpartition(":")[2].endswith("classes")
    return inspect.isclass(classifier.run)


@functools.cache
def _both_settings(detector: Any, classifier: Any) -> Any:
    """The settings of both in one class, which is made once and again in other processes."""

    def made_again(options: Any) -> tuple[Any, ...]:
        return _both_given, (detector, classifier, vars(options))

    name = f"{detector.__name__}And{classifier.__name__}"
    both = type(name, (detector, classifier), {"__reduce__": made_again, "__module__": __name__})
    return dataclass(frozen=True)(both)


def _both_given(detector: Any, classifier: Any, values: Mapping[str, Any]) -> Any:
    return _both_settings(detector, classifier)(**values)


_RUN = "the function of a method is called with three arguments: run(data, options, threshold)"
_MADE = "the class of a method is made of three arguments: Method(data, options, threshold)"
_CLASSES = "the function of a classifier is called with classes(data, options, offered)"
_MADE_CLASSIFIER = "the class of a classifier is made of two arguments: Classifier(data, options)"
_CLASSIFY = "the class of a classifier has classify(self, items, offered), which returns classes"
_PUSH = "the class of a method has push(self, items, learn=True), which returns its decisions"


def _check_settings(settings: str | type[Any]) -> None:
    if not isinstance(settings, str) and not is_dataclass(settings):
        raise TypeError(
            f"the settings of a method must be a dataclass, not {settings!r}: leave them "
            "out, or write @dataclass(frozen=True) above their class"
        )


def _check_call(own: type[Any], name: str, words: str, *given: str, **named: Any) -> None:
    """Raise TypeError if a class has no function of a name that takes these arguments."""
    if not callable(code := getattr(own, name, None)):
        raise TypeError(words)
    _check_arguments(code, words, "self", *given, **named)


def _check_arguments(code: Callable[..., Any], words: str, *given: str, **named: Any) -> None:
    """Raise TypeError if code does not take these arguments."""
    try:
        inspect.signature(code).bind(*given, **named)
    except TypeError:
        raise TypeError(words) from None
