"""The methods: each has a file, a settings class and a line in METHODS. No NumPy is imported here.

`run(data, options, threshold)` gets the stream, the method's settings and the threshold's. A cached
method returns its decisions on all items. A live method, which also gets images and the encoder,
yields its decisions as soon as it has them (methods/live/).

A classifier that adapts is a line in CLASSIFIERS: `classes(data, options, offered)` returns the
class of each item, and learns from the offered items. It may stand behind any method that decides,
as in "adand+tda"; METHODS makes such a pair at a lookup.
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

WORDS, NO_TEXT = "words", "no-text"  # texts that a method may need besides the class names
FROZEN, BY_SCORE = "frozen", "score"  # where a method's class probability comes from


def _no_note(_options: Any, _classes: int, _dim: int) -> str:
    return ""


@dataclass(frozen=True)
class WarmUp:
    """The first items of a stream, on which another method decides."""

    items: Callable[[Any], int]  # their number, by the method's settings
    settings: str  # the settings that determine it
    teacher: str = "zs-clip"  # the method that decides


def _batch_size(options: Any) -> int:
    return int(vars(options).get("batch_size", 1))


@dataclass(frozen=True)
class Method:
    """An entry of METHODS: a method's function and settings, its needs and its properties."""

    run: str | Callable[..., Any]  # the function, or its place: "module:function"
    settings: type[Any] = NoSettings  # a dataclass
    live: bool = False
    decides: bool = True  # False: it gives a score without a decision rule
    offline: bool = False  # it sees the whole stream before it decides, so it is a reference
    needs: str = ""
    takes: str = ""  # an optional need, chosen by the setting of that name
    defaults: Mapping[str, Any] = field(default_factory=dict)  # they replace those of its settings
    imagenet: Mapping[str, Any] = field(default_factory=dict)  # defaults for ID sets of that family
    stepper: str = ""  # place of the function that makes its stepper, if it decides online
    warm_up: WarmUp = WarmUp(lambda _: 0, "")
    at_once: Callable[[Any], int] = _batch_size  # number of items that are decided together
    note: Callable[[Any, int, int], str] = _no_note  # by settings, C and D; "" if there is none
    revision: int = 1  # it goes up when decisions change; older results are then not shown
    is_probability: bool = False  # whether its ID score is a share of a softmax or a sigmoid
    class_probability: str = ""  # FROZEN: its classes are the frozen model's; or BY_SCORE
    parts: "tuple[Method, Classifier] | None" = None  # a detector, and the classifier behind it
    cites: tuple[str, ...] = ()  # keys of report/references.bib, or new entries
    cost: str = ""  # in words: the memory that it takes, and the work for an item

    def __post_init__(self) -> None:
        """Refuse errors that would otherwise appear only when the method runs.

        Raises:
            TypeError: the settings are no dataclass, or `run` does not take its three arguments.
        """
        if not is_dataclass(self.settings):
            raise TypeError(
                f"the settings of a method must be a dataclass, not {self.settings!r}: leave them "
                "out, or write @dataclass(frozen=True) above their class"
            )
        if callable(self.run) and not (self.live or self.parts):
            _check_arguments(self.run)

    def load(self) -> Callable[..., Any]:
        """Import the function `run` when it is first needed, and return it."""
        if self.parts:
            return functools.partial(_found(self.run), *(part.load() for part in self.parts))
        return _found(self.run)

    def delay(self, options: Any) -> int:
        """The largest number of later items before a decision is known, with these settings."""
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
        """The texts that the method needs besides the class names, with these settings."""
        setting = self.takes and getattr(options, self.takes)
        return self.needs or (self.takes if setting else "")

    def notes(self, options: Any, classes: int, dim: int) -> list[str]:
        """The notes to print before the method runs on C classes of D dims."""
        noted = (part.note(options, classes, dim) for part in self.parts or (self,))
        return [note for note in noted if note]

    def start(self, *arguments: Any) -> "Stepper":
        """Make a stepper from the arguments of `run`; the stream may be empty."""
        stepper: Stepper = _found(self.stepper)(*arguments)
        return stepper


