"""Class names in the notations in which people have them: typed, or in a file.

A file may have a name a line with `# comments`, numbers (`0: cat`), a CSV's one line or column,
JSON, or YAML as detectors' training sets have it (`names:` as a list, or as a mapping). A name that
still looks like a piece of such a notation is refused, for the encoder would be asked for it.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from zsntta_cli.errors import SettingsError, first_line, near, short
from zsntta_cli.files import read_input
from zsntta_cli.settings.options import check

_LARGEST = 2**26  # bytes of a file
# Keys under which files have their classes: YOLO's data.yaml, COCO's JSON, a model's config.json.
_KEYS = ("names", "classes", "class_names", "categories", "id2label", "labels")
_COLUMNS = ("name", "class", "class_name", "label", "display_name")  # of a CSV with a head
_NUMBERED = re.compile(r"(\d+)\s*[:.,;)\t ]\s*(.+)")
_LISTED = re.compile(r"[-*•]\s+(.+)")
_SYNSET = re.compile(r"n\d{8}\s+(.+)")  # as ImageNet's lists have them
_QUOTES = str.maketrans("“”„", '"""')  # of word processors
_KEY = re.compile(rf"({'|'.join(_KEYS)})\s*:", re.MULTILINE)
_COMMENT = re.compile(r"(^|\s)#(\s.*)?$|^#.*$")
_OPENING, _CLOSING = tuple("[]{}<\"'`"), tuple('[]{}"`')  # of names that are none
_ASSIGNED = re.compile(r"\w+\s*=\s*[\[\"'\w]")  # TOML, INI, darknet's .data


def typed_classes(text: str) -> tuple[str, ...]:
    """Class names that are typed: between commas, in quotes where one has a comma, or a list.

    Raises:
        SettingsError: they are separated by semicolons, or in a notation that is not understood.
    """
    where = f"--classes {short(text)}"
    text = text.translate(_QUOTES)
    stripped = text.strip()
    check(bool(stripped), "--classes is empty: name one class or more, --classes cat,dog.")
    if stripped.startswith(("[", "{", "(")):
        return _checked(_of_notation(_in_brackets(stripped), where), where)
    if "\n" in stripped:
        return _checked(_in_lines(_lines(stripped), where), where)
    right = re.sub("[;|]", ",", text)
    check(
        right == text or "," in text,
        f"{where}: names have commas between them, --classes '{short(right)}'.",
    )
    is_file = "," not in text and Path(text.strip()).suffix and Path(text.strip()).is_file()
    check(not is_file, f"{where} is a file: --classes-file {short(text)} reads it.")
    return _checked(_between_commas(text, where), where)


def read_classes(path: Path) -> tuple[str, ...]:
    """Class names from a file in any of the notations.

    Raises:
        SettingsError: the file cannot be read, is no text, or has no names, or is not understood.
    """
    try:
        text = _decoded(read_input(path, _LARGEST)).replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the class names {path} ({first_line(error)}).") from error
    names = _checked(_in_file(text, path), str(path)) if text.strip() else ()
    check(bool(names), f"{path} has no class names: it must have one name per line.")
    return names


def _decoded(data: bytes) -> str:
    is_wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))  # as Windows calls Unicode
    return data.decode("utf-16" if is_wide else "utf-8-sig")


def _in_file(text: str, path: Path) -> Sequence[Any]:
    where, suffix, text = str(path), path.suffix.lower(), text.translate(_QUOTES)
    is_yaml = suffix in (".yaml", ".yml", ".json") or _KEY.search(text)
    if is_yaml or text.lstrip().startswith(("[", "{")):
        return _of_notation(text, where)
    lines = _lines(text)
    if suffix in (".csv", ".tsv"):
        return _in_table(lines, "\t" if suffix == ".tsv" else ",", where)
    return _in_lines(lines, where)


def _lines(text: str) -> list[str]:
    """The lines that say something, without comments."""
    lines = (_COMMENT.sub("", line).strip() for line in text.split("\n"))
    return [line for line in lines if line]


def _in_lines(lines: Sequence[str], where: str) -> Sequence[str]:
    """Names of lines; a comma within one of several lines is part of its name."""
    if len(lines) == 1:
        check(";" not in lines[0], f"{where} has semicolons: names have commas or lines between.")
        return _between_commas(lines[0], where)
    if lines and all(line.endswith(",") for line in lines[:-1]):
        lines = [line.rstrip(", ") for line in lines]
    for form in (_LISTED, _SYNSET):
        if all(map(form.fullmatch, lines)):
            lines = [form.sub(r"\1", line) for line in lines]
    lines = _without_numbers(lines)
    return [line if line[:1] not in "\"'" else _one_in_quotes(line, where) for line in lines]


def _without_numbers(lines: Sequence[str]) -> Sequence[str]:
    """Lines without their numbers, where these count from 0 or 1, line by line."""
    numbered = [_NUMBERED.fullmatch(line) for line in lines]
    matches = [match for match in numbered if match]
    if len(matches) < max(len(lines), 2):
        return lines
    numbers = [int(match[1]) for match in matches]
    counts = numbers[0] in (0, 1) and numbers == [*range(numbers[0], numbers[0] + len(numbers))]
    return [match[2] for match in matches] if counts else lines


def _one_in_quotes(line: str, where: str) -> str:
    names = _between_commas(line, where)
    return names[0] if len(names) == 1 else line


