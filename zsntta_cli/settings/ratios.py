"""Noise ratios: a share, the sets' own mix, or a share that changes along the stream.

A number is the share of OOD samples all along; `natural` takes every image of both sets once;
`0.1..0.7` drifts in a line from the first share to the last; `steps:0.1,0.5,0.1` has as many parts
of equal length as shares.
"""

import re

from zsntta_cli.errors import SettingsError, short

Ratio = float | str
NATURAL = "natural"
_STEPS, _DRIFT, _MOST_STEPS = "steps:", "..", 100
_DRIFT_PARTS = 100  # in each of which a drifting share stays as it is
_SHARE = re.compile(r"\d+(\.\d*)?(e-?\d+)?|\.\d+(e-?\d+)?")
_FORMS = "a number in [0, 1), natural, 0.1..0.7 or steps:0.1,0.5,0.1"


def parse_ratio(text: str) -> Ratio:
    """The ratio that a text says, in one spelling.

    Raises:
        SettingsError: it says none.
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
    """Raise SettingsError unless a text says a ratio."""
    parse_ratio(text)


def _shares(text: str, parts: list[str], least: int, most: int) -> list[float]:
    """The shares of a changing ratio, of which one at least is above 0."""
    if not (least <= len(parts) <= most and all(map(_SHARE.fullmatch, parts))):
        raise _wrong(text)
    shares = [float(f"{float(part):g}") for part in parts]
    if not (all(share < 1 for share in shares) and any(shares)):
        raise _wrong(text)
    return shares


def _wrong(text: str) -> SettingsError:
    return SettingsError(f"ratio is {short(ascii(text))}, must be {_FORMS}.")


def changing_shares(ratio: Ratio) -> list[float]:
    """The OOD shares of parts of equal length; none where the share is the same all along."""
    if not isinstance(ratio, str) or ratio == NATURAL:
        return []
    if ratio.startswith(_STEPS):
        return [float(share) for share in ratio.removeprefix(_STEPS).split(",")]
    first, last = map(float, ratio.split(_DRIFT))
    middles = ((i + 0.5) / _DRIFT_PARTS for i in range(_DRIFT_PARTS))
    return [first + (last - first) * middle for middle in middles]


def mean_share(ratio: Ratio) -> float:
    """The OOD share of the whole stream; nan of `natural`, which only the sets say."""
    if ratio == NATURAL:
        return float("nan")
    shares = changing_shares(ratio)
    return sum(shares) / len(shares) if shares else float(ratio)


def ratio_text(ratio: Ratio) -> str:
    """A ratio as messages have it, which can be typed."""
    return ratio if isinstance(ratio, str) else f"{ratio:.4g}"


def ratio_place(ratio: Ratio) -> tuple[bool, float, str]:
    """Where a ratio stands in lists: shares first, rising, then what is none."""
    return (True, 0.0, ratio) if isinstance(ratio, str) else (False, ratio, "")
