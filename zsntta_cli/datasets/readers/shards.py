"""WebDataset shards, `shards-{000..009}.tar`: files with one key make one sample.

`key.jpg` (or .png, .webp …) is its image. Its label is told by `key.cls`, a number, or else by
`key.json`, under one of a few names, or by `key.txt`, its class's name. Other files are left alone.
`classnames.txt`, a class name a line, and CLIP_benchmark's prompt templates lie beside the shards
or one folder above.
"""

import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePosixPath

import numpy as np

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.datasets.readers.archives import MemberImages, images_among, kind_of, open_archive
from zsntta_cli.datasets.readers.members import Member, Read
from zsntta_cli.errors import DatasetError, SettingsError, first_line, short
from zsntta_cli.files import read_input
from zsntta_cli.settings.prompts import join_templates, prompt_template, templates_of

NAMES, TEMPLATES = "classnames.txt", "zeroshot_classification_templates.txt"
TEXTS = NAMES, TEMPLATES
_LARGEST = 2**24  # bytes of a text: more is none
_KEPT = 1_000  # letters of a caption
_LOOKED_AT = 20  # files of a .tar
_KEYS = ("label", "cls", "class", "class_name")  # of a .json, the first that is there
_Told = int | str | None  # a label as a sample tells it: a number, or a name, or a caption


@dataclass(frozen=True)
class _Sample:
    """An image of a shard."""

    sample_id: str
    read: Read
    image: Member
    label: _Told


def is_pattern(path: Path) -> bool:
    """Whether a path stands for several shards."""
    return re.search(r"\{.*\}", str(path)) is not None and not path.exists()


def is_shard(path: Path) -> bool:
    """Whether a file is a .tar whose first samples have labels."""
    if kind_of(path) != ".tar" or not path.is_file():
        return False
    try:
        with tarfile.open(path, "r:") as tar:
            return any(member.name.endswith(".cls") for member in islice(tar, _LOOKED_AT))
    except (OSError, tarfile.TarError):
        return False


def expand_braces(pattern: str) -> Iterator[str]:
    """All that `a-{000..009}.tar` or `{x,y}.tar` stands for, as a shell has it."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        yield pattern
        return
    for choice in _choices(braces[1]):
        yield from expand_braces(pattern[: braces.start()] + choice + pattern[braces.end() :])


def _choices(inside: str) -> Iterator[str]:
    bounds = re.fullmatch(r"(\d+)\.\.(\d+)", inside)
    if bounds is None:
        yield from inside.split(",")
        return
    for number in range(int(bounds[1]), int(bounds[2]) + 1):
        yield f"{number:0{len(bounds[1])}d}"


def shards(name: str, pattern: Path) -> ImageSet:
    """The images of all shards that a pattern stands for; see `images_of_shards`."""
    paths = (Path(path) for path in expand_braces(str(pattern)))
    return images_of_shards(name, paths, pattern)


def images_of_shards(name: str, paths: Iterable[Path], where: Path) -> ImageSet:
    """The images of all shards, in the order of the shards and of the keys in each.

    `where` is what they are called in an error, and the texts lie beside it or one folder above.

    Raises:
        DatasetError: a shard is missing or not whole, no image, or a label that is none.
    """
    samples = [sample for path in paths for sample in _samples(name, path)]
    if not samples:
        raise DatasetError(f"data set '{name}': no image in {where} (looked for .jpg, .png, …).")
    texts = texts_beside(name, where)
    names = _lines(texts.get(NAMES, b""))
    labels, class_names = _labels(name, where, [sample.label for sample in samples], names)
    return _image_set(name, samples, labels, class_names, texts)


def images_of_some_shards(
    name: str, paths: Iterable[Path], where: Path
) -> tuple[ImageSet, list[int]]:
    """The images of some of a set's shards, and how many there are in each.

    Class names are those beside the shards, whatever labels there are in these: without them texts
    are captions, since which of them are classes is told by all shards alone.

    Raises:
        DatasetError: as of all shards, but that there may be no image.
    """
    by_shard = [_samples(name, path) for path in paths]
    samples = [sample for of_shard in by_shard for sample in of_shard]
    texts = texts_beside(name, where)
    names = _lines(texts.get(NAMES, b""))
    told = [sample.label for sample in samples]
    if not names:
        told = [None if isinstance(label, str) else label for label in told]
    labels = _labels(name, where, told, names)[0] if samples else []
    images = _image_set(name, samples, labels, names, texts)
    return images, [len(of_shard) for of_shard in by_shard]


def texts_beside(name: str, where: Path) -> dict[str, bytes]:
    """The class names and the prompt templates beside a set's shards, as far as they are there."""
    return {file: text for file in TEXTS if (text := _text_beside(name, where, file))}


