"""Copies of images in a new folder, one folder per class, with a list of their originals.

The folder is absent or complete: it gets its name once everything is in it, and no existing folder
is ever written to.
"""

import contextlib
import csv
import errno
import hashlib
import io
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from zsntta_cli.detection.sources import Photo
from zsntta_cli.detection.verdicts import NOISE, UNSURE, Row
from zsntta_cli.errors import StoreError, printable, short
from zsntta_cli.files import scratch, sync, take_name, writing
from zsntta_cli.progress import Reporter

LIST = "verdicts.csv"
COLUMNS = ("source", "copy", "answer", "class", "margin")
_FOLDERS = {NOISE: "_noise", UNSURE: "_unsure"}  # of what is not said to be of a class
_LONGEST = 80  # characters of a folder's name
_NOT_WRITABLE = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)  # of names, on some file systems
_NO_FILE = "no separate files"  # why an image is not copied


def check_is_new(root: Path) -> None:
    """Refuse a folder that is not empty, before an image is judged.

    Raises:
        StoreError: something is there, and it is not replaced.
    """
    with writing(root):
        is_empty = root.is_dir() and not any(root.iterdir())
    if os.path.lexists(root) and not is_empty:
        raise StoreError(
            f"{root} already exists, but copies need a new folder: name another one, or remove "
            f"it first."
        )


def folder_names(classes: Sequence[str]) -> dict[str, str]:
    """Folder names by class: safe, all different, and different from the reserved names."""
    folders: dict[str, str] = {}
    used = {*_FOLDERS.values(), LIST}
    for name in classes:
        plain = re.sub(r"[^\w .-]", "_", name).strip(" .")[:_LONGEST] or "class"
        folder, number = plain, 1
        while folder.casefold() in used:
            number += 1
            folder = f"{plain}-{number}"
        used.add(folder.casefold())
        folders[name] = folder
    return folders


def copy_photos(
    root: Path, pairs: Iterable[tuple[Photo, Row]], classes: Sequence[str], reporter: Reporter
) -> None:
    """Copy images to ROOT/<class>/, ROOT/_noise/ and ROOT/_unsure/, where ROOT is new.

    Raises:
        StoreError: it cannot be written, or something else took its name meanwhile.
    """
    judged = [pair for pair in pairs if pair[1]["error"] is None]
    target, folders = Path(os.path.realpath(root)), folder_names(classes)
    numbers, not_copied = Counter[str](), defaultdict[str, list[str]](list)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\r\n")  # so that either of the two is quoted in a name
    table.writerow(COLUMNS)
    with writing(root):
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            scratch(target.parent, is_folder=True) as folder,
            reporter.track("copies", len(judged)) as advance,
        ):
            for photo, row in judged:
                content, reason = _content(photo, row)
                name = _FOLDERS.get(row["answer"]) or folders[row["class"]]
                try:
                    copy = "" if reason else _written(content, folder, name, photo, numbers)
                except OSError as error:
                    if error.errno not in _NOT_WRITABLE:
                        raise
                    reason = "the file system refuses such a name"
                if reason:
                    not_copied[reason].append(photo.source)
                else:
                    source = os.path.abspath(photo.source)
                    table.writerow([source, copy, row["answer"], row["class"], row["margin"]])
                advance(1)
            if numbers:
                (folder / LIST).write_bytes(os.fsencode(text.getvalue()))
                sync(folder / LIST)
                check_is_new(root)
                take_name(folder, target)
    reporter.note(f"{root}: {len(judged) - sum(map(len, not_copied.values())):,} copied.")
    for reason, sources in not_copied.items():
        first = f", the first: {short(sources[0], 200)}" if reason != _NO_FILE else ""
        reporter.note(printable(f"note: {len(sources):,} not copied: {reason}{first}."))


def _content(photo: Photo, row: Row) -> tuple[bytes, str]:
    """The content of an image that was judged, or why it is not copied."""
    if photo.file is None or row["content"] is None:
        return b"", _NO_FILE
    try:
        content = photo.read()
    except OSError:
        return b"", "gone after they were judged"
    is_same = hashlib.sha256(content).hexdigest() == row["content"]
    return content, "" if is_same else "changed after they were judged"


def _written(content: bytes, root: Path, folder: str, photo: Photo, numbers: Counter[str]) -> str:
    """Write a copy, with a number where its name is taken, and return its place below the root."""
    (root / folder).mkdir(exist_ok=True)
    stem, ending = os.path.splitext(PurePath(photo.source).name)
    while True:
        key = f"{folder}/{stem}{ending}".casefold()  # some file systems tell no cases apart
        numbers[key] += 1
        copy = f"{folder}/{stem}{f'-{numbers[key]}' * (numbers[key] > 1)}{ending}"
        with contextlib.suppress(FileExistsError):
            write_copy(content, root / copy, photo)
            return copy


def write_copy(content: bytes, path: Path, photo: Photo) -> None:
    """Write a new file that nobody sees more of than of its original, as old if it is all of that.

    A member of an archive has the archive's permissions and the current time. A file system that
    knows no permissions, or no times, as FAT, refuses to set them.
    """
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
    with contextlib.suppress(OSError):
        (shutil.copymode if photo.member else shutil.copystat)(photo.file or "", path)
        path.chmod(path.stat().st_mode & 0o777)  # none that a program would have
    sync(path)
