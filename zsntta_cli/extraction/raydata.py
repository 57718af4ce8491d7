"""Make a set in parts on Ray Data: actors get part numbers and write the parts' files.

An actor holds the encoder and uses a GPU, or as many cores as this process. Only markers are
returned, so the driver does as little for a part of a million images as for one of ten.
"""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from zsntta_cli.errors import EncoderError
from zsntta_cli.extraction.connection import Connection, last_line, most_cores
from zsntta_cli.extraction.extractor import Extracted
from zsntta_cli.extraction.part_workers import Marker, PartsWorker, pack, read_markers
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.progress import Reporter

_RETRIES = 20  # of a part whose worker was lost; one that kills its worker each time must end


def extract_parts_on_ray(job: PartsJob, reporter: Reporter) -> Iterator[Extracted]:
    """Make the missing parts of a set on a Ray cluster, in any order, then join all.

    Raises:
        ZsnttaError: a worker raised it. EncoderError: the cluster cannot be reached or is lost.
    """
    connection = Connection()
    import ray
    from ray.data.exceptions import ExecutionTimeoutError, SystemException

    maker = PartMaker(job, reporter)
    try:
        with _silent_start():
            connection.open()
        yield from read_markers(_markers(job), maker)
    except (ray.exceptions.RayError, SystemException, ExecutionTimeoutError) as error:
        raise EncoderError(
            f"the Ray cluster failed ({last_line(error)}): what was finished is kept; the same "
            f"command resumes."
        ) from error
    finally:  # Ctrl-C too: no node goes on with what nobody waits for
        connection.close()
    yield maker.join()


def _markers(job: PartsJob) -> Iterator[Marker]:
    """The marker of each part, in the order in which they end."""
    import ray.data

    device, resources, workers = _placement(job.device)
    actor: Any = _Actor  # a class, which Ray Data makes actors of
    numbers = [{"part": index} for index in range(1, job.of + 1)]
    with warnings.catch_warnings():  # of its own defaults; of retries, which only so are bounded
        warnings.simplefilter("ignore")
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        pool = ray.data.ActorPoolStrategy(
            min_size=1, max_size=job.of, initial_size=min(workers, job.of),
            max_tasks_in_flight_per_actor=1,
        )  # fmt: skip
        markers = ray.data.from_items(numbers, override_num_blocks=job.of).map(
            actor, fn_constructor_args=(pack(replace(job, device=device)),), compute=pool,
            max_restarts=-1, max_task_retries=_RETRIES, **resources,
        )  # fmt: skip
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    return iter(markers.iter_rows())


class _Actor(PartsWorker):
    """A worker as Ray Data calls it."""

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return self.make(int(row["part"]))


def _placement(device: str) -> tuple[str, dict[str, Any], int]:
    """The device of an actor, its needs, and how many actors the cluster has room for.

    Raises:
        EncoderError: a GPU is requested, and the cluster has none.
    """
    import ray
    import torch

    room = ray.cluster_resources()  # type: ignore[no-untyped-call]
    if gpus := 0 if device.startswith("cpu") else int(room.get("GPU", 0)):
        return "cuda:0", {"num_gpus": 1}, gpus  # the only one that it sees
    if device.startswith("cuda"):
        raise EncoderError(f"device is '{device}', but the Ray cluster has no GPU: --device cpu.")
    cores = min(torch.get_num_threads(), most_cores())
    return "cpu", {"num_cpus": cores}, max(1, int(room.get("CPU", 1)) // cores)


@contextmanager
def _silent_start() -> Iterator[None]:
    """Hide what Ray's C++ code writes to stderr when it starts."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    stderr = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
