"""The methods: a file each, a settings class, and a line in METHODS. Light: it imports no NumPy.

`run(data, options, threshold)` gets the stream, the method's own settings and those of the
threshold. A cached one returns its decisions on all items; a live one, which is given images and
the encoder too, yields them as it has them (methods/live/).

A classifier that adapts is a line in CLASSIFIERS: `classes(data, options, offered)` gives the class
of each item, learned from those that are offered. It goes behind any method that decides, as
"adand+tda": METHODS makes such a pair when it is asked for.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from zsntta_cli import plugins
from zsntta_cli.errors import UnknownName
from zsntta_cli.methods import settings
from zsntta_cli.methods.live import settings as live_settings
from zsntta_cli.methods.words import settings as words_settings
from zsntta_cli.settings.options import NoSettings

if TYPE_CHECKING:
    from zsntta_cli.methods.base import Decisions, Stepper, StreamData

WORDS, NO_TEXT = "words", "no-text"  # what a method may need besides the class names
FROZEN, BY_SCORE = "frozen", "score"  # where the probability of a method's classes is


def _no_note(_options: Any, _classes: int, _dim: int) -> str:
    return ""


@dataclass(frozen=True)
class WarmUp:
    """The first items of a stream: another method decides on them."""

    items: Callable[[Any], int]  # how many, by the method's settings
    settings: str  # which of them make that number
    teacher: str = "zs-clip"  # who decides


def _batch_size(options: Any) -> int:
    return int(vars(options).get("batch_size", 1))


@dataclass(frozen=True)
class Method:
    """An entry of METHODS: a method's function and settings, and what it needs and promises."""

    run: str | Callable[..., Any]  # the function, or where it is: "module:function"
    settings: type[Any] = NoSettings  # a dataclass
    live: bool = False
    decides: bool = True  # or it gives a score without a decision rule
    offline: bool = False  # it sees the whole stream before it decides: a reference, no competitor
    needs: str = ""
    takes: str = ""  # what it may be given as well, where the setting of that name asks for it
    defaults: Mapping[str, Any] = field(default_factory=dict)  # other than its settings' own
    imagenet: Mapping[str, Any] = field(default_factory=dict)  # where the ID set is of that family
    stepper: str = ""  # of one that decides online: where what is pushed to is made
    warm_up: WarmUp = WarmUp(lambda _: 0, "")
    at_once: Callable[[Any], int] = _batch_size  # items that are decided together, by its settings
    note: Callable[[Any, int, int], str] = _no_note  # by settings, C and D; "" if there is none
    revision: int = 1  # goes up when its decisions change: older results are then not shown
    is_probability: bool = False  # whether its ID score is one: a share of a softmax, a sigmoid
    class_probability: str = ""  # of its classes: the FROZEN model's, which they are; its ID score
    parts: "tuple[Method, Classifier] | None" = None  # of a classifier behind a detector
    cites: tuple[str, ...] = ()  # keys of report/references.bib, or entries of one's own
    cost: str = ""  # what it keeps of a stream, and what it does with an item, in words

    def __post_init__(self) -> None:
        """Refuse what would fail only when the method runs.

        Raises:
            TypeError: the settings are no dataclass, or `run` does not take what it will be given.
        """
        if not is_dataclass(self.settings):
            raise TypeError(
                f"the settings of a method must be a dataclass, not {self.settings!r}: leave them "
                "out, or write @dataclass(frozen=True) above their class"
            )
        if callable(self.run) and not (self.live or self.parts):
            _check_arguments(self.run)

    def load(self) -> Callable[..., Any]:
        """The function `run`, imported when it is first needed."""
        if self.parts:
            return functools.partial(_found(self.run), *(part.load() for part in self.parts))
        return _found(self.run)

    def delay(self, options: Any) -> int:
        """The largest number of items until a decision is known, with these settings."""
        return max(self.at_once(options), 1) - 1

    @property
    def own_code(self) -> tuple[Any, ...]:
        """The functions and classes of the method that are defined outside the package."""
        if self.parts:
            return tuple(one for part in self.parts for one in part.own_code)
        if isinstance(self.run, str):
            return ()
        return (self.run,) if self.settings is NoSettings else (self.run, self.settings)

    def needs_with(self, options: Any) -> str:
        """Name what the method needs besides the class names, with these settings."""
        asked = self.takes and getattr(options, self.takes)
        return self.needs or (self.takes if asked else "")

    def notes(self, options: Any, classes: int, dim: int) -> list[str]:
        """The notes to print before the method runs on C classes of D dims."""
        noted = (part.note(options, classes, dim) for part in self.parts or (self,))
        return [note for note in noted if note]

    def start(self, *given: Any) -> "Stepper":
        """Make a stepper from the arguments of `run`; the stream may be empty."""
        stepper: Stepper = _found(self.stepper)(*given)
        return stepper


