"""Names of classes as prompts have them: of folders, of a list, of wnids of ImageNet."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from zsntta_cli.datasets.images import ImageSet, first_names
from zsntta_cli.errors import DatasetError, first_line, short

_SHOWN = 3  # names in a note
_WNID = re.compile(r"n\d{8}")  # of WordNet, as ImageNet's folders are called
_WNID_BEFORE = re.compile(r"n\d{8}[-_. ]+(?=\w)")  # of Stanford Dogs, n02085620-Chihuahua
_NUMBER_BEFORE = re.compile(r"\d+[-_. ]+(?=\w)")  # of CUB, 001.Black_footed_Albatross
_CAMEL = re.compile(r"([A-Z]?[a-z]{2,})([A-Z][a-z]{2,})+")  # of EuroSAT, AnnualCrop
_NUMBERED = re.compile(r"\d+")


def names_of_folders(images: ImageSet) -> ImageSet:
    """Turn the names of folders into words: wnids, numbers before a name, CamelCase, paths.

    The set's notes say so, and what prompts would have that is no word.
    """
    folders = images.class_names
    if not folders:
        return images
    if all(map(_WNID.fullmatch, folders)):
        return _translate_wnids(images)
    names = [_without(_WNID_BEFORE, list(folders)), _without(_NUMBER_BEFORE, list(folders))]
    stripped = next((n for n in names if n != list(folders)), list(folders))
    words = [_spaced(name) for name in stripped]
    if words == list(folders) or len(set(words)) < len(words):
        return _with_notes(images, _about_numbers(folders))
    words = [word.replace("_", " ") for word in words]  # as prompts have them
    changed = [
        (folder, word) for folder, word in zip(folders, words, strict=True) if folder != word
    ]
    shown = ", ".join(f"{short(folder)} as '{short(word)}'" for folder, word in changed[:_SHOWN])
    note = (
        f"class folders are read as words: {shown}{', …' * (len(changed) > _SHOWN)}. To name "
        f"classes otherwise, give lines of a folder and its name: --class-names FILE"
    )
    named = _rename_classes(images, folders, dict(zip(folders, words, strict=True)))
    return _with_notes(named, [note])


def _without(before: re.Pattern[str], folders: list[str]) -> list[str]:
    """Names without what is before each of them, if all have it and differ without it too."""
    if not all(map(before.match, folders)):
        return folders
    rest = [before.sub("", folder, count=1) for folder in folders]
    return rest if len(set(rest)) == len(rest) else folders


def _spaced(name: str) -> str:
    """A name with spaces between the words of CamelCase and between the folders of a path."""
    words = [
        re.sub(r"(?<=[a-z])(?=[A-Z])", " ", word) if _CAMEL.fullmatch(word) else word
        for word in name.split("/")
    ]
    return " ".join(words)


def _translate_wnids(images: ImageSet) -> ImageSet:
    """Give folders that are named by wnids CLIP's names of ImageNet's classes."""
    from zsntta_cli.datasets import imagenet

    names_by_wnid = {row.wnid: row.name for row in imagenet.classes()}
    strange = [name for name in images.class_names if name not in names_by_wnid]
    if strange:
        note = (
            f"class folders are wnids, and {len(strange):,} of {len(images.class_names):,} are "
            f"none of ImageNet's 1,000 classes, such as {strange[0]}: prompts have the wnids. Give "
            f"lines of a wnid and its name: --class-names FILE"
        )
        return _with_notes(images, [note])
    named = _rename_classes(images, images.class_names, names_by_wnid)
    first, *_ = named.class_names
    note = f"folders are wnids, so classes are '{first}' and so on."
    return _with_notes(named, [note])


def _about_numbers(folders: Sequence[str]) -> Iterator[str]:
    if all(map(_NUMBERED.fullmatch, folders)):
        yield (
            f"class folders are numbers ({first_names(folders)}), and prompts have them as they "
            f"are: --class-names FILE gives names, one a line in the order of the numbers, or a "
            f"folder and its name a line"
        )


def _with_notes(images: ImageSet, notes: "Iterator[str] | Sequence[str]") -> ImageSet:
    return replace(images, notes=(*images.notes, *notes))


def with_class_names(images: ImageSet, path: Path) -> ImageSet:
    """The set with the class names that a file gives.

    It has a name a line, in the order of the folders (of their numbers, where they are numbers), or
    lines of a folder and, behind a tab or a space, its class name. Numbers that count the lines are
    no part of the names.

    Raises:
        DatasetError: no such file, or lines that do not fit the folders.
    """
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"cannot read the class names {path} ({first_line(error)}).") from error
    lines = [line for line in lines if line]
    folders = _folders(images, len(lines))
    pairs = [re.split(r"[\t ]+", line, maxsplit=1) for line in lines]
    by_folder = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    images = replace(images, notes=())  # what folders are called in prompts
    if folders and all(folder in by_folder for folder in folders):
        return _rename_classes(images, folders, by_folder)
    if len(lines) != len(folders):
        raise DatasetError(
            f"{path} has {len(lines)} lines and '{images.name}' {len(folders)} class folders"
            f": must be a name a line in their order, or lines of a folder and its name."
        )
    notes, names = list[str](), without_numbers(lines)
    if names != lines:
        notes.append(f"the numbers in {path.name} count its lines: '{lines[0]}' is '{names[0]}'")
    if all(re.search(r"\d", folder) for folder in folders):
        pairs_of = zip(folders[:_SHOWN], names[:_SHOWN], strict=True)
        first = ", ".join(f"{folder} is {short(name)}" for folder, name in pairs_of)
        notes.append(f"names are in the order of the folders: {first}, …")
    renamed = dict(zip(folders, names, strict=True))
    return _with_notes(_rename_classes(images, folders, renamed), notes)


def without_numbers(lines: Sequence[str]) -> list[str]:
    """Names without the numbers that count them, in the order of these: `0 apple`, `1 pear`."""
    matches = [re.fullmatch(r"(\d{1,9})\s*[\s.:,;)]\s*(\D.*)", line) for line in lines]
    numbered = sorted((int(match[1]), match[2]) for match in matches if match)
    numbers = [number for number, _ in numbered]
    if len(lines) < 2 or numbers not in (list(range(len(lines))), list(range(1, len(lines) + 1))):
        return list(lines)
    return [name for _, name in numbered]


def twins(names: Sequence[str], folders: Sequence[str] = ()) -> Iterator[str]:
    """What to say of classes with one name: no prompt can tell them apart."""
    counts = Counter(name.replace("_", " ").strip().casefold() for name in names)
    for twin in [name for name, count in counts.items() if count > 1][:_SHOWN]:
        rows = [i for i, n in enumerate(names) if n.replace("_", " ").strip().casefold() == twin]
        of = [short(folders[i]) if folders else str(i) for i in rows]
        which = f"folders {', '.join(of)}" if folders else f"numbers {', '.join(of)}"
        yield (
            f"{len(rows)} classes are called '{short(names[rows[0]])}' ({which}), and no prompt "
            f"tells them apart{_of_imagenet(twin)}"
        )


def _of_imagenet(twin: str) -> str:
    """How ImageNet's curated names tell such classes apart, where they do."""
    from zsntta_cli.datasets import imagenet

    names = [row.name for row in imagenet.classes() if twin in row.name.casefold().split()]
    if len(names) < 2:
        return ""
    called = " and ".join(f"'{name}'" for name in names[:_SHOWN])
    return f": the known set imagenet calls them {called}"


def _folders(images: ImageSet, count: int) -> Sequence[str]:
    """The folders of a set's classes; of labels without names their numbers, `count` at least."""
    highest = int(images.labels.max(initial=-1))
    numbers = [str(i) for i in range(max(highest + 1, count))] if highest >= 0 else []
    return images.folder_names or images.class_names or numbers


def _rename_classes(images: ImageSet, folders: Sequence[str], names: Mapping[str, str]) -> ImageSet:
    return replace(images, class_names=[names[folder] for folder in folders], folder_names=folders)
