"""Frames that are flagged as files that can be copied: clean ones are not saved."""

import io
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from PIL import Image

from zsntta_cli.detection.runs.detecting import Batch
from zsntta_cli.detection.sources.item import PIPE, Held, Item, content_of
from zsntta_cli.detection.verdicts import NOISE, UNSURE, VerdictRow

FramePair = tuple[Item, VerdictRow]


def flagged_frames(batch: Batch) -> list[FramePair]:
    """The frames of a batch that are noise or unsure, with their rows."""
    pairs = zip(*batch, strict=True)
    return [
        (i, row) for i, row in pairs if i.frame is not None and row["answer"] in (NOISE, UNSURE)
    ]


def frame_files(batch: Batch) -> Iterator[FramePair]:
    """The flagged frames of a batch, one at a time, each an item whose content is a PNG.

    Frames whose pixels are not held any more are decoded again, in one pass over each video; what
    cannot be had is left out.
    """
    again: defaultdict[Path, defaultdict[int, list[FramePair]]]
    again = defaultdict(lambda: defaultdict(list))  # by video and number
    for item, row in flagged_frames(batch):
        if image := _held(item):
            yield _as_file(item, image), row
        elif item.video and item.frame is not None:
            again[item.video][item.frame].append((item, row))
    for path, pairs in again.items():
        from zsntta_cli.detection.sources.video import frames_at

        for number, image in frames_at(path, pairs):
            for item, row in pairs[number]:
                yield _as_file(item, image), row


def frame_name(item: Item) -> str:
    """A file's name for a frame: by its time, clip-00-01-02.500.png, or else by its number."""
    stem = "frame" if item.source == PIPE else Path(item.source).stem
    if item.time_s is None or item.time_s < 0:
        return f"{stem}-{item.frame:06}.png"
    seconds, milliseconds = divmod(round(1000 * item.time_s), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{stem}-{hours:02}-{minutes:02}-{seconds:02}.{milliseconds:03}.png"


def _held(item: Item) -> Image.Image | None:
    """The pixels of a frame while they are held; None of one that was let go."""
    try:
        return item.load().image()
    except OSError:
        return None


def _as_file(item: Item, image: Image.Image) -> Item:
    content = io.BytesIO()
    image.save(content, "PNG")
    return replace(item, load=Held(content_of(content.getvalue())))
