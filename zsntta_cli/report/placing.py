"""Files are put and renamed one at a time, without replacing or losing any.

A new file gets its name by a hard link, which fails if the name is taken. A kill between any two
steps leaves each content under at least one name.
"""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
from pathlib import Path

from zsntta_cli.files import open_regular, scratch_file, sync, writing
from zsntta_cli.report.placed_list import PlacedImage

_LONGEST_NAME = 255  # bytes of a file's name, on most file systems
_LONGEST_ENDING = 40  # bytes of an ending, as far as it is kept
_SHORT_NAME = 60  # characters of a name that was made writable
_PRIVATE, _USUAL = 0o600, 0o666  # permissions of a new file
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}  # of a file system or a file


def digest_at(path: Path) -> str | None:
    """The SHA-256 of a regular file; None if there is no file, or a link to one."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with os.fdopen(open_regular(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def is_as_put(path: Path, image: PlacedImage) -> bool:
    """Whether a file is still what was put there, unchanged."""
    return digest_at(path) == image.content


def original_is_there(image: PlacedImage) -> bool:
    """Whether the original of a copy still exists: the last copy is never removed."""
    source = Path(image.source)
    try:
        content = digest_at(source.resolve(strict=True))
    except (OSError, RuntimeError):  # a member of an archive, or nothing
        return any(parent.is_file() for parent in source.parents)
    return content == image.content


def write_new(
    content: bytes, path: Path, scratch: Path, original: Path | None = None, is_whole: bool = False
) -> None:
    """Write a new file as a whole or not at all, with at most the permissions of its original.

    A copy of a whole original also gets its times; a copy of a member of an archive has the current
    time.

    Raises:
        FileExistsError: the name is taken. OSError: the file cannot be written.
    """
    with scratch_file(scratch, _PRIVATE if original else _USUAL) as temporary:
        temporary.write_bytes(content)
        if original:
            _take_rights(original, temporary, is_whole)
        sync(temporary)
        give_name(temporary, path)


def _take_rights(original: Path, path: Path, is_whole: bool) -> None:
    """Give a file the permissions of its original, and the times where it is all of it.

    A file system that knows no permissions, or no times, as FAT, refuses to set them.
    """
    with contextlib.suppress(OSError):
        (shutil.copystat if is_whole else shutil.copymode)(original, path)
        path.chmod(path.stat().st_mode & 0o777)  # none that a program would have


def is_unwritable(error: OSError) -> bool:
    """Whether a file system refuses a name: too long, or with characters that it lacks."""
    return error.errno in (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


def numbered_name(name: str, number: int) -> str:
    """A file's name with a number, shortened before the number if it would be too long."""
    stem, suffix = os.path.splitext(name)
    end = f"-{number}{_cut(suffix, _LONGEST_ENDING)}"
    return f"{_cut(stem, _LONGEST_NAME - len(os.fsencode(end)))}{end}"


def writable_name(name: str, digest: str) -> str:
    """A name that any file system takes: short, of plain characters, with digits of the content."""
    stem, suffix = os.path.splitext(name)
    plain_stem, plain_suffix = (re.sub(r"[^A-Za-z0-9_.-]+", "_", text) for text in (stem, suffix))
    begin = plain_stem[:_SHORT_NAME].strip("._") or "image"
    return f"{begin}-{digest[:12]}{plain_suffix[:8].rstrip('.')}"


def _cut(text: str, most: int) -> str:
    """The beginning of a text that takes at most `most` bytes in a file's name."""
    while text and len(os.fsencode(text)) > most:
        text = text[:-1]
    return text


def give_name(old: Path, path: Path) -> None:
    """Give a file a second name that nothing has; the file may then lose its first one.

    Raises:
        FileExistsError: the name is taken. OSError: the name cannot be given.
    """
    try:
        os.link(old, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(old, path)  # which would replace what came since the line before


def rename_new(old: Path, path: Path) -> None:
    """Move a file within one file system to a name that nothing has.

    Raises:
        FileExistsError: the name is taken. OSError: the file cannot be moved.
    """
    give_name(old, path)
    sync(path.parent)
    with writing(old):
        old.unlink(missing_ok=True)  # gone already where it was renamed
