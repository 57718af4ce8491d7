"""Time and memory of a method with its encoder: the paper's table 4, measured here.

What is counted: everything from an image in memory to the decision on it, adaptation and injected
noise images too (one to eight samples, as the paper's method encodes them). What is not: loading
the encoder, the text features of the class names, the first samples (compilation, warm-up), files
of features, and reading and decoding images, which all methods pay alike. Half of the samples are
adapted on: the pipeline is `gt`, so that no weights decide on it.

Memory is what a GPU's allocator held at most; on a CPU, what the process did. Each method runs in a
process of its own, so that no peak is another's. Torch is imported in that process alone.
"""

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers import imagenet
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.scores import scale_under, zero_shot
from zsntta_cli.paper.printed.tables import SAMPLES
from zsntta_cli.settings import NO_NOISE, EncoderChoice
from zsntta_cli.settings.options import check, check_choice
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, class_prompts
from zsntta_cli.simulation.record import resident_peak
from zsntta_cli.simulation.runs import RunSettings, build_run

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder
    from zsntta_cli.methods.live.base import LiveData

CLASSES = 1_000  # ImageNet's
NOISE_EVERY = 8  # M of methods that inject noise: their injected images are encoded too
_PICTURES = 16  # different ones; the stream shows them in turn
_TAKE_FROM_CACHE = ("tpt", "adand+tent")  # a sample's own features: encoding these is added