@dataclass(frozen=True)
class Classifier:
    """An entry of CLASSIFIERS: a classifier's function and settings, and what it costs."""

    classes: str | Callable[..., Any]  # the function, or where it is: "module:function"
    settings: type[Any]  # a dataclass
    at_once: Callable[[Any], int] = lambda _: 1  # items that are classified together
    note: Callable[[Any, int, int], str] = _no_note  # by settings, C and D; "" if there is none
    revision: int = 1  # as a method's
    cites: tuple[str, ...] = ()  # as a method's
    cost: str = ""  # as a method's

    def load(self) -> Callable[..., Any]:
        """The function `classes`, imported when it is first needed."""
        return _found(self.classes)

    @property
    def own_code(self) -> tuple[Any, ...]:
        """The functions and classes of the classifier that are defined outside the package."""
        return () if isinstance(self.classes, str) else (self.classes, self.settings)


def _check_arguments(run: Callable[..., Any]) -> None:
    """Raise TypeError where a method's function does not take its three arguments."""
    import inspect

    try:
        inspect.signature(run).bind("data", "options", "threshold")
    except TypeError:
        raise TypeError(
            "the function of a method is called with three arguments: run(data, options, threshold)"
        ) from None


def _found(where: str | Callable[..., Any]) -> Callable[..., Any]:
    """A function, or one by its module and name, imported when it is first needed."""
    if not isinstance(where, str):
        return where
    module, _, name = where.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return function


# AdaND and Syde inject noise as part of the method; others only where it is asked to.
_INJECTS = {"noise": "gaussian"}
_SGD = {"optimizer": "sgd"}  # Tent's on ImageNet, and no AugMix for TPT: as they were published
_PAPER = "cao2025noisy"
_TDA_COST = "keeps positive-shots + negative-shots images a class; an item is compared with all"
_STAGE_1 = WarmUp(attrgetter("stage1_items"), "warmup x update-every")


class _Methods(dict[str, Method]):
    """All methods by name; "detector+classifier" combines two of them at each lookup.

    A combination is not stored. The list of methods therefore does not depend on earlier lookups,
    and a combination always has the current version of its parts.
    """

    def __missing__(self, name: str) -> Method:
        plugins.load_declared()  # at the first name that is none of the package's
        if name in self:
            return self[name]
        detector, _, classifier = name.rpartition("+")
        if classifier not in CLASSIFIERS or detector not in self:
            raise KeyError(name)
        if self[detector].live or not self[detector].decides or self[detector].parts:
            raise KeyError(name)
        if issubclass(CLASSIFIERS[classifier].settings, self[detector].settings):
            raise KeyError(name)  # tda+tda: a method behind itself
        return behind(detector, classifier)


def behind(detector: str, classifier: str) -> Method:
    """A classifier that learns from the items that a detector calls clean."""
    parts = first, second = METHODS[detector], CLASSIFIERS[classifier]
    return Method(
        _decide_both, _both_settings(first.settings, second.settings),  # type: ignore[arg-type]
        offline=first.offline, needs=first.needs, takes=first.takes, defaults=first.defaults,
        imagenet=first.imagenet, warm_up=first.warm_up,
        revision=first.revision + second.revision - 1, parts=parts,
        at_once=_whole_in_both(first.at_once, second.at_once),
        is_probability=first.is_probability, cites=first.cites + second.cites,
    )  # fmt: skip


@functools.cache
def _whole_in_both(one: Callable[[Any], int], other: Callable[[Any], int]) -> Callable[[Any], int]:
    """How many items make whole batches of one and whole blocks of the other; made once."""
    return lambda options: math.lcm(max(one(options), 1), max(other(options), 1))


