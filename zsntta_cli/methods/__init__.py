"""The methods: a file each, a settings class, and a line in METHODS. Light: it imports no NumPy.

`run(data, options, threshold)` gets the stream, the method's own settings and those of the
threshold. A cached one returns its decisions on all items; a live one, which is given images and
the encoder too, yields them as it has them (methods/live/).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from zsntta_cli.methods import ood_settings, settings
from zsntta_cli.methods.live import settings as live_settings

if TYPE_CHECKING:
    from zsntta_cli.methods.base import Stepper

WORDS, NO_TEXT = "words", "no-text"  # what a method may need besides the class names


@dataclass(frozen=True)
class Method:
    """One line of METHODS."""

    run: str | Callable[..., Any]  # the function, or where it is: "module:function"
    settings: type[Any]  # a dataclass
    live: bool = False
    decides: bool = True  # or it gives a score without a decision rule
    needs: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)  # other than its settings' own
    imagenet: Mapping[str, Any] = field(default_factory=dict)  # where the ID set is of that family
    stepper: str = ""  # of one that decides online: where what is pushed to is made
    revision: int = 1  # goes up when its decisions change: older results are then not shown

    def load(self) -> Callable[..., Any]:
        """The function `run`, imported when it is first needed."""
        return _found(self.run) if isinstance(self.run, str) else self.run

    def start(self, *given: Any) -> "Stepper":
        """The method before its first item, given what `run` gets: a stream, that may be empty."""
        stepper: Stepper = _found(self.stepper)(*given)
        return stepper


def _found(where: str) -> Callable[..., Any]:
    """A function by its module and name, imported when it is first needed."""
    module, _, name = where.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return function


# AdaND injects noise as part of the method; ZS-CLIP only where it is asked to.
_INJECTS = {"noise": "gaussian"}
_SGD = {"optimizer": "sgd"}  # Tent's on ImageNet, and no AugMix for TPT: as they were published

METHODS: dict[str, Method] = {
    "zs-clip": Method("zs_clip:run", settings.ZsClipSettings, stepper="zs_clip:stepper"),
    "adand": Method(
        "adand:run", settings.AdaNDSettings, defaults=_INJECTS, stepper="adand:stepper"
    ),
    "tda": Method("tda:run", settings.TDASettings),
    "adand+tda": Method("tda:run_behind_adand", settings.AdaNDTDASettings, defaults=_INJECTS),
    "ridge": Method("ridge:run", settings.RidgeSettings, stepper="ridge:stepper"),
    "ridge+tda": Method("tda:run_behind_ridge", settings.RidgeTDASettings),
    "max-logit": Method("ood_scores:max_logit", ood_settings.ScoreSettings, decides=False),
    "energy": Method("ood_scores:energy", ood_settings.ScoreSettings, decides=False),
    "mcm": Method("ood_scores:maximum_concept_matching", ood_settings.McmSettings, decides=False),
    "neglabel": Method(
        "ood_scores:neglabel", ood_settings.NegLabelSettings, decides=False, needs=WORDS
    ),
    "clipn": Method("ood_scores:clipn", ood_settings.ClipnSettings, decides=False, needs=NO_TEXT),
    "tent": Method("live.tent:run", live_settings.TentSettings, live=True, imagenet=_SGD),
    "sotta": Method("live.sotta:run", live_settings.SottaSettings, live=True),
    "tpt": Method("live.tpt:run", live_settings.TptSettings, live=True, imagenet={"augmix": False}),
    "adand+tent": Method(
        "live.adand_tent:run", live_settings.AdaNDTentSettings, live=True, defaults=_INJECTS,
        imagenet=_SGD,
    ),
}  # fmt: skip
