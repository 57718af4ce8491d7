"""Frames of a video, by their time stamps; the only module that imports PyAV."""

import contextlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from PIL import Image

from zsntta_cli.datasets.decoding import DAMAGED
from zsntta_cli.detection.sources.item import HeldContent, Item, content_of_pixels, failed
from zsntta_cli.errors import DatasetError, first_line

_AT_A_TIME = 32  # frames at most, and
_LAST_FRAME = 1.5  # frames, or seconds where these are longer, that the last frame may be shown
_PIXELS = 2**25  # pixels of them from which on no more are waited for: 100 MB, four frames of 4K

# By degrees counterclockwise, as the display matrix of a video turns its frames.
_TURNS = {
    90: Image.Transpose.ROTATE_90,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_270,
}


def frames(path: Path) -> Iterator[list[Item]]:
    """Frames of a video's first video stream, one for each second, in order.

    A frame's time is its own time stamp. From the first frame on the first one of each second is
    used, so that a variable rate is sampled evenly.

    Raises:
        DatasetError: PyAV is not installed.
    """
    try:
        import av
    except ImportError as error:
        raise DatasetError(f"{path} is a video", remedy="install-video") from error
    batch, pixels = list[Item](), 0
    for item, size in _frames(av, path):
        batch.append(item)
        pixels += size
        if len(batch) == _AT_A_TIME or pixels >= _PIXELS:
            yield batch
            batch, pixels = [], 0
    if batch:
        yield batch


def frames_at(path: Path, numbers: Collection[int]) -> Iterator[tuple[int, Image.Image]]:
    """Frames of a video by their numbers as `frames` counts them, in RGB, if available."""
    import av

    last = max(numbers, default=-1)
    with contextlib.suppress(av.FFmpegError, OSError, ValueError), av.open(str(path)) as container:
        for number, frame in enumerate(_decoded(av, container, _Decoding())):
            if number in numbers:
                yield number, _image(frame)
            if number >= last:
                return


def _frames(av: Any, path: Path) -> Iterator[tuple[Item, int]]:
    """Frames, each with its number of pixels; after an error an item that describes it."""
    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                yield failed(str(path), "it has no pictures"), 0
                return
            decoding = _Decoding()
            yield from _each_second(path, _decoded(av, container, decoding))
            if wrong := decoding.about_missing(container):
                yield failed(str(path), wrong), 0
    except (av.FFmpegError, OSError, ValueError) as error:
        yield failed(str(path), first_line(error)), 0


@dataclass
class _Decoding:
    """How a video is decoded: how many of its frames, and the errors of the others."""

    frames: int = 0
    last: float = 0.0  # time of a frame, in seconds
    errors: list[Exception] = field(default_factory=list)

    def about_missing(self, container: Any) -> str:
        """What could not be decoded; empty if all was, as far as the video's head declares it.

        An AVI counts a frame that is shown twice as two. Matroska declares seconds, and no frames.
        """
        if not self.frames and self.errors:
            return first_line(self.errors[0])
        stream = container.streams.video[0]
        declared = 0 if container.format.name == "avi" else stream.frames
        missing = max(declared - self.frames, len(self.errors))
        of = max(declared, self.frames + missing)
        if missing > 0:
            return f"{missing:,} of its {of:,} frames are lost or cannot be decoded"
        seconds = _seconds(stream.metadata.get("DURATION", ""))
        lost = seconds - self.last
        is_cut = lost > _LAST_FRAME * max(1, self.last / max(self.frames, 1))
        return f"the last {lost:,.0f} of its {seconds:,.0f} seconds are lost" if is_cut else ""


def _seconds(duration: str) -> float:
    """The seconds of Matroska's duration, as 00:01:09.5; 0 of another text."""
    match = re.fullmatch(r"(\d+):(\d+):(\d+\.?\d*)", duration)
    hours, minutes, seconds = map(float, match.groups()) if match else (0.0, 0.0, 0.0)
    return 3600 * hours + 60 * minutes + seconds


def _decoded(av: Any, container: Any, decoding: _Decoding) -> Iterator[Any]:
    """The frames of a video; a packet that cannot be decoded is an error, and the rest goes on."""
    for packet in container.demux(container.streams.video[0]):
        try:
            decoded = packet.decode()
        except av.FFmpegError as error:
            decoding.errors.append(error)
            continue
        decoding.frames += len(decoded)
        decoding.last = max([decoding.last, *(float(_time(frame) or 0) for frame in decoded)])
        yield from decoded


def _each_second(path: Path, decoded: Iterator[Any]) -> Iterator[tuple[Item, int]]:
    first: Fraction | None = None
    due = 0  # seconds since the first frame
    for number, frame in enumerate(decoded):
        time = _time(frame)
        if time is None:
            continue  # nobody knows when it is shown
        first = time if first is None else first
        if time - first < due:
            continue
        due = int(time - first) + 1
        note = f"{DAMAGED}: its decoder marked the frame as corrupt" if frame.is_corrupt else ""
        held = HeldContent(content_of_pixels(_image(frame), note))
        yield Item(str(path), held, frame=number, time_s=float(time)), frame.width * frame.height


def _time(frame: Any) -> Fraction | None:
    """The time at which a frame is shown, in seconds."""
    is_known = frame.pts is not None and frame.time_base is not None
    return frame.pts * frame.time_base if is_known else None


def _image(frame: Any) -> Image.Image:
    """A frame in RGB, rotated as its video specifies."""
    image = frame.to_image().convert("RGB")
    turn = _TURNS.get(frame.rotation % 360)
    return image if turn is None else image.transpose(turn)
