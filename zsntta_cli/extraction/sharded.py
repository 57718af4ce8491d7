"""A set extracted in parts: each worker is a command that knows which part to make.

Workers share only a features folder. Each part is a file that is absent or whole, so any worker may
be killed, begin again or do the same twice.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.errors import SettingsError
from zsntta_cli.extraction.extractor import Extracted, Extractor
from zsntta_cli.extraction.plan import (
    ExtractPlan,
    load_planned_encoder,
    processes_for,
    prompts_of,
    sharded_set,
)
from zsntta_cli.progress import Reporter, Silent
from zsntta_cli.settings import EncoderChoice, ExtractSettings

_POLL = 1.0  # seconds between two looks at what others are at work on


@dataclass(frozen=True)
class PartChoice:
    """The part of a set that is requested: `index` from 1, of `of`."""

    index: int
    of: int


def parse_part(text: str) -> PartChoice:
    """A part as it is typed, `3/64`.

    Raises:
        SettingsError: the text is no part.
    """
    index, slash, of = text.partition("/")
    if not (slash and index.isdecimal() and of.isdecimal() and 1 <= int(index) <= int(of)):
        raise SettingsError(f"part is '{text}', must be like 3/64, which is part 3 of 64.")
    return PartChoice(int(index), int(of))


@dataclass(frozen=True)
class PartsJob:
    """A set that is to be extracted in parts, as a worker gets it: small and picklable."""

    spec: str  # of the set, as it was typed
    of: int  # parts
    plan: ExtractPlan
    choice: EncoderChoice
    device: str
    root: Path  # of features
    settings: ExtractSettings


class PartMaker:
    """Make parts of a set, one after the other, with an encoder that is loaded once."""

    def __init__(
        self,
        job: PartsJob,
        reporter: Reporter | None = None,
        load: Callable[[], Encoder] | None = None,
    ) -> None:
        """`load` loads the encoder, by default the job's choice; it is called when needed.

        Raises:
            DatasetError: there is no such set. SettingsError: the number of parts is invalid.
        """
        if job.of < 1:
            raise SettingsError(f"parts is {job.of}, must be 1 or more.")
        self.job, self._reporter = job, reporter or Silent()
        self.sharded = sharded_set(job.spec, job.plan, self._reporter)
        first, *_ = job.device.split(",")
        load = load or partial(load_planned_encoder, job.choice, first, self._reporter)
        self._extractor = Extractor(
            job.choice, load, job.root, job.settings, self._reporter,
            partial(processes_for, job.device),
        )  # fmt: skip

    @property
    def path(self) -> Path:
        """The path of the joined set's feature file."""
        folder = folder_name(self.job.choice)
        return feature_path(self.job.root, folder, self.sharded.name)

    def make(self, index: int) -> Extracted:
        """Make a part unless it exists; wait if another process works on it."""
        return self._extractor.part(self.sharded, index, self.job.of, self._prompts)

    def make_all(self) -> Iterator[Extracted]:
        """Make all missing parts that no process works on, then wait for the others."""
        lacking: Sequence[int] = range(1, self.job.of + 1)
        while lacking:
            of_others = []
            for index in lacking:
                extracted = self._extractor.part_if_free(
                    self.sharded, index, self.job.of, self._prompts
                )
                if extracted is None:
                    of_others.append(index)
                else:
                    yield extracted
            if len(of_others) == len(lacking):
                time.sleep(_POLL)
            lacking = of_others

    def join(self) -> Extracted:
        """Join all parts; StoreError if one is missing or does not fit."""
        return self._extractor.joined(self.sharded, self.job.of)

    def close(self) -> None:
        """Stop the other processes that encode."""
        self._extractor.close()

    def _prompts(self, images: ImageSet) -> Sequence[str]:
        """The prompts of the class names; none for a set without names or an OOD set."""
        if not datasets.has_text(images):
            return ()
        return self.job.plan.templates or prompts_of(images)


def extract_part(job: PartsJob, index: int, reporter: Reporter) -> Extracted:
    """Make one part of a set only.

    Raises:
        DatasetError: an image or shard is broken. StoreError: existing parts are of another set or
            encoder, or a part cannot be written.
    """
    with closing(PartMaker(job, reporter)) as maker:
        return maker.make(index)


def extract_parts(job: PartsJob, reporter: Reporter) -> Iterator[Extracted]:
    """Make all missing parts of a set, maybe along with other processes, then join them."""
    with closing(PartMaker(job, reporter)) as maker:
        yield from maker.make_all()
        yield maker.join()
