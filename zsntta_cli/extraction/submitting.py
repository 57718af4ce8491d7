"""A set in parts as an array of SLURM jobs, one for each. Only this module imports submitit."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

from zsntta_cli.cache.parts import claim_parts, find_parts, read_identity
from zsntta_cli.errors import EncoderError, SettingsError, StoreError, first_line
from zsntta_cli.extraction.extractor import Extracted
from zsntta_cli.extraction.part_workers import make_packed_part, pack, read_markers
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.progress import Reporter

_CLUSTER = "ZSNTTA_SUBMITIT"  # "local" has processes of this machine for jobs, as the tests do
_SLURM = "slurm"
_MINUTES = 24 * 60  # of a job, where SBATCH_TIMELIMIT does not say it; a part resumes


class SubmittedParts:
    """The missing parts of a set, each of which is a job."""

    def __init__(self, job: PartsJob, reporter: Reporter) -> None:
        """Submit the parts as one array.

        Raises:
            SettingsError: there is no SLURM, or no submitit. EncoderError: SLURM accepts no jobs.
        """
        cluster = _cluster()
        self.maker = PartMaker(job, reporter)
        self.parts = _lacking(self.maker)
        content, self._jobs = pack(job), list[Any]()
        try:
            if self.parts:
                executor = _executor(cluster, job, self.maker)
                self._jobs = executor.map_array(partial(make_packed_part, content), self.parts)
            self.ids = [job.job_id for job in self._jobs]
        except Exception as error:  # submitit's own, and whatever sbatch ends with
            raise EncoderError(f"SLURM took no jobs: {first_line(error)}.") from error

    def wait(self) -> Iterator[Extracted]:
        """Wait for all jobs, then join the parts.

        Raises:
            ZsnttaError: a job raised it. EncoderError: a job was killed before its end.
        """
        yield from read_markers(map(_result, self._jobs), self.maker)
        yield self.maker.join()


def _result(job: Any) -> Any:
    import submitit

    try:
        return job.result()
    except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError) as error:
        raise EncoderError(
            f"the job {job.job_id} was ended before its end (its log is {job.paths.stderr}): what "
            f"was finished is kept; the same command resumes."
        ) from error


def _lacking(maker: PartMaker) -> tuple[int, ...]:
    """The numbers of the missing parts.

    Raises:
        StoreError: there are parts of another number or of other images.
    """
    try:
        identity = read_identity(maker.path)
    except StoreError as error:
        if error.remedy != "extract-parts":
            raise
        return tuple(range(1, maker.job.of + 1))
    source = maker.sharded.identity()
    claim_parts(maker.path, identity._replace(source=source, of=maker.job.of))
    return find_parts(maker.path).missing


def _cluster() -> str:
    """The cluster to which jobs are submitted.

    Raises:
        SettingsError: there is no SLURM here, or no submitit.
    """
    cluster = os.environ.get(_CLUSTER, _SLURM)
    if find_spec("submitit") is None:
        raise SettingsError("the engine submitit needs submitit", remedy="install-cluster")
    if cluster == _SLURM and shutil.which("sbatch") is None:
        raise SettingsError("there is no SLURM here (no command sbatch)", remedy="without-slurm")
    return cluster


def _executor(cluster: str, job: PartsJob, maker: PartMaker) -> Any:
    """The executor that submits jobs; SLURM's variables, such as SBATCH_PARTITION, apply."""
    import submitit
    import torch

    is_gpu = job.device.startswith("cuda")
    executor = submitit.AutoExecutor(maker.path.parent / f".{maker.path.stem}.jobs", cluster)
    executor.update_parameters(
        name=f"zsntta-{maker.path.stem}", timeout_min=_MINUTES, gpus_per_node=int(is_gpu),
        cpus_per_task=job.settings.workers if is_gpu else torch.get_num_threads(),
    )  # fmt: skip
    return executor