def _decide_both(
    detect: Callable[..., "Decisions"],
    classify: Callable[..., Any],
    data: "StreamData",
    options: Any,
    threshold: Any,
) -> "Decisions":
    """Decide on noise as the detector does; classes by what it calls clean, injected noise never.

    `options` are the settings of both.
    """
    decisions = detect(data, options, threshold)
    assert decisions.is_noise is not None
    offered = ~decisions.is_noise & ~data.injected
    return replace(decisions, class_index=classify(data, options, offered))


@functools.cache
def _both_settings(detector: type[Any], classifier: type[Any]) -> type[Any]:
    """The settings of two as one class, made once, which other processes make again."""

    def made_again(options: Any) -> tuple[Any, ...]:
        return _both_given, (detector, classifier, vars(options))

    name = f"{detector.__name__}And{classifier.__name__}"
    both = type(name, (detector, classifier), {"__reduce__": made_again, "__module__": __name__})
    return dataclass(frozen=True)(both)


def _both_given(detector: type[Any], classifier: type[Any], values: Mapping[str, Any]) -> Any:
    return _both_settings(detector, classifier)(**values)  # type: ignore[arg-type]


def find_method(name: str) -> Method | None:
    """The method of a name, one of two parts too; None where its code is not here."""
    try:
        return METHODS[name]
    except KeyError:
        return None


def check_method(name: str, what: str = "method") -> None:
    """Raise UnknownName where there is no such method, nor one of two parts."""
    if find_method(name) is None:
        raise UnknownName(what, name, tuple(METHODS))


def detector_of(name: str) -> str:
    """Whose score a method decides by: of "adand+tda", AdaND's; of "mine+tda" that of `mine`."""
    method, (detector, _, classifier) = find_method(name), name.rpartition("+")
    is_pair = method.parts if method else detector in METHODS or classifier in CLASSIFIERS
    return detector if detector and is_pair else name


def method_place(name: str) -> tuple[int, int, str]:
    """Where a method stands among others, to sort by: as they are listed, unknown ones last.

    A pair that is not listed stands behind its detector, in the order of the classifiers.
    """
    detector, _, classifier = name.rpartition("+")
    if name in METHODS or classifier not in CLASSIFIERS:
        return _index(METHODS, name), -1, name
    return _index(METHODS, detector), _index(CLASSIFIERS, classifier), name


def _index(listed: Mapping[str, object], name: str) -> int:
    return list(listed).index(name) if name in listed else len(listed)


CLASSIFIERS: dict[str, Classifier] = {
    "tda": Classifier(
        "classifiers.tda:adapted_classes", settings.TDASettings, cites=("karmanov2024efficient",),
        cost=_TDA_COST,
    ),
    "oga": Classifier(
        "classifiers.oga:classes", settings.OGASettings, cites=("fuchs2025online",), revision=2,
        cost="keeps oga-shots images a class and a covariance of D² numbers, whose inverse is made "
        "anew with each image that is kept",
    ),
    "onzeta": Classifier(
        "classifiers.onzeta:classes", settings.OnZetaSettings, revision=2,
        cites=("qian2024online",),
        cost="keeps a proxy of D numbers and a weight a class",
    ),
    "bca": Classifier(
        "classifiers.bca:classes", settings.BCASettings, cites=("zhou2025bayesian",),
        cost="keeps a mean of D numbers and a prior of C a class",
    ),
    "dota": Classifier(
        "classifiers.dota:classes", settings.DOTASettings,
        note=settings.DOTASettings.note, cites=("han2025dota",), revision=2,
        cost="keeps a mean and a covariance, D² numbers, a class, or one of all (dota-memory); "
        "their mean's inverse is made anew with each item",
    ),
    "dla": Classifier(
        "classifiers.dla:classes", settings.DLASettings, cites=("wu2026dynamic",),
        cost="keeps two numbers a class",
    ),
    "dmn": Classifier(
        "classifiers.dmn:classes", settings.DMNSettings, cites=("zhang2024dual",),
        cost="keeps dmn-shots images a class",
    ),
    "ecalp": Classifier(
        "classifiers.ecalp:classes", settings.ECALPSettings, cites=("li2025efficient",),
        cost="keeps ecalp-images images with their edges; an item is compared with all of them",
    ),
    "stata": Classifier(
        "classifiers.stata:classes", settings.StatASettings, at_once=attrgetter("block"),
        cites=("zanella2025realistic",),
        cost="keeps nothing between blocks; fits C Gaussians to a block block-steps times",
    ),
    "transclip": Classifier(
        "classifiers.transclip:classes", settings.TransCLIPSettings, at_once=attrgetter("block"),
        cites=("zanella2024boosting", "zanella2025realistic"),
        cost="keeps nothing between blocks; fits C Gaussians to a block block-steps times",
    ),
    "lame": Classifier(
        "classifiers.lame:classes", settings.LAMESettings, at_once=attrgetter("block"),
        cites=("boudiaf2022parameter",),
        cost="keeps nothing between blocks; up to lame-steps products of a block with itself",
    ),
}  # fmt: skip

