"""Make the parts of a set on a Ray cluster, with one task for each part.

A task is a command `extract --part` in another process: it writes the part's file itself and
returns only a marker, so the process that asked does as little for a part of a million images as
for one of ten. A worker process keeps its encoder from task to task.
"""

import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.cache.folder import part_path
from zsntta_cli.errors import DatasetError, EncoderError, ZsnttaError
from zsntta_cli.extraction.connection import Connection, last_line, most_cores
from zsntta_cli.extraction.extractor import Extracted
from zsntta_cli.extraction.jobs import worker_encoder
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Reporter

_RETRIES = 20  # of a part whose node was lost; one that kills its worker each time must end


@dataclass(frozen=True)
class PartsWork:
    """A job of parts as a worker on another machine gets it."""

    scripts: LoadedScripts  # first: what follows may be of their classes
    job: PartsJob
    folder: Path  # in which the paths of the job are meant
    threads: int  # of torch: features of another number differ in their last bits


class Marker(NamedTuple):
    """What a worker returns for a part that it has made."""

    part: int
    images: int
    encoded: int
    seconds: float


def extract_parts_on_ray(job: PartsJob, reporter: Reporter) -> Iterator[Extracted]:
    """Make the missing parts of a set on a Ray cluster, in any order, then join all.

    Raises:
        ZsnttaError: a worker raised it. EncoderError: the cluster cannot be reached or is lost.
    """
    connection = Connection()
    import ray

    maker = PartMaker(job, reporter)
    try:
        connection.open()
        for marker in _markers(job):
            if isinstance(marker, ZsnttaError):
                raise marker
            path = part_path(maker.path, marker.part)
            yield Extracted(path, marker.images, marker.encoded, marker.seconds)
    except ray.exceptions.RayError as error:
        raise EncoderError(
            f"the Ray cluster failed ({last_line(error)}): what was finished is kept; the same "
            f"command resumes."
        ) from error
    finally:  # Ctrl-C too: no node goes on with what nobody waits for
        connection.close()
    yield maker.join()


def _markers(job: PartsJob) -> Iterator[Marker | ZsnttaError]:
    """The result for each part, in the order in which they end."""
    import ray

    device, needs = _placement(job.device)
    content = pack(replace(job, device=device))
    task: Any = ray.remote(make_packed_part).options(max_retries=_RETRIES, **needs)
    waiting = [task.remote(content, index) for index in range(1, job.of + 1)]
    try:
        while waiting:
            [done], waiting = ray.wait(waiting)
            yield ray.get(done)
    finally:  # of a cluster that goes on without this process
        for left in waiting:
            ray.cancel(left)


def _placement(device: str) -> tuple[str, dict[str, Any]]:
    """The device of a worker, and what it needs: a GPU, or as many cores as this process uses.

    Raises:
        EncoderError: a GPU is requested, and the cluster has none.
    """
    import ray
    import torch

    room = ray.cluster_resources()  # type: ignore[no-untyped-call]
    if room.get("GPU", 0) >= 1 and not device.startswith("cpu"):
        return "cuda:0", {"num_gpus": 1}  # the only one that it sees
    if device.startswith("cuda"):
        raise EncoderError(f"device is '{device}', but the Ray cluster has no GPU: --device cpu.")
    return "cpu", {"num_cpus": min(torch.get_num_threads(), most_cores())}


def pack(job: PartsJob) -> bytes:
    """Pickle a job for workers, each of which is one process on one device."""
    import torch

    return pickle.dumps(PartsWork(LoadedScripts(), job, Path.cwd(), torch.get_num_threads()))


def make_packed_part(content: bytes, index: int) -> Marker | ZsnttaError:
    """Make one part of a packed job; an error that a user can fix is returned."""
    try:
        extracted = _packed_maker(content).make(index)
    except ZsnttaError as error:
        return error
    return Marker(index, extracted.images, extracted.encoded, extracted.seconds)


@lru_cache(maxsize=1)
def _packed_maker(content: bytes) -> PartMaker:
    """The maker of a packed job's parts, whose encoder is loaded at the first missing part."""
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
