"""Runtime and memory of each method with its encoder: the paper's table 4, measured here.

What is counted: everything from an image in memory to the decision on it, adaptation and injected
noise images too (one to eight samples, as the paper's method encodes them). What is not: loading
the encoder, the text features of the class names, the first samples (compilation, warm-up), files
of features, and reading and decoding images unless `decode` is asked for, which all methods pay
alike. Half of the samples are adapted on: the pipeline is `gt`, so that no weights decide on it.

Memory is what a GPU's allocator held at most; on a CPU, what the process did. Each method runs in a
process of its own, so that no peak is another's.
"""

import contextlib
import math
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli import __version__
from zsntta_cli.methods import METHODS
from zsntta_cli.paper.printed.published import printed
from zsntta_cli.paper.printed.tables import SAMPLES
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.options import check, check_choice
from zsntta_cli.settings.prompts import DEFAULT_PROMPT
from zsntta_cli.simulation.metrics import Measures
from zsntta_cli.simulation.record import Record, resident_peak
from zsntta_cli.simulation.runs import RunSettings, build_run, declared

if TYPE_CHECKING:
    import torch

CLASSES = 1_000  # ImageNet's


@dataclass(frozen=True)
class Job:
    """What is to be timed."""

    method: str
    batch_size: int = 1
    encoder: EncoderChoice = EncoderChoice()  # noqa: RUF009 -- it is frozen
    device: str = "auto"
    samples: int = SAMPLES
    classes: int = CLASSES  # of ImageNet, the first ones
    warmup: int = 0  # items that do not count; 0: two batches, at least a twentieth of the samples
    decode: bool = False  # count reading a JPEG of ImageNet's size, too

    def __post_init__(self) -> None:
        check_choice("method", self.method, _timeable())
        check(1 <= self.classes <= CLASSES, f"classes is {self.classes}, must be 1 to {CLASSES:,}.")
        check(self.batch_size >= 1, f"batch-size is {self.batch_size}, must be 1 or more.")
        takes = "batch_size" in declared(self.method) or self.batch_size == 1
        check(takes, f"{self.method} takes one sample after the other: batch-size must be 1.")
        needed = self.first + self.at_once + 1
        enough = self.samples >= needed
        check(enough, f"samples is {self.samples}, must be {needed:,} or more: the first warm up.")

    @property
    def first(self) -> int:
        """The items that do not count, at least."""
        return self.warmup or max(2 * self.batch_size, self.samples // 20)

    @property
    def at_once(self) -> int:
        """Items that are decided on at once."""
        return METHODS[self.method].at_once(self.settings.options)

    @property
    def settings(self) -> RunSettings:
        """The method's settings: the paper's for ImageNet, half of the samples adapted on."""
        known = declared(self.method)
        values: dict[str, Any] = {
            "batch_size": self.batch_size, "pipeline": "gt", "confidence": 0.0,
        }  # fmt: skip
        if "tent_batch_size" in known:  # adand+tent: both parts
            values["tent_batch_size"] = self.batch_size
        given = {name: value for name, value in values.items() if name in known}
        return build_run(self.method, "", "imagenet", None, DEFAULT_PROMPT, **given)


def _timeable() -> tuple[str, ...]:
    """Methods that decide, by images and class names alone; the others give a score."""
    return tuple(n for n, method in METHODS.items() if method.decides and not method.needs)


@dataclass(frozen=True)
class Row:
    """What a method costs."""

    method: str
    batch_size: int
    seconds: float | None  # a test sample; None where it could not be run
    memory: int | None  # bytes at most
    device: str
    samples: int
    problem: str = ""

    def __str__(self) -> str:
        said = self.problem or f"{self.seconds:.4f} s a sample"
        return f"{self.method}, batch size {self.batch_size}: {said}"


def timed_record(run: RunSettings, row: Row) -> Record:
    """What was measured as a record of a table's run: it has no metric but time and memory."""
    none, nothing = math.nan, {"id": row.samples, "ood": 0, "noise": 0}
    seconds = none if row.seconds is None else row.seconds * row.samples
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return Record(
        run, Measures(), Measures(), Measures(),
        nothing, {}, {}, seconds, made, {"zsntta": __version__},
        memory=row.memory or 0, device=row.device,
    )  # fmt: skip


def table_4(
    encoder: EncoderChoice, device: str = "auto", samples: int = SAMPLES, classes: int = CLASSES
) -> list[Job]:
    """The jobs of the paper's columns."""
    return [
        Job(cell.method, int(cell.settings["batch_size"]), encoder, device, samples, classes)
        for cell in printed(4)
    ]


def measure(jobs: Sequence[Job], told: Callable[[Row], None] = lambda _: None) -> list[Row]:
    """A row for each job, one after the other, each in a process of its own.

    A job that runs out of memory gets a row that says so. `told` gets each row as it comes.

    Raises:
        ZsnttaError: the encoder or the device cannot be had.
    """
    rows = []
    for job in jobs:
        rows.append(_apart(job))
        told(rows[-1])
    return rows


def _apart(job: Job) -> Row:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        try:
            return process.submit(run_job, job).result()
        except BrokenProcessPool:
            return _failed(job, "its process was killed: too little memory?")


def _failed(job: Job, problem: str) -> Row:
    return Row(job.method, job.batch_size, None, None, job.device, job.samples, problem)


def run_job(job: Job) -> Row:
    """A row, measured in this process: its memory is that of all that ran here before, too.

    Raises:
        ZsnttaError: the encoder or the device cannot be had.
    """
    from zsntta_cli.encoders.clip import load_encoder

    encoder = load_encoder(job.encoder, job.device)
    import torch

    from zsntta_cli.paper.runtime_stream import live_data, seconds_a_sample

    data = live_data(encoder, job.settings, job.samples, job.classes, job.decode)
    reset_peak(encoder.device)
    try:
        seconds = seconds_a_sample(data, job.settings, job.batch_size, job.first)
    except (torch.cuda.OutOfMemoryError, MemoryError):
        return _failed(job, f"out of memory on {device_name(encoder.device)}")
    peak, name = peak_memory(encoder.device), device_name(encoder.device)
    return Row(job.method, job.batch_size, seconds, peak, name, job.samples)


def device_name(device: "torch.device") -> str:
    """What a reader knows a device by."""
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def reset_peak(device: "torch.device") -> None:
    """Forget the peak so far: that of loading the encoder, which is no method's."""
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)
        return
    with contextlib.suppress(OSError):  # Linux alone; elsewhere loading counts
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: "torch.device") -> int:
    """Bytes at most: of torch's allocator on a GPU, else what this process held."""
    if device.type != "cuda":
        return resident_peak()
    import torch

    return int(torch.cuda.max_memory_allocated(device))
