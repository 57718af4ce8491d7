"""The work of a worker on parts of a set, and the markers that it returns.

The worker writes the parts' files itself, where this process would; it returns no features.
"""

import os
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from zsntta_cli.cache.folder import part_path
from zsntta_cli.errors import DatasetError, ZsnttaError
from zsntta_cli.extraction.extractor import Extracted
from zsntta_cli.extraction.jobs import worker_encoder
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.settings import LOCAL

Marker = dict[str, Any]  # part, images, encoded, seconds; or part and error, which is pickled


@dataclass(frozen=True)
class PartsWork:
    """A job of parts as a worker on another machine gets it."""

    scripts: LoadedScripts  # first: what follows may be of their classes
    job: PartsJob
    folder: Path  # in which the paths of the job are meant
    threads: int  # of torch: features of another number differ in their last bits


def pack(job: PartsJob) -> bytes:
    """Pickle a job for workers, each of which is one process on one device."""
    import torch

    settings = replace(job.settings, engine=LOCAL)
    job = replace(job, settings=settings)
    return pickle.dumps(PartsWork(LoadedScripts(), job, Path.cwd(), torch.get_num_threads()))


class PartsWorker:
    """A worker with its own encoder, which is loaded at the first missing part."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._maker: PartMaker | None = None

    def make(self, index: int) -> Marker:
        """Make a part; errors that a user can fix are returned, without a traceback."""
        try:
            self._maker = self._maker or _maker(self._content)
            extracted = self._maker.make(index)
        except ZsnttaError as error:
            return {"part": index, "error": pickle.dumps(error)}
        return {
            "part": index, "images": extracted.images, "encoded": extracted.encoded,
            "seconds": extracted.seconds, "error": b"",
        }  # fmt: skip


def make_packed_part(content: bytes, index: int) -> Marker:
    """Make one part of a packed job."""
    return PartsWorker(content).make(index)


def _maker(content: bytes) -> PartMaker:
    work: PartsWork = pickle.loads(content)
    try:
        os.chdir(work.folder)
    except OSError as error:
        raise DatasetError(
            f"a worker has no folder {work.folder} ({error.strerror}): the workers must share the "
            f"folder in which the command is typed."
        ) from error
    first, *_ = work.job.device.split(",")
    return PartMaker(work.job, load=partial(worker_encoder, work.job.choice, first, work.threads))


def read_markers(markers: Iterable[Marker], maker: PartMaker) -> Iterator[Extracted]:
    """The result of each part from its marker; raise a ZsnttaError that a worker raised."""
    for marker in markers:
        if marker["error"]:
            raise pickle.loads(marker["error"])
        path, images = part_path(maker.path, int(marker["part"])), int(marker["images"])
        yield Extracted(path, images, int(marker["encoded"]), float(marker["seconds"]))
