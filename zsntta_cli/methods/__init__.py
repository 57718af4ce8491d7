"""The methods: each has a file with its settings and its equations, and a line in METHODS.

METHODS is data: nothing of a method is imported before the method is named. A classifier that
adapts is a line in CLASSIFIERS. It may stand behind any method that decides, as in "adand+tda";
METHODS makes such a pair when it is looked up.
"""

from collections.abc import Mapping

from zsntta_cli import plugins
from zsntta_cli.errors import UnknownName
from zsntta_cli.methods.entry import (
    BY_SCORE,
    FROZEN,
    NO_TEXT,
    WORDS,
    Classifier,
    Method,
    Pair,
    behind,
)

__all__ = [
    "BY_SCORE", "CLASSIFIERS", "FROZEN", "METHODS", "NO_TEXT", "WORDS", "Classifier", "Method",
    "Pair", "behind", "check_method", "detector_of", "find_method", "method_place",
]  # fmt: skip

# AdaND injects noise as part of the method, other methods only on request.
_INJECTS = {"noise": "gaussian"}
_SGD = {"optimizer": "sgd"}  # on ImageNet, as published
_PAPER = "cao2025noisy"
_TDA_COST = "keeps positive-shots + negative-shots images of each class; compares items with all"


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
        if self[detector].live or not self[detector].decides or isinstance(self[detector], Pair):
            raise KeyError(name)
        if detector == classifier:
            raise KeyError(name)  # tda+tda: a method behind itself
        return behind(self[detector], CLASSIFIERS[classifier])


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
    is_pair = (
        isinstance(method, Pair) if method else detector in METHODS or classifier in CLASSIFIERS
    )
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
        "classifiers.tda:TDA", "classifiers.tda:TDASettings",
        cites=("karmanov2024efficient",),
        cost=_TDA_COST,
    ),
    "oga": Classifier(
        "classifiers.oga:OGA", "classifiers.oga:OGASettings", revision=2,
        cites=("fuchs2025online",),
        cost="keeps oga-shots images of each class and a covariance of D² numbers, whose inverse "
        "is computed again with each image that is kept",
    ),
    "onzeta": Classifier(
        "classifiers.onzeta:OnZeta", "classifiers.onzeta:OnZetaSettings", revision=2,
        cites=("qian2024online",),
        cost="keeps a proxy of D numbers and a weight for each class",
    ),
    "bca": Classifier(
        "classifiers.bca:BCA", "classifiers.bca:BCASettings", cites=("zhou2025bayesian",),
        cost="keeps a mean of D numbers and a prior of C numbers for each class",
    ),
    "dota": Classifier(
        "classifiers.dota:DOTA", "classifiers.dota:DOTASettings",
        cites=("han2025dota",), revision=2,
        cost="keeps a mean and a covariance of D² numbers for each class, whose mean is inverted "
        "again with each item",
    ),
    "dla": Classifier(
        "classifiers.dla:DLA", "classifiers.dla:DLASettings", cites=("wu2026dynamic",),
        cost="keeps two numbers for each class",
    ),
    "dmn": Classifier(
        "classifiers.dmn:DMN", "classifiers.dmn:DMNSettings", cites=("zhang2024dual",),
        cost="keeps dmn-shots images of each class",
    ),
    "stata": Classifier(
        "classifiers.stata:classes", "classifiers.stata:StatASettings",
        cites=("zanella2025realistic",),
        cost="keeps nothing between blocks; fits C Gaussians to each block, block-steps times",
    ),
    "transclip": Classifier(
        "classifiers.transclip:classes", "classifiers.transclip:TransCLIPSettings",
        revision=2,
        cites=("zanella2024boosting", "zanella2025realistic"),
        cost="keeps nothing between blocks; fits C Gaussians to each block, block-steps times",
    ),
    "lame": Classifier(
        "classifiers.lame:classes", "classifiers.lame:LAMESettings", revision=2,
        cites=("boudiaf2022parameter",),
        cost="keeps nothing between blocks; multiplies a block with itself, up to lame-steps times",
    ),
}  # fmt: skip

METHODS: dict[str, Method] = _Methods({
    "zs-clip": Method(
        "detectors.zs_clip:ZsClip", "detectors.zs_clip:ZsClipSettings", online=True,
        cites=(_PAPER, "ming2022delving", "li2023robustness"),
        cost="keeps the last N_q scores",
        is_probability=True, class_probability=FROZEN,
    ),
    "adand": Method(
        "detectors.adand:AdaND", "detectors.adand:AdaNDSettings", online=True,
        defaults=_INJECTS, cites=(_PAPER,),
        cost="keeps a layer of D + 1 numbers, Adam's moments, L items and the last N_q scores",
        is_probability=True, class_probability=FROZEN,
    ),
    "ridge": Method(
        "detectors.ridge:Ridge", "detectors.ridge:RidgeSettings", online=True,
        revision=3, cites=("zsntta",),
        cost="keeps 4 D numbers, 9 for each of M items and 6 for each class",
    ),
    "cma": Method(
        "detectors.cma:CMA", "detectors.cma:CmaSettings", online=True, needs=WORDS,
        cites=("lee2025concept",),
        cost="keeps the last N_q scores; k C texts more in the product with the texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "oodd": Method(
        "detectors.oodd:OODD", "detectors.oodd:OoddSettings", online=True, cites=("yang2025oodd",),
        cost="keeps N items of D numbers; compares each item with all of them",
        class_probability=FROZEN,
    ),
    "etlt": Method(
        "detectors.etlt:run", "detectors.etlt:EtltSettings", offline=True,
        cites=("fan2022simple", "fan2024test"),
        cost="solves one least-squares problem on D dims over the whole stream",
        class_probability=FROZEN,
    ),
    "tda": Method(
        "classifiers.tda:TDAAlone", "classifiers.tda:TDASettings", online=True,
        cites=("karmanov2024efficient",),
        cost=_TDA_COST,
        is_probability=True,
    ),
})  # fmt: skip


