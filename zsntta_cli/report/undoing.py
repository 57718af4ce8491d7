"""Undo the sorting of images into a folder: remove copies and links, return moved images."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from zsntta_cli.errors import StoreError
from zsntta_cli.files import sweep, writing
from zsntta_cli.progress import Reporter
from zsntta_cli.report.placed_list import COPY, MOVE, PlacedImage, PlacedList
from zsntta_cli.report.placing import digest_at, is_as_put, move_file, original_is_there


@dataclass
class Undone:
    """What was undone, or would be, and what was not."""

    images: list[PlacedImage] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)  # places, with why
    by_way: Counter[str] = field(default_factory=Counter)


def undo(root: Path, reporter: Reporter, dry: bool = False) -> Undone:
    """Undo what the list of a folder names; files that were changed, or would be lost, stay.

    It can be killed, and continues when it is called again. `dry`: change nothing.

    Raises:
        StoreError: there is no list, another process works on the folder, or a file cannot be
            written.
    """
    if not root.is_dir() or PlacedList(root, writes=False).is_new:
        raise StoreError(f"{root} has no list of images that zsntta put there (verdicts.csv).")
    placed, undone = PlacedList(root, writes=not dry), Undone()
    with reporter.track("undo", len(placed.images)) as advance:
        for image in [*placed.images.values()]:
            if placed.has(image):
                _take_back(placed, image, undone, dry)
            advance(1)
    if not dry:
        placed.images = {copy: one for copy, one in placed.images.items() if copy in undone.left}
        _end(placed)
    return undone


def _take_back(placed: PlacedList, image: PlacedImage, undone: Undone, dry: bool) -> None:
    path = placed.root / image.copy
    if reason := _reason_to_stay(path, image):
        undone.left[image.copy] = reason
        return
    undone.images.append(image)
    undone.by_way[image.how] += 1
    if dry:
        return
    source = Path(image.source)
    if image.how == MOVE and digest_at(source) != image.content:  # it has come there, if killed
        with writing(source):
            source.parent.mkdir(parents=True, exist_ok=True)
            move_file(path, source, source.parent)
    else:
        with writing(path):
            path.unlink()
            if image.how == MOVE:
                sweep(source.parent)


def _reason_to_stay(path: Path, image: PlacedImage) -> str:
    if not is_as_put(path, image):
        return "it was changed after it was put there"
    if image.how == COPY and not original_is_there(image):
        return f"its original is gone or changed: {image.source}"
    if image.how == MOVE:
        source = Path(image.source)
        if (source.is_symlink() or source.exists()) and digest_at(source) != image.content:
            return f"something is in the way: {image.source}"
    return ""


def _end(placed: PlacedList) -> None:
    placed.remove_empty_folders()
    if placed.images:
        placed.end()
    else:
        placed.remove()
