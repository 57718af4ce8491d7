"""Lists as people type them: `--seed 0-4`, `--seeds 5`, `--ratio 0.25,0.5`, `--method a,B`.

They are written out before the line is parsed, as the repeated options that they stand for.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from zsntta_cli.errors import short
from zsntta_cli.methods import METHODS

INTEGER, NUMBER = "INTEGER", "NUMBER"  # what stands for values in the help of a setting
_MOST = 10_000  # values that one text may stand for
_NAMED = ("--method", "--id", "--ood", "--dataset", "--preset", "--model", "--format")
_NAMES = ("method", "id_set", "ood_set", "encoder", "columns", "noise")
_TEXTS = ("prompt", "settings")  # in which a comma is a comma
_FORMATS = {"tex": "latex", "md": "markdown", "jsonl": "json"}  # by other words for them
_RANGE = re.compile(r"([0-9]+) ?[-‐‑‒–—] ?([0-9]+)")  # a dash of a text processor is one too


def written_out(args: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """The words of a line with each list as repeated options, and known names as they are written.

    `options` are the command's by what introduces them, as `--seed`.

    Raises:
        typer.BadParameter: a range that goes down, or one of more than 10,000 values.
    """
    words, rest = list[str](), list(args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*words, word, *rest]
        name, equals, value = word.partition("=")
        option = options.get(name)
        if name == "--seeds" and option is None and "--seed" in options:
            count = value if equals or not rest else rest.pop(0)
            words += [f"--seed={seed}" for seed in _counted(count)]
        elif option is None or option.is_flag or not (equals or rest):
            words.append(word)  # where a value is missing, the parser says so
        else:
            value = _known(name, value if equals else rest.pop(0))
            texts = _texts(option, value) if option.multiple else [value]
            words += [f"{name}={text}" for text in texts]
    return words


def in_known_case(name: str) -> str:
    """A known method, set, preset or encoder typed in any case, as it is written; others as is."""
    base, colon, rest = name.partition(":")
    if name == name.lower():
        return name
    from zsntta_cli.datasets import CATALOGUE
    from zsntta_cli.simulation.runs import PRESETS

    is_known = base.lower() in {*METHODS, *CATALOGUE, *PRESETS, "tiny"}
    return base.lower() + colon + rest if is_known and "=" not in name else name


def known_set(name: str) -> str:
    """A known set by its name, in any case, or by another name that people type for it."""
    from zsntta_cli.datasets.catalogue import ALIASES, CATALOGUE

    base, colon, rest = name.partition(":")
    is_own = "=" in name or base.lower() in CATALOGUE
    other = "" if is_own else ALIASES.get(base.lower(), "")
    return other + colon + rest if other else in_known_case(name)


def _known(option: str, value: str) -> str:
    """The value of an option, with names in their known case where it takes names."""
    if option not in _NAMED:
        return value
    if option == "--format":
        return _FORMATS.get(value.lower(), value.lower())
    read = known_set if option == "--dataset" else in_known_case
    return ",".join(map(read, value.split(",")))


def _texts(option: Any, text: str) -> list[str]:
    """The values that a text of an option which may be repeated stands for."""
    name, metavar = option.name, option.metavar or ""
    if metavar == INTEGER or name == "seed":
        return whole_numbers_in(text)
    if name == "dataset":  # a path behind NAME= may have commas
        return [text] if "=" in text else names_in(text)
    is_choice = name not in _TEXTS and (metavar == "NAME" or "|" in metavar)
    is_list = metavar == NUMBER or name in ("ratio", "fixed", *_NAMES) or is_choice
    return names_in(text) if is_list else [text]


def _counted(text: str) -> list[str]:
    """The seeds that a count stands for: 5 are 0 to 4."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST):
        raise typer.BadParameter(
            f"--seeds is '{short(text)}', must be the number of seeds, from 1 to {_MOST:,}: "
            "5 stands for the seeds 0-4."
        )
    return [str(seed) for seed in range(int(text))]


def whole_numbers_in(text: str) -> list[str]:
    """The parts between commas, with ranges such as 0-4 written out."""
    return [one for part in names_in(text) for one in _in_range(part)]


def _in_range(text: str) -> list[str]:
    if not (range_typed := _RANGE.fullmatch(text)):
        return [text]
    first, last = map(int, range_typed.groups())
    if last < first:
        raise typer.BadParameter(f"the range '{short(text)}' goes down: type {last}-{first}.")
    if last - first >= _MOST:
        raise typer.BadParameter(
            f"the range '{short(text)}' has more than {_MOST:,} values, which is the most."
        )
    return [str(value) for value in range(first, last + 1)]


def names_in(text: str) -> list[str]:
    """The parts between commas; a text with an empty part is left to be refused as it is."""
    parts = [part.strip() for part in text.split(",")]
    return parts if all(parts) else [text]
