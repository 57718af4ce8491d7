"""Make the parts of a set as tasks of a Ray cluster, one on each GPU if there are GPUs.

A task is a command `extract --part` in another process, which writes the part's file itself. All
machines share the folder where the command was run.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from zsntta_cli.cache.folder import feature_path, folder_name
from zsntta_cli.cache.parts import join_parts
from zsntta_cli.encoders.clip import wait_passively
from zsntta_cli.errors import DatasetError, EncoderError, SettingsError, ZsnttaError
from zsntta_cli.extraction.connection import connected, last_line, most_cores
from zsntta_cli.extraction.extractor import Extracted, Extractor
from zsntta_cli.extraction.plan import ExtractPlan, extract_set
from zsntta_cli.plugins import LoadedScripts
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings

_RETRIES = 20  # of a part whose node was lost; one that kills its worker each time must end


def extract_on_ray(
    plan: ExtractPlan, choice: EncoderChoice, settings: ExtractSettings, of: int | None
) -> Iterator[Extracted]:
    """Make the parts of a plan's set on a Ray cluster, as they finish, then join all.

    `of` is the number of parts, by default one for each GPU or, without any, for each machine.

    Raises:
        ZsnttaError: a worker raised it. EncoderError: the cluster cannot be reached or is lost.
    """
    if of is not None and of < 1:
        raise SettingsError(f"parts is {of}, must be 1 or more.")
    started, encoded = time.monotonic(), 0
    with connected():  # Ctrl-C leaves it, which ends its tasks
        import ray

        try:
            waiting = _start(plan, choice, settings, of)
            while waiting:
                [done], waiting = ray.wait(waiting)
                part = ray.get(done)
                if isinstance(part, ZsnttaError):
                    raise part
                encoded += part.encoded
                yield part
        except ray.exceptions.RayError as error:
            raise EncoderError(
                f"the Ray cluster failed ({last_line(error)}): finished work is kept; run the same "
                f"command to resume."
            ) from error
    path = feature_path(settings.features_dir, folder_name(choice), str(plan.names[0]))
    yield Extracted(join_parts(path), encoded, time.monotonic() - started)


def _start(
    plan: ExtractPlan, choice: EncoderChoice, settings: ExtractSettings, of: int | None
) -> list[Any]:
    """Start the tasks that make the parts."""
    import ray
    import torch

    resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
    gpus, threads = int(resources.get("GPU", 0)), torch.get_num_threads()
    if settings.device.startswith("cuda") and not gpus:
        raise EncoderError(
            f"device is '{settings.device}', but the Ray cluster has no GPU: use --device cpu."
        )
    if gpus and not settings.device.startswith("cpu"):
        device, needs, workers = "cuda:0", {"num_gpus": 1}, gpus  # the only GPU a worker sees
    else:  # features of another number of threads differ in their last bits
        device, needs = "cpu", {"num_cpus": min(threads, most_cores())}
        workers = sum(node["Alive"] for node in ray.nodes())  # type: ignore[no-untyped-call]
    job = LoadedScripts(), Path.cwd(), threads, plan, choice, replace(settings, device=device)
    task: Any = ray.remote(_make_part).options(max_retries=_RETRIES, **needs)
    of = of or workers
    return [task.remote(*job, (index, of)) for index in range(1, of + 1)]


def _make_part(
    _scripts: LoadedScripts,
    folder: Path,
    threads: int,
    plan: ExtractPlan,
    choice: EncoderChoice,
    settings: ExtractSettings,
    part: tuple[int, int],
) -> Extracted | ZsnttaError:
    """Make one part in a worker; an error that a user can fix is returned.

    Unpickling loads the scripts; `folder` is where the command was run.
    """
    wait_passively()
    import torch  # not before its environment is set

    torch.set_num_threads(threads)
    try:
        os.chdir(folder)
    except OSError as error:
        return DatasetError(
            f"a worker has no folder {folder} ({error.strerror}): the workers must share the "
            f"folder where the command is run."
        )
    try:
        return extract_set(plan.names[0], plan, Extractor(choice, settings, Reporter()), part)
    except ZsnttaError as error:
        return error
