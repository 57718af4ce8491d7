"""What the settings classes of methods share; each class stands in its method's file."""

from dataclasses import dataclass
from typing import ClassVar

from zsntta_cli.settings.options import Range, Settings

FROM_ONE, FROM_ZERO, ABOVE_ZERO = Range(least=1), Range(least=0), Range(above=0)
SHARE = Range(least=0, most=1)
WORDS = (
    "Word list of `extract --words`: wordnet, NAME or NAME,NAME; by default the one that is "
    "cached (ridge: none)."
)
GAP = (
    "g: share of the interval from the threshold to 0, or to 1, in which items are not learned "
    "from."
)


@dataclass(frozen=True)
class MethodSettings(Settings):
    """The base class of a method's settings, with what depends on them alone."""

    warm_up_by: ClassVar[str] = ""  # the settings that determine the warm-up, in words

    @property
    def at_once(self) -> int:
        """The number of items that are decided together."""
        return int(vars(self).get("batch_size", 1))

    @property
    def warm_up(self) -> int:
        """The number of first items on which ZS-CLIP decides."""
        return 0

    def note(self, classes: int, dim: int) -> str:
        """What is to be said before a run on C classes of D dims; "" if there is nothing."""
        del classes, dim
        return ""
