"""Web data sets: tars in which the files of one key make a sample, `a.jpg` and `a.cls`.

A key is what is before the first dot of a name. A label is told by `key.cls`, a number, by
`key.json` under one of a few names, or by `key.txt`, its class's name; or by what `label` names, a
field of the JSON or the ending of other files. `classnames.txt`, a class name a line, and
CLIP_benchmark's prompt templates lie beside the tars or one folder above.

CLIP_benchmark's folders have nshards.txt, a number, beside the tars 0.tar, 1.tar … of a split.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from zsntta_cli.datasets.images import ImageSet, file_set
from zsntta_cli.datasets.names import HUB, LISTS
from zsntta_cli.datasets.tree import SUFFIXES, File, below_shared, files_in, images_among
from zsntta_cli.errors import DatasetError, SettingsError, counted, first_line, first_of, short
from zsntta_cli.settings.prompts import join_templates, prompt_template, templates_of

NAMES, TEMPLATES = "classnames.txt", "zeroshot_classification_templates.txt"
_COUNT, _SPLIT = "nshards.txt", "test"
_TIMEOUT = 10  # seconds until the hub counts as out of reach
_FIELDS = ("label", "cls", "class", "class_name")  # of a .json, the first that is there
_SHORT = 60  # letters of a text that may be a label
_KEPT = 1_000  # letters of a caption
_Label = int | str | None  # as a sample tells it: a number, or a name, or a caption


@dataclass
class _Met:
    """What was met in the tars of a set."""

    tellers: Counter[str] = field(default_factory=Counter)  # samples by what told their labels
    further: list[str] = field(default_factory=list)  # images that are no sample
    unused: dict[str, None] = field(default_factory=dict)  # what may have labels and was not asked


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


def shard_paths(name: str, path: Path) -> list[Path]:
    """The tars of a pattern, or of a folder with nshards.txt, or of its split `test`; else none.

    Raises:
        DatasetError: the folder has other splits alone, or more or fewer tars than it says.
    """
    if is_pattern(path):
        return [Path(one) for one in expand_braces(str(path))]
    folder = next((f for f in (path, path / _SPLIT) if (f / _COUNT).is_file()), None)
    if folder is None:
        if splits := sorted(file.parent.name for file in path.glob(f"*/{_COUNT}")):
            raise DatasetError(
                f"data set '{name}': {path} has no split {_SPLIT}, but {', '.join(splits)}: name "
                f"one, as {name}={path / splits[0]}."
            )
        return []
    text = (folder / _COUNT).read_text().strip()
    if not text.isdecimal() or not int(text):
        raise DatasetError(
            f"data set '{name}': {folder / _COUNT} must have the number of shards, not "
            f"'{short(text)}'."
        )
    count = int(text)
    missing = [i for i in range(count) if not (folder / f"{i}.tar").is_file()]
    if missing or (folder / f"{count}.tar").exists():
        there = f"{missing[0]}.tar is missing" if missing else f"there is {count}.tar"
        raise DatasetError(
            f"data set '{name}': {folder / _COUNT} says {count:,} shards, but {there}."
        )
    return [folder / f"{i}.tar" for i in range(count)]


def groups(files: Sequence[File]) -> dict[str, dict[str, File]]:
    """Files by their keys, with the folders above, and by their endings: `a/b` has `.jpg`, `.cls`.

    A key ends at the first dot of a name or, where several images would have one, at the last.
    """
    of_first = _grouped(files, 1)
    if all(len(_images_of(group)) <= 1 for group in of_first.values()):
        return of_first
    of_last = _grouped(files, -1)
    is_better = all(len(_images_of(group)) <= 1 for group in of_last.values())
    return of_last if is_better else of_first


def _grouped(files: Sequence[File], dot: int) -> dict[str, dict[str, File]]:
    by_key: dict[str, dict[str, File]] = {}
    for file in files:
        name = file.parts[-1]
        stem, point, ending = name.partition(".") if dot == 1 else name.rpartition(".")
        key = "/".join((*file.parts[:-1], stem))
        by_key.setdefault(key, {})[point + ending.lower()] = file
    return by_key


def _images_of(group: dict[str, File]) -> list[File]:
    """The image of a group: `.jpg` before `.mask.png`; several where no rule chooses."""
    plain = [group[ending] for ending in group if ending in SUFFIXES]
    return plain or [file for file in group.values() if file.is_image]


def endings_beside(files: Sequence[File]) -> list[str]:
    """The endings of files that have the key of an image, if half of the images have one."""
    samples = [group for group in groups(files).values() if _images_of(group)]
    beside = Counter(e for group in samples for e in group if not group[e].is_image)
    return [ending for ending, count in beside.items() if 2 * count >= len(samples)]


def is_shard(files: Sequence[File]) -> bool:
    """Whether files come in groups by key, each with an image; not where folders have classes.

    With `.cls` they do wherever they lie.
    """
    endings = endings_beside(files)
    folders = {file.parts[0] for file in below_shared(images_among(files)) if len(file.parts) > 1}
    return ".cls" in endings or (bool(endings) and len(folders) < 2)


def web_dataset(name: str, tars: Sequence[Path], label: str = "") -> ImageSet:
    """The images of tars, in the order of the tars and of the keys in each.

    `label` names what has the labels, if that is no usual place.

    Raises:
        DatasetError: a tar is missing or not whole, no image, or a label that is none.
    """
    met = _Met()
    samples = [sample for tar in tars for sample in _samples(name, tar, label, met)]
    where = tars[0] if len(tars) == 1 else tars[0].parent
    unused = f": the files beside the images have {', '.join(met.unused)}" if met.unused else ""
    if not samples:
        raise DatasetError(f"data set '{name}': no image in {where}.")
    if label and not met.tellers:
        raise DatasetError(
            f"data set '{name}': no sample of {where} has a label '{label}'{unused}."
        )
    texts = {file: text for file in (NAMES, TEMPLATES) if (text := _text_beside(tars[0], file))}
    told = [sample_label for _, sample_label in samples]
    labels, class_names, note = _labels(name, where, told, _lines(texts, NAMES), bool(label))
    if unused and max(labels) < 0:
        note = f"{note or 'no labels'}{unused}: --label FIELD takes labels from one of these"
    left_out = f"{counted(len(met.further), 'further image')} of samples ({first_of(met.further)})"
    return replace(
        file_set(name, [image for image, _ in samples], labels, class_names),
        facts={LISTS: {file: sha256(text).hexdigest() for file, text in texts.items()}},
        templates=_templates(name, _lines(texts, TEMPLATES)),
        labels_from=" and ".join(met.tellers) if max(labels) >= 0 else "",
        left_out=left_out if met.further else "",
        notes=[note] if note else [],
    )


def _samples(name: str, tar: Path, label: str, met: _Met) -> Iterator[tuple[File, _Label]]:
    """The images of a tar, by key, and their labels."""
    for key, group in groups(files_in(tar)).items():
        chosen = _images_of(group)
        if len(chosen) > 1:
            raise DatasetError(
                f"data set '{name}': {tar} has two images with the key {key}: {chosen[0].id} and "
                f"{chosen[1].id}."
            )
        met.further += [f.id for f in group.values() if f.is_image and f not in chosen]
        for image in chosen:
            parts = (tar.name.partition(".")[0], *key.split("/"))
            yield replace(image, parts=parts), _told(name, tar, group, label, met)


def _told(name: str, tar: Path, files: dict[str, File], label: str, met: _Met) -> _Label:
    """What the files of a key tell of its label; None where they do not."""
    json_of, endings = files.get(".json"), [".cls", ".json", ".txt"]
    if label:
        endings = [".json", label if label.startswith(".") else f".{label}"]
    for ending in endings:
        if (file := files.get(ending)) is None:
            continue
        try:
            told = _read_label(file.read().decode("utf-8-sig").strip(), ending, label)
        except (OSError, ValueError, RecursionError) as error:
            raise DatasetError(
                f"data set '{name}': {file.id} in {tar} tells no label ({first_line(error)})."
            ) from error
        if told is not None:
            field = f" ('{label}')" if label and ending == ".json" else ""
            met.tellers[f"{ending} files{field}"] += 1
            if isinstance(told, str):
                met.unused |= dict.fromkeys(_fields(json_of))
            return told
    met.unused |= dict.fromkeys(_fields(json_of))
    others = [e for e in files if e not in SUFFIXES and e not in (".json", ".txt", ".cls")]
    met.unused |= dict.fromkeys(others)
    return None


def _read_label(text: str, ending: str, label: str) -> _Label:
    """A label of a file's text.

    Raises:
        ValueError: it is no number from 0 and no name.
    """
    told: object = text[:_KEPT] or None
    if ending == ".json":
        values = json.loads(text)
        names = [label] if label else _FIELDS
        found = [values[n] for n in names if n in values] if isinstance(values, dict) else []
        told = found[0] if found else None
        told = None if told == -1 else told[:_KEPT].strip() if isinstance(told, str) else told
    elif ending == ".cls" and not label:
        told = int(text)
    if isinstance(told, bool) or not isinstance(told, int | str | None):
        raise ValueError("it is no name and no number from 0")
    if isinstance(told, int) and not 0 <= told < 10**9:
        raise ValueError(f"{told} is no number from 0")
    return told


def _fields(file: File | None) -> list[str]:
    """The fields of a .json whose values may be labels: short texts, and numbers from 0."""
    try:
        values = json.loads(file.read()) if file else {}
    except (OSError, ValueError, RecursionError):
        return []
    kept = values.items() if isinstance(values, dict) else ()
    return [
        n
        for n, v in kept
        if (isinstance(v, str) and len(v) < _SHORT) or (type(v) is int and v >= 0)
    ]


def _labels(
    name: str, where: Path, told: Sequence[_Label], names: Sequence[str], is_class: bool
) -> tuple[list[int], list[str], str]:
    """Labels, -1 where none is told, class names if any image has a label, and a note.

    Texts that name no class are captions, and captions no labels, unless `is_class`.

    Raises:
        DatasetError: a label without a class name, or labels of two kinds.
    """
    texts = {label for label in told if isinstance(label, str)}
    if texts and not texts <= set(names) and all(text.isdecimal() for text in texts):
        told = [int(label) if isinstance(label, str) else label for label in told]
        texts = set()
    numbers = [label if isinstance(label, int) else -1 for label in told]
    if not texts:
        if names and max(numbers) >= len(names):
            raise DatasetError(
                f"data set '{name}': label {max(numbers)}, but {len(names)} names in {NAMES} for "
                f"{where}."
            )
        return numbers, list(names) if max(numbers) >= 0 else [], ""
    if max(numbers) >= 0:
        raise DatasetError(f"data set '{name}': labels in {where} are numbers and texts.")
    are_classes = texts & set(names) if names else 2 * len(texts) <= len(told)
    if not is_class and not are_classes:
        note = f"texts are captions and no classes: {len(texts):,} of {len(told):,} differ"
        return numbers, [], note
    class_names = list(names) or sorted(texts)
    if strange := sorted(text for text in texts if class_names.count(text) != 1):
        times = "twice" if strange[0] in class_names else "not"
        raise DatasetError(
            f"data set '{name}': '{short(strange[0])}' in {where} is {times} in {NAMES}."
        )
    index = {text: i for i, text in enumerate(class_names)}
    return [-1 if label is None else index[str(label)] for label in told], class_names, ""


def _text_beside(tar: Path, file: str) -> bytes:
    """A text beside a tar, or one folder above; nothing where there is none."""
    folder = tar.absolute().parent
    path = next((p for p in (folder / file, folder.parent / file) if p.is_file()), None)
    return path.read_bytes() if path else b""


def _lines(texts: dict[str, bytes], file: str) -> list[str]:
    try:
        text = texts.get(file, b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{file} beside the shards is no text in UTF-8.") from error
    return [line.strip() for line in text.rstrip().splitlines()]


def _templates(name: str, lines: Sequence[str]) -> list[str]:
    """Prompt templates as they are here, of lines with `{c}` for the class name.

    Raises:
        DatasetError: a line that is no template.
    """
    templates = [line.replace("{c}", "{}") for line in lines if line]
    for template in templates:
        try:
            is_one = templates_of(join_templates(prompt_template(template), "{}"))[0] == template
        except SettingsError:
            is_one = False
        if not is_one:
            raise DatasetError(
                f"data set '{name}': '{short(template)}' in {TEMPLATES} is no prompt template: a "
                f"text with one {{c}} for the class name."
            )
    return templates


def from_hub(name: str, repository: str, data_root: Path) -> ImageSet:
    """The images of a data set repository of the hub, which is fetched into the data root once.

    Raises:
        DatasetError: it is not there and cannot be fetched.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    root = data_root / repository
    try:
        tars = shard_paths(name, root)
    except DatasetError:
        tars = []
    if not tars:
        if not sys.stderr.isatty():
            disable_progress_bars()
        try:  # of one revision; the texts come first, the shards last
            info = HfApi().dataset_info(repository, timeout=_TIMEOUT)
            for patterns in ([NAMES, TEMPLATES, f"{_SPLIT}/{_COUNT}"], [f"{_SPLIT}/*.tar"]):
                snapshot_download(
                    repository, repo_type="dataset", revision=info.sha, local_dir=root,
                    allow_patterns=patterns,
                )  # fmt: skip
        except Exception as error:  # the hub and what it asks through raise what they like
            raise DatasetError(
                f"data set '{name}': https://huggingface.co/datasets/{repository} is not whole in "
                f"{root} and cannot be fetched ({type(error).__name__}: {first_line(error)})."
            ) from error
        tars = shard_paths(name, root)
    if not tars:
        raise DatasetError(
            f"data set '{name}': https://huggingface.co/datasets/{repository} has no "
            f"{_SPLIT}/{_COUNT}: it is no web data set of CLIP_benchmark's layout."
        )
    images = web_dataset(name, tars)
    return replace(images, facts={**images.facts, HUB: repository + _revision(root)})


def _revision(root: Path) -> str:
    """`@` and the commit that was fetched, as the hub's library notes it; nothing if by others."""
    note = root / ".cache" / "huggingface" / "download" / _SPLIT / f"{_COUNT}.metadata"
    lines = note.read_text().splitlines() if note.is_file() else []
    return f"@{lines[0]}" if lines else ""
