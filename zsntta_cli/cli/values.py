"""What people type as values: lists and ranges (`--seed 0-4`, `--ratio .25,.5`), names in any case.

A reader makes the list of values that one text stands for. Below them: what a shell completes.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from zsntta_cli.cache.folder import encoder_names, set_names
from zsntta_cli.datasets.catalogue import ALIASES, CATALOGUE
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.errors import SettingsError, short
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import FEATURES, TINY, EncoderChoice, Ratio, parse_ratio
from zsntta_cli.simulation.runs import PRESETS

ADAPTIVE = "adaptive"  # of thresholds: none is fixed
_MOST = 10_000  # values that one text may stand for
_RANGE = re.compile(r"([0-9]+) ?[-‐‑‒–—] ?([0-9]+)")  # a dash of a text processor is one too


def texts(text: str) -> list[str]:
    """The parts between commas.

    Raises:
        BadParameter: a part is empty.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise typer.BadParameter(f"'{short(text)}' has an empty part: type a list such as a,b.")
    return parts


def whole_numbers(text: str) -> list[int]:
    """Whole numbers: 3, a list 0,2 or a range 0-4.

    Raises:
        BadParameter: a part is no number, or a range goes down or has more than 10,000 values.
    """
    return [number for part in texts(text) for number in _range(part)]


def _range(text: str) -> Iterable[int]:
    if not (typed := _RANGE.fullmatch(text)):
        try:
            return [int(text)]
        except ValueError:
            raise typer.BadParameter(
                f"'{short(text)}' is not a whole number, a list such as 0,1,2 or a range such as "
                "0-4."
            ) from None
    first, last = map(int, typed.groups())
    if last < first:
        raise typer.BadParameter(f"the range '{short(text)}' goes down: type {last}-{first}.")
    if last - first >= _MOST:
        raise typer.BadParameter(
            f"the range '{short(text)}' has more than {_MOST:,} values, which is the most."
        )
    return range(first, last + 1)


def numbers(text: str) -> list[float]:
    """Numbers, between commas.

    Raises:
        BadParameter: a part is no number.
    """
    try:
        return [float(part) for part in texts(text)]
    except ValueError:
        raise typer.BadParameter(f"'{short(text)}' is not a number or a list of them.") from None


def truths(text: str) -> list[bool]:
    """Values that are true or false, as people write them.

    Raises:
        BadParameter: a part is neither.
    """
    words = [part.lower() for part in texts(text)]
    if {*words} - {"true", "yes", "false", "no"}:
        raise typer.BadParameter(f"'{short(text)}' must be true or false.")
    return [word in ("true", "yes") for word in words]


def ratios(text: str) -> list[Ratio]:
    """Noise ratios: numbers in [0, 1), or natural.

    Raises:
        BadParameter: a part is neither.
    """
    try:
        return [parse_ratio(part) for part in texts(text)]
    except SettingsError as error:
        raise typer.BadParameter(str(error)) from None


def thresholds(text: str) -> list[float | None]:
    """Fixed thresholds as numbers, the adaptive one as None.

    Raises:
        BadParameter: a part is neither.
    """
    return [None if part == ADAPTIVE else numbers(part)[0] for part in texts(text)]


def whole(text: str) -> list[str]:
    """A text as it is: names between commas that stand for one value."""
    return [text]


def names(text: str) -> list[str]:
    """Names of methods, sets, presets or encoders, between commas, in any case."""
    return [in_known_case(part) for part in texts(text)]


def data_sets(text: str) -> list[str]:
    """Names of data sets between commas, or one NAME=PATH, whose path may have commas."""
    return [text] if "=" in text else [known_set(part) for part in texts(text)]


def in_known_case(name: str) -> str:
    """A known method, set, preset or encoder typed in any case, as it is written; others as is."""
    base, colon, rest = name.partition(":")
    is_known = base.lower() in {*METHODS, *CATALOGUE, *PRESETS, TINY}
    return base.lower() + colon + rest if is_known and "=" not in name else name


def known_set(name: str) -> str:
    """A known set by its name, in any case, or by another name that people type for it."""
    base, colon, rest = name.partition(":")
    is_own = "=" in name or base.lower() in CATALOGUE
    other = "" if is_own else ALIASES.get(base.lower(), "")
    return other + colon + rest if other else in_known_case(name)


def known_methods(incomplete: str) -> list[str]:
    """Methods, for a shell to complete."""
    return [name for name in METHODS if name.startswith(incomplete)]


def known_sets(incomplete: str) -> list[str]:
    """Sets of the catalogue, for a shell to complete."""
    return [name for name in CATALOGUE if name.startswith(incomplete)]


def cached_encoders(ctx: Any, incomplete: str) -> list[str]:
    """Encoders that there are features of, for a shell to complete."""
    return [name for name in encoder_names(_root(ctx)) if name.startswith(incomplete)]


def cached_sets(ctx: Any, incomplete: str) -> list[str]:
    """Sets that there are features of, by the encoder that is named, or by any."""
    root, given = _root(ctx), ctx.params
    folders = [given["encoder"]] if given.get("encoder") else encoder_names(root)
    if given.get("model"):
        folders = [EncoderChoice(given["model"], given.get("pretrained") or "openai").slug]
    cached = {name for folder in folders for name in set_names(root, folder, DATASET)}
    return sorted(name for name in cached if name.startswith(incomplete))


def _root(ctx: Any) -> Path:
    return Path(ctx.params.get("features_dir") or FEATURES)
