"""Watching folders: what comes is decided on arrival, and a killed watch goes on where it was.

After each batch its rows are written and made durable by whoever takes them; then the state is
written, whole or not, with the length that the file of rows had. What was written after the last
state is cut off when the watch goes on, and those images are judged again: no image is left out of
that file, or in it twice.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from zsntta_cli.detection import kept
from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.runs.deciding import RowMaker, on_arrival
from zsntta_cli.detection.runs.detecting import AT_ONCE, Batch, DetectRun
from zsntta_cli.detection.runs.flags import Ranking
from zsntta_cli.detection.runs.request import Watch
from zsntta_cli.detection.sources import Scan, images_of
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.errors import StoreError
from zsntta_cli.files import writing

FORMAT = 3  # of the state, and of the rows that go with it
_STILL = 2  # looks in a row at which a file is as it was at the one before
_SHARE = 9  # times as long as a state takes to write, batches go on before the next

Seen = dict[str, tuple[int, int]]  # path -> size, time of its content in nanoseconds


class Growing:
    """Which images of some folders are finished, and were not taken before."""

    def __init__(
        self, folders: Sequence[Path], seen: Seen | None = None, scan: Scan | None = None
    ) -> None:
        self.seen: Seen = {} if seen is None else seen  # as they were when they were taken
        self._folders, self._scan = folders, scan or Scan()
        self._waiting: dict[str, tuple[tuple[int, int], int]] = {}

    def look(self) -> list[Item]:
        """Images that stand still, the older first; each until it is taken.

        One that changes after it was taken is another one. An empty file is not finished.
        """
        waiting, ready = {}, []
        for item in chain.from_iterable(images_of(one, self._scan) for one in self._folders):
            path, now = os.path.abspath(item.source), _status(item)
            if now is None or now[0] == 0 or self.seen.get(path) == now:
                continue
            before, still = self._waiting.get(path, (None, 0))
            still = still + 1 if before == now else 0
            waiting[path] = (now, still)
            if still >= _STILL:
                ready.append((now[1], path, item))
        self._waiting = waiting
        return [item for *_, item in sorted(ready, key=lambda entry: entry[:2])]

    def take(self, items: Sequence[Item]) -> None:
        """Remember images that stood still as judged, as they were at the last look."""
        for item in items:
            path = os.path.abspath(item.source)
            self.seen[path], _ = self._waiting.pop(path)


def _status(item: Item) -> tuple[int, int] | None:
    """Size and time of an item's file; None where there is none (any more)."""
    if item.file is None:
        return None
    try:
        status = os.stat(item.file)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


@dataclass
class WatchState:
    """What a watch keeps beside its detector."""

    seen: Seen = field(default_factory=dict)
    margins: list[float] = field(default_factory=list)
    out: str | None = None  # where rows are written
    size: int = 0  # bytes of it
    is_new: bool = True  # nothing was kept yet


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


def resumed(path: Path | None, detector: OnlineDetector, out: Path | None) -> WatchState:
    """What the state in a file says; the detector goes on from it. Nothing where there is none.

    Raises:
        StoreError: it is broken, of other classes, of another encoder, or of another file of rows.
    """
    where = str(out.absolute()) if out else None
    if path is None or not path.exists():
        return WatchState(out=where)
    state = _state(path, kept.resume(path, detector).get("watch"))
    if state.out not in (None, where):
        raise StoreError(f"{path} goes with the rows in {state.out}: name that file.")
    return replace(state, out=where, size=state.size if state.out else 0)


def _state(path: Path, value: Any) -> WatchState:
    """What a state file says of a watch, looked at before it is used."""
    match value:
        case None:
            raise StoreError(f"{path} is a detector, and no state of a watch.")
        case {"format": int(version)} if version != FORMAT:
            raise StoreError(
                f"{path} goes with rows of format {version}, and rows are of format {FORMAT} now: "
                f"begin anew with another state and another file of rows."
            )
        case {"seen": dict(seen), "margins": list(margins), "out": str() | None as out,
              "size": int(size)}:  # fmt: skip
            is_sound = size >= 0 and all(map(_is_pair, seen.values()))
            if is_sound and all(isinstance(margin, float) for margin in margins):
                sizes_and_times = {name: (pair[0], pair[1]) for name, pair in seen.items()}
                return WatchState(sizes_and_times, margins, out, size, is_new=False)
    raise StoreError(f"{path} is no state of a watch of this version.")


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) for v in value)


@dataclass
class Watching:
    """A watch over the folders of a run."""

    run: DetectRun
    watch: Watch
    state: WatchState
    path: Path | None = None  # of its state
    _due: float = 0.0  # when the state is written again, should much come at once

    def batches(self, size: Callable[[], int], stop: threading.Event) -> Iterator[Batch]:
        """What comes, as it is decided, until it is to stop; `size` is that of the file of rows.

        The state says that a batch is done once the next one is asked for, or a few later where
        much comes at once.
        """
        run, state = self.run, self.state
        folders = [Path(source).expanduser() for source in run.request.images.sources]
        growing = Growing(folders, state.seen, run.request.images.scan)
        flag, name = run.request.rule.flag, run.encoding.name
        ranking = Ranking(state.margins)
        maker = RowMaker(on_arrival(run.detector, flag, ranking), name)
        self._save(ranking, size())
        looks = 0
        while True:
            ready = growing.look()
            for start in range(0, len(ready), AT_ONCE):
                items = ready[start : start + AT_ONCE]
                yield Batch(items, maker.rows(run.encoding.images(items)))
                growing.take(items)
                is_last = start + AT_ONCE >= len(ready) or stop.is_set()
                if is_last or time.monotonic() > self._due:
                    self._save(ranking, size())
                if stop.is_set():
                    return
            looks += 1
            if looks == self.watch.looks or stop.wait(self.watch.interval):
                return

    def _save(self, ranking: Ranking, size: int) -> None:
        if self.path is None:
            return
        state = self.state
        more = {
            "format": FORMAT, "seen": state.seen, "margins": ranking.margins,
            "out": state.out, "size": size,
        }  # fmt: skip
        began = time.monotonic()
        kept.write(self.path, self.run.detector, {"watch": more})
        now = time.monotonic()
        self._due = now + _SHARE * (now - began)
