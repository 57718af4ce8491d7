"""Labels and class names: where they come from, and how prompts use them."""

import re
from collections import Counter
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

RawLabel = int | str | None  # of an image: a number from 0, a class name, or -1 or None for none


def class_labels(
    where: object, raw: Sequence[RawLabel], names: Sequence[str] = ()
) -> tuple[list[int], list[str]]:
    """Labels, -1 if unknown, and class names: `names`, or all texts, sorted.

    Numbers without `names` have no class names, and neither does a set without labels.

    Raises:
        DatasetError: numbers and names are mixed, or a name does not appear once in `names`.
    """
    texts = {label for label in raw if isinstance(label, str)}
    numbers = [label if isinstance(label, int) else -1 for label in raw]
    if not texts:
        return numbers, list(names) if max(numbers, default=-1) >= 0 else []
    if max(numbers) >= 0:
        raise DatasetError(f"labels in {where} mix numbers and texts.")
    class_names, times = list(names) or sorted(texts), Counter(names or texts)
    if strange := sorted(text for text in texts if times[text] != 1):
        how_often = "appears twice in" if times[strange[0]] else "is not one of"
        raise DatasetError(f"'{short(strange[0])}' in {where} {how_often} the class names.")
    index: dict[RawLabel, int] = {text: i for i, text in enumerate(class_names)}
    return [index.get(label, -1) for label in raw], class_names


def names_of_folders(images: ImageSet) -> ImageSet:
    """Turn a set's class names into words, and wnids into CLIP's names of ImageNet's classes.

    Numbers before all names are removed, and CamelCase and "_" become spaces. If two names would
    become equal, as `2_door` and `4_door` without numbers, all stay unchanged. Notes name changes,
    and codes that prompts would contain. Underscores alone stay: prompts replace them with spaces.
    """
    folders, notes = list(images.class_names), list(images.notes)
    if not folders:
        return images
    if {folder.lower() for folder in folders} <= _SPLITS:
        notes.append(
            f"classes are named {first_of(folders)}: if these hold the classes, name one, "
            f"{images.name}=PATH/{folders[0]}"
        )
    words, codes = _as_words(folders)
    name_file = "--class-names FILE, with lines of a folder and its name"
    which = "class folders" if images.labels_from == "folders" else "class names"
    if codes:
        first = first_of(folders, _SHOWN)
        notes.append(f"{which} are {codes} ({first}), and prompts use them: {name_file}")
    if codes or words == folders:
        return replace(images, notes=notes)
    pairs = [f"{short(f)} as '{short(w)}'" for f, w in zip(folders, words, strict=True) if f != w]
    notes.append(f"{which} are read as words: {first_of(pairs, _SHOWN)}; to change: {name_file}")
    return replace(images, class_names=words, folder_names=folders, notes=notes)


def _as_words(folders: list[str]) -> tuple[list[str], str]:
    """Class names in words, and what kind of codes they are if they are not words."""
    if all(map(_WNID.fullmatch, folders)):
        from zsntta_cli.datasets.known_sets import names_by_wnid

        of_imagenet = names_by_wnid()
        codes = "" if of_imagenet.keys() >= {*folders} else "wnids, some not in ImageNet"
        return [of_imagenet.get(folder, folder) for folder in folders], codes
    if all(map(str.isdecimal, folders)):
        return folders, "numbers"
    is_numbered = all(map(_NUMBER_BEFORE.match, folders))
    bare = [_NUMBER_BEFORE.sub("", name, count=1) for name in folders] if is_numbered else folders
    words = [_CAMEL.sub(" ", name).replace("_", " ") for name in bare]
    is_changed = words != [folder.replace("_", " ") for folder in folders]
    return words if is_changed and len({*words}) == len(words) else folders, ""


def with_class_names(images: ImageSet, path: Path) -> ImageSet:
    """The set with the class names from a file.

    It has one name per line, in the order of the folders (by number if they are numbers), or lines
    of a folder and, after a tab or a space, its class name. In a set without names whose labels
    start at 1, label 1 is the first line.

    Raises:
        DatasetError: the file cannot be read, or its lines do not match the folders.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"cannot read the class names {path} ({first_line(error)}).") from error
    lines, notes = [line.strip() for line in text.splitlines() if line.strip()], list[str]()
    folders, which = list(images.folder_names or images.class_names), "class folders"
    if not folders:  # the labels are numbers
        which, last = "labels from 0", max(images.labels)
        start = int(min(images.labels[images.labels >= 0], default=0) == 1 and last == len(lines))
        if start:
            images = replace(images, labels=images.labels - (images.labels > 0))
            notes.append(f"labels start at 1, which means '{short(lines[0])}'")
        folders = [*map(str, range(start, max(last + 1, len(lines))))]
    named = dict(pair for line in lines if len(pair := re.split(r"[\t ]+", line, maxsplit=1)) == 2)
    if not folders or not named.keys() >= {*folders}:
        if len(lines) != len(folders):
            raise DatasetError(
                f"{path} has {len(lines)} lines and '{images.name}' {len(folders)} {which}: must "
                f"have one name per line in their order, or lines of a folder and its name."
            )
        named = dict(zip(folders, lines, strict=True))
        pairs = [f"{folder} is {short(name)}" for folder, name in named.items()]
        notes.append(f"names follow the order of the folders: {first_of(pairs, _SHOWN)}")
    names = [named[folder] for folder in folders]
    return replace(images, class_names=names, folder_names=folders, notes=notes)


def twins(names: Sequence[str], folders: Sequence[str] = ()) -> Iterator[str]:
    """Notes on classes whose names differ only in case, spaces, punctuation or a count."""
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
    for rows in sorted(groups, key=len, reverse=True)[:_SHOWN]:
        called = [short(folders[row] if folders else f"{names[row]} at {row}") for row in rows]
        if len(rows) > 1:
            yield (
                f"{len(rows)} classes are named '{short(names[rows[0]])}' "
                f"({first_of(called, _SHOWN)}) except for spelling or a number: prompts cannot "
                f"distinguish them"
            )
