"""Copy images into folders by their verdicts, recorded in a list.

A second run sorts the folder anew, and touches only files that the list names and that are
unchanged: what a person put there or changed stays.
"""

import hashlib
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import Literal, NamedTuple

from zsntta_cli.detection.detecting import AT_ONCE, Batch, DetectRun, RowSink
from zsntta_cli.detection.sources.item import Item
from zsntta_cli.detection.verdicts import NOISE, UNSURE, VerdictRow
from zsntta_cli.errors import StoreError, first_line, printable, short
from zsntta_cli.files import writing
from zsntta_cli.progress import Reporter
from zsntta_cli.report.placed_list import LIST, PlacedImage, PlacedList, folders_above
from zsntta_cli.report.placing import (
    is_as_put,
    is_unwritable,
    numbered_name,
    original_is_there,
    rename_new,
    writable_name,
    write_new,
)

_FOLDERS = {NOISE: "_noise", UNSURE: "_unsure"}  # of what is not said to be of a class
_LONGEST = 80  # characters of a folder's name
Act = Literal["put", "rename", "keep", "remove"]
_PUT: Act = "put"
_RENAME: Act = "rename"
_KEEP: Act = "keep"
_REMOVE: Act = "remove"
# Why something is left as it is, with counts.
_NO_FILE = "{count} not copied: no files of their own"
_CHANGED = "{count} in {root} changed after zsntta put them there, and left as they are"
_CHANGED_SINCE = "{count} not copied: changed after they were judged"
_LAST = "{count} in {root} left, though not among the images: their originals are gone or changed"


def folder_names(classes: Sequence[str]) -> dict[str, str]:
    """The folders' names by class: safe, all different, and unlike the reserved names."""
    folders: dict[str, str] = {}
    used = {*_FOLDERS.values(), LIST}
    for name in classes:
        plain = re.sub(r"[^\w .-]", "_", name).strip(" .")[:_LONGEST] or "class"
        numbered = (f"{plain}-{number}" for number in itertools.count(2))
        folder = next(f for f in itertools.chain([plain], numbered) if f.casefold() not in used)
        used.add(folder.casefold())
        folders[name] = folder
    return folders


class Saved(NamedTuple):
    """The content and the name of an image's copy."""

    name: str  # of the file
    digest: str  # SHA-256 of its content, in hexadecimal
    content: Callable[[], bytes]  # OSError where it is not to be had


def saved(item: Item, row: VerdictRow) -> Saved | None:
    """The copy of an image; None if it has no file, as a video's frame."""
    if item.file is None or row["content"] is None:
        return None
    return Saved(PurePath(item.source).name, row["content"], lambda: item.load().data)


class Step(NamedTuple):
    """What is to be done with an image."""

    act: Act
    image: PlacedImage  # as it is listed then
    places: Sequence[PlacedImage] = ()  # where it lies by now; after a kill more than one
    content: Callable[[], bytes] | None = None
    original: Path | None = None  # that it is of, or lies in
    is_whole: bool = True  # whether it is all of that


