"""WebDataset shards, `shards-{000..009}.tar`: files with one key make one sample.

`key.jpg` (or .png, .webp …) is its image. Its label is told by `key.cls`, a number, or else by
`key.json`, under one of a few names, or by `key.txt`, its class's name; or by what `label` names, a
field of the JSON or the ending of other files. What else may have labels is named in a note, and
images that this grammar leaves out are counted.
`classnames.txt`, a class name a line, and CLIP_benchmark's prompt templates lie beside the shards
or one folder above.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath

import numpy as np

from zsntta_cli.datasets.class_names import names_of_folders
from zsntta_cli.datasets.hidden import hidden_part
from zsntta_cli.datasets.images import SUFFIXES, ImageSet
from zsntta_cli.datasets.names import LISTS
from zsntta_cli.datasets.readers import archives
from zsntta_cli.datasets.readers.archives import MemberImages, below_common_folder, images_among
from zsntta_cli.datasets.readers.levels import Level
from zsntta_cli.datasets.readers.members import Member, Read
from zsntta_cli.errors import DatasetError, SettingsError, counted, first_line, short
from zsntta_cli.files import read_input
from zsntta_cli.settings.prompts import join_templates, prompt_template, templates_of

NAMES, TEMPLATES = "classnames.txt", "zeroshot_classification_templates.txt"
TEXTS = NAMES, TEMPLATES
_LARGEST = 2**24  # bytes of a text: more is none
_KEPT = 1_000  # letters of a caption
_LOOKED_AT = 5  # samples whose files are looked at for labels
_SHOWN = 3  # names in a line
_SHORT = 60  # letters of a text that may be a label
_LIKELY = re.compile(r"label|class|categor|target|species|breed", re.IGNORECASE)
_NO_LABEL = re.compile(  # fields of img2dataset and the like
    r"caption|text|url|key|width|height|status|error|exif|md5|sha|hash|size|path|file|uid|date",
    re.IGNORECASE,
)
_KEYS = ("label", "cls", "class", "class_name")  # of a .json, the first that is there
Parts = tuple[str, ...]  # of a path
_Told = int | str | None  # a label as a sample tells it: a number, or a name, or a caption


@dataclass(frozen=True)
class _Sample:
    """An image of a shard."""

    sample_id: str
    read: Read
    image: Member
    label: _Told


@dataclass
class _Tally:
    """What was met in the shards of a set."""

    asked: str = ""  # what has the labels, if that was said
    tellers: Counter[str] = field(default_factory=Counter)  # samples by what told their labels
    further: list[str] = field(default_factory=list)  # images that are no sample
    fields: dict[str, None] = field(default_factory=dict)  # what may have labels, and was not used
    looked_at: int = 0  # samples whose files were looked at for that

    def left_out(self) -> str:
        """The images that are no sample, in words."""
        if not self.further:
            return ""
        shown = ", ".join(self.further[:_SHOWN]) + ", …" * (len(self.further) > _SHOWN)
        return f"{counted(len(self.further), 'further image')} of samples ({shown})"

    def origin(self) -> str:
        """What told the labels."""
        return " and ".join(self.tellers)

    def notes(self, images: int, texts: Sequence[str]) -> Iterator[str]:
        """What else may have labels, and the captions that are none."""
        captions = [text for text in texts if not _is_number(text)]
        if captions and not self.asked:
            yield (
                f"the texts of {self.origin()} are captions and no classes: "
                f"{len(set(captions)):,} of {images:,} differ"
            )
        if self.fields and (captions or not self.tellers):
            names = [*self.fields][:_SHOWN]
            listed = ", ".join(f"'{name}'" for name in names)
            yield f"labels? the files beside the images have {listed}: --label {names[0]}"


def is_pattern(path: Path) -> bool:
    """Whether a path stands for several shards."""
    return re.search(r"\{.*\}", str(path)) is not None and not path.exists()


def shard_or_archive(name: str, place: Level, label: str = "") -> ImageSet:
    """The images of an archive: of a shard, if it is one, else by the folders in it.

    Raises:
        DatasetError: as of shards and archives.
    """
    path = place.base
    members, read = archives.open_archive(name, path)
    if not place.above and (label or _is_shard(members)):
        return images_of_shards(name, [path], path, label)
    images = archives.archived(name, path, members, read, above=place.above)
    if beside := _endings_beside(members):
        note = (
            f"labels are from the folders: files beside the images ({', '.join(beside)}) are not "
            f"read. --label FIELD takes labels from these"
        )
        images = replace(images, notes=(*images.notes, note))
    return names_of_folders(images)


def _is_shard(members: Sequence[Member]) -> bool:
    """Whether files come in groups by key, each with an image; not where folders have classes.

    With `.cls` they do wherever they lie.
    """
    images = images_among(members)
    if not images:
        return False
    folders = {place[0] for place in below_common_folder(list(images)) if len(place) > 1}
    endings = _endings_beside(members)
    return ".cls" in endings or (bool(endings) and len(folders) < 2)


def _endings_beside(members: Sequence[Member]) -> list[str]:
    """The endings of files that have the key of an image, if half of the images have one."""
    keys = {(*parts[:-1], parts[-1].partition(".")[0]) for parts in images_among(members)}
    beside = Counter[str]()
    for member in members:
        *folders, file = PurePosixPath(member.path).parts or ("",)
        stem, dot, ending = file.partition(".")
        if (*folders, stem) in keys and f".{ending.rpartition('.')[2]}".lower() not in SUFFIXES:
            beside[dot + ending] += 1
    return [ending for ending, count in beside.items() if 2 * count >= len(keys)]


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


def shards(name: str, pattern: Path, label: str = "") -> ImageSet:
    """The images of all shards that a pattern stands for; see `images_of_shards`."""
    paths = (Path(path) for path in expand_braces(str(pattern)))
    return images_of_shards(name, paths, pattern, label)


def images_of_shards(name: str, paths: Iterable[Path], where: Path, label: str = "") -> ImageSet:
    """The images of all shards, in the order of the shards and of the keys in each.

    `where` is what they are called in an error, and the texts lie beside it or one folder above.
    `label` names what has the labels, if that is no usual place.

    Raises:
        DatasetError: a shard is missing or not whole, no image, or a label that is none.
    """
    tally = _Tally(label)
    samples = [sample for path in paths for sample in _samples(name, path, tally)]
    if not samples:
        also = f"; left out: {tally.left_out()}" if tally.further else ""
        raise DatasetError(
            f"data set '{name}': no image in {where} (looked for .jpg, .png, …){also}."
        )
    if label and not tally.tellers:
        others = ", ".join(f"'{name}'" for name in tally.fields)
        raise DatasetError(
            f"data set '{name}': no sample of {where} has a label '{label}'"
            f"{f': the files beside the images have {others}' if others else ''}."
        )
    texts = texts_beside(name, where)
    names = _lines(texts.get(NAMES, b""))
    told = [sample.label for sample in samples]
    labels, class_names = _labels(name, where, told, names, is_class=bool(label))
    images = _image_set(name, samples, labels, class_names, texts)
    unused = [text for text in told if isinstance(text, str)] if max(labels) < 0 else []
    return replace(
        images,
        labels_from=tally.origin() if max(labels) >= 0 else "",
        left_out=tally.left_out(),
        notes=tuple(tally.notes(len(samples), unused)),
    )


def images_of_some_shards(
    name: str, paths: Iterable[Path], where: Path, label: str = ""
) -> tuple[ImageSet, list[int]]:
    """The images of some of a set's shards, and how many there are in each.

    Class names are those beside the shards, whatever labels there are in these: without them texts
    are captions, since which of them are classes is told by all shards alone.

    Raises:
        DatasetError: as of all shards, but that there may be no image.
    """
    tally = _Tally(label)
    by_shard = [_samples(name, path, tally) for path in paths]
    samples = [sample for of_shard in by_shard for sample in of_shard]
    texts = texts_beside(name, where)
    names = _lines(texts.get(NAMES, b""))
    told = [sample.label for sample in samples]
    if not names:
        told = [None if isinstance(label, str) else label for label in told]
    labels = _labels(name, where, told, names)[0] if samples else []
    images = _image_set(name, samples, labels, names, texts)
    origin = tally.origin() if max(labels, default=-1) >= 0 else ""
    images = replace(images, labels_from=origin, left_out=tally.left_out())
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


def _samples(name: str, path: Path, tally: _Tally) -> list[_Sample]:
    members, read = archives.open_archive(name, path)
    shard = _Shard(name, path, read, members)
    samples: dict[str, _Sample] = {}
    for (*folders, stem), image in shard.keyed(tally):
        sample_id = "/".join((path.name.partition(".")[0], *folders, stem))
        if sample_id in samples:
            raise DatasetError(f"data set '{name}': {path} has two images with the key {stem}.")
        label = shard.label((*folders, stem), tally)
        samples[sample_id] = _Sample(sample_id, read, image, label)
    return list(samples.values())


class _Shard:
    """The images of a shard by their keys, and the files that tell of these."""

    def __init__(self, name: str, path: Path, read: Read, members: Sequence[Member]) -> None:
        self._name, self._path, self._read = name, path, read
        self._images = images_among(members)
        by_parts = {PurePosixPath(member.path).parts: member for member in members}
        self._texts = {parts: m for parts, m in by_parts.items() if parts not in self._images}
        self._endings: dict[Parts, list[str]] = {}
        for parts in self._texts:
            if hidden_part(parts) is None:
                for stem, ending in _splits(parts[-1]):
                    self._endings.setdefault((*parts[:-1], stem), []).append(ending)

    def keyed(self, tally: _Tally) -> Iterator[tuple[Parts, Member]]:
        """The images by their keys: what is before the first dot of a name, as a rule.

        An image whose name has more dots is one of its own where a label has the same name, as
        `img.7.jpg` and `img.7.cls`, and stands for its key where that has no other image.
        """
        by_key: dict[Parts, list[Parts]] = {}
        for parts in self._images:
            stem, _ = _splits(parts[-1])[-1]
            own = (*parts[:-1], stem)
            is_own = len(_splits(parts[-1])) > 1 and bool(self._endings.get(own))
            key = own if is_own else (*parts[:-1], parts[-1].partition(".")[0])
            by_key.setdefault(key, []).append(parts)
        for key, places in by_key.items():
            plain = [p for p in places if p[-1].startswith(f"{key[-1]}.")
                     and "." not in p[-1][len(key[-1]) + 1 :]]  # fmt: skip
            chosen = plain or (places if len(places) == 1 else [])
            tally.further += ["/".join(place) for place in places if place not in chosen]
            yield from ((key, self._images[place]) for place in chosen)

    def label(self, key: Parts, tally: _Tally) -> _Told:
        """What the files of a key tell of its label; None where they do not."""
        for ending, told in _tellers(tally.asked).items():
            label = self._told(key, ending, told)
            if label is not None:
                tally.tellers[_teller(ending, tally.asked)] += 1
                break
        else:
            label = None
        if tally.looked_at < _LOOKED_AT and (label is None or isinstance(label, str)):
            tally.looked_at += 1
            self._look(key, tally)
        return label

    def _told(self, key: Parts, ending: str, told: Callable[[bytes], _Told]) -> _Told:
        file = f"{key[-1]}{ending}"
        if (member := self._texts.get((*key[:-1], file))) is None:
            return None
        try:
            if member.size > _LARGEST:
                raise ValueError(f"too large: {member.size:,} bytes")
            return told(self._read(member))
        except OSError as error:
            raise DatasetError(
                f"data set '{self._name}': cannot read {file} in {self._path}."
            ) from error
        except (ValueError, RecursionError) as error:
            reason = first_line(error)
            raise DatasetError(
                f"data set '{self._name}': {file} in {self._path} is {reason}."
            ) from error

    def _look(self, key: Parts, tally: _Tally) -> None:
        """Note what of the files of a sample may have labels that were not asked for."""
        for ending in self._endings.get(key, []):
            member = self._texts[(*key[:-1], f"{key[-1]}{ending}")]
            if member.size > _LARGEST or ending in (".cls", ".txt"):
                continue
            try:
                content = self._read(member)
                if ending == ".json":
                    values = json.loads(content)
                    names = [n for n in values if _may_be_label(n, values[n])]
                    tally.fields |= dict.fromkeys(sorted(names, key=_is_unlikely))
                elif len(text := _text(content) or "") in range(1, 100) and text.isprintable():
                    tally.fields |= {ending: None}
            except (OSError, ValueError, RecursionError, TypeError):
                continue


def _splits(file: str) -> list[tuple[str, str]]:
    """A file's name before and behind its first dot, and before and behind its last."""
    stem, _, ending = file.partition(".")
    last, _, end = file.rpartition(".")
    return list(dict.fromkeys([(stem, f".{ending}"), (last, f".{end}")])) if last else []


