"""A set as a list of shards, of which a part encodes its own alone.

A shard is a run of 512 images in their order. It is never cut, and batches begin anew at each, so
its features do not depend on the part it comes in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from zsntta_cli.datasets.images import ImageSet, pick_rows
from zsntta_cli.errors import SettingsError

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


@dataclass(frozen=True)
class ShardedSet:
    """Runs of the images of a set."""

    images: ImageSet

    @property
    def name(self) -> str:
        """The set's name."""
        return self.images.name

    @property
    def shards(self) -> Sequence[str]:
        """The rows of each run, `0-511`."""
        count = len(self.images)
        return [f"{i}-{min(i + SHARD, count) - 1}" for i in range(0, count, SHARD)]

    def identity(self) -> dict[str, Any]:
        """What the parts of a set record of the whole: it does not depend on their number."""
        return {**self.images.identity(), "shards": len(self.shards)}

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
        """The images of a part."""
        run = self.shards_of(index, of)
        images, first = _rows_of(self.images, run), run.start * SHARD
        if self.images.reload is not None:
            images = replace(images, reload=partial(_again, self.images.reload, run))
        rows = [
            range(i * SHARD - first, min((i + 1) * SHARD, len(self.images)) - first) for i in run
        ]
        names = tuple(self.shards[run.start : run.stop])
        return SetPart(index, of, self.identity(), images, names, tuple(rows))


def _rows_of(images: ImageSet, run: range) -> ImageSet:
    """The images of some runs."""
    return pick_rows(images, np.arange(run.start * SHARD, min(run.stop * SHARD, len(images))))


def _again(reload: Any, run: range) -> ImageSet:
    return _rows_of(reload(), run)
