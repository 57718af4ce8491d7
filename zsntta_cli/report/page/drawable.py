"""Curves that can be drawn: they may come from elsewhere, so what is no curve is left out."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

_LONGEST = 10_000  # values of a curve
_LINES = {"running": ("acc_s", "acc_n"), "thresholds": ("zero_shot", "detector")}


def drawable(curves: Any) -> dict[str, Any]:
    """`scores`, `running` and `thresholds` as curves.py describes them, those that are so."""
    if not isinstance(curves, dict):
        return {}
    found = {name: _line(curves.get(name), names) for name, names in _LINES.items()}
    found["scores"] = _histogram(curves.get("scores"))
    return {name: curve for name, curve in found.items() if curve}


def _histogram(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        return {}
    ends: list[Any] = [given.get(name) for name in ("low", "high")]
    counts: list[Any] = [given.get(name) for name in ("id", "ood")]
    are_whole = all(_is_list(c) and all(type(n) is int and n >= 0 for n in c) for c in counts)
    if not are_whole or len(counts[0]) != len(counts[1]) or not counts[0]:
        return {}
    low, high = ends
    if not (_is_number(low) and _is_number(high) and low < high):
        return {}
    return {"low": low, "high": high, "id": counts[0], "ood": counts[1]}


def _line(given: Any, names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(given, dict) or not _is_list(given.get("item")) or not given["item"]:
        return {}
    items = given["item"]
    if not all(map(_is_number, items)) or sorted(set(items)) != items:
        return {}
    there = {name: given[name] for name in names if _is_curve(given, name, len(items))}
    return {"item": items, **there} if there else {}


def _is_curve(given: Mapping[str, Any], name: str, length: int) -> bool:
    values = given.get(name)
    known = isinstance(values, list) and len(values) == length
    return known and all(value is None or _is_number(value) for value in values or ())


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _LONGEST


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and math.isfinite(value) and abs(value) < 1e15