def _image_set(
    name: str,
    samples: Sequence[_Sample],
    labels: Sequence[int],
    class_names: Sequence[str],
    texts: Mapping[str, bytes],
) -> ImageSet:
    stored = MemberImages([(sample.read, sample.image) for sample in samples])
    return ImageSet(
        name,
        stored,
        np.array(labels, np.int32),
        [sample.sample_id for sample in samples],
        class_names,
        fingerprint=",".join(str(sample.image.size) for sample in samples),
        reading=stored.reading(len(samples)),
        facts={LISTS: {file: sha256(text).hexdigest() for file, text in texts.items()}},
        templates=_templates(name, _lines(texts.get(TEMPLATES, b""))),
    )


def _samples(name: str, path: Path) -> list[_Sample]:
    members, read = open_archive(name, path)
    texts = {PurePosixPath(m.path).parts: m for m in members if m.path.endswith(tuple(_TELLERS))}
    samples: dict[str, _Sample] = {}
    for parts, image in images_among(members).items():
        stem, _, extension = parts[-1].partition(".")
        sample_id = "/".join((path.name.partition(".")[0], *parts[:-1], stem))
        if "." in extension:  # such as key.mask.png
            continue
        if sample_id in samples:
            raise DatasetError(f"data set '{name}': {path} has two images with the key {stem}.")
        label = _label(name, path, read, texts, (*parts[:-1], stem))
        samples[sample_id] = _Sample(sample_id, read, image, label)
    return list(samples.values())


def _label(
    name: str,
    path: Path,
    read: Read,
    texts: Mapping[tuple[str, ...], Member],
    key: tuple[str, ...],
) -> _Told:
    """What the files of a key tell of its label, None where they do not."""
    for suffix, told in _TELLERS.items():
        file = f"{key[-1]}{suffix}"
        if (member := texts.get((*key[:-1], file))) is None:
            continue
        try:
            if member.size > _LARGEST:
                raise ValueError(f"too large: {member.size:,} bytes")
            if (label := told(read(member))) is not None:
                return label
        except OSError as error:
            raise DatasetError(f"data set '{name}': cannot read {file} in {path}.") from error
        except (ValueError, RecursionError) as error:
            reason = first_line(error)
            raise DatasetError(f"data set '{name}': {file} in {path} is {reason}.") from error
    return None


def _number(content: bytes) -> int:
    text = content[:20].strip()
    if not re.fullmatch(rb"\d{1,9}", text):
        raise ValueError("no label: a number from 0")
    return int(text)


def _of_json(content: bytes) -> _Told:
    try:
        values = json.loads(content)
    except ValueError as error:
        raise ValueError(f"no JSON ({first_line(error)})") from error
    told = [values[key] for key in _KEYS if key in values] if isinstance(values, dict) else []
    if not told or told[0] in (None, -1):  # as some have it where a label is kept back
        return None
    if isinstance(told[0], str):
        return told[0].strip()[:_KEPT]
    if isinstance(told[0], bool) or not isinstance(told[0], int) or not 0 <= told[0] < 10**9:
        raise ValueError("of a label that is no name and no number from 0")
    return told[0]


