"""The methods: each is a file with its settings, facts and equations, and a line in METHODS.

METHODS and CLASSIFIERS map names to places: a lookup imports the class that is there, and
nothing else. A classifier may follow any method that decides, as in "adand+tda"; METHODS
makes such a pair when it is looked up.
"""

import shlex
from collections import UserDict
from functools import cache, partial
from operator import attrgetter
from pkgutil import resolve_name
from typing import Any

from zsntta_cli import plugins
from zsntta_cli.errors import unknown
from zsntta_cli.methods.method import (
    BY_SCORE,
    FROZEN,
    NO_TEXT,
    WORDS,
    Classifier,
    Live,
    Method,
    MethodSettings,
    Pair,
    fault,
)

__all__ = [
    "BY_SCORE", "CLASSIFIERS", "FROZEN", "METHODS", "NO_TEXT", "WORDS", "Classifier", "Live",
    "Method", "MethodSettings", "Pair", "check_method", "find_method", "method_place", "own_code",
]  # fmt: skip


class _Table(UserDict[str, Any]):
    """A mapping of names to places; a lookup returns what is at the place.

    A place is "module:Class" in this package, the class itself, as own scripts put it here, or
    "detector+classifier". Such a pair need not be listed: the list of methods does not depend on
    earlier lookups, and a pair always has the current version of its parts.
    """

    def __getitem__(self, name: str) -> Any:
        place = super().__getitem__(name)
        if not isinstance(place, str):
            return place
        return _imported(f"{__name__}.{place}") if ":" in place else _pair_of(place)

    def __missing__(self, name: str) -> Any:
        plugins.load_declared()  # at the first name that is none of the package's
        return self.data.get(name, name)


_imported, _pair = cache(resolve_name), cache(Pair)


def _pair_of(name: str) -> Pair:
    detector, _, classifier = name.rpartition("+")
    if classifier in CLASSIFIERS and detector in METHODS:
        first: Any = METHODS[detector]
        if first.decides and not first.live and not isinstance(first, Pair):
            return _pair(first, CLASSIFIERS[classifier])
    raise KeyError(name)


def find_method(name: str) -> type[Method] | Pair | None:
    """The method of a name, which may have two parts, or None if its code is not loaded."""
    try:
        return METHODS[name]
    except KeyError:
        return None


def check_method(name: str, what: str = "method") -> None:
    """Raise SettingsError if no method, even of two parts, has this name."""
    if find_method(name) is None:
        script = plugins.script_with(name)
        forgotten = f"did you forget --plugin? zsntta --plugin {shlex.quote(script)} …"
        listing = forgotten if script else "zsntta methods lists them"
        raise unknown(what, name, tuple(METHODS), listing)


def own_code(name: str) -> tuple[type, ...]:
    """The classes of a method that are from outside the package; a pair may have two."""
    method = METHODS[name]
    parts = (method.detector, method.classifier) if isinstance(method, Pair) else (method,)
    return tuple(filter(attrgetter("is_own"), parts))


def method_place(name: str) -> tuple[int, int, str]:
    """The place of a method among others, as a key to sort by; unknown methods are last.

    A pair that is not listed comes after its detector, in the order of the classifiers.
    """
    detectors, classifiers = list(METHODS), list(CLASSIFIERS)
    detector, _, classifier = name.rpartition("+")
    if name in METHODS:
        return detectors.index(name), -1, name
    if detector in METHODS and classifier in CLASSIFIERS:
        return detectors.index(detector), classifiers.index(classifier), name
    return len(detectors), -1, name


CLASSIFIERS = _Table({
    "tda": "classifiers.tda:TDA",
    "oga": "classifiers.oga:OGA",
    "onzeta": "classifiers.onzeta:OnZeta",
    "bca": "classifiers.bca:BCA",
    "dota": "classifiers.dota:DOTA",
    "dla": "classifiers.dla:DLA",
    "dmn": "classifiers.dmn:DMN",
    "stata": "classifiers.transductive:StatA",
    "transclip": "classifiers.transductive:TransCLIP",
    "lame": "classifiers.transductive:LAME",
})  # fmt: skip

METHODS = _Table({
    "zs-clip": "detectors.zs_clip:ZsClip",
    "adand": "detectors.adand:AdaND",
    "cull": "detectors.cull:Cull",
    "cma": "detectors.cma:CMA",
    "oodd": "detectors.oodd:OODD",
    "etlt": "detectors.etlt:ETLT",
    "tda": "classifiers.tda:ALONE",  # it is offered all items; the others what ZS-CLIP calls clean
    **{name: f"zs-clip+{name}" for name in CLASSIFIERS if name != "tda"},
    "max-logit": "ood_scores:MaxLogit",
    "energy": "ood_scores:Energy",
    "logitgap": "ood_scores:LogitGap",
    "mcm": "ood_scores:MCM",
    "neglabel": "words.neglabel:NegLabel",
    "csp": "words.neglabel:CSP",
    "adaneg": "words.adaneg:AdaNeg",
    "tanl": "words.tanl:TANL",
    "dde": "words.dde:DDE",
    "clipn": "ood_scores:CLIPN",
    "tent": "live.settings:Tent",
    "sotta": "live.settings:SoTTA",
    "tpt": "live.settings:TPT",
    "rosita": "live.settings:ROSITA",
    "unient": "live.settings:UniEnt",
    "ostta": "live.settings:OSTTA",
    "adand+tent": "live.settings:AdaNDTent",
})  # fmt: skip


def _list_classifiers() -> None:
    """Let each classifier of an own script follow ZS-CLIP under its own name."""
    for name in CLASSIFIERS:
        METHODS.data.setdefault(name, f"zs-clip+{name}")


plugins.watch(
    "classifier", CLASSIFIERS.data, partial(fault, kind=Classifier), "zsntta.classifiers",
    _list_classifiers,
)  # fmt: skip
plugins.watch("method", METHODS.data, partial(fault, kind=Method), "zsntta.methods")
