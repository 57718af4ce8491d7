"""Colours, markers and dashes: who has which, in all figures the same.

Colours are Okabe and Ito's, which colour-blind readers tell apart; markers and dashes say the same
again for who prints in black.
"""

from typing import Any

from zsntta_cli.report.plots.figure import Figure

BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
_YELLOW, _BLUE, _RED, _PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
Look = tuple[str, str, Any]  # colour, marker, dashes
SOLID, DASHED, DOTTED, _MIXED = "-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5))

# What has a colour of its own in all figures; others take those that are left, in turn.
_LOOKS: dict[str, Look] = {
    "ID": (_BLUE, "o", SOLID),
    "OOD": (_RED, "x", DASHED),
    "threshold": (BLACK, "", DOTTED),
    "Acc_S": (_BLUE, "o", SOLID),
    "Acc_N": (_ORANGE, "s", SOLID),
    "Acc_H": (BLACK, "D", SOLID),
    "zs-clip": (BLACK, "o", SOLID),
    "adand": (_RED, "s", SOLID),
    "ridge": (_BLUE, "D", DASHED),
    "tent": (_ORANGE, "^", _MIXED),
    "sotta": (_GREEN, "v", DASHED),
    "tpt": (_PURPLE, "P", DOTTED),
    "tda": (_SKY, "X", _MIXED),
}
_OTHERS: list[Look] = [
    (_SKY, "<", DASHED), (_GREEN, ">", _MIXED), (_PURPLE, "h", SOLID), (_ORANGE, "p", DOTTED),
    (_BLUE, "*", _MIXED), (_RED, "d", DOTTED), (_YELLOW, "H", SOLID), (BLACK, "+", DASHED),
]  # fmt: skip


def looks_of(figure: Figure) -> dict[str, Look]:
    """The look of all that has one: its own, that of its method, or one whose colour is left."""
    keys = dict.fromkeys(s.look or s.name for panel in figure.panels for s in panel.series)
    looks: dict[str, Look] = {}
    for key in keys:
        own = _LOOKS.get(key) or _LOOKS.get(key.partition(",")[0])
        if own and own not in looks.values():
            looks[key] = own
    for key in keys:
        looks.setdefault(key, _left(list(looks.values())))
    return {key: looks[key] for key in keys}


def _left(taken: list[Look]) -> Look:
    """The first look of another colour than those taken; of any colour where all are taken."""
    colours = {colour for colour, _, _ in taken}
    free = [look for look in _OTHERS if look not in taken] or _OTHERS
    return next((look for look in free if look[0] not in colours), free[0])
