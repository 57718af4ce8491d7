"""WebDataset shards, `shards-{000..009}.tar`: files with one key make one sample.

`key.jpg` (or .png, .webp …) is its image, `key.cls` its label, a number; `classnames.txt` beside
the shards has a class name a line, as CLIP_benchmark writes it. Other files are left alone.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.archives import MemberImages, images_among, open_archive
from zsntta_cli.datasets.readers.members import Member, Read
from zsntta_cli.errors import DatasetError


@dataclass(frozen=True)
class _Sample:
    """An image of a shard."""

    sample_id: str
    read: Read
    image: Member
    label: int


def is_pattern(path: Path) -> bool:
    """Whether a path stands for several shards."""
    return re.search(r"\{.*\}", str(path)) is not None and not path.exists()


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
    """The images of all shards, in the order of the shards and of the keys in each.

    Raises:
        DatasetError: a shard is missing or not whole, no image, or a label that is none.
    """
    paths = (Path(path) for path in expand_braces(str(pattern)))
    samples = [sample for path in paths for sample in _samples(name, path)]
    if not samples:
        raise DatasetError(f"data set '{name}': no image in {pattern} (looked for .jpg, .png, …).")
    stored = MemberImages([(sample.read, sample.image) for sample in samples])
    return ImageSet(
        name,
        stored,
        np.array([sample.label for sample in samples], np.int32),
        [sample.sample_id for sample in samples],
        _class_names(name, pattern, max(sample.label for sample in samples)),
        fingerprint=",".join(str(sample.image.size) for sample in samples),
        reading=stored.reading(len(samples)),
    )


def _samples(name: str, path: Path) -> list[_Sample]:
    members, read = open_archive(name, path)
    labels = {PurePosixPath(m.path).parts: m for m in members if m.path.endswith(".cls")}
    samples: dict[str, _Sample] = {}
    for parts, image in images_among(members).items():
        stem, _, extension = parts[-1].partition(".")
        sample_id = "/".join((path.name.partition(".")[0], *parts[:-1], stem))
        if "." in extension:  # such as key.mask.png
            continue
        if sample_id in samples:
            raise DatasetError(f"data set '{name}': {path} has two images with the key {stem}.")
        label = _label(name, path, read, labels, (*parts[:-1], f"{stem}.cls"))
        samples[sample_id] = _Sample(sample_id, read, image, label)
    return list(samples.values())


def _label(
    name: str,
    path: Path,
    read: Read,
    labels: Mapping[tuple[str, ...], Member],
    parts: tuple[str, ...],
) -> int:
    """The number in a .cls file, -1 where there is no such file."""
    if parts not in labels:
        return -1
    try:
        text = read(labels[parts])[:20].strip()
    except OSError as error:
        raise DatasetError(f"data set '{name}': cannot read {parts[-1]} in {path}.") from error
    if not re.fullmatch(rb"\d{1,9}", text):
        raise DatasetError(
            f"data set '{name}': {parts[-1]} in {path} is no label: a number from 0."
        )
    return int(text)


def _class_names(name: str, pattern: Path, highest: int) -> list[str]:
    """Those beside the shards; none where there is no such file, or no label."""
    path = pattern.parent / "classnames.txt"
    if highest < 0 or not path.is_file():
        return []
    try:
        names = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"data set '{name}': cannot read {path} ({error}).") from error
    if highest >= len(names):
        raise DatasetError(f"data set '{name}': label {highest}, but {len(names)} names in {path}.")
    return names