def _in_table(lines: Sequence[str], mark: str, where: str) -> Sequence[str]:
    """Names of a CSV: its one line, its only column, the one with that head, or beside numbers."""
    if all(";" in line and mark not in line for line in lines):  # as spreadsheets write in Europe
        mark = ";"
    rows = [_cells(line, mark, where) for line in lines]
    head = [cell.lower() for cell in rows[0]] if rows else []
    columns = [head.index(name) for name in _COLUMNS if name in head]
    if columns and len(rows) > 1:
        return [row[columns[0]] if columns[0] < len(row) else "" for row in rows[1:]]
    if len(rows) == 1:
        return rows[0]
    widths = {len([cell for cell in row if cell]) for row in rows}
    if widths <= {1}:
        return _without_numbers([next(filter(None, row)) for row in rows])
    numbered = _without_numbers([": ".join(row) for row in rows]) if widths == {2} else ()
    check(
        bool(numbered) and all(": " not in name for name in numbered),
        f"{where} is understood as a table of {max(widths)} columns without a head: give the "
        f"column of the classes the head 'name', or a file with one name per line.",
    )
    return numbered


def _between_commas(text: str, where: str) -> list[str]:
    """Names between commas; in quotes, of either kind, a name may have some itself."""
    quote = "'" if re.fullmatch(r"\s*'[^']*'\s*(,\s*'[^']*'\s*)*", text) else '"'
    return _cells(text, ",", where, quote)


def _cells(line: str, mark: str, where: str, quote: str = '"') -> list[str]:
    try:
        [cells] = csv.reader(
            [line], delimiter=mark, quotechar=quote, skipinitialspace=True, strict=True
        )
    except csv.Error as error:
        raise SettingsError(
            f"{where}: quotes do not enclose whole names: '{short(line)}'. Write one name per "
            f"line, or names between commas."
        ) from error
    return [cell.strip() for cell in (cells[:-1] if len(cells) > 1 and not cells[-1] else cells)]


def _in_brackets(text: str) -> str:
    """A list as programs print it; a tuple as a list."""
    return f"[{text[1:-1]}]" if text.startswith("(") and text.endswith(")") else text


def _of_notation(text: str, where: str) -> Sequence[Any]:
    """Names of JSON or YAML, of which JSON is a part; values stay the texts that they are."""
    try:
        value = yaml.load(text.replace("\t", " "), Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f" in line {mark.line + 1}" if mark and "\n" in text.strip() else ""
        raise SettingsError(
            f"{where} looks like a list in JSON or YAML, and is none{at}: write names between "
            f"commas, cat,dog."
        ) from error
    return _names_in(value, where)


def _names_in(value: Any, where: str) -> Sequence[Any]:
    """The names in a value of JSON or YAML."""
    if isinstance(value, list):
        return [_name_of(one, where) for one in value]
    if isinstance(value, str):
        return value.split("\n") if "\n" in value else [value]
    check(isinstance(value, Mapping), f"{where} has no class names.")
    keys = [key for key in _KEYS if key in value]
    if keys and not _has_names_as_keys(value):
        names = _names_in(value[keys[0]], f"{where}, {keys[0]}")
        count = value.get("nc")
        check(
            count is None or count == str(len(names)),
            f"{where} says nc: {count}, and has {len(names):,} names.",
        )
        return names
    return _by_number(value, where)


def _name_of(value: Any, where: str) -> Any:
    """The name of one entry of a list: a text, or what has one as COCO's categories do."""
    if isinstance(value, Mapping):
        names = [value[key] for key in _COLUMNS if isinstance(value.get(key), str)]
        if not names and len(value) == 1:  # `- 0: cat`
            names = [name for name in value.values() if isinstance(name, str)]
        check(bool(names), f"{where} is understood as a list of entries, which have no 'name'.")
        return names[0]
    return value


def _has_names_as_keys(value: Mapping[str, Any]) -> bool:
    """Whether it is a set, or tells the numbers of names: one of them may be called `names`."""
    texts = [one for one in value.values() if isinstance(one, str)]
    is_set_or_numbers = not any(texts) or all(map(str.isdecimal, texts))
    return 1 < len(value) == len(texts) and is_set_or_numbers and "nc" not in value


def _by_number(value: Mapping[str, Any], where: str) -> Sequence[str]:
    """Names of a mapping from numbers to names, or from names to numbers, by their numbers."""
    pairs = [(key, name) for key, name in value.items() if isinstance(name, str)]
    if value and all(name == "" for name in value.values()):  # a set, as Python prints it
        return [*value]
    if pairs and all(name.isdecimal() for _, name in pairs) and not pairs[0][0].isdecimal():
        pairs = [(number, name) for name, number in pairs]
    is_numbered = len(pairs) == len(value) and all(number.isdecimal() for number, _ in pairs)
    wanted = near(next(iter(value), ""), _KEYS) or " (looked for names:, classes:)"
    check(
        is_numbered,
        f"{where} is understood as a mapping, which has no class names{wanted}.",
    )
    return [name for _, name in sorted(pairs, key=lambda pair: int(pair[0]))]


def _checked(names: Sequence[Any], where: str) -> tuple[str, ...]:
    """The names, none of which is a piece of a notation."""
    for number, name in enumerate(names, 1):
        what = f"{where}: class {number:,} is {short(repr(name))}"
        check(isinstance(name, str), f"{what}, must be a name.")
        check(bool(name.strip("\0 ")), f"{what}, must be a name: it is empty.")
        is_piece = name.startswith(_OPENING) or name.endswith(_CLOSING)
        check(
            not (is_piece or _ASSIGNED.match(name) or _KEY.match(name)),
            f"{what}, a piece of a notation that is not understood: write one name per line, or "
            f"names between commas.",
        )
    return tuple(name.strip() for name in names)
