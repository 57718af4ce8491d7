"""Watching folders: what comes is decided on arrival, and a killed watch goes on where it was.

After each batch its rows are written and made durable by whoever takes them; then the state is
written, whole or not, with the length that the file of rows had. What was written after the last
state is cut off when the watch goes on, and those images are judged again: no image is left out of
that file, or in it twice.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from zsntta_cli.detection import kept
from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.runs.deciding import Arrivals
from zsntta_cli.detection.runs.detecting import Batch, Detection
from zsntta_cli.detection.runs.flags import Ranking
from zsntta_cli.detection.runs.request import Watch
from zsntta_cli.detection.sources.growing import Growing, Seen
from zsntta_cli.errors import StoreError
from zsntta_cli.files import writing

FORMAT = 1
_AT_ONCE = 64  # images to a batch
_SHARE = 9  # times as long as a state takes to write, batches go on before the next


class Stop(Protocol):
    """What ends a watch: a threading.Event."""

    def is_set(self) -> bool:
        """Whether it is to end."""

    def wait(self, timeout: float) -> bool:
        """Wait for that so many seconds."""


@dataclass
class Known:
    """What a watch knows beside its detector."""

    seen: Seen = field(default_factory=dict)
    margins: list[float] = field(default_factory=list)
    out: str | None = None  # where rows are written
    size: int = 0  # bytes of it


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Be the only watch that has this state: StoreError where another has it."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(f"{path} is the state of a watch that runs.") from None
    try:
        yield
    finally:
        lock.release()


def resumed(path: Path | None, detector: OnlineDetector, out: Path | None) -> Known:
    """What the state in a file says; the detector goes on from it. Nothing where there is none.

    Raises:
        StoreError: it is broken, of other classes, of another encoder, or of another file of rows.
    """
    where = str(out.absolute()) if out else None
    if path is None or not path.exists():
        return Known(out=where)
    kept.resume(path, detector)
    known = _known(path, kept.read(path)[1].get("watch"))
    if known.out not in (None, where):
        raise StoreError(f"{path} goes with the rows in {known.out}: name that file.")
    return Known(known.seen, known.margins, where, known.size if known.out else 0)


def _known(path: Path, value: Any) -> Known:
    """What a state file says of a watch, looked at before it is used."""
    if not isinstance(value, Mapping):
        raise StoreError(f"{path} is a detector, and no state of a watch.")
    seen, margins, out, size = (value.get(key) for key in ("seen", "margins", "out", "size"))
    sound = isinstance(seen, dict) and all(_is_pair(one) for one in seen.values())
    sound = sound and isinstance(margins, list) and all(isinstance(m, float) for m in margins)
    if not sound or not isinstance(out, str | None) or not isinstance(size, int) or size < 0:
        raise StoreError(f"{path} is no state of a watch of this version.")
    assert isinstance(seen, dict)
    assert isinstance(margins, list)
    return Known({name: (one[0], one[1]) for name, one in seen.items()}, margins, out, size)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value)


@dataclass
class Watching:
    """A watch over the folders of a detection."""

    detection: Detection
    watch: Watch
    known: Known
    state: Path | None = None
    _due: float = 0.0  # when the state is written again, should much come at once

    def batches(self, size: Callable[[], int], stop: Stop) -> Iterator[Batch]:
        """What comes, as it is decided, until it is to stop; `size` is that of the file of rows.

        The state says that a batch is done once the next one is asked for, or a few later where
        much comes at once.
        """
        detection, known = self.detection, self.known
        folders = [Path(source).expanduser() for source in detection.request.sources]
        growing = Growing(folders, known.seen)
        arrivals = Arrivals(
            detection.detector, detection.request.flag, detection.encoding.name,
            Ranking(known.margins),
        )  # fmt: skip
        self._save(arrivals, size())
        looks = 0
        while True:
            ready = growing.look()
            for start in range(0, len(ready), _AT_ONCE):
                items = ready[start : start + _AT_ONCE]
                yield Batch(items, arrivals.rows(detection.encoding.images(items)))
                growing.take(items)
                is_last = start + _AT_ONCE >= len(ready) or stop.is_set()
                if is_last or time.monotonic() > self._due:
                    self._save(arrivals, size())
                if stop.is_set():
                    return
            looks += 1
            if looks == self.watch.looks or stop.wait(self.watch.interval):
                return

    def _save(self, arrivals: Arrivals, size: int) -> None:
        if self.state is None:
            return
        known = self.known
        more = {
            "format": FORMAT, "seen": known.seen, "margins": arrivals.ranking.margins,
            "out": known.out, "size": size,
        }  # fmt: skip
        began = time.monotonic()
        kept.write(self.state, self.detection.detector, {"watch": more})
        now = time.monotonic()
        self._due = now + _SHARE * (now - began)
