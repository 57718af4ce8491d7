"""Flagged video frames as files that can be copied; clean ones are not saved."""

import io
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from PIL import Image

from zsntta_cli.detection.runs.detecting import Batch
from zsntta_cli.detection.sources.item import PIPE, HeldContent, Item, content_of
from zsntta_cli.detection.verdicts import CLEAN, NOISE, UNSURE, VerdictRow

FramePair = tuple[Item, VerdictRow]


def flagged_frames(batch: Batch) -> list[FramePair]:
    """The frames of a batch that are noise or unsure."""
    pairs = zip(*batch, strict=True)
    flagged = ((item, row) for item, row in pairs if row["answer"] in (NOISE, UNSURE))
    return [(item, row) for item, row in flagged if item.frame is not None]


class FrameFiles:
    """Flagged frames as files, counted."""

    def __init__(self, done: str = "copied", saves: bool = True) -> None:
        """Begin; `done` names what is done to images; `saves`: whether frames become files."""
        self._done, self._saves = done, saves
        self._clean, self._lacking, self._passed = 0, 0, 0

    def of(self, batch: Batch) -> Iterator[FramePair]:
        """The flagged frames of a batch, one at a time, each an item whose content is a PNG."""
        flagged = flagged_frames(batch)
        self._clean += sum(r["answer"] == CLEAN and r["frame"] is not None for r in batch.rows)
        self._passed += sum(item.source == PIPE for item, _ in flagged)
        self._lacking += len(flagged)
        for pair in _files(flagged) if self._saves else ():
            self._passed -= pair[0].source == PIPE
            self._lacking -= 1
            yield pair

    def notes(self) -> Iterator[str]:
        """Which frames are not saved, and why."""
        if not self._saves:
            if self._lacking:
                yield f"{_frames(self._lacking, 'flagged')} not {self._done}: --copy-to saves them."
            return
        if self._clean:
            yield f"{_frames(self._clean, 'clean')} not saved: those that are flagged are."
        if self._passed:
            yield (
                f"{_frames(self._passed, 'flagged')} not saved: in hindsight, what came on "
                f"standard input is gone. Add --decide arrival."
            )
        if lacking := self._lacking - self._passed:
            yield f"{_frames(lacking, 'flagged')} not saved: decoding the video again failed."


def _frames(count: int, which: str) -> str:
    return f"1 {which} frame is" if count == 1 else f"{count:,} {which} frames are"


def _files(flagged: Iterable[FramePair]) -> Iterator[FramePair]:
    """Frames as files; those whose pixels are gone are decoded in one pass over each video."""
    again: defaultdict[Path, defaultdict[int, list[FramePair]]]
    again = defaultdict(lambda: defaultdict(list))  # by video and number
    for item, row in flagged:
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
    """A file name for a frame: by its time, clip-00-01-02.500.png, or else by its number."""
    stem = "frame" if item.source == PIPE else Path(item.source).stem
    if item.time_s is None or item.time_s < 0:
        return f"{stem}-{item.frame:06}.png"
    seconds, milliseconds = divmod(round(1000 * item.time_s), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{stem}-{hours:02}-{minutes:02}-{seconds:02}.{milliseconds:03}.png"


def _held(item: Item) -> Image.Image | None:
    """The pixels of a frame while they are in memory; None if they were released."""
    try:
        return item.load().image()
    except Exception:  # let go, or damaged: of such PIL raises nearly anything
        return None


def _as_file(item: Item, image: Image.Image) -> Item:
    content = io.BytesIO()
    image.save(content, "PNG")
    return replace(item, load=HeldContent(content_of(content.getvalue())))