@dataclass
class Sorter(RowSink):
    """Put images into DIR/<class>/, DIR/_noise/ and DIR/_unsure/."""

    root: Path
    reporter: Reporter
    counts: Counter[Act] = field(default_factory=Counter, init=False)
    _placed: PlacedList | None = field(default=None, init=False)
    _places: dict[str, list[str]] = field(
        default_factory=dict, init=False
    )  # in the list, by source
    _taken: set[str] = field(default_factory=set, init=False)  # names of the list, in one case
    _numbers: dict[str, int] = field(default_factory=dict, init=False)  # of names, up to which
    _handled: set[str] = field(default_factory=set, init=False)  # in this run
    _left: dict[str, list[str]] = field(default_factory=dict, init=False)  # sources, by the reason
    _unwritable: set[str] = field(default_factory=set, init=False)  # whose own names cannot be

    def open(self, run: DetectRun) -> None:
        """Name the folders of the classes, and read the list of the folder.

        Raises:
            StoreError: the list is invalid, or another process works there.
        """
        self._folders = folder_names(run.detector.class_names)
        self._is_more = run.request.on_arrival
        if self.root.exists():
            self._list()

    def _list(self) -> PlacedList:
        """The list, locked from here on; the folder is made if necessary."""
        if self._placed is None:
            placed = PlacedList(self.root)
            self._check(placed)
            self._placed = placed
            self._taken = {copy.casefold() for copy in placed.images}
            for image in placed.images.values():
                self._places.setdefault(image.source, []).append(image.copy)
        return self._placed

    def _check(self, placed: PlacedList) -> None:
        """Note files that no list names."""
        if placed.was_there and placed.is_new and any(self.root.glob("[!.]*")):
            self.reporter.note(f"note: {self.root} has files that no list names: they stay.")

    def take(self, batch: Batch) -> None:
        """Put the images of a batch where they belong; those that cannot be put are counted.

        Raises:
            StoreError: the folder cannot be written.
        """
        pairs = [pair for pair in zip(*batch, strict=True) if pair[0].frame is None]
        for item in batch.items:
            if item.frame is not None:
                self._leave(_NO_FILE, item.source)
        for start in range(0, len(pairs), AT_ONCE):
            self._arrange(pairs[start : start + AT_ONCE])

    def _arrange(self, pairs: Sequence[tuple[Item, VerdictRow]]) -> None:
        """List what is to be done, then do it; try again if a name was taken in between."""
        placed = self._list()
        images = {os.path.abspath(i.source): (i, row) for i, row in pairs}
        steps = [step for pair in images.values() if (step := self._step(*pair))]
        placed.add([step.image for step in steps])
        not_done = [step for step in steps if not self._do(step)]
        if not_done:
            sources = {step.image.source for step in not_done}
            self._arrange([pair for source, pair in images.items() if source in sources])

    def _step(self, item: Item, row: VerdictRow) -> Step | None:
        """What is to be done with an image; None if nothing is, or nothing can be."""
        source = os.path.abspath(item.source)
        self._handled.add(source)
        if row["error"] is not None:
            return None
        if (copy := saved(item, row)) is None:
            self._leave(_NO_FILE, item.source)
            return None
        listed = [self._list().images[place] for place in self._places.get(source, ())]
        folder = _FOLDERS.get(row["answer"]) or self._folders[row["class"]]
        places = self._places_of(listed, copy.digest, folder)
        if places is None:
            return None
        if places and places[0].folder == folder:
            act, place = _KEEP, places[0].copy
        else:
            mine = [one.copy for one in listed if one not in places and one.folder == folder]
            is_plain = source in self._unwritable
            name = writable_name(copy.name, copy.digest) if is_plain else copy.name
            act, place = _RENAME if places else _PUT, self._free_name(folder, name, mine)
        self._own(source, place)
        image = PlacedImage(
            source, place, row["answer"], row["class"], str(row["margin"]), copy.digest,
            self._made_above(place),
        )  # fmt: skip
        return Step(act, image, places, copy.content, item.file, not item.member)

    def _places_of(
        self, listed: Sequence[PlacedImage], digest: str, folder: str
    ) -> list[PlacedImage] | None:
        """The places where an image is, as it is now; the place where it belongs comes first.

        A copy of an older content is removed. None if a person has changed a copy, which then stays
        alone.
        """
        for image in listed:
            is_old = image.content != digest
            moves = image.folder != folder
            is_there = self._list().has(image)
            if is_there and (is_old or moves):
                if not is_as_put(self.root / image.copy, image):
                    self._leave(_CHANGED, str(self.root / image.copy))
                    return None
                if is_old:
                    self._remove(image)
            elif is_old:
                self._forget(image)
        present = [image for image in listed if self._list().has(image)]
        return sorted(present, key=lambda image: image.folder != folder)

    def _free_name(self, folder: str, name: str, mine: Sequence[str]) -> str:
        """The first free name in a folder; an image's own listed name comes first, if free."""
        first = f"{folder}/{name}"
        numbers = itertools.count(self._numbers.get(first, 2))
        numbered = ((n, f"{folder}/{numbered_name(name, n)}") for n in numbers)
        for number, place in itertools.chain(((2, one) for one in (*mine, first)), numbered):
            is_free = place in mine or place.casefold() not in self._taken
            if is_free and not os.path.lexists(self.root / place):
                return place
            self._numbers[first] = number
        raise AssertionError

    def _made_above(self, place: str) -> str:
        """How many folders above a place were made for images, or will be."""
        made, folders = self._list().made, folders_above(place)
        made |= {f for f in folders if f not in made and not os.path.lexists(self.root / f)}
        return str(len([*itertools.takewhile(made.__contains__, folders)]))

    def _own(self, source: str, place: str) -> None:
        places = self._places.setdefault(source, [])
        if place not in places:
            places.append(place)
        self._taken.add(place.casefold())

    def _do(self, step: Step) -> bool:
        """Do a step; False if its name was taken in between."""
        path = self.root / step.image.copy
        write: Callable[[], object] | None = None
        if step.act == _RENAME:
            write = partial(rename_new, self.root / step.places[0].copy, path)
        elif step.act == _PUT and not (write := self._writer(step, path)):
            self._forget(step.image)
            return True
        if write and not self._is_written(step, path, write):
            self._forget(step.image)
            return False
        self._end_others(step, path)
        self.counts[step.act] += 1
        return True

    def _is_written(self, step: Step, path: Path, write: Callable[[], object]) -> bool:
        """Write to a path; False if its name is taken or cannot be written there."""
        try:
            return _is_new(path, write)
        except OSError as error:
            source = step.image.source
            if source in self._unwritable or not is_unwritable(error):
                raise StoreError(f"cannot write {path}: {first_line(error)}.") from error
            self._unwritable.add(source)
            return False

    def _writer(self, step: Step, path: Path) -> Callable[[], object] | None:
        """What puts a copy at a path; None if the image has changed since it was judged."""
        image = step.image
        assert step.content
        try:
            content = step.content()
        except OSError as error:
            source = short(image.source, 200)
            self.reporter.note(f"note: {source} is left out: {first_line(error)}")
            return None
        if hashlib.sha256(content).hexdigest() != image.content:
            self._leave(_CHANGED_SINCE, image.source)
            return None
        return partial(write_new, content, path, self.root, step.original, step.is_whole)

    def _end_others(self, step: Step, path: Path) -> None:
        """Leave a copy in one place only, where a kill or an earlier verdict left several."""
        for other in step.places:
            if other.copy != step.image.copy:
                place = self.root / other.copy
                if is_as_put(place, other) and is_as_put(path, step.image):
                    self._remove(other)
                self._forget(other)

    def complete(self) -> None:
        """Remove the copies of images that are not among the sources any more.

        Images decided on arrival are added to those that are there.
        """
        if self._is_more or not self._handled:
            return
        for image in [*self._list().images.values()]:
            place = self.root / image.copy
            if image.source in self._handled or not self._list().has(image):
                continue
            if not is_as_put(place, image):
                self._leave(_CHANGED, str(place))
            elif not original_is_there(image):
                self._leave(_LAST, str(place))
            else:
                self._remove(image)
                self.counts[_REMOVE] += 1

    def _remove(self, image: PlacedImage) -> None:
        with writing(self.root / image.copy):
            (self.root / image.copy).unlink()
        self._forget(image)

    def _forget(self, image: PlacedImage) -> None:
        """Remove an image from the list, as it is not there."""
        if self._list().images.pop(image.copy, None):
            self._places[image.source].remove(image.copy)
            self._taken.discard(image.copy.casefold())

    def close(self) -> None:
        """Write the list, and report what was done and what could not be."""
        if self._placed:
            self._placed.remove_empty_folders()
            self._placed.end()
            if self.counts:
                self.reporter.note(f"{self.root}: {told_counts(self.counts)}.")
        for reason, sources in self._left.items():
            first = f", the first: {short(sources[0], 200)}" if reason != _NO_FILE else ""
            about = reason.format(count=f"{len(sources):,}", root=self.root)
            self.reporter.note(printable(f"note: {about}{first}."))
        if renamed := len(self._unwritable):
            self.reporter.note(
                f"note: {renamed:,} put under another name, since {self.root} cannot have their "
                f"own: {LIST} there has both."
            )

    def _leave(self, reason: str, source: str) -> None:
        self._left.setdefault(reason, []).append(source)


def told_counts(counts: Counter[Act]) -> str:
    """How many images were copied, and what was done to those that were already there."""
    texts = {
        _PUT: "copied", _RENAME: "moved within it", _REMOVE: "removed", _KEEP: "as they were",
    }  # fmt: skip
    return ", ".join(f"{counts[act]:,} {text}" for act, text in texts.items() if counts[act])


def _is_new(path: Path, write: Callable[[], object]) -> bool:
    """Write to a path, with the folders above it; False if it is taken."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write()
    except FileExistsError:
        return False
    except OSError as error:
        if is_unwritable(error):
            raise
        with writing(path):
            raise
    return True
