"""Web data sets: tars in which the files of one key make a sample, `a.jpg` and `a.cls`.

A key is what is before the first dot of a name. A label is told by `key.cls`, a number, by
`key.json` under one of a few names, or by `key.txt`, its class's name; or by what `label` names, a
field of the JSON or the ending of other files. `classnames.txt`, a class name a line, and
CLIP_benchmark's prompt templates lie beside the tars or one folder above.

CLIP_benchmark's folders have nshards.txt, a number, beside the tars 0.tar, 1.tar … of a split.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.datasets.class_names import Told, labels_told
from zsntta_cli.datasets.images import ImageSet, file_set, with_lists
from zsntta_cli.datasets.tree import SUFFIXES, File, LeftOut, below_shared, files_in
from zsntta_cli.errors import DatasetError, counted, first_line, short

NAMES, TEMPLATES = "classnames.txt", "zeroshot_classification_templates.txt"
COUNT, SPLIT = "nshards.txt", "test"  # CLIP_benchmark's
_FIELDS = ("label", "cls", "class", "class_name")  # of a .json, the first that is there
_KEPT = 1_000  # letters of a caption
_TEMPLATE = re.compile(r"(?!.* \| )[^{}]*\{\}[^{}]*")  # " | " joins templates


class _Sample(NamedTuple):
    """The image of a key, the files of the key by their endings, and what told its label."""

    image: File
    files: dict[str, File]
    label: Told
    teller: str


def is_pattern(path: Path) -> bool:
    """Whether a path stands for several shards."""
    return re.search(r"\{.*\}", str(path)) is not None and not path.exists()


def expand_braces(pattern: str) -> Iterator[str]:
    """All that `a-{000..009}.tar` or `{x,y}.tar` stands for, as a shell has it."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        yield pattern
        return
    choices = braces[1].split(",")
    if bounds := re.fullmatch(r"(\d+)\.\.(\d+)", braces[1]):
        choices = [f"{i:0{len(bounds[1])}d}" for i in range(int(bounds[1]), int(bounds[2]) + 1)]
    for choice in choices:
        yield from expand_braces(pattern[: braces.start()] + choice + pattern[braces.end() :])


def shard_paths(path: Path) -> list[Path]:
    """The tars of a pattern, or of a folder with nshards.txt, or of its split `test`; else none.

    Raises:
        DatasetError: the folder has other splits alone, or more or fewer tars than it says.
    """
    if is_pattern(path):
        return [Path(one) for one in expand_braces(str(path))]
    splits = {file.parent for pattern in (COUNT, f"*/{COUNT}") for file in path.glob(pattern)}
    folder = next((folder for folder in (path, path / SPLIT) if folder in splits), None)
    if folder is None and splits:
        names = sorted(folder.name for folder in splits)
        raise DatasetError(
            f"{path} has no split {SPLIT}, but {', '.join(names)}: name "
            f"one, as NAME={path / names[0]}."
        )
    if folder is None:
        return []
    text, there = (folder / COUNT).read_text().strip(), {file.name for file in folder.glob("*.tar")}
    expected = [f"{i}.tar" for i in range(int(text) if text.isdecimal() else 0)]
    if not expected or there != {*expected}:
        raise DatasetError(
            f"{folder / COUNT} must have the number of shards, 0.tar and so on: "
            f"it says '{short(text)}', and there are {len(there):,}."
        )
    return [folder / file for file in expected]


def groups(files: Sequence[File]) -> dict[str, dict[str, File]]:
    """Files by their keys, with the folders above, and by their endings: `a/b` has `.jpg`, `.cls`.

    A key ends at the first dot of a name or, where several images would have one, at the last.
    """
    ways = []
    for cut in (str.partition, str.rpartition):
        by_key: dict[str, dict[str, File]] = {}
        for file in files:
            stem, point, ending = cut(file.parts[-1], ".")
            by_key.setdefault("/".join((*file.parts[:-1], stem)), {})[point + ending.lower()] = file
        if all(len(_images_of(group)) < 2 for group in by_key.values()):
            return by_key
        ways.append(by_key)
    return ways[0]


def _images_of(group: dict[str, File]) -> list[File]:
    """The image of a group: `.jpg` before `.mask.png`; several where no rule chooses."""
    plain = [group[ending] for ending in group if ending in SUFFIXES]
    return plain or [file for file in group.values() if file.is_image]


def is_shard(files: Sequence[File]) -> bool:
    """Whether files come in groups by key, half of the images with a file of one ending beside.

    Not where folders have classes; with `.cls` wherever they lie.
    """
    samples = [group for group in groups(files).values() if _images_of(group)]
    beside = Counter(e for group in samples for e in group if not group[e].is_image)
    endings = [ending for ending, count in beside.items() if 2 * count >= len(samples)]
    folders = {
        file.parts[0]
        for file in below_shared([f for f in files if f.is_image])
        if len(file.parts) > 1
    }
    return ".cls" in endings or (bool(endings) and len(folders) < 2)


