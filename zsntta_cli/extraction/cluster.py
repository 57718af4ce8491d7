"""Make the parts of a set as tasks of a Ray cluster, one on each GPU if there are GPUs.

A task is a command `extract --part` in another process, which writes the part's file itself. All
machines share the folder in which the command was typed.
"""

import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.cache.parts import join_parts
from zsntta_cli.datasets.names import SetName
from zsntta_cli.encoders.clip import wait_passively
from zsntta_cli.errors import DatasetError, EncoderError, SettingsError, ZsnttaError
from zsntta_cli.extraction.connection import Connection, last_line, most_cores
from zsntta_cli.extraction.extractor import Extracted
from zsntta_cli.extraction.plan import ExtractPlan, extract_part
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Silent
from zsntta_cli.settings import EncoderChoice, ExtractSettings

_RETRIES = 20  # of a part whose node was lost; one that kills its worker each time must end


@dataclass(frozen=True)
class PartsJob:
    """A set that is extracted in parts, as a worker on another machine gets it."""

    plan: ExtractPlan  # of one set
    choice: EncoderChoice
    device: str
    root: Path  # of features
    settings: ExtractSettings


def extract_on_ray(job: PartsJob, of: int | None) -> Iterator[Extracted]:
    """Make the parts of a set on a Ray cluster, in any order, then join all.

    `of` is the number of parts, by default one for each GPU or, without any, for each machine.

    Raises:
        ZsnttaError: a worker raised it. EncoderError: the cluster cannot be reached or is lost.
    """
    connection = Connection()
    import ray

    if of is not None and of < 1:
        raise SettingsError(f"parts is {of}, must be 1 or more.")
    try:
        connection.open()
        yield from _parts(job, of)
    except ray.exceptions.RayError as error:
        raise EncoderError(
            f"the Ray cluster failed ({last_line(error)}): what was finished is kept; the same "
            f"command resumes."
        ) from error
    finally:  # Ctrl-C too: no node goes on with what nobody waits for
        connection.close()
    [spec] = job.plan.datasets
    path = feature_path(job.root, folder_name(job.choice), str(SetName.parse(spec)))
    yield Extracted(path, len(join_parts(path).labels), 0, 0.0)


def _parts(job: PartsJob, of: int | None) -> Iterator[Extracted]:
    """The parts, in the order in which they end."""
    import ray
    import torch

    resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
    gpus = int(resources.get("GPU", 0))
    if job.device.startswith("cuda") and not gpus:
        raise EncoderError(
            f"device is '{job.device}', but the Ray cluster has no GPU: --device cpu."
        )
    if gpus and not job.device.startswith("cpu"):
        device, needs = "cuda:0", {"num_gpus": 1}  # the only one that a worker sees
    else:  # features of another number of threads differ in their last bits
        device, needs = "cpu", {"num_cpus": min(torch.get_num_threads(), most_cores())}
    machines = len([node for node in ray.nodes() if node["Alive"]])  # type: ignore[no-untyped-call]
    of = of or (gpus if device != "cpu" else machines)
    content = pack(replace(job, device=device))
    task: Any = ray.remote(make_packed_part).options(max_retries=_RETRIES, **needs)
    waiting = [task.remote(content, index, of) for index in range(1, of + 1)]
    try:
        while waiting:
            [done], waiting = ray.wait(waiting)
            extracted = ray.get(done)
            if isinstance(extracted, ZsnttaError):
                raise extracted
            yield extracted
    finally:  # of a cluster that goes on without this process
        for left in waiting:
            ray.cancel(left)


def pack(job: PartsJob) -> bytes:
    """Pickle a job for workers; what it has may be of the classes of loaded scripts."""
    import torch

    return pickle.dumps((LoadedScripts(), job, Path.cwd(), torch.get_num_threads()))


def make_packed_part(content: bytes, index: int, of: int) -> Extracted | ZsnttaError:
    """Make one part of a packed job; an error that a user can fix is returned."""
    wait_passively()
    import torch  # not before its environment is set

    _, job, folder, threads = pickle.loads(content)
    torch.set_num_threads(threads)
    try:
        os.chdir(folder)
    except OSError as error:
        return DatasetError(
            f"a worker has no folder {folder} ({error.strerror}): the workers must share the "
            f"folder in which the command is typed."
        )
    try:
        return extract_part(
            job.plan, job.choice, job.device, job.root, job.settings, Silent(), index, of
        )
    except ZsnttaError as error:
        return error
