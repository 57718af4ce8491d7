"""A set as a list of shards, of which a part reads its own alone.

A shard is a tar of a web data set or, of any other set, a run of 512 images in their order. It is
never cut, and batches begin anew at each, so its features do not depend on the part it comes in.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.class_names import with_class_names
from zsntta_cli.datasets.images import AS_SHOWN, ImageSet, as_shown, pick_rows
from zsntta_cli.datasets.names import SetName
from zsntta_cli.datasets.readers import clip_benchmark, shards
from zsntta_cli.errors import DatasetError, SettingsError

SHARD = 512  # images: four batches, the parts that an extraction keeps, so its bits are the same


@dataclass(frozen=True)
class SetPart:
    """Part `index`, from 1, of `of` parts of a set: its images, which of them are which shard's."""

    index: int
    of: int
    set_identity: Mapping[str, Any]  # of the whole set
    images: ImageSet
    shards: tuple[str, ...]  # those that have images
    rows: tuple[range, ...]  # of each shard, in the part's images


class ShardedSet(ABC):
    """A set in shards, none of which has been read."""

    name: str

    @property
    @abstractmethod
    def shards(self) -> Sequence[str]:
        """The names of all shards, in order."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What the parts of a set record of the whole: it does not depend on their number."""

    @abstractmethod
    def read(self, run: range) -> tuple[ImageSet, list[int]]:
        """The images of a run of shards, and how many there are in each.

        Raises:
            DatasetError: a shard is missing or not whole.
        """

    def shards_of(self, index: int, of: int) -> range:
        """The shards of a part: runs of as equal a length as can be; of some parts none.

        Raises:
            SettingsError: there is no such part.
        """
        if not 1 <= index <= of:
            raise SettingsError(f"part is {index}/{of}, must be 1/{max(of, 1)} to {of}/{of}.")
        count = len(self.shards)
        return range((index - 1) * count // of, index * count // of)

    def part(self, index: int, of: int) -> SetPart:
        """Read the images of a part: DatasetError where a shard of it is missing or not whole."""
        run = self.shards_of(index, of)
        images, counts = self.read(run)
        bounds = pairwise(accumulate(counts, initial=0))
        rows = [(self.shards[i], range(a, b)) for i, (a, b) in zip(run, bounds, strict=True)]
        rows = [(shard, of_shard) for shard, of_shard in rows if of_shard]
        images = replace(images, reload=partial(_again, self, run))
        names, ranges = tuple(s for s, _ in rows), tuple(r for _, r in rows)
        return SetPart(index, of, self.identity(), images, names, ranges)


def _again(sharded: ShardedSet, run: range) -> ImageSet:
    images, _ = sharded.read(run)
    return images


@dataclass(frozen=True)
class TarShards(ShardedSet):
    """The tars of a web data set."""

    name: str
    paths: tuple[Path, ...]
    where: Path  # what they are called in an error; texts lie beside it
    shown: bool = False
    class_names: Path | None = None  # a file of names in place of those beside the shards
    label: str = ""  # what has the labels, as `shards` takes it

    @property
    def shards(self) -> Sequence[str]:
        """The files' names without their folder."""
        return [path.name for path in self.paths]

    def _sizes(self) -> list[int]:
        """Bytes of each tar.

        Raises:
            DatasetError: one is missing.
        """
        try:
            return [path.stat().st_size for path in self.paths]
        except OSError as error:
            raise DatasetError(
                f"data set '{self.name}': cannot read the shard {error.filename} "
                f"({error.strerror})."
            ) from error

    def identity(self) -> dict[str, Any]:
        """The names and sizes of all tars, and the texts beside them: no tar is opened."""
        digest = hashlib.sha256()
        for shard, size in zip(self.shards, self._sizes(), strict=True):
            digest.update(f"{shard} {size}\0".encode(errors="surrogateescape"))
        for file, text in shards.texts_beside(self.name, self.where).items():
            digest.update(f"{file} {hashlib.sha256(text).hexdigest()}\0".encode())
        if self.class_names:
            digest.update(self.class_names.read_bytes())
        digest.update(self.label.encode())
        shown = {AS_SHOWN: True} if self.shown else {}
        count = len(self.paths)
        return {"dataset": self.name, "shards": count, "digest": digest.hexdigest(), **shown}

    def read(self, run: range) -> tuple[ImageSet, list[int]]:
        """The images of some tars, whose members are listed now."""
        paths = self.paths[run.start : run.stop]
        images, counts = shards.images_of_some_shards(self.name, paths, self.where, self.label)
        if self.class_names:
            images = with_class_names(images, self.class_names)
        return (as_shown(images) if self.shown else images), counts


@dataclass(frozen=True)
class RowShards(ShardedSet):
    """Runs of the images of a set that is known whole."""

    images: ImageSet

    @property
    def name(self) -> str:  # type: ignore[override]
        """The set's name."""
        return self.images.name

    @property
    def shards(self) -> Sequence[str]:
        """The rows of each run, `0-511`."""
        count = len(self.images)
        return [f"{i}-{min(i + SHARD, count) - 1}" for i in range(0, count, SHARD)]

    def identity(self) -> dict[str, Any]:
        """The set's own identity."""
        return {**self.images.identity(), "shards": len(self.shards)}

    def read(self, run: range) -> tuple[ImageSet, list[int]]:
        """The images of some runs."""
        rows = np.arange(run.start * SHARD, min(run.stop * SHARD, len(self.images)))
        counts = [min(SHARD, len(self.images) - i * SHARD) for i in run]
        return pick_rows(self.images, rows), counts

    def __reduce__(self) -> Any:
        assert self.images.reload is not None
        return _row_shards, (self.images.reload,)


def _row_shards(reload: Any) -> RowShards:
    return RowShards(reload())


def tar_shards(
    spec: str, data_root: Path, shown: bool = False, class_names: Path | None = None
) -> TarShards | None:
    """The tars of a set that lies in several of them, as `mine=shards-{000..063}.tar` does.

    None of any other set.

    Raises:
        DatasetError: it says how many tars there must be, and there are others.
    """
    name = SetName.parse(spec)
    if name.path:
        name.check_own(is_known=name.base in CATALOGUE)
    if name.path and shards.is_pattern(name.path):
        pattern = name.path.absolute()
        paths = tuple(Path(path) for path in shards.expand_braces(str(pattern)))
        return TarShards(name.base, paths, pattern, shown, class_names, name.label)
    split = None
    if name.path:
        split = clip_benchmark.split_folder(name.base, name.path.absolute())
    elif name.hub and clip_benchmark.is_fetched(name.hub, data_root):
        split = clip_benchmark.split_folder(name.base, (data_root / name.hub).absolute())
    if split is None:
        return None
    paths = tuple(clip_benchmark.shard_paths(name.base, split))
    return TarShards(name.base, paths, split / "*.tar", shown, class_names, name.label)
