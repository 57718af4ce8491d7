"""Noise ratios: a share, the mix that the sets' sizes make, or a share that changes in the stream.

A number is the share of OOD samples everywhere in the stream. `natural` takes every image of both
sets once. `0.1..0.7` changes linearly from the first share to the last. `steps:0.1,0.5,0.1` has one
part for each share, all of equal length.
"""

import re

from zsntta_cli.errors import SettingsError, short

Ratio = float | str
NATURAL = "natural"
_STEPS, _DRIFT, _MOST_STEPS = "steps:", "..", 100
_DRIFT_PARTS = 100  # parts of the stream with a constant share, by which a share drifts
_SHARE = re.compile(r"\d+(\.\d*)?(e-?\d+)?|\.\d+(e-?\d+)?")
_FORMS = "a number in [0, 1), natural, 0.1..0.7 or steps:0.1,0.5,0.1"


def parse_ratio(text: str) -> Ratio:
    """Parse a ratio, and bring it to its usual spelling.

    Raises:
        SettingsError: the text is no ratio.
    """
    if text == NATURAL:
        return NATURAL
    if _DRIFT in text:
        first, last = _shares(text, text.split(_DRIFT), 2, 2)
        return f"{first:g}{_DRIFT}{last:g}"
    if text.startswith(_STEPS):
        steps = _shares(text, text.removeprefix(_STEPS).split(","), 2, _MOST_STEPS)
        return _STEPS + ",".join(f"{share:g}" for share in steps)
    if not _SHARE.fullmatch(text):
        raise _wrong(text)
    return float(text)


def check_ratio(text: str) -> None:
    """Raise SettingsError unless a text is a ratio."""
    parse_ratio(text)


def _shares(text: str, parts: list[str], least: int, most: int) -> list[float]:
    """Parse the shares of a changing ratio, at least one of which must be above 0."""
    if not (least <= len(parts) <= most and all(map(_SHARE.fullmatch, parts))):
        raise _wrong(text)
    shares = [float(f"{float(part):g}") for part in parts]
    if not (all(share < 1 for share in shares) and any(shares)):
        raise _wrong(text)
    return shares


def _wrong(text: str) -> SettingsError:
    return SettingsError(f"ratio is {short(ascii(text))}, must be {_FORMS}.")


def changing_shares(ratio: Ratio) -> list[float]:
    """The OOD shares of parts of equal length; none if the share does not change."""
    if not isinstance(ratio, str) or ratio == NATURAL:
        return []
    if ratio.startswith(_STEPS):
        return [float(share) for share in ratio.removeprefix(_STEPS).split(",")]
    first, last = map(float, ratio.split(_DRIFT))
    middles = ((i + 0.5) / _DRIFT_PARTS for i in range(_DRIFT_PARTS))
    return [first + (last - first) * middle for middle in middles]


def mean_share(ratio: Ratio) -> float:
    """The OOD share of the whole stream; nan for `natural`, which depends on the sets."""
    if ratio == NATURAL:
        return float("nan")
    shares = changing_shares(ratio)
    return sum(shares) / len(shares) if shares else float(ratio)


def ratio_text(ratio: Ratio) -> str:
    """A ratio as messages show it, which can be typed."""
    return ratio if isinstance(ratio, str) else f"{ratio:.4g}"


def ratio_place(ratio: Ratio) -> tuple[bool, float, str]:
    """The sort key of a ratio: numbers come first in rising order, and then texts."""
    return (True, 0.0, ratio) if isinstance(ratio, str) else (False, ratio, "")
