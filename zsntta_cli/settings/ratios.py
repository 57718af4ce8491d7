"""Noise ratios: the share of OOD samples everywhere in the stream, or the mix of the sets' sizes.

`natural` takes every image of both sets once.
"""

import re

from zsntta_cli.errors import SettingsError, short

Ratio = float | str
NATURAL = "natural"
_SHARE = re.compile(r"\d+(\.\d*)?(e-?\d+)?|\.\d+(e-?\d+)?")


def parse_ratio(text: str) -> Ratio:
    """Parse a ratio.

    Raises:
        SettingsError: the text is no ratio.
    """
    if text == NATURAL:
        return NATURAL
    if not _SHARE.fullmatch(text):
        raise SettingsError(
            f"ratio is {short(ascii(text))}, must be a number in [0, 1) or {NATURAL}."
        )
    return float(text)


def ood_share(ratio: Ratio) -> float:
    """The OOD share that a ratio asks for; nan where it depends on the sets, as for `natural`."""
    return float("nan") if isinstance(ratio, str) else ratio


def ratio_text(ratio: Ratio) -> str:
    """A ratio as messages show it, which can be typed."""
    return ratio if isinstance(ratio, str) else f"{ratio:.4g}"


def ratio_place(ratio: Ratio) -> float:
    """The sort key of a ratio: numbers come first in rising order, and then `natural`."""
    return float("inf") if isinstance(ratio, str) else ratio