METHODS: dict[str, Method] = _Methods({
    "zs-clip": Method(
        "detectors.zs_clip:run", settings.ZsClipSettings, stepper="detectors.zs_clip:stepper",
        cites=(_PAPER, "ming2022delving", "li2023robustness"),
        cost="keeps the last N_q scores",
        is_probability=True, class_probability=FROZEN,
    ),
    "adand": Method(
        "detectors.adand:run", settings.AdaNDSettings, defaults=_INJECTS,
        stepper="detectors.adand:stepper", warm_up=_STAGE_1, cites=(_PAPER,),
        cost="keeps a layer of D + 1 numbers with Adam's moments, L items, the last N_q scores",
        is_probability=True, class_probability=FROZEN,
    ),
    "ridge": Method(
        "detectors.ridge:run", settings.RidgeSettings, stepper="detectors.ridge:stepper",
        takes=WORDS,
        revision=2, warm_up=WarmUp(attrgetter("ridge_first"), "ridge-first"), cites=("zsntta",),
        cost="keeps D² numbers (up to 2,048 dims), D + 13 of each of the last M items, 7 a class",
    ),
    "cma": Method(
        "detectors.cma:run", settings.CmaSettings, needs=WORDS, cites=("lee2025concept",),
        cost="keeps the last N_q scores; k C texts more in the product with the texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "oodd": Method(
        "detectors.oodd:run", settings.OoddSettings, cites=("yang2025oodd",),
        cost="keeps N items of D numbers; an item is compared with all of them",
        class_probability=FROZEN,
    ),
    "syde": Method(
        "detectors.syde:run", settings.SydeSettings, defaults=_INJECTS, warm_up=_STAGE_1,
        cites=("syde2026",),
        cost="keeps a layer of D + 1 numbers, syde-shots images a class, syde-map² cells of D",
        is_probability=True,
    ),
    "etlt": Method(
        "detectors.etlt:run", settings.EtltSettings, offline=True,
        cites=("fan2022simple", "fan2024test"),
        cost="one least squares of the whole stream on D dims",
        class_probability=FROZEN,
    ),
    "tda": Method(
        "classifiers.tda:run", settings.TDASettings, cites=("karmanov2024efficient",),
        cost=_TDA_COST,
        is_probability=True,
    ),
})  # fmt: skip


def _list_classifiers() -> None:
    """Make each classifier alone a method: it is behind ZS-CLIP, TDA as it was published."""
    for classifier in CLASSIFIERS:
        if classifier not in METHODS:
            METHODS[classifier] = behind("zs-clip", classifier)


