"""Lists as people type them: `--seed 0-4`, `--seeds 5`, `--ratio 0.25,0.5`, `--method a,B`.

They are written out before the line is parsed, as the repeated options that they stand for.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """The words of a line with each list as repeated options.

    `options` are the command's by what introduces them, as `--seed`.

    Raises:
        typer.BadParameter: a range that goes down, or one of more than 10,000 values.
    """
    args = [*_in_known_case(args)]
    readers = {name: reader for name, option in options.items() if (reader := _reader(option))}
    has_counts = "--seed" in readers and "--seeds" not in options
    words: list[str] = []
    rest = iter(args)
    for word in rest:
        if word == "--":
            return [*words, word, *rest]
        name, equals, value = word.partition("=")
        is_count = has_counts and name == "--seeds"
        if not is_count and name not in readers:
            takes = name in options and not equals and not options[name].is_flag
            words += [word, *_next(rest)] if takes else [word]
            continue
        values = [value] if equals else list(_next(rest))
        if not values:  # the parser says that a value is missing
            words += _counted("") if is_count else [word]
            continue
        option = "--seed" if is_count else name
        texts = _counted(values[0]) if is_count else readers[name](values[0])
        words += [f"{option}={text}" for text in texts]
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


def _in_known_case(words: Sequence[str]) -> Iterator[str]:
    """The words of a line, with what stands behind options of names in its known case."""
    before = ""
    for word in words:
        option, equals, value = word.partition("=")
        if option in _NAMED and equals:
            yield f"{option}={_known(option, value)}"
        else:
            yield _known(before, word) if before in _NAMED else word
        before = "" if equals or before in _NAMED else word


def _known(option: str, value: str) -> str:
    if option == "--format":
        return _FORMATS.get(value.lower(), value.lower())
    read = known_set if option == "--dataset" else in_known_case
    return ",".join(map(read, value.split(",")))


def _next(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        yield word
        return


def _reader(option: Any) -> Callable[[str], list[str]] | None:
    """What reads the lists of an option; none where each text is one value."""
    if not option.multiple:
        return None
    if option.metavar == INTEGER or option.name == "seed":
        return whole_numbers_in
    if option.metavar == NUMBER or option.name in ("ratio", "fixed"):
        return names_in
    if option.name == "dataset":
        return _data_sets
    is_choice = option.metavar == "NAME" or "|" in (option.metavar or "")
    return names_in if option.name in _NAMES or (is_choice and option.name not in _TEXTS) else None


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


def _data_sets(text: str) -> list[str]:
    """Names between commas; a path behind NAME= may have commas."""
    return [text] if "=" in text else names_in(text)


def names_in(text: str) -> list[str]:
    """The parts between commas; a text with an empty part is left to be refused as it is."""
    parts = [part.strip() for part in text.split(",")]
    return parts if all(parts) else [text]
