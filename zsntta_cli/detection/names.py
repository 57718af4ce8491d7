"""Class names: between commas, one per line, or a list in JSON or YAML, as `names:` in a data.yaml.

A name that still looks like a piece of another notation is refused, because the encoder would take
it literally.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError, first_line, first_of, printable, short
from zsntta_cli.files import read_input
from zsntta_cli.settings.options import check

_LARGEST = 2**26  # bytes of a file
_NAMES = "names"  # the key under which a data.yaml has them
_TABLES = (".csv", ".tsv")
_LISTED = re.compile(rf"\A\s*[\[{{]|^{_NAMES}\s*:", re.MULTILINE)
# Brackets, quotes, other separators, numbers (`0: cat`), dashes, WordNet's numbers, keys (`a = `).
_PIECE = re.compile(
    r"""[][{}()<"'`#]|.*[][{}"`,]$|.*[;|\t]|\d+\s*[:.)]|[-*•]\s|n\d{8}\b|\w+\s*=|\w+:\s"""
)
# Names for what is none of the others, names that say what an image does not show, and names with a
# letter that English does not have.
_ELSE = re.compile(
    r"(any|some|every)thing|(any |all |the )?others?( .+)?|(any|some|every)thing else( .+)?|rest|"
    r"none( of .+)?|neither( of .+)?|nothing|unknown( .+)?|background|misc(ellaneous)?|noise|ood|"
    r"outliers?|unclassified|uncategori[sz]ed|undefined|unlabell?ed|unsure|not sure|n/a|negatives?"
)
_NEGATED = re.compile(r"(no|non)\b.+|(.*[^-\w])?(not|without|neither)(?![-\w]).*|.*n['’]t\b.*")
_FOREIGN = re.compile(r"[^\W\d_\x00-\x7f]")
_NOTES = (
    (_ELSE.fullmatch, "means anything else, which no image shows: omit it. What belongs to none of "
     "the classes is noise without it."),
    (_NEGATED.fullmatch, "says what an image does not show, but an encoder looks for what is "
     "negated: name what it shows instead, or omit it."),
    (_FOREIGN.search, "has letters that English does not have: most encoders learned English "
     "names."),
)  # fmt: skip
_WANTED = "write one name per line, or names between commas"


def names_of(names: Sequence[Any], where: str = "") -> tuple[str, ...]:
    """Class names as given, if they are valid; `where` says where they were read, if anywhere.

    Raises:
        SettingsError: they are not texts, one is empty, or two are equal; or one that was read is a
            piece of a notation.
    """
    if isinstance(names, str):
        raise SettingsError(f"class names are the text '{short(names)}', not a list.")
    check(len(names) > 0, "there are no class names: name one or more.")
    seen = set[str]()
    for i, name in enumerate(names, 1):
        what = f"{where and f'{where}: '}class {i:,} is {short(repr(name))}"
        check(isinstance(name, str), f"{what}, must be a name.")
        check(bool(name.strip("\0 ")), f"{what}, must be a name: it is empty.")
        check("\0" not in name, f"{what}, must not contain NUL.")
        is_piece = where and _PIECE.match(name.strip())
        check(not is_piece, f"{what}, which looks like part of another notation: {_WANTED}.")
        check(name not in seen, f"the class name '{short(name)}' appears twice.")
        seen.add(name)
    return tuple(name.strip() for name in names) if where else tuple(names)


def typed_classes(text: str) -> tuple[str, ...]:
    """Class names from the command line.

    Raises:
        SettingsError: they are in an unknown notation.
    """
    where = f"--classes {printable(short(text))}"
    check(bool(text.strip()), "--classes is empty: name one class or more, as --classes cat,dog.")
    is_file = "," not in text and Path(text.strip()).suffix and Path(text.strip()).is_file()
    check(not is_file, f"{where} is a file: type --classes-file {short(text)}.")
    return names_of(_names(text, where), where)


def read_classes(path: Path) -> tuple[str, ...]:
    """Class names from a file.

    Raises:
        SettingsError: the file cannot be read, is not text, has no names, or is in an unknown
            notation.
    """
    try:
        text = read_input(path, _LARGEST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the class names {path} ({first_line(error)}).") from error
    names = _names(text, str(path))
    check(bool(names), f"{path} has no class names: it must have one name per line.")
    is_table = path.suffix.lower() in _TABLES and len(text.split("\n")) > 2 and "," in text
    check(not is_table, f"{path} looks like a table: {_WANTED}.")
    return names_of(names, str(path))


def notes_on(names: Sequence[str]) -> Iterator[str]:
    """Notes on names that CLIP hardly understands as they are meant."""
    names_by_note: dict[str, list[str]] = {note: [] for _, note in _NOTES}
    for name in names:
        words = " ".join(name.replace("_", " ").lower().split())
        if note := next((note for is_meant, note in _NOTES if is_meant(words)), ""):
            names_by_note[note].append(f"'{short(name)}'")
    for note, of_note in names_by_note.items():
        if of_note:
            yield f"{first_of(of_note)} {note}"


def _names(text: str, where: str) -> Sequence[Any]:
    """The names in a text; a comma within one of several lines is part of its name."""
    if _LISTED.search(text):
        return _in_list(text, where)
    lines = list(filter(None, map(str.strip, text.splitlines())))
    if len(lines) != 1:
        return lines
    try:  # between commas; a name that has a comma itself stands in double quotes
        [names] = csv.reader(lines, skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise SettingsError(f"{where}: quotes do not enclose whole names: {_WANTED}.") from error
    return names


def _in_list(text: str, where: str) -> Sequence[Any]:
    """Names of JSON or YAML, of which JSON is a part; values stay the texts that they are."""
    import yaml

    try:
        value = yaml.load(text.replace("\t", " "), Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise SettingsError(
            f"{where} looks like a list in JSON or YAML but is not valid: {_WANTED}."
        ) from error
    if isinstance(value, Mapping):
        check(_NAMES in value, f"{where} looks like a mapping but has no '{_NAMES}': {_WANTED}.")
        value = value[_NAMES]
    if isinstance(value, Mapping):  # by their numbers
        value = [*value.values()]
    check(isinstance(value, list), f"{where} looks like JSON or YAML but has no list: {_WANTED}.")
    return value