_list_classifiers()
METHODS.update({
    "max-logit": Method(
        "ood_scores:max_logit", settings.MaxLogitSettings, decides=False,
        cites=("hendrycks2022scaling",),
        cost="keeps nothing: an item is one product with C texts",
        class_probability=FROZEN,
    ),
    "energy": Method(
        "ood_scores:energy", settings.EnergySettings, decides=False, cites=("liu2020energy",),
        cost="keeps nothing: an item is one product with C texts",
        class_probability=FROZEN,
    ),
    "logitgap": Method(
        "ood_scores:logit_gap", settings.LogitGapSettings, decides=False,
        cites=("liang2025revisiting",),
        cost="keeps nothing: an item is one product with C texts",
        class_probability=FROZEN,
    ),
    "mcm": Method(
        "ood_scores:maximum_concept_matching", settings.McmSettings, decides=False,
        cites=("ming2022delving",),
        cost="keeps nothing: an item is one product with C texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "neglabel": Method(
        "words.neglabel:run", words_settings.NegLabelSettings, needs=WORDS, revision=2,
        cites=("jiang2024negative",),
        cost="keeps the last N_q scores; M words more in the product with the texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "csp": Method(
        "words.neglabel:run", words_settings.CspSettings, needs=WORDS,
        cites=("chen2024conjugated",),
        cost="keeps the last N_q scores; the mined words more in the product with the texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "adaneg": Method(
        "words.adaneg:run", words_settings.AdaNegSettings, needs=WORDS, cites=("zhang2024adaneg",),
        cost="keeps up to adaneg-shots images a class and a word",
        is_probability=True,
    ),
    "tanl": Method(
        "words.tanl:run", words_settings.TanlSettings, needs=WORDS, cites=("zhang2026activation",),
        cost="keeps the activations of all words by the last L images of either kind",
        is_probability=True, class_probability=FROZEN,
    ),
    "dde": Method(
        "words.dde:run", words_settings.DdeSettings, needs=WORDS,
        imagenet={"dde_words": 500}, cites=("zhu2026dual",),
        cost="keeps the activations of all words by dde-cache images of either kind (400 MB of "
        "10,000 words), D²/2 numbers of each class that got items, twice where dde-exclusion is "
        "above 0; M words more in the product with the texts",
        is_probability=True,
    ),
    "neglabel+adand": Method(
        "words.neglabel:run_taught", words_settings.NegLabelAdaNDSettings, needs=WORDS,
        defaults=_INJECTS, warm_up=replace(_STAGE_1, teacher="neglabel"),
        cites=("zsntta", "jiang2024negative", _PAPER),
        cost="keeps what adand does; M words more in the product with the texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "csp+adand": Method(
        "words.neglabel:run_taught", words_settings.CspAdaNDSettings, needs=WORDS,
        defaults=_INJECTS, warm_up=replace(_STAGE_1, teacher="csp"),
        cites=("zsntta", "chen2024conjugated", _PAPER),
        cost="keeps what adand does; the mined words more in the product with the texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "clipn": Method(
        "ood_scores:clipn", settings.ClipnSettings, decides=False, needs=NO_TEXT,
        cites=("wang2023clipn",),
        cost="keeps nothing; C texts more in the product with the texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "tent": Method(
        "live.tent:run", live_settings.TentSettings, live=True, imagenet=_SGD,
        cites=("wang2021tent",),
        cost="a forward pass an item, and a backward pass of each that passes the filter",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "sotta": Method(  # the items between two steps are one pass
        "live.sotta:run", live_settings.SottaSettings, live=True,
        at_once=attrgetter("update_every"), cites=("gong2023sotta",),
        cost="a forward pass an item; two steps, forward and back, on the memory every L items",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "tpt": Method(
        "live.tpt:run", live_settings.TptSettings, live=True, imagenet={"augmix": False},
        cites=("shu2022test",),
        cost="for each item that passes the filter its views forward, the prompts forward and back",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "rosita": Method(
        "live.rosita:run", live_settings.RositaSettings, live=True,
        cites=("sreenivas2025effectiveness",),
        cost="two forward passes an item, of a sure one another, and back; keeps up to "
        "rosita-neighbours images a class and rosita-undesired",
    ),
    "unient": Method(
        "live.unient:run", live_settings.UnientSettings, live=True, imagenet=_SGD,
        cites=("gao2024unified",),
        cost="a forward and a backward pass an item; a mixture of two on the scores of each batch",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "ostta": Method(
        "live.ostta:run", live_settings.OsttaSettings, live=True, imagenet=_SGD,
        cites=("lee2023towards",),
        cost="two forward passes an item, one by the encoder as it came, and a backward pass",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "adand+tent": Method(
        "live.adand_tent:run", live_settings.AdaNDTentSettings, live=True, defaults=_INJECTS,
        imagenet=_SGD, warm_up=_STAGE_1, cites=(_PAPER, "wang2021tent"),
        cost="what adand does; a forward and a backward pass of each item that it calls clean",
        is_probability=True,
    ),
})  # fmt: skip

for _detector in ("adand", "ridge"):  # those to choose from; others are made when asked for
    for _classifier in CLASSIFIERS:
        METHODS[f"{_detector}+{_classifier}"] = behind(_detector, _classifier)

plugins.watch("classifier", CLASSIFIERS, Classifier, "zsntta.classifiers", _list_classifiers)
plugins.watch("method", METHODS, Method, "zsntta.methods")
