"""The time that a set in parts will take, and the script of an array of SLURM jobs for it."""

import math
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.sharding import RowShards
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.errors import DatasetError, counted, printable
from zsntta_cli.extraction.jobs import encode_parts
from zsntta_cli.extraction.plan import load_planned_encoder
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import ExtractSettings

_BATCHES = 5  # that are timed; the first one alone is not, for it warms up
_LEAST_MINUTES = 10  # of a job: it loads an encoder


@dataclass(frozen=True)
class PartsForecast:
    """The time and space that all parts of a set take."""

    name: str
    parts: int
    shards: int
    size: int | None  # bytes of all shards, where they are files
    images: int
    is_counted: bool  # or else as many in each shard as in the first
    feature_bytes: int
    rate: float  # images a second
    measured_on: str  # a device; nothing where the rate was named

    @property
    def hours(self) -> float:
        """The hours of all parts, one after the other."""
        return self.images / self.rate / 3600

    @property
    def hours_a_part(self) -> float:
        """The hours of the longest part."""
        return self.hours * math.ceil(self.shards / self.parts) / self.shards

    @property
    def lines(self) -> list[str]:
        """The forecast as lines of text."""
        size = f", {_bytes(self.size)}" if self.size is not None else ""
        about = "" if self.is_counted else "about "
        how = "" if self.is_counted else ", if every shard has as many as the first"
        rate = f"measured here on {self.measured_on}" if self.measured_on else "as --rate says"
        return [
            f"{self.name}: {counted(self.parts, 'part')} of {counted(self.shards, 'shard')}{size}",
            f"images: {about}{self.images:,}{how}",
            f"features to be written: {about}{_bytes(self.feature_bytes)}",
            f"rate: {self.rate:,.1f} images/s, {rate}",
            f"hours: {self.hours_a_part:,.2f} a part, {self.hours:,.2f} in all",
        ]


def forecast(job: PartsJob, rate: float | None, reporter: Reporter) -> PartsForecast:
    """Estimate what the parts of a set take; without a `rate` it is measured on its first images.

    Raises:
        DatasetError: there is no image in the first shard.
    """
    first, *_ = job.device.split(",")
    with closing(PartMaker(job, reporter)) as maker:
        sharded = maker.sharded
    images, [count] = sharded.read(range(1))
    if not count:
        raise DatasetError(f"the first shard of '{sharded.name}' has no images.")
    encoder = load_planned_encoder(job.choice, first, reporter)
    pace = rate or measure_rate(images, encoder, job.settings)
    is_counted = isinstance(sharded, RowShards)
    total = len(sharded.images) if isinstance(sharded, RowShards) else count * len(sharded.shards)
    return PartsForecast(
        sharded.name, job.of, len(sharded.shards), sharded.size, total, is_counted,
        total * _bytes_an_image(images, encoder, job.settings.store), pace,
        "" if rate else str(encoder.device),
    )  # fmt: skip


def _bytes_an_image(images: ImageSet, encoder: Encoder, store: str) -> int:
    """The bytes of a stored feature, a label and a sample id."""
    return (
        np.dtype(store).itemsize * encoder.embed_dim + 4 + len(str(images.sample_ids[0]).encode())
    )


def measure_rate(images: ImageSet, encoder: Encoder, settings: ExtractSettings) -> float:
    """Images per second that are read and encoded here, measured on a few batches."""
    ends, counts = [time.perf_counter()], [0]

    def advance(count: int) -> None:
        ends.append(time.perf_counter())
        counts.append(count)

    rows = range(min(len(images), _BATCHES * settings.batch_size))
    for _ in encode_parts(images, encoder, settings, [rows], advance):
        pass
    timed = slice(2, None) if len(ends) > 2 else slice(1, None)
    return sum(counts[timed]) / (ends[-1] - ends[timed.start - 1])


def slurm_script(job: PartsJob, parts: PartsForecast, options: Sequence[str]) -> str:
    """The script of an array of jobs, one for each part; `options` are of `zsntta extract`."""
    minutes = max(_LEAST_MINUTES, math.ceil(2 * 60 * parts.hours_a_part))
    needs = f"cpus-per-task={job.settings.workers}"
    if job.device.startswith("cuda"):
        needs += "\n#SBATCH --gres=gpu:1"
    about = "\n".join(f"# {printable(line)}" for line in parts.lines)
    program = [sys.executable, "-m", "zsntta_cli"]
    command = shlex.join([*program, "extract", *options, "--part", "auto"])
    return f"""#!/bin/bash
{about}
# --time is twice the hours of a part: set it, and what your cluster needs, before sbatch.
#SBATCH --job-name=zsntta-extract
#SBATCH --array=1-{parts.parts}
#SBATCH --time={minutes}
#SBATCH --{needs}
cd -- {shlex.quote(str(Path.cwd()))} || exit 1
exec {command}
"""


def _bytes(count: int) -> str:
    """A number of bytes, in a suitable unit."""
    value, units = float(count), iter(("KiB", "MiB", "GiB", "TiB", "PiB"))
    if value < 1024:
        return f"{count} bytes"
    unit = ""
    while value >= 1024:
        value, unit = value / 1024, next(units)
    return f"{value:,.1f} {unit}"
