"""Time and memory of a method with its encoder: the paper's table 4, measured here.

The time covers everything from an image in memory to the decision on it, with adaptation and
injected noise (one image after eight samples, as in the paper, which encodes them). It does not
cover loading the encoder, the text features of the class names, the first samples (compilation,
warm-up), feature files, and reading and decoding images, which cost all methods the same. Methods
adapt on half of the samples: the pipeline is `gt`, so the choice does not depend on the weights.

Memory is the peak of a GPU's allocator, or of the process on a CPU. Each method runs in a process
of its own, so that no peak is another method's. Only that process imports torch.
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

from zsntta_cli.children import end_with_parent
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers import imagenet
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.paper.printed.tables import SAMPLES
from zsntta_cli.settings import NO_NOISE, EncoderChoice
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, class_prompts
from zsntta_cli.simulation.record import resident_peak
from zsntta_cli.simulation.runs import RunSettings, build_run

if TYPE_CHECKING:
    from zsntta_cli.encoders.clip import Encoder
    from zsntta_cli.methods.live.base import LiveData

CLASSES = 1_000  # ImageNet's
NOISE_EVERY = 8  # M of methods that inject noise, whose injected images are encoded too
_PICTURES = 16  # different pictures, which the stream repeats
# These take a sample's features from the cache, so the time to encode them is added.
_TAKE_FROM_CACHE = ("tpt", "adand+tent")


@dataclass(frozen=True)
class TimingJob:
    """A method to be timed, with its encoder and device."""

    method: str
    batch_size: int = 1
    encoder: EncoderChoice = EncoderChoice()  # noqa: RUF009 -- it is frozen
    device: str = "auto"
    samples: int = SAMPLES
    classes: int = CLASSES  # the first classes of ImageNet

    def __post_init__(self) -> None:
        # Methods that decide while the stream runs, and only need images and class names.
        timeable = [n for n, m in METHODS.items() if (m.live or m.online) and not m.needs]
        wanted = f"method is {self.method!r}, must be one of: {', '.join(timeable)}."
        check(self.method in timeable, wanted)
        needed = self.warm_up + METHODS[self.method].at_once(self.settings.options) + 1
        enough = self.samples >= needed
        check(enough, f"samples is {self.samples}, must be {needed:,} or more: the first warm up.")

    @property
    def warm_up(self) -> int:
        """The least number of items at the beginning that are not timed."""
        return max(2 * self.batch_size, self.samples // 20)

    @property
    def settings(self) -> RunSettings:
        """The method's settings: the paper's for ImageNet, with adaptation on half of samples."""
        return build_run(
            self.method, "", "imagenet", None, DEFAULT_PROMPT, pipeline="gt", confidence=0.0,
            batch_size=self.batch_size, tent_batch_size=self.batch_size,
        )  # fmt: skip


@dataclass(frozen=True)
class Timing:
    """The time and memory of a method."""

    job: TimingJob
    seconds: float | None = None  # for each test sample; None if the method could not be run
    memory: int | None = None  # the peak in bytes
    device: str = ""
    problem: str = ""

    def __str__(self) -> str:
        result = self.problem or f"{self.seconds:.4f} s a sample"
        return f"{self.job.method}, batch size {self.job.batch_size}: {result}"


def measure(
    jobs: Sequence[TimingJob], report: Callable[[Timing], None] = lambda _: None
) -> list[Timing]:
    """Measure the cost of each job, one after the other, each in a process of its own.

    A job that runs out of memory gets a timing that says so. `report` is called with each timing.

    Raises:
        ZsnttaError: the encoder or the device cannot be used.
    """
    timings = []
    for job in jobs:
        spawned = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, spawned, initializer=end_with_parent) as process:
            try:
                timing = process.submit(run_job, job).result()
            except BrokenProcessPool:
                timing = Timing(job, problem="its process was killed: too little memory?")
        report(timing)
        timings.append(timing)
    return timings


def run_job(job: TimingJob) -> Timing:
    """Measure a job in this process, whose peak of memory includes all that ran in it before.

    Raises:
        ZsnttaError: the encoder or the device cannot be used.
    """
    from zsntta_cli.encoders.clip import load_encoder

    encoder = load_encoder(job.encoder, job.device)
    import torch

    data, device, is_gpu = live_data(encoder, job), encoder.device, encoder.device.type == "cuda"
    cpu = f"cpu, {torch.get_num_threads()} threads"
    name = torch.cuda.get_device_name(device) if is_gpu else cpu
    if is_gpu:  # forget the peak of loading the encoder, which is not the method's
        torch.cuda.reset_peak_memory_stats(device)
    else:
        with contextlib.suppress(OSError):  # only Linux can reset it; elsewhere loading counts
            Path("/proc/self/clear_refs").write_text("5")
    try:
        seconds = seconds_a_sample(data, job)
    except (torch.cuda.OutOfMemoryError, MemoryError):
        return Timing(job, problem=f"out of memory on {name}")
    peak = int(torch.cuda.max_memory_allocated(device)) if is_gpu else resident_peak()
    return Timing(job, seconds, peak, name)


def live_data(encoder: "Encoder", job: TimingJob) -> "LiveData":
    """Make a stream of pictures in memory, half of which are clean, with injected noise."""
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
    scale = encoder.identity["logit_scale"]
    pool = Pool(features, text, scale, zero_shot(features, text, scale))
    stream = StreamData(pool, np.arange(total) % _PICTURES, injected)
    ids, unlabelled = [str(i) for i in range(total)], np.full(total, -1, np.int32)
    images = ImageSet("pictures", lambda i: pictures[i % _PICTURES], unlabelled, ids)
    truly_clean = (np.arange(total) % 2 == 0) & ~injected
    return LiveData(stream, encoder, images, names, DEFAULT_PROMPT, truly_clean=truly_clean)


def seconds_a_sample(data: "LiveData", job: TimingJob) -> float:
    """Measure the seconds for each test sample, after the warm-up of the job."""
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
    """Go through the stream, and give the number of items whenever some are decided."""
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
