"""A live stream to take the time of: pictures in memory, and the seconds that a sample of it costs.

Imports torch.
"""

import io
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers import imagenet
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.detectors.adand import stepper
from zsntta_cli.methods.live.base import LiveData, in_batches
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings.prompts import DEFAULT_PROMPT, class_prompts
from zsntta_cli.simulation.runs import RunSettings

_PICTURES = 16  # different ones; the stream shows them in turn
_JPEG = (500, 375)  # as ImageNet's are on average
NOISE_EVERY = 8  # M of methods that inject noise: their injected images are encoded too

Decide = Callable[[slice, NDArray[np.float32]], None]  # on items, by their features


def live_data(
    encoder: Encoder, run: RunSettings, samples: int, classes: int, decode: bool
) -> LiveData:
    """A stream of pictures, half of them truly clean; where the method injects noise, with it."""
    injects = run.stream.noise != "none"
    every = NOISE_EVERY + 1 if injects else samples + 1
    total = samples + samples // NOISE_EVERY * injects
    injected = np.arange(total) % every == every - 1
    read = _pictures(encoder.image_size, decode)
    pixels = np.stack([encoder.resize(read(i)) for i in range(_PICTURES)])
    features = encoder.encode_pixels(pixels)
    names = [known.name for known in imagenet.classes()][:classes]
    text = encoder.encode_texts(class_prompts(DEFAULT_PROMPT, names))
    scale = encoder.identity["logit_scale"]
    pool = Pool(features, text, scale, zero_shot(features, text, scale))
    stream = StreamData(pool, np.arange(total) % _PICTURES, injected)
    images = ImageSet(
        "pictures", read, np.full(total, -1, np.int32), [str(i) for i in range(total)]
    )
    truly_clean = (np.arange(total) % 2 == 0) & ~injected
    return LiveData(stream, encoder, images, names, DEFAULT_PROMPT, truly_clean=truly_clean)


def _pictures(size: int, decode: bool) -> Callable[[int], Image.Image]:
    """Read a picture: from memory as the encoder takes it, or out of a JPEG of ImageNet's size."""
    generator = np.random.Generator(np.random.PCG64(0))
    width, height = _JPEG if decode else (size, size)
    made = [
        Image.fromarray(generator.integers(0, 256, (height, width, 3), np.uint8))
        for _ in range(_PICTURES)
    ]
    if not decode:
        return lambda i: made[i % _PICTURES]
    files = []
    for picture in made:
        content = io.BytesIO()
        picture.save(content, "JPEG", quality=90)
        files.append(content.getvalue())
    return lambda i: Image.open(io.BytesIO(files[i % _PICTURES])).convert("RGB")


def steps(data: LiveData, run: RunSettings, batch_size: int) -> Iterator[int]:
    """Go through the stream, and say how many items were decided on, whenever some are."""
    method = METHODS[run.method]
    if method.live:
        for part in method.load()(data, run.options, run.threshold):
            yield len(part.class_index)
        return
    decide = _ONLINE.get(run.method, _classified)(data, run)
    for items, images in data.batches(in_batches(np.arange(len(data)), batch_size)):
        decide(slice(int(items[0]), int(items[-1]) + 1), data.encoder.encode_images(images))
        yield len(items)


def _classified(data: LiveData, _run: RunSettings) -> Decide:
    """Zero-shot classes and scores alone."""
    pool = data.stream.pool

    def decide(_items: slice, features: NDArray[np.float32]) -> None:
        zero_shot(features, pool.text_features, pool.logit_scale)

    return decide


def _by_zs_clip(data: LiveData, run: RunSettings) -> Decide:
    pool, threshold = data.stream.pool, OnlineThreshold(run.threshold, run.options.batch_size)

    def decide(_items: slice, features: NDArray[np.float32]) -> None:
        u = zero_shot(features, pool.text_features, pool.logit_scale).noise_score
        _ = u > threshold(u)

    return decide


def _by_adand(data: LiveData, run: RunSettings) -> Decide:
    as_zs_clip = _by_zs_clip(data, run)
    online = stepper(data.stream, run.options, run.threshold)

    def decide(items: slice, features: NDArray[np.float32]) -> None:
        as_zs_clip(items, features)
        online.push(data.stream.seen_as(items, features))

    return decide


_ONLINE = {"zs-clip": _by_zs_clip, "adand": _by_adand}
_FROM_CACHE = ("tpt", "adand+tent")  # they know a sample's own features: encoding these is added


def seconds_a_sample(data: LiveData, run: RunSettings, batch_size: int, warmup: int) -> float:
    """Seconds of a test sample, over those that come after the first `warmup` items."""
    seconds = _timed(data, run, batch_size, warmup)
    if run.method in _FROM_CACHE:
        seconds += _timed_encoding(data, run, batch_size, warmup)
    elif not METHODS[run.method].live and run.method not in _ONLINE:
        seconds += _timed_replay(data, run)
    return seconds


def _timed(data: LiveData, run: RunSettings, batch_size: int, warmup: int) -> float:
    done, started, first = 0, 0.0, 0
    for count in steps(data, run, batch_size):
        done += count
        if not first and done >= warmup:
            first = done
            _settle(data)
            started = time.perf_counter()
    _settle(data)
    seconds = time.perf_counter() - started
    assert 0 < first < done  # the caller has checked that there are enough
    return seconds / int((~data.stream.injected[first:done]).sum())


def _timed_encoding(data: LiveData, run: RunSettings, batch_size: int, warmup: int) -> float:
    """What it costs to encode and classify each sample once, one after the other."""
    del run
    from zsntta_cli.simulation.runs import build_run

    plain = build_run("zs-clip", "", "imagenet", None, DEFAULT_PROMPT, batch_size=batch_size)
    return _timed(data, plain, batch_size, warmup)


def _timed_replay(data: LiveData, run: RunSettings) -> float:
    """What a cached method adds, its decisions on a whole stream shared out over its samples."""
    decide = METHODS[run.method].load()
    decide(data.stream, run.options, run.threshold)  # compiled or loaded
    started = time.perf_counter()
    decide(data.stream, run.options, run.threshold)
    return (time.perf_counter() - started) / int((~data.stream.injected).sum())


def _settle(data: LiveData) -> None:
    """Wait for what a GPU has still to do."""
    if data.encoder.device.type == "cuda":
        torch.cuda.synchronize(data.encoder.device)
