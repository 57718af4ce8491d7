"""Web data sets: tars in which the files of one key form a sample, such as `a.jpg` and `a.cls`.

A key is the part of a file name before its first dot. A label comes from `key.cls`, a number, from
`key.json` under one of a few names, or from `key.txt`, a class name; or from the JSON field or file
ending that `label` names. `classnames.txt`, with one class name per line, and CLIP_benchmark's
prompt templates are beside the tars or one folder above.

CLIP_benchmark's folders have nshards.txt, a number, beside the tars 0.tar, 1.tar … of a split.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from zsntta_cli.datasets.class_names import RawLabel, class_labels
from zsntta_cli.datasets.images import ImageSet, file_set, with_lists
from zsntta_cli.datasets.tree import SUFFIXES, File, LeftOut, below_shared, files_in
from zsntta_cli.errors import DatasetError, counted, first_line, first_of, short

NAMES, TEMPLATES = "classnames.txt", "zeroshot_classification_templates.txt"
COUNT, SPLIT = "nshards.txt", "test"  # CLIP_benchmark's
_FIELDS = ("label", "cls", "class", "class_name")  # of a .json; the first that exists is used


def is_pattern(path: Path) -> bool:
    """Whether a path names several shards."""
    return re.search(r"\{.*\}", str(path)) is not None and not path.exists()


def expand_braces(pattern: str) -> Iterator[str]:
    """All paths that `a-{000..009}.tar` or `{x,y}.tar` names, as in a shell."""
    braces = re.search(r"\{([^{}]*)\}", pattern)
    if braces is None:
        yield pattern
        return
    choices = braces[1].split(",")
    if bounds := re.fullmatch(r"(\d+)\.\.(\d+)", braces[1]):
        choices = [f"{i:0{len(bounds[1])}d}" for i in range(int(bounds[1]), int(bounds[2]) + 1)]
    for choice in choices:
        yield from expand_braces(pattern[: braces.start()] + choice + pattern[braces.end() :])


def shard_paths(path: Path, label: str = "") -> list[Path]:
    """The tars of a web data set: a pattern, a folder with nshards.txt or split `test`, or one tar.

    It is empty if there are none. One archive is a web data set if its files form samples, or if
    labels of it are requested.

    Raises:
        DatasetError: the folder has more or fewer tars than nshards.txt says.
    """
    if is_pattern(path):
        return [Path(shard) for shard in expand_braces(str(path))]
    folder = next((at for at in (path, path / SPLIT) if (at / COUNT).is_file()), None)
    if folder is None:
        is_alone = label or (not path.is_dir() and _is_shard(files_in(path)))
        return [path] if is_alone else []
    text, existing = (folder / COUNT).read_text().strip(), {*folder.glob("*.tar")}
    tars = [folder / f"{i}.tar" for i in range(int(text) if text.isdecimal() else 0)]
    if not tars or existing != {*tars}:
        raise DatasetError(
            f"{folder / COUNT} must have the number of shards, 0.tar and so on: "
            f"it says '{short(text)}', but there are {len(existing):,}."
        )
    return tars


def _by_key(files: Sequence[File]) -> dict[str, dict[str, File]]:
    """Files by key, which includes folders, and by ending: `a/b` has `.jpg`, `.cls`."""
    by_key: dict[str, dict[str, File]] = {}
    for file in files:
        stem, point, ending = file.parts[-1].partition(".")
        key = "/".join((*file.parts[:-1], stem))
        by_key.setdefault(key, {})[point + ending.lower()] = file
    return by_key


def _is_shard(files: Sequence[File]) -> bool:
    """Whether half of the images have a file of one ending with the same key.

    Class folders are not shards, unless they have `.cls` files.
    """
    images = [file for file in files if file.is_image]
    groups = [g for g in _by_key(files).values() if any(file.is_image for file in g.values())]
    beside = Counter(e for group in groups for e in group if not group[e].is_image)
    endings = {ending for ending, count in beside.items() if 2 * count >= len(groups)}
    folders = {file.parts[0] for file in below_shared(images) if len(file.parts) > 1}
    return ".cls" in endings or (bool(endings) and len(folders) < 2)


def web_dataset(name: str, tars: Sequence[Path], label: str = "") -> ImageSet:
    """The images of tars, in the order of the tars and of the keys in each.

    `label` names the source of the labels if it is not a usual one. Without it, texts that do not
    name a class are captions, which are not labels.

    Raises:
        DatasetError: a tar is missing or incomplete, or has no image or an invalid label.
    """
    left_out, where = LeftOut(), tars[0] if len(tars) == 1 else tars[0].parent
    images, raw, sources, further = list[File](), list[RawLabel](), dict[str, None](), 0
    beside = list[str]()  # what else the first sample has
    for tar in tars:
        for key, files in _by_key(files_in(tar, left_out)).items():
            if (image := _image(tar, key, files)) is None:
                continue
            try:
                raw_label, source = _label(files, label)
            except (OSError, ValueError, RecursionError) as error:
                reason = first_line(error)
                raise DatasetError(f"{key} in {tar} has no valid label ({reason}).") from error
            images.append(replace(image, parts=(tar.name.partition(".")[0], *key.split("/"))))
            raw.append(raw_label)
            sources |= {source: None} if source else {}
            further += sum(file.is_image for file in files.values()) - 1
            beside = beside or [*_json(files), *(e for e in files if not files[e].is_image)]
    if not images:
        raise DatasetError(f"no image in {where}.")
    name_lists, names = _beside(tars[0], NAMES)
    template_lists, templates = _beside(tars[0], TEMPLATES)
    if wrong := [line for line in templates if line and line.count("{c}") != 1]:
        raise DatasetError(f"'{short(wrong[0])}' in {template_lists[0]} must have one {{c}}.")
    raw, notes = _without_captions(raw, names, label)
    labels, class_names = class_labels(where, raw, names)
    has_labels = max(labels) >= 0
    fields = f"samples have {first_of(beside)}"
    if label and not has_labels:
        raise DatasetError(f"no sample of {where} has a label '{label}': {fields}.")
    if beside and not has_labels:
        notes.append(f"no labels: {fields}, and --label FIELD selects one")
    words = [f"{counted(further, 'further image')} of samples"] * bool(further)
    image_set = file_set(
        name, images, labels, class_names, notes=notes,
        templates=[line.replace("{c}", "{}") for line in templates if line],
        labels_from=" and ".join(sources) if has_labels else "",
        left_out=", ".join(filter(None, [*words, left_out.words()])),
    )  # fmt: skip
    return with_lists(image_set, [*name_lists, *template_lists])


def _without_captions(
    raw: list[RawLabel], names: Sequence[str], label: str
) -> tuple[list[RawLabel], list[str]]:
    """Labels, texts of digits as numbers and captions as None, and a note on captions."""
    texts = {text for text in raw if isinstance(text, str)}
    unnamed = texts - {*names}
    if unnamed and all(map(str.isdecimal, texts)):
        return [int(text) if isinstance(text, str) else text for text in raw], []
    if unnamed and not label and (unnamed == texts if names else 2 * len(unnamed) > len(raw)):
        note = f"texts are captions, not classes: {len(unnamed):,} of {len(raw):,} differ"
        return [None if isinstance(text, str) else text for text in raw], [note]
    return raw, []


def _image(tar: Path, key: str, files: dict[str, File]) -> File | None:
    """The image of a key; of several the one with a single ending, which must be alone."""
    plain = [files[ending] for ending in files if ending in SUFFIXES]
    images = plain or [file for file in files.values() if file.is_image]
    if len(images) > 1:
        both = f"{images[0].id} and {images[1].id}"
        raise DatasetError(f"{tar} has two images with the key {key}, up to the first dot: {both}.")
    return images[0] if images else None


def _label(files: dict[str, File], label: str) -> tuple[RawLabel, str]:
    """The label in the files of a key, None if there is none, and the name of its source."""
    endings = (".json", f".{label.removeprefix('.')}") if label else (".cls", ".json", ".txt")
    for ending in filter(files.__contains__, endings):
        value: Any
        if ending == ".json":
            values, fields = _json(files), [label] if label else _FIELDS
            value = next((values[field] for field in fields if field in values), None)
        else:
            value = files[ending].read().decode("utf-8-sig")
            value = int(value) if ending == ".cls" and not label else value
        if isinstance(value, str):
            value = value.strip()
        elif value is not None and not (type(value) is int and -1 <= value < 10**9):
            raise ValueError(f"{short(str(value))} is neither a name nor a number from 0")
        if value not in (None, "", -1):
            return value, f"{ending} files" + f" ('{label}')" * bool(label and ending == ".json")
    return None, ""


def _json(files: dict[str, File]) -> dict[str, Any]:
    """The fields of a sample's .json, if it has one."""
    values = json.loads(files[".json"].read()) if ".json" in files else {}
    return values if isinstance(values, dict) else {}


def _beside(tar: Path, file: str) -> tuple[list[Path], list[str]]:
    """A text beside a tar, or one folder above, and its lines; empty if there is none."""
    folder = tar.absolute().parent
    paths = [p for p in (folder / file, folder.parent / file) if p.is_file()][:1]
    try:
        texts = [path.read_text("utf-8-sig").rstrip() for path in paths]
    except UnicodeDecodeError as error:
        raise DatasetError(f"{paths[0]} beside the shards is not UTF-8 text.") from error
    return paths, [line.strip() for text in texts for line in text.splitlines()]
