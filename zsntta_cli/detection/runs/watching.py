"""Watch folders: new images are decided on arrival, and a killed watch continues.

After each batch the consumer writes its rows and makes them durable; then the seen files are added
to those before, and the state is written as a whole, with the numbers of rows, bytes and files.
What was written after the last state is removed when the watch continues, and those images are
judged again: no image is missing in the file of rows, or in it twice.

The state is the detector's own, as `save` writes it, with paths relative to the watched folders: it
can be moved with them, and with the file of rows, which is recognised by its content.
"""

import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, Protocol

from zsntta_cli.detection import kept
from zsntta_cli.detection.detector import OnlineDetector
from zsntta_cli.detection.runs.deciding import RowMaker, on_arrival
from zsntta_cli.detection.runs.detecting import AT_ONCE, Batch, DetectRun
from zsntta_cli.detection.runs.flags import Ranking
from zsntta_cli.detection.runs.growing import Growing, WatchedPlace
from zsntta_cli.detection.runs.request import Watch
from zsntta_cli.detection.runs.seen_files import SeenFile, add_seen, begin_seen, resume_seen
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.sources.left_out import said_again
from zsntta_cli.errors import StoreError

FORMAT = 3  # of what a state says of its watch, and of the rows that go with it
_SHARE = 9  # times as long as a state takes to write, batches go on before the next


class WrittenRows(Protocol):
    """A file to which rows are added, as far as it is durable."""

    @property
    def written(self) -> "Written":
        """How much the file has."""

    @property
    def numbers(self) -> Mapping[str, int]:
        """The numbers, from 1, of the rows that were added last, by their sources."""


@dataclass(frozen=True)
class Written:
    """How much a file of rows has."""

    size: int = 0  # bytes
    rows: int = 0
    digest: str | None = None  # SHA-256 of the bytes; None: there is no file of rows
    path: str | None = None  # where it was, which tells it as long as it has no rows


@dataclass
class WatchState:
    """What a watch keeps besides its detector."""

    seen: dict[WatchedPlace, SeenFile] = field(default_factory=dict)
    margins: list[float] = field(default_factory=list)
    counts: tuple[int, int] = (0, 0)  # of rows of files and of margins, as they are kept
    written: Written = field(default_factory=Written)
    token: str = field(default_factory=lambda: secrets.token_hex(8))  # of the files that were seen
    folders: tuple[str, ...] = ()  # where the watched ones were
    home: str = ""  # folder that the state was in then
    is_new: bool = True  # nothing was kept yet


def resumed(path: Path | None, detector: OnlineDetector, has_rows: bool) -> WatchState:
    """The state of a watch in a file, from which the detector continues; a new one without a file.

    A detector that was saved without a watch continues, too, with no files seen. `has_rows`:
    whether rows are written to a file.

    Raises:
        StoreError: the state is broken, of other classes or another encoder, or belongs to a file
            of rows.
    """
    if path is None or not path.exists():
        return WatchState()
    value = kept.resume(path, detector).get("watch")
    if value is None:
        return WatchState()
    state = _state(path, value)
    if state.written.digest and not has_rows:
        raise StoreError(
            f"{path} goes with a file of {state.written.rows:,} rows: name it, --out FILE."
        )
    return state


def _state(path: Path, value: Any) -> WatchState:
    """The state of a watch in a file, checked before it is used."""
    match value:
        case {"format": int(version)} if version != FORMAT:
            raise StoreError(
                f"{path} goes with rows of format {version}, and rows are of format {FORMAT} now: "
                f"begin anew with another state and another file of rows."
            )
        case {
            "files": int(files), "margins": int(margins), "size": int(size), "rows": int(rows),
            "digest": str() | None as digest, "out": str() | None as out, "token": str(token),
            "folders": list(folders), "home": str(home),
        }:  # fmt: skip
            names = tuple(name for name in folders if isinstance(name, str))
            if min(files, margins, size, rows) >= 0 and len(names) == len(folders):
                seen, margins_seen = resume_seen(path, token, (files, margins))
                written = Written(size, rows, digest, out)
                return WatchState(
                    seen, margins_seen, (files, margins), written, token, names, home, is_new=False
                )
    raise StoreError(f"{path} is no state of a watch of this version.")


def numbered(places: Sequence[str], home: str, state: WatchState) -> list[int]:
    """Numbers of the watched folders, whose state is in `home`; each keeps its earlier number.

    A folder is recognised by its path, or else by its path relative to the state's folder, as both
    may move together. Other folders take, in order, the numbers of folders that no longer exist at
    their place; further folders get new numbers.
    """
    moved = [_beside(home, os.path.relpath(name, state.home)) for name in state.folders]
    free = dict(enumerate(zip(state.folders, moved, strict=True)))
    numbers: dict[str, int] = {}
    for which in range(2):
        for place in places:
            same = [number for number, paths in free.items() if paths[which] == place]
            if same and place not in numbers:
                numbers[place] = same[0]
                del free[same[0]]
    gone = [number for number, (name, _) in free.items() if not os.path.isdir(name)]
    new_numbers = chain(gone, count(len(state.folders)))
    for place in places:
        if place not in numbers:
            numbers[place] = next(new_numbers)
    return [numbers[place] for place in places]