def _text(content: bytes) -> str | None:
    try:
        return content.decode("utf-8-sig").strip()[:_KEPT] or None
    except UnicodeDecodeError as error:
        raise ValueError("no text in UTF-8") from error


# What tells a label, by the ending of its file: the first that does.
_TELLERS: dict[str, Callable[[bytes], _Told]] = {".cls": _number, ".json": _of_json, ".txt": _text}


def _labels(
    name: str, where: Path, told: Sequence[_Told], names: Sequence[str]
) -> tuple[list[int], list[str]]:
    """Labels, -1 where none is told, and the class names; no names where no image has a label.

    Texts that name no class are captions, and captions no labels.

    Raises:
        DatasetError: a label without a class name, or of two kinds.
    """
    texts = [label for label in told if isinstance(label, str)]
    if texts and not set(texts) <= set(names) and all(map(_is_number, texts)):
        told, texts = [int(t) if isinstance(t, str) else t for t in told], []
    if not texts:
        numbers = [label if isinstance(label, int) else -1 for label in told]
        return numbers, _checked(name, where, max(numbers), names)
    if len(texts) < sum(label is not None for label in told):
        raise DatasetError(f"data set '{name}': labels in {where} are numbers and texts.")
    if not _are_classes(texts, names):
        return [-1] * len(told), []
    class_names = list(names) or sorted(set(texts))
    index = {text: i for i, text in enumerate(class_names)}
    for text in sorted(set(texts)):
        if class_names.count(text) != 1:
            times = "twice" if text in index else "not"
            raise DatasetError(
                f"data set '{name}': '{short(text)}' in {where} is {times} in {NAMES}."
            )
    return [index[label] if isinstance(label, str) else -1 for label in told], class_names


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d{1,9}", text, re.ASCII) is not None


def _are_classes(texts: Sequence[str], names: Sequence[str]) -> bool:
    """Whether texts are class names: some are among the names; without names, two have each."""
    different = set(texts)
    return bool(different & set(names)) if names else 2 * len(different) <= len(texts)


def _checked(name: str, where: Path, highest: int, names: Sequence[str]) -> list[str]:
    if highest < 0 or not names:
        return []
    if highest >= len(names):
        raise DatasetError(
            f"data set '{name}': label {highest}, but {len(names)} names in {NAMES} for {where}."
        )
    return list(names)


def _text_beside(name: str, where: Path, file: str) -> bytes:
    """A text beside the shards, or one folder above, in UTF-8; nothing where there is none."""
    folder = where.absolute().parent
    path = next((p for p in (folder / file, folder.parent / file) if p.is_file()), None)
    try:
        content = read_input(path, _LARGEST) if path else b""
        content.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = first_line(error)
        raise DatasetError(f"data set '{name}': cannot read {path} ({reason}).") from error
    return content


def _lines(content: bytes) -> list[str]:
    return [line.strip() for line in content.decode("utf-8-sig").rstrip().splitlines()]


def _templates(name: str, lines: Sequence[str]) -> list[str]:
    """Prompt templates as they are here, of lines with `{c}` for the class name.

    Raises:
        DatasetError: a line that is no template.
    """
    for line in filter(None, lines):
        if line.count("{c}") != 1 or not _can_be_joined(line.replace("{c}", "{}")):
            raise DatasetError(
                f"data set '{name}': '{short(line)}' in {TEMPLATES} is no prompt template: a text "
                f"with one {{c}} for the class name."
            )
    return [line.replace("{c}", "{}") for line in lines if line]


def _can_be_joined(template: str) -> bool:
    """Whether a text is a template, and still is beside others."""
    try:
        return templates_of(join_templates(prompt_template(template), "{}")) == [template, "{}"]
    except SettingsError:
        return False