def _may_be_label(field_name: object, value: object) -> bool:
    """Whether a field of JSON may be a label: a number from 0, or a short text; by its name too."""
    if not isinstance(field_name, str) or _NO_LABEL.search(field_name):
        return False
    if isinstance(value, str):
        return 0 < len(value.strip()) <= _SHORT
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9


def _is_unlikely(field_name: str) -> bool:
    return _LIKELY.search(field_name) is None


def _tellers(asked: str) -> "dict[str, Callable[[bytes], _Told]]":
    """What tells a label, by the ending of its file: the first that does."""
    if not asked:
        return _TELLERS
    if asked.startswith("."):
        return {asked: _text}
    return {".json": partial(_of_json, keys=(asked,)), f".{asked}": _text}


def _teller(ending: str, asked: str) -> str:
    field_name = f"'{asked}' of " if asked and ending == ".json" else ""
    return f"{field_name}{ending} files"


def _number(content: bytes) -> int:
    text = content[:20].strip()
    if not re.fullmatch(rb"\d{1,9}", text):
        raise ValueError("no label: a number from 0")
    return int(text)


def _of_json(content: bytes, keys: Sequence[str] = _KEYS) -> _Told:
    try:
        values = json.loads(content)
    except ValueError as error:
        raise ValueError(f"no JSON ({first_line(error)})") from error
    told = [values[key] for key in keys if key in values] if isinstance(values, dict) else []
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


_TELLERS: dict[str, Callable[[bytes], _Told]] = {".cls": _number, ".json": _of_json, ".txt": _text}


def _labels(
    name: str, where: Path, told: Sequence[_Told], names: Sequence[str], is_class: bool = False
) -> tuple[list[int], list[str]]:
    """Labels, -1 where none is told, and the class names; no names where no image has a label.

    Texts that name no class are captions, and captions no labels, unless `is_class`.

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
    if not is_class and not _are_classes(texts, names):
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