def _beside(home: str, path: str) -> str:
    return os.path.normpath(os.path.join(home, path))


@dataclass
class Watching:
    """A watch over the folders of a run."""

    run: DetectRun
    watch: Watch
    state: WatchState
    path: Path | None = None  # of its state
    _due: float = 0.0  # when the state is written again, should much come at once
    _new: list[tuple[WatchedPlace, SeenFile]] = field(default_factory=list)  # that the state lacks

    def batches(self, rows_file: WrittenRows | None, stop: threading.Event) -> Iterator[Batch]:
        """New images, as they are decided, until it is to stop; `rows_file` is where rows go.

        The state records a batch as done once the next one is requested, or a few batches later if
        many images come at once.
        """
        run, state = self.run, self.state
        run.warm()
        folders = self._folders()
        status = {place: (file.size, file.time) for place, file in state.seen.items()}
        growing = Growing(
            folders, status, self.watch.interval, run.request.images.scan,
            dict(enumerate(state.folders)),
        )  # fmt: skip
        ranking = Ranking(state.margins)
        maker = RowMaker(
            on_arrival(run.detector, run.request.rule.flag, ranking), run.encoding.name
        )
        self._save(ranking, rows_file)
        looks, is_said = 0, False
        while True:
            ready = growing.look()
            if not is_said and (again := said_again(growing.again)):
                run.encoding.reporter.note(again)
                is_said = True
            for start in range(0, len(ready), AT_ONCE):
                items = ready[start : start + AT_ONCE]
                places = [growing.place(item) for item in items]
                yield self._batch(items, places, maker, rows_file)
                self._take(growing, items, rows_file)
                is_last = start + AT_ONCE >= len(ready) or stop.is_set()
                if is_last or time.monotonic() > self._due:
                    self._save(ranking, rows_file)
                if stop.is_set():
                    return
            looks += 1
            if looks == self.watch.looks or stop.wait(self.watch.interval):
                return

    def _folders(self) -> dict[int, Path]:
        """The watched folders by their numbers; known ones keep theirs, even if moved."""
        named = [Path(source).expanduser() for source in self.run.request.images.sources]
        places = [os.path.abspath(path) for path in named]
        home = os.path.dirname(os.path.abspath(self.path)) if self.path else ""
        numbers = numbered(places, home, self.state)
        names = [*self.state.folders, *[""] * (len(named) + 1)]
        for number, place in zip(numbers, places, strict=True):
            names[number] = place
        self.state.folders, self.state.home = tuple(names[: names.index("")]), home
        return dict(zip(numbers, named, strict=True))

    def _batch(
        self,
        items: list[Item],
        places: Sequence[WatchedPlace],
        maker: RowMaker,
        rows_file: WrittenRows | None,
    ) -> Batch:
        """The rows of images, each with the number of the row that it replaces."""
        rows = maker.rows(self.run.encoding.images(items))
        for row, place in zip(rows, places, strict=True):
            before = self.state.seen.get(place)
            if rows_file and before:
                row["replaces"] = before.row
        return Batch(items, rows)

    def _take(self, growing: Growing, items: Sequence[Item], rows_file: WrittenRows | None) -> None:
        """Remember images whose rows are written."""
        numbers = rows_file.numbers if rows_file else {}
        for item, (place, status) in zip(items, growing.take(items), strict=True):
            before = self.state.seen.get(place)
            row = numbers.get(item.source, before and before.row)
            self.state.seen[place] = seen = SeenFile(*status, row)
            self._new.append((place, seen))

    def _save(self, ranking: Ranking, rows_file: WrittenRows | None) -> None:
        if self.path is None:
            self._new.clear()
            ranking.latest.clear()
            return
        state, began = self.state, time.monotonic()
        if state.is_new:
            begin_seen(self.path, state.token)
            state.is_new = False
        add_seen(self.path, self._new, ranking.latest, state.counts)
        state.counts = state.counts[0] + len(self._new), state.counts[1] + len(ranking.latest)
        self._new.clear()
        ranking.latest.clear()
        written = rows_file.written if rows_file else state.written
        watch = {
            "format": FORMAT, "token": state.token, "folders": list(state.folders),
            "files": state.counts[0], "margins": state.counts[1], "size": written.size,
            "rows": written.rows, "digest": written.digest, "out": written.path,
            "home": state.home,
        }  # fmt: skip
        kept.write(self.path, self.run.detector, {**self.run.origin, "watch": watch})
        now = time.monotonic()
        self._due = now + _SHARE * (now - began)