def web_dataset(name: str, tars: Sequence[Path], label: str = "") -> ImageSet:
    """The images of tars, in the order of the tars and of the keys in each.

    `label` names what has the labels, if that is no usual place. Without it, texts that name no
    class are captions, and captions no labels.

    Raises:
        DatasetError: a tar is missing or not whole, no image, or a label that is none.
    """
    left_out, where = LeftOut(), tars[0] if len(tars) == 1 else tars[0].parent
    samples = [sample for tar in tars for sample in _samples(tar, label, left_out)]
    if not samples:
        raise DatasetError(f"no image in {where}.")
    lists = {file: _beside(tars[0], file) for file in (NAMES, TEMPLATES)}
    names, told, note = _lines(lists[NAMES]), [sample.label for sample in samples], ""
    spelt = {label for label in told if isinstance(label, str)}
    captions = spelt - {*names}
    if captions and all(map(str.isdecimal, spelt)):
        told = [int(label) if isinstance(label, str) else label for label in told]
    elif captions and not label:
        are_names = any(one in names for one in told) if names else 2 * len(captions) <= len(told)
        if not are_names and not any(isinstance(one, int) for one in told):
            note = f"texts are captions and no classes: {len(captions):,} of {len(told):,} differ"
            told = [None] * len(told)
    labels, class_names = labels_told(where, told, names)
    others, tellers = _others(samples[0].files), {s.teller: 0 for s in samples if s.teller}
    if label and not tellers:
        raise DatasetError(
            f"no sample of {where} has a label '{label}': the files beside the "
            f"images have {others}."
        )
    if others and max(labels) < 0:
        note = note or "no labels"
        note += f": files beside the images have {others}, and --label FIELD takes labels from one"
    further = sum(f.is_image for sample in samples for f in sample.files.values()) - len(samples)
    words = [counted(further, "further image") + " of samples"] * bool(further)
    images = file_set(name, [sample.image for sample in samples], labels, class_names)
    return replace(
        with_lists(images, [path for path in lists.values() if path]),
        templates=_templates(_lines(lists[TEMPLATES])),
        labels_from=" and ".join(tellers) if max(labels) >= 0 else "",
        left_out=", ".join(filter(None, [*words, left_out.words()])),
        notes=[note] if note else [],
    )


def _samples(tar: Path, label: str, left_out: LeftOut) -> Iterator[_Sample]:
    """The samples of a tar, by key."""
    for key, files in groups(files_in(tar, left_out)).items():
        images = _images_of(files)
        if len(images) > 1:
            raise DatasetError(
                f"{tar} has two images with the key {key}: {images[0].id} and {images[1].id}."
            )
        for image in images:
            try:
                told = _told(files, label)
            except (OSError, ValueError, RecursionError) as error:
                raise DatasetError(
                    f"{key} in {tar} tells no label ({first_line(error)})."
                ) from error
            parts = (tar.name.partition(".")[0], *key.split("/"))
            yield _Sample(replace(image, parts=parts), files, *told)


def _told(files: dict[str, File], label: str) -> tuple[Told, str]:
    """What the files of a key tell of its label, None where they do not, and which of them does.

    Raises:
        ValueError: it is no number from 0 and no name.
    """
    endings = (".json", f".{label.removeprefix('.')}") if label else (".cls", ".json", ".txt")
    for ending in filter(files.__contains__, endings):
        told: Any = files[ending].read().decode("utf-8-sig").strip()[:_KEPT] or None
        if ending == ".json":
            values = _json(files)
            told = next((values[f] for f in ([label] if label else _FIELDS) if f in values), None)
            told = told[:_KEPT].strip() if isinstance(told, str) else None if told == -1 else told
        elif ending == ".cls" and not label:
            told = int(told or "")
        if not isinstance(told, str | None) and not (type(told) is int and 0 <= told < 10**9):
            raise ValueError(f"{short(str(told))} is no name and no number from 0")
        if told is not None:
            return told, f"{ending} files" + f" ('{label}')" * bool(label and ending == ".json")
    return None, ""


def _json(files: dict[str, File]) -> dict[str, Any]:
    """The fields of a sample's .json; none where it has none."""
    values = json.loads(files[".json"].read()) if ".json" in files else {}
    return values if isinstance(values, dict) else {}


def _others(files: dict[str, File]) -> str:
    """What of a sample's files may have its label: fields of its .json, endings of other files."""
    try:
        fields = list(_json(files))
    except (OSError, ValueError, RecursionError):
        fields = []
    usual = (*SUFFIXES, ".cls", ".json", ".txt")
    return ", ".join([*fields, *(ending for ending in files if ending not in usual)])


def _beside(tar: Path, file: str) -> Path | None:
    """A text beside a tar, or one folder above; None where there is none."""
    folder = tar.absolute().parent
    return next((p for p in (folder / file, folder.parent / file) if p.is_file()), None)


def _lines(path: Path | None) -> list[str]:
    try:
        text = path.read_text("utf-8-sig") if path else ""
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} beside the shards is no text in UTF-8.") from error
    return [line.strip() for line in text.rstrip().splitlines()]


def _templates(lines: Sequence[str]) -> list[str]:
    """Prompt templates as they are here, of lines with `{c}` for the class name.

    Raises:
        DatasetError: a line that is no template.
    """
    templates = [line.replace("{c}", "{}") for line in lines if line]
    if wrong := [template for template in templates if not _TEMPLATE.fullmatch(template)]:
        raise DatasetError(
            f"'{short(wrong[0])}' in {TEMPLATES} is no prompt template: a text "
            f"with one {{c}} for the class name."
        )
    return templates
