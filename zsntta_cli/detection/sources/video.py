"""Frames of a video, by their own time stamps; the only module that knows PyAV."""

import contextlib
from collections.abc import Collection, Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image

from zsntta_cli.detection.sources.item import Content, Item, content_of_pixels, failed
from zsntta_cli.errors import DatasetError, first_line

_AT_A_TIME = 32  # frames: each is some megabytes of pixels


def frames(path: Path, fps: float) -> Iterator[list[Item]]:
    """Frames of a video's first stream of pictures, `fps` of each second, in their order.

    A frame's time is its own time stamp. From the first frame on there is a grid of 1/fps seconds,
    and the first frame in each of its cells is looked at: a variable rate is taken evenly.

    Raises:
        DatasetError: PyAV is not installed.
    """
    try:
        import av
    except ImportError as error:
        raise DatasetError(f"{path} is a video", remedy="install-video") from error
    items = _frames(av, path, Fraction(fps).limit_denominator(1000))
    while batch := list(islice(items, _AT_A_TIME)):
        yield batch


def frames_at(path: Path, numbers: Collection[int]) -> Iterator[tuple[int, Image.Image]]:
    """Frames of a video by their numbers as `frames` counts them, in RGB; those that can be had."""
    import av

    last = max(numbers, default=-1)
    with contextlib.suppress(av.FFmpegError, OSError, ValueError), av.open(str(path)) as container:
        decoded: Iterator[Any] = container.decode(video=0)
        for number, frame in enumerate(decoded):
            if number in numbers:
                yield number, frame.to_image().convert("RGB")
            if number >= last:
                return


def _frames(av: Any, path: Path, fps: Fraction) -> Iterator[Item]:
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                yield failed(str(path), "it has no pictures")
                return
            yield from _on_grid(path, container.decode(video=0), fps)
    except (av.FFmpegError, OSError, ValueError) as error:
        yield failed(str(path), first_line(error))


def _on_grid(path: Path, decoded: Iterator[Any], fps: Fraction) -> Iterator[Item]:
    first: Fraction | None = None
    due = Fraction(0)
    for number, frame in enumerate(decoded):
        if frame.pts is None or frame.time_base is None:
            continue  # nobody knows when it is shown
        time = frame.pts * frame.time_base
        first = time if first is None else first
        if time - first < due:
            continue
        due = (int((time - first) * fps) + 1) / fps
        yield _item(path, number, time, content_of_pixels(frame.to_image().convert("RGB")))


def _item(path: Path, number: int, time: Fraction, content: Content) -> Item:
    return Item(str(path), lambda: content, frame=number, time_s=float(time))
