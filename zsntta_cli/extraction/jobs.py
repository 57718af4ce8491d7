"""The work of an encoding worker: the same parts, batches and threads give the same bytes.

A worker is a process for one device. It gets an `EncodingJob`, loads the images and the encoder
itself, and returns features; only the process that asked for them writes files.
"""

import pickle
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.encoders.batches import load_batches
from zsntta_cli.encoders.clip import Encoder, load_encoder, wait_passively
from zsntta_cli.errors import DatasetError, EncoderError
from zsntta_cli.settings import EncoderChoice, ExtractSettings

EncodedPart = tuple[
    range, NDArray[np.floating], NDArray[np.bool_]
]  # features of its readable images
Encoded = Generator[EncodedPart, None, None]
Advance = Callable[[int], None]


@dataclass(frozen=True)
class EncodingJob:
    """An image set and an encoder, as a worker gets them: small and picklable."""

    reload: Callable[[], ImageSet]
    source: Mapping[str, object]  # the identity that the images must have
    choice: EncoderChoice
    settings: ExtractSettings
    threads: int  # of torch: features of another number differ in their last bits


def job_for(images: ImageSet, choice: EncoderChoice, settings: ExtractSettings) -> EncodingJob:
    """The job with which workers encode these images as this process does."""
    import torch

    if images.reload is None:
        raise DatasetError(f"'{images.name}' cannot be loaded by other processes: take one device.")
    threads = torch.get_num_threads()
    return EncodingJob(images.reload, images.identity(), choice, settings, threads)


def encode_parts(
    images: ImageSet,
    encoder: Encoder,
    settings: ExtractSettings,
    parts: Sequence[range],
    advance: Advance,
) -> Encoded:
    """The features of parts, one after the other, while the next images are read."""
    size = settings.batch_size
    batches = [rows[i : i + size] for rows in parts for i in range(0, len(rows), size)]
    loaded = load_batches(images, batches, encoder.resize, settings.workers, settings.skip_broken)
    for rows in parts:
        features, readable = [no_features(encoder, settings.store)], []
        for _ in range(0, len(rows), size):
            pixels, is_readable = next(loaded)
            if len(pixels):
                features.append(_as_stored(encoder.encode_pixels(pixels), settings.store))
            readable.append(is_readable)
            advance(len(is_readable))
        yield rows, np.concatenate(features), np.concatenate(readable)


def no_features(encoder: Encoder, store: str) -> NDArray[np.floating]:
    """Features (0, D) of the stored type."""
    return np.empty((0, encoder.embed_dim), store)


def _as_stored(features: NDArray[np.float32], store: str) -> NDArray[np.floating]:
    """Features (B, D) of the stored type.

    Raises:
        EncoderError: a feature is not finite.
    """
    with np.errstate(over="ignore"):
        stored = features.astype(store, copy=False)
    if not np.isfinite(stored).all():
        raise EncoderError(f"the encoder gives features that are not finite in {store}.")
    return stored


def work_on(content: bytes, device: str, parts: Sequence[range], advance: Advance) -> Encoded:
    """Encode parts of a pickled job; images and encoder are loaded at the job's first part."""
    job, images = _unpack(content)
    encoder = worker_encoder(job.choice, device, job.threads)
    return encode_parts(images, encoder, job.settings, parts, advance)


@lru_cache(maxsize=1)
def _unpack(content: bytes) -> tuple[EncodingJob, ImageSet]:
    job: EncodingJob = pickle.loads(content)
    images = job.reload()
    if images.identity() != job.source:
        raise DatasetError(
            f"the images of '{images.name}' have changed since the command began: type it again."
        )
    return job, images


@lru_cache(maxsize=1)
def worker_encoder(choice: EncoderChoice, device: str, threads: int) -> Encoder:
    """The encoder of a worker, with as many threads as the asking process has."""
    wait_passively()
    import torch  # not before its environment is set

    torch.set_num_threads(threads)
    return load_encoder(choice, device)