@dataclass(frozen=True)
class Classifier:
    """An entry of CLASSIFIERS: a classifier's function and settings, and its cost."""

    classes: str | Callable[..., Any]  # the function, or its place: "module:function"
    settings: type[Any]  # a dataclass
    at_once: Callable[[Any], int] = lambda _: 1  # items that are classified together
    note: Callable[[Any, int, int], str] = _no_note  # by settings, C and D; "" if there is none
    revision: int = 1  # as a method's
    cites: tuple[str, ...] = ()  # as a method's
    cost: str = ""  # as a method's

    def load(self) -> Callable[..., Any]:
        """Import the function `classes` when it is first needed, and return it."""
        return _found(self.classes)

    @property
    def own_code(self) -> tuple[Any, ...]:
        """The functions and classes of the classifier that are defined outside the package."""
        return () if isinstance(self.classes, str) else (self.classes, self.settings)


def _check_arguments(run: Callable[..., Any]) -> None:
    """Raise TypeError if a method's function does not take its three arguments."""
    import inspect

    try:
        inspect.signature(run).bind("data", "options", "threshold")
    except TypeError:
        raise TypeError(
            "the function of a method is called with three arguments: run(data, options, threshold)"
        ) from None


def _found(where: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, or the one of a "module:function", imported at this moment."""
    if not isinstance(where, str):
        return where
    module, _, name = where.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return function


# AdaND and Syde inject noise as part of the method, other methods only on request.
_INJECTS = {"noise": "gaussian"}
_SGD = {"optimizer": "sgd"}  # on ImageNet, as published
_PAPER = "cao2025noisy"
_TDA_COST = "keeps positive-shots + negative-shots images of each class; compares items with all"
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
    """Combine a detector with a classifier that learns from the items that it calls clean."""
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
    """A number of items that is whole batches of one and whole blocks of the other."""
    return lambda options: math.lcm(max(one(options), 1), max(other(options), 1))


def _decide_both(
    detect: Callable[..., "Decisions"],
    classify: Callable[..., Any],
    data: "StreamData",
    options: Any,
    threshold: Any,
) -> "Decisions":
    """Decide on noise as the detector does; the classifier learns from samples called clean.

    `options` are the settings of both.
    """
    decisions = detect(data, options, threshold)
    assert decisions.is_noise is not None
    offered = ~decisions.is_noise & ~data.injected
    return replace(decisions, class_index=classify(data, options, offered))


@functools.cache
def _both_settings(detector: type[Any], classifier: type[Any]) -> type[Any]:
    """The settings of both in one class, which is made once and again in other processes."""

    def made_again(options: Any) -> tuple[Any, ...]:
        return _both_given, (detector, classifier, vars(options))

    name = f"{detector.__name__}And{classifier.__name__}"
    both = type(name, (detector, classifier), {"__reduce__": made_again, "__module__": __name__})
    return dataclass(frozen=True)(both)


def _both_given(detector: type[Any], classifier: type[Any], values: Mapping[str, Any]) -> Any:
    return _both_settings(detector, classifier)(**values)  # type: ignore[arg-type]


def find_method(name: str) -> Method | None:
    """The method of a name, which may have two parts, or None if its code is not loaded."""
    try:
        return METHODS[name]
    except KeyError:
        return None


def check_method(name: str, what: str = "method") -> None:
    """Raise UnknownName if no method, even of two parts, has this name."""
    if find_method(name) is None:
        raise UnknownName(what, name, tuple(METHODS))


def detector_of(name: str) -> str:
    """The method whose score decides: "adand" for "adand+tda", and "mine" for "mine+tda"."""
    method, (detector, _, classifier) = find_method(name), name.rpartition("+")
    is_pair = method.parts if method else detector in METHODS or classifier in CLASSIFIERS
    return detector if detector and is_pair else name


def method_place(name: str) -> tuple[int, int, str]:
    """The place of a method among others, as a key to sort by; unknown methods are last.

    A pair that is not listed comes after its detector, in the order of the classifiers.
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
        cost="keeps oga-shots images of each class and a covariance of D² numbers, whose inverse "
        "is computed again with each image that is kept",
    ),
    "onzeta": Classifier(
        "classifiers.onzeta:classes", settings.OnZetaSettings, revision=2,
        cites=("qian2024online",),
        cost="keeps a proxy of D numbers and a weight for each class",
    ),
    "bca": Classifier(
        "classifiers.bca:classes", settings.BCASettings, cites=("zhou2025bayesian",),
        cost="keeps a mean of D numbers and a prior of C numbers for each class",
    ),
    "dota": Classifier(
        "classifiers.dota:classes", settings.DOTASettings,
        note=settings.DOTASettings.note, cites=("han2025dota",), revision=2,
        cost="keeps a mean and a covariance of D² numbers for each class, or one covariance for "
        "all (dota-memory); inverts their mean again with each item",
    ),
    "dla": Classifier(
        "classifiers.dla:classes", settings.DLASettings, cites=("wu2026dynamic",),
        cost="keeps two numbers for each class",
    ),
    "dmn": Classifier(
        "classifiers.dmn:classes", settings.DMNSettings, cites=("zhang2024dual",),
        cost="keeps dmn-shots images of each class",
    ),
    "stata": Classifier(
        "classifiers.stata:classes", settings.StatASettings, at_once=attrgetter("block"),
        cites=("zanella2025realistic",),
        cost="keeps nothing between blocks; fits C Gaussians to each block, block-steps times",
    ),
    "transclip": Classifier(
        "classifiers.transclip:classes", settings.TransCLIPSettings, at_once=attrgetter("block"),
        revision=2,
        cites=("zanella2024boosting", "zanella2025realistic"),
        cost="keeps nothing between blocks; fits C Gaussians to each block, block-steps times",
    ),
    "lame": Classifier(
        "classifiers.lame:classes", settings.LAMESettings, at_once=attrgetter("block"), revision=2,
        cites=("boudiaf2022parameter",),
        cost="keeps nothing between blocks; multiplies a block with itself, up to lame-steps times",
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
        cost="keeps a layer of D + 1 numbers, Adam's moments, L items and the last N_q scores",
        is_probability=True, class_probability=FROZEN,
    ),
    "ridge": Method(
        "detectors.ridge_stepper:run", settings.RidgeSettings,
        stepper="detectors.ridge_stepper:stepper",
        takes=WORDS,
        revision=3, warm_up=WarmUp(attrgetter("ridge_first"), "ridge-first"), cites=("zsntta",),
        cost="keeps 4 D numbers, 9 for each of M items and 6 for each class",
    ),
    "cma": Method(
        "detectors.cma:run", settings.CmaSettings, needs=WORDS, cites=("lee2025concept",),
        cost="keeps the last N_q scores; k C texts more in the product with the texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "oodd": Method(
        "detectors.oodd:run", settings.OoddSettings, cites=("yang2025oodd",),
        cost="keeps N items of D numbers; compares each item with all of them",
        class_probability=FROZEN,
    ),
    "syde": Method(
        "detectors.syde:run", settings.SydeSettings, defaults=_INJECTS, warm_up=_STAGE_1,
        cites=("syde2026",),
        cost="keeps a layer of D + 1 numbers, syde-shots images per class, syde-map² cells of D",
        is_probability=True,
    ),
    "etlt": Method(
        "detectors.etlt:run", settings.EtltSettings, offline=True,
        cites=("fan2022simple", "fan2024test"),
        cost="solves one least-squares problem on D dims over the whole stream",
        class_probability=FROZEN,
    ),
    "tda": Method(
        "classifiers.tda:run", settings.TDASettings, cites=("karmanov2024efficient",),
        cost=_TDA_COST,
        is_probability=True,
    ),
})  # fmt: skip