def _list_classifiers() -> None:
    """Make a method of each classifier: behind ZS-CLIP, but TDA as it was published."""
    for classifier in CLASSIFIERS:
        if classifier not in METHODS:
            METHODS[classifier] = behind(METHODS["zs-clip"], CLASSIFIERS[classifier])


_list_classifiers()
METHODS.update({
    "max-logit": Method(
        "ood_scores:max_logit", "ood_scores:MaxLogitSettings", decides=False,
        cites=("hendrycks2022scaling",),
        cost="keeps nothing; multiplies each item with C texts",
        class_probability=FROZEN,
    ),
    "energy": Method(
        "ood_scores:energy", "ood_scores:EnergySettings", decides=False, cites=("liu2020energy",),
        cost="keeps nothing; multiplies each item with C texts",
        class_probability=FROZEN,
    ),
    "logitgap": Method(
        "ood_scores:logit_gap", "ood_scores:LogitGapSettings", decides=False,
        cites=("liang2025revisiting",),
        cost="keeps nothing; multiplies each item with C texts",
        class_probability=FROZEN,
    ),
    "mcm": Method(
        "ood_scores:maximum_concept_matching", "ood_scores:McmSettings", decides=False,
        cites=("ming2022delving",),
        cost="keeps nothing; multiplies each item with C texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "neglabel": Method(
        "words.neglabel:NegLabel", "words.neglabel:NegLabelSettings", online=True, needs=WORDS,
        revision=2,
        cites=("jiang2024negative",),
        cost="keeps the last N_q scores; multiplies each item with M words too",
        is_probability=True, class_probability=FROZEN,
    ),
    "csp": Method(
        "words.neglabel:NegLabel", "words.neglabel:CspSettings", online=True, needs=WORDS,
        cites=("chen2024conjugated",),
        cost="keeps the last N_q scores; multiplies each item with the mined words too",
        is_probability=True, class_probability=FROZEN,
    ),
    "adaneg": Method(
        "words.adaneg:AdaNeg", "words.adaneg:AdaNegSettings", online=True, needs=WORDS,
        cites=("zhang2024adaneg",),
        cost="keeps up to adaneg-shots images of each class and of each word",
        is_probability=True,
    ),
    "tanl": Method(
        "words.tanl:TANL", "words.tanl:TanlSettings", online=True, needs=WORDS,
        revision=2,
        cites=("zhang2026activation",),
        cost="keeps the activations of all words by the last L images of each kind",
        is_probability=True, class_probability=FROZEN,
    ),
    "dde": Method(
        "words.dde:DDE", "words.dde:DdeSettings", online=True, needs=WORDS,
        imagenet={"dde_words": 500}, cites=("zhu2026dual",),
        cost="keeps the activations of all words by dde-cache images of each kind (400 MB for "
        "10,000 words) and D²/2 numbers for each class with items, or D² if dde-exclusion is "
        "above 0; multiplies each item with M words too",
        is_probability=True,
    ),
    "clipn": Method(
        "ood_scores:clipn", "ood_scores:ClipnSettings", decides=False, needs=NO_TEXT,
        cites=("wang2023clipn",),
        cost="keeps nothing; multiplies each item with C more texts",
        is_probability=True, class_probability=FROZEN,
    ),
    "tent": Method(
        "live.tent:run", "live.settings:TentSettings", live=True, imagenet=_SGD,
        cites=("wang2021tent",),
        cost="takes a forward pass for each item, and a backward pass if it passes the filter",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "sotta": Method(  # the items between two steps take one pass
        "live.sotta:run", "live.settings:SottaSettings", live=True,
        cites=("gong2023sotta",),
        cost="takes a pass for each item; two passes forward and back on the memory every L items",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "tpt": Method(
        "live.tpt:run", "live.settings:TptSettings", live=True, imagenet={"augmix": False},
        cites=("shu2022test",),
        cost="encodes the views of each item that passes the filter, and tunes the prompts on them",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "rosita": Method(
        "live.rosita:run", "live.settings:RositaSettings", live=True,
        cites=("sreenivas2025effectiveness",),
        cost="takes two forward passes for each item, and one more and one back if it is sure; "
        "keeps up to rosita-neighbours images of each class and rosita-undesired",
    ),
    "unient": Method(
        "live.unient:run", "live.settings:UnientSettings", live=True, imagenet=_SGD,
        cites=("gao2024unified",),
        cost="takes a forward and a backward pass for each item; fits two Gaussians to each batch",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "ostta": Method(
        "live.ostta:run", "live.settings:OsttaSettings", live=True, imagenet=_SGD,
        cites=("lee2023towards",),
        cost="takes two forward passes for each item, one by the original encoder, and one back",
        is_probability=True, class_probability=BY_SCORE,
    ),
    "adand+tent": Method(
        "live.adand_tent:run", "live.settings:AdaNDTentSettings", live=True, defaults=_INJECTS,
        imagenet=_SGD, cites=(_PAPER, "wang2021tent"),
        cost="keeps the same as adand; takes a forward and a backward pass for each clean item",
        is_probability=True,
    ),
})  # fmt: skip


plugins.watch("classifier", CLASSIFIERS, Classifier, "zsntta.classifiers", _list_classifiers)
plugins.watch("method", METHODS, Method, "zsntta.methods")