@dataclass(frozen=True)
class TimingJob:
    """What is to be timed."""

    method: str
    batch_size: int = 1
    encoder: EncoderChoice = EncoderChoice()  # noqa: RUF009 -- it is frozen
    device: str = "auto"
    samples: int = SAMPLES
    classes: int = CLASSES  # of ImageNet, the first ones

    def __post_init__(self) -> None:
        # Those that decide as their stream runs, by images and class names alone.
        timeable = (n for n, m in METHODS.items() if (m.live or m.stepper) and not m.needs)
        check_choice("method", self.method, tuple(timeable))
        needed = self.warm_up + METHODS[self.method].at_once(self.settings.options) + 1
        enough = self.samples >= needed
        check(enough, f"samples is {self.samples}, must be {needed:,} or more: the first warm up.")

    @property
    def warm_up(self) -> int:
        """The items that do not count, at least."""
        return max(2 * self.batch_size, self.samples // 20)

    @property
    def settings(self) -> RunSettings:
        """The method's settings: the paper's for ImageNet, half of the samples adapted on."""
        return build_run(
            self.method, "", "imagenet", None, DEFAULT_PROMPT, pipeline="gt", confidence=0.0,
            batch_size=self.batch_size, tent_batch_size=self.batch_size,
        )  # fmt: skip


@dataclass(frozen=True)
class Timing:
    """What a method costs."""

    job: TimingJob
    seconds: float | None = None  # a test sample; None where it could not be run
    memory: int | None = None  # bytes at most
    device: str = ""
    problem: str = ""

    def __str__(self) -> str:
        result = self.problem or f"{self.seconds:.4f} s a sample"
        return f"{self.job.method}, batch size {self.job.batch_size}: {result}"


def measure(
    jobs: Sequence[TimingJob], report: Callable[[Timing], None] = lambda _: None
) -> list[Timing]:
    """The cost of each job, one after the other, each in a process of its own.

    A job that runs out of memory gets a timing that says so. `report` gets each as it comes.

    Raises:
        ZsnttaError: the encoder or the device cannot be had.
    """
    timings = []
    for job in jobs:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            try:
                timing = process.submit(run_job, job).result()
            except BrokenProcessPool:
                timing = Timing(job, problem="its process was killed: too little memory?")
        report(timing)
        timings.append(timing)
    return timings


def run_job(job: TimingJob) -> Timing:
    """The cost of a job in this process: its memory is that of all that ran here before, too.

    Raises:
        ZsnttaError: the encoder or the device cannot be had.
    """
    from zsntta_cli.encoders.clip import load_encoder

    encoder = load_encoder(job.encoder, job.device)
    import torch

    data, device, is_gpu = live_data(encoder, job), encoder.device, encoder.device.type == "cuda"
    cpu = f"cpu, {torch.get_num_threads()} threads"
    name = torch.cuda.get_device_name(device) if is_gpu else cpu
    if is_gpu:  # forget the peak so far: that of loading the encoder, which is no method's
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with contextlib.suppress(OSError):  # Linux alone; elsewhere loading counts
            Path("/proc/self/clear_refs").write_text("5")
    try:
        seconds = seconds_a_sample(data, job)
    except (torch.cuda.OutOfMemoryError, MemoryError):
        return Timing(job, problem=f"out of memory on {name}")
    peak = int(torch.cuda.max_memory_allocated(device)) if is_gpu else resident_peak()
    return Timing(job, seconds, peak, name)


def live_data(encoder: "Encoder", job: TimingJob) -> "LiveData":
    """A stream of pictures in memory, half of them truly clean, with the noise that is injected."""
    from zsntta_cli.methods.live.base import LiveData

    injects = job.settings.stream.noise != NO_NOISE
    total = job.samples + job.samples // NOISE_EVERY * injects
    injected = injects & (np.arange(total) % (NOISE_EVERY + 1) == NOISE_EVERY)
    size, generator = encoder.image_size, np.random.default_rng(0)
    pixels = generator.integers(0, 256, (_PICTURES, size, size, 3), np.uint8)
    pictures = [Image.fromarray(picture) for picture in pixels]
    features = encoder.encode_pixels(np.stack([encoder.resize(picture) for picture in pictures]))
    names = [entry.name for entry in imagenet.classes()][: job.classes]
    text = encoder.encode_texts(class_prompts(DEFAULT_PROMPT, names))
    scale = scale_under(encoder.identity["precision"], encoder.identity["logit_scale"])
    pool = Pool(features, text, scale, zero_shot(features, text, scale))
    stream = StreamData(pool, np.arange(total) % _PICTURES, injected)
    ids, unlabelled = [str(i) for i in range(total)], np.full(total, -1, np.int32)
    images = ImageSet("pictures", lambda i: pictures[i % _PICTURES], unlabelled, ids)
    truly_clean = (np.arange(total) % 2 == 0) & ~injected
    return LiveData(stream, encoder, images, names, DEFAULT_PROMPT, truly_clean=truly_clean)


def seconds_a_sample(data: "LiveData", job: TimingJob) -> float:
    """Seconds of a test sample, over those that come after the first ones."""
    seconds = _timed(data, job.settings, job)
    if job.method in _TAKE_FROM_CACHE:
        seconds += _timed(data, replace(job, method="zs-clip").settings, job)
    return seconds


def _timed(data: "LiveData", run: RunSettings, job: TimingJob) -> float:
    import torch

    def wait_for_device() -> None:
        if data.encoder.device.type == "cuda":
            torch.cuda.synchronize(data.encoder.device)

    done, started, first = 0, 0.0, 0
    for count in steps(data, run, job.batch_size):
        done += count
        if not first and done >= job.warm_up:
            first = done
            wait_for_device()
            started = time.perf_counter()
    wait_for_device()
    seconds = time.perf_counter() - started
    assert 0 < first < done  # the job has checked that there are enough
    return seconds / int((~data.stream.injected[first:done]).sum())


def steps(data: "LiveData", run: RunSettings, batch_size: int) -> Iterator[int]:
    """Go through the stream; how many items were decided on, whenever some are."""
    from zsntta_cli.methods.live.base import in_batches

    method = METHODS[run.method]
    if method.live:
        for decisions in method.load()(data, run.options, run.threshold):
            yield len(decisions.class_index)
        return
    stepper, stream = method.start(data.stream, run.options, run.threshold), data.stream
    text, scale = stream.pool.text_features, stream.pool.logit_scale
    for items, images in data.batches(in_batches(np.arange(len(data)), batch_size)):
        features = data.encoder.encode_images(images)
        pool = Pool(features, text, scale, zero_shot(features, text, scale))
        stepper.push(StreamData(pool, np.arange(len(items)), stream.injected[items]))
        yield len(items)