def _list_classifiers() -> None:
    """Make a method of each classifier: behind ZS-CLIP, but TDA as it was published."""
    for classifier in CLASSIFIERS:
        if classifier not in METHODS:
            METHODS[classifier] = behind("zs-clip", classifier)


_list_classifiers()
METHODS.update({
    "max-logit": Method(
        "ood_scores:max_logit", settings.MaxLogitSettings, decides=False,
        cites=("hendrycks2022scaling",),
        cost="keeps nothing; multiplies each item with C texts",
        class_probability=FROZEN,
    ),
    "energy": Method(
        "ood_scores:energy", settings.EnergySettings, decides=False, cites=("liu2020energy",),
        cost="keeps nothing; multiplies each item with C texts",
        class_probability=FROZEN,
    ),
    "logitgap": Method(
        "ood_scores:logit_gap", settings.LogitGapSettings, decides=False,
        cites=("liang2025revisiting",),
        cost="keeps nothing; multiplies each item with C texts",
        class_probability=FROZEN,
    ),
    "mcm": Method(
        "ood_scores:maximum_concept_matching", settings.McmSettings, decides=False,
        cites=("ming2022delving",),
        cost="keeps nothing; multiplies each item with C texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "neglabel": Method(
        "words.neglabel:run", words_settings.NegLabelSettings, needs=WORDS, revision=2,
        cites=("jiang2024negative",),
        cost="keeps the last N_q scores; multiplies each item with M words too",
        is_probability=True, class_probability=FROZEN,
    ),
    "csp": Method(
        "words.neglabel:run", words_settings.CspSettings, needs=WORDS,
        cites=("chen2024conjugated",),
        cost="keeps the last N_q scores; multiplies each item with the mined words too",
        is_probability=True, class_probability=FROZEN,
    ),
    "adaneg": Method(
        "words.adaneg:run", words_settings.AdaNegSettings, needs=WORDS, cites=("zhang2024adaneg",),
        cost="keeps up to adaneg-shots images of each class and of each word",
        is_probability=True,
    ),
    "tanl": Method(
        "words.tanl:run", words_settings.TanlSettings, needs=WORDS, revision=2,
        cites=("zhang2026activation",),
        cost="keeps the activations of all words by the last L images of each kind",
        is_probability=True, class_probability=FROZEN,
    ),
    "dde": Method(
        "words.dde:run", words_settings.DdeSettings, needs=WORDS,
        imagenet={"dde_words": 500}, cites=("zhu2026dual",),
        cost="keeps the activations of all words by dde-cache images of each kind (400 MB for "
        "10,000 words) and D²/2 numbers for each class with items, or D² if dde-exclusion is "
        "above 0; multiplies each item with M words too",
        is_probability=True,
    ),
    "neglabel+adand": Method(
        "words.neglabel:run_taught", words_settings.NegLabelAdaNDSettings, needs=WORDS,
        defaults=_INJECTS, warm_up=replace(_STAGE_1, teacher="neglabel"),
        cites=("zsntta", "jiang2024negative", _PAPER),
        cost="keeps the same as adand; multiplies each item with M words too",
        is_probability=True, class_probability=FROZEN,
    ),
    "csp+adand": Method(
        "words.neglabel:run_taught", words_settings.CspAdaNDSettings, needs=WORDS,
        defaults=_INJECTS, warm_up=replace(_STAGE_1, teacher="csp"),
        cites=("zsntta", "chen2024conjugated", _PAPER),
        cost="keeps the same as adand; multiplies each item with the mined words too",
        is_probability=True, class_probability=FROZEN,
    ),
    "clipn": Method(
        "ood_scores:clipn", settings.ClipnSettings, decides=False, needs=NO_TEXT,
        cites=("wang2023clipn",),
        cost="keeps nothing; multiplies each item with C more texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "tent": Method(
        "live.tent:run", live_settings.TentSettings, live=True, imagenet=_SGD,
        cites=("wang2021tent",),
        cost="takes a forward pass for each item, and a backward pass if it passes the filter",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "sotta": Method(  # the items between two steps take one pass
        "live.sotta:run", live_settings.SottaSettings, live=True,
        at_once=attrgetter("update_every"), cites=("gong2023sotta",),
        cost="takes a pass for each item; two passes forward and back on the memory every L items",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "tpt": Method(
        "live.tpt:run", live_settings.TptSettings, live=True, imagenet={"augmix": False},
        cites=("shu2022test",),
        cost="encodes the views of each item that passes the filter, and tunes the prompts on them",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "rosita": Method(
        "live.rosita:run", live_settings.RositaSettings, live=True,
        cites=("sreenivas2025effectiveness",),
        cost="takes two forward passes for each item, and one more and one back if it is sure; "
        "keeps up to rosita-neighbours images of each class and rosita-undesired",
    ),
    "unient": Method(
        "live.unient:run", live_settings.UnientSettings, live=True, imagenet=_SGD,
        cites=("gao2024unified",),
        cost="takes a forward and a backward pass for each item; fits two Gaussians to each batch",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "ostta": Method(
        "live.ostta:run", live_settings.OsttaSettings, live=True, imagenet=_SGD,
        cites=("lee2023towards",),
        cost="takes two forward passes for each item, one by the original encoder, and one back",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "adand+tent": Method(
        "live.adand_tent:run", live_settings.AdaNDTentSettings, live=True, defaults=_INJECTS,
        imagenet=_SGD, warm_up=_STAGE_1, cites=(_PAPER, "wang2021tent"),
        cost="keeps the same as adand; takes a forward and a backward pass for each clean item",
        is_probability=True,
    ),
})  # fmt: skip

for _detector in ("adand", "ridge"):  # these are listed; other pairs are made at a lookup
    for _classifier in CLASSIFIERS:
        METHODS[f"{_detector}+{_classifier}"] = behind(_detector, _classifier)

plugins.watch("classifier", CLASSIFIERS, Classifier, "zsntta.classifiers", _list_classifiers)
plugins.watch("method", METHODS, Method, "zsntta.methods")
