"""Labels and names of classes: what tells them, and as prompts have them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.errors import DatasetError, first_line, first_of, short

_SHOWN = 3  # names in a note
_WNID = re.compile(r"n\d{8}")  # of WordNet, as ImageNet's folders are called
# 001.Black_footed_Albatross of CUB, n02085620-Chihuahua of Stanford Dogs.
_NUMBER_BEFORE = re.compile(r"n?\d+[-_. ]+(?=\w)")
_NUMBER_BEHIND = re.compile(r"(?<=[^\W\d])\d{1,2}$")  # Mango 0, mango_1
_SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z]{2})")  # AnnualCrop of EuroSAT, no McDonald

Told = int | str | None  # of an image's class: a number from 0, -1 and None for none, or a name


def labels_told(
    where: object, told: Sequence[Told], names: Sequence[str] = ()
) -> tuple[list[int], list[str]]:
    """Labels, -1 where none is told, and class names: `names`, or those that are told, sorted.

    Numbers without `names` have no names, and neither has a set without labels.

    Raises:
        DatasetError: numbers and names are mixed, or a name is not once among `names`.
    """
    texts = {label for label in told if isinstance(label, str)}
    numbers = [label if isinstance(label, int) else -1 for label in told]
    if not texts:
        return numbers, list(names) if max(numbers, default=-1) >= 0 else []
    if max(numbers) >= 0:
        raise DatasetError(f"labels in {where} are numbers and texts.")
    class_names = list(names) or sorted(texts)
    if strange := sorted(text for text in texts if class_names.count(text) != 1):
        times = "twice" if strange[0] in class_names else "not"
        raise DatasetError(f"'{short(strange[0])}' in {where} is {times} among the class names.")
    index = {text: i for i, text in enumerate(class_names)}
    return [index[label] if isinstance(label, str) else -1 for label in told], class_names


def names_of_folders(images: ImageSet) -> ImageSet:
    """Turn names of a set's classes into words; wnids into CLIP's names of ImageNet's.

    Words are without numbers before all of them, CamelCase and "_" spaced; where two would be one,
    as `2_door` and `4_door` are without numbers, all stay as they are. Notes say what changed, and
    what prompts would have that is no word. Underscores alone stay: prompts have spaces for them.
    """
    folders, notes = list(images.class_names), list(images.notes)
    name_file = "--class-names FILE, lines of a folder and its name"
    which = "class folders" if images.labels_from == "folders" else "class names"
    if folders and {folder.lower() for folder in folders} <= _SPLITS:
        notes.append(
            f"classes are called {first_of(folders)}: if these hold them, name one, "
            f"{images.name}=PATH/{folders[0]}"
        )
    is_numbered = all(map(_NUMBER_BEFORE.match, folders))
    bare = [_NUMBER_BEFORE.sub("", name, count=1) for name in folders] if is_numbered else folders
    words, are_codes = [_CAMEL.sub(" ", name).replace("_", " ") for name in bare], ""
    words = words if len({*words}) == len(words) else folders
    if folders and all(map(_WNID.fullmatch, folders)):
        from zsntta_cli.datasets.known_sets import names_by_wnid

        of_imagenet = names_by_wnid()
        words = [of_imagenet.get(folder, folder) for folder in folders]
        are_codes = "" if of_imagenet.keys() >= {*folders} else "wnids that are not all ImageNet's"
    elif folders and all(map(str.isdecimal, folders)):
        are_codes = "numbers"
    if are_codes:
        first = first_of(folders, _SHOWN)
        notes.append(f"{which} are {are_codes} ({first}), and prompts have them: {name_file}")
    if are_codes or words in (folders, [folder.replace("_", " ") for folder in folders]):
        return replace(images, notes=notes)
    pairs = [f"{short(f)} as '{short(w)}'" for f, w in zip(folders, words, strict=True) if f != w]
    notes.append(f"{which} are read as words: {first_of(pairs, _SHOWN)}; others: {name_file}")
    return replace(images, class_names=words, folder_names=folders, notes=notes)


def with_class_names(images: ImageSet, path: Path) -> ImageSet:
    """The set with the class names that a file gives.

    It has a name a line, in the order of the folders (of their numbers, where they are numbers), or
    lines of a folder and, behind a tab or a space, its class name. Labels from 1 of a set without
    names are those of the lines from 1.

    Raises:
        DatasetError: no such file, or lines that do not fit the folders.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"cannot read the class names {path} ({first_line(error)}).") from error
    lines, notes = [line.strip() for line in text.splitlines() if line.strip()], list[str]()
    folders = list(images.folder_names or images.class_names)
    if not folders:  # their labels are numbers
        first, last = min(images.labels[images.labels >= 0], default=0), max(images.labels)
        start = int(first == 1 and last == len(lines))
        if start:
            images = replace(images, labels=images.labels - (images.labels > 0))
            notes.append(f"labels count from 1, which is '{short(lines[0])}'")
        folders = [*map(str, range(start, max(last + 1, len(lines))))]
    pairs = (re.split(r"[\t ]+", line, maxsplit=1) for line in lines)
    named = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    if not folders or not named.keys() >= {*folders}:
        if len(lines) != len(folders):
            are = "class folders" if images.class_names else "labels from 0"
            raise DatasetError(
                f"{path} has {len(lines)} lines and '{images.name}' {len(folders)} {are}: must be "
                f"a name a line in their order, or lines of a folder and its name."
            )
        named = dict(zip(folders, lines, strict=True))
        shown = first_of([f"{folder} is {short(name)}" for folder, name in named.items()], _SHOWN)
        notes.append(f"names are in the order of the folders: {shown}")
    names = [named[folder] for folder in folders]
    return replace(images, class_names=names, folder_names=folders, notes=notes)


def twins(names: Sequence[str], folders: Sequence[str] = ()) -> Iterator[str]:
    """What to say of classes whose names differ in case, spaces, signs or a count alone."""
    by_stem: dict[str, dict[str, list[int]]] = {}
    for row, name in enumerate(names):
        letters = re.sub(r"[\s_-]+", "", name).casefold()
        stem = _NUMBER_BEHIND.sub("", letters)
        by_stem.setdefault(stem, {}).setdefault(letters.removeprefix(stem), []).append(row)
    groups = list[list[int]]()
    for by_number in by_stem.values():
        counts = {int(number or -1) for number in by_number}
        is_count = counts in ({*range(len(counts))}, {*range(1, len(counts) + 1)})
        together = [row for rows in by_number.values() for row in rows]
        groups += [together] if is_count else by_number.values()
    groups = sorted(groups, key=len, reverse=True)[:_SHOWN]
    for rows in (rows for rows in groups if len(rows) > 1):
        called = [short(folders[row] if folders else f"{names[row]} at {row}") for row in rows]
        yield (
            f"{len(rows)} classes are called '{short(names[rows[0]])}' "
            f"({first_of(called, _SHOWN)}) but for spelling or a number, and no prompt tells them "
            f"apart"
        )
