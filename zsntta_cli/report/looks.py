"""Looks: the colour, the marker and the dashes of what is drawn, the same in all figures.

Colours are Okabe and Ito's, which colour-blind readers can distinguish; markers and dashes say the
same for black-and-white prints.
"""

from collections.abc import Iterable, Sequence
from typing import Any

BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
_YELLOW, _BLUE, _RED, _PURPLE = "#f0e442", "#0072b2", "#d55e00", "#cc79a7"
Look = tuple[str, str, Any]  # colour, marker, dashes
SOLID, DASHED, DOTTED, _MIXED = "-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5))

# What has a look of its own in all figures; others take those that are left, in turn.
_LOOKS: dict[str, Look] = {
    "ID": (_BLUE, "o", SOLID),
    "OOD": (_RED, "x", DASHED),
    "threshold": (BLACK, "", DOTTED),
    "Acc_S": (_BLUE, "o", SOLID),
    "Acc_N": (_ORANGE, "s", SOLID),
    "Acc_H": (BLACK, "D", SOLID),
    "zs-clip": (BLACK, "o", SOLID),
    "adand": (_RED, "s", SOLID),
    "cull": (_BLUE, "D", DASHED),
    "tent": (_ORANGE, "^", _MIXED),
    "sotta": (_GREEN, "v", DASHED),
    "tpt": (_PURPLE, "P", DOTTED),
    "tda": (_SKY, "X", _MIXED),
}
_OTHERS: list[Look] = [
    (_SKY, "<", DASHED), (_GREEN, ">", _MIXED), (_PURPLE, "h", SOLID), (_ORANGE, "p", DOTTED),
    (_BLUE, "*", _MIXED), (_RED, "d", DOTTED), (_YELLOW, "H", SOLID), (BLACK, "+", DASHED),
]  # fmt: skip
_COLOURS = (_SKY, _GREEN, _PURPLE, _ORANGE, _BLUE, _RED, BLACK)
_MARKERS, _DASHES = ("o", "s", "^", "D", "v", "P"), (SOLID, DASHED, DOTTED, _MIXED)
# A page may have dozens of names: of numbers without a common factor, no two rows are alike.
_OTHERS += [(_COLOURS[i % 7], _MARKERS[i % 6], _DASHES[i % 4]) for i in range(84)]


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The look of each name: its own, that of its method, or one with a free colour."""
    looks: dict[str, Look] = {}
    keys = list(dict.fromkeys(names))
    for key in keys:
        look = _LOOKS.get(key.partition(" (")[0])  # "adand (batch size 8)"
        if look and look not in looks.values():
            looks[key] = look
    for key in keys:
        if key not in looks:
            looks[key] = _free_look(list(looks.values()))
    return looks


def _free_look(used: Sequence[Look]) -> Look:
    """The first unused look with an unused colour, or with any colour if all are used."""
    colours = {colour for colour, _, _ in used}
    free = [look for look in _OTHERS if look not in used] or _OTHERS
    return next((look for look in free if look[0] not in colours), free[0])
