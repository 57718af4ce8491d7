"""Images from a .tar or a .zip: read in place, nothing is unpacked, no link is followed.

An archive is what its folder would be: the same labels, order, sample ids and digest.
"""

import math
import shlex
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.hidden import hidden_part
from zsntta_cli.datasets.images import SUFFIXES, ImageSet, StoredImages
from zsntta_cli.datasets.left_out import LeftOut
from zsntta_cli.datasets.readers.folders import by_folder, folder, no_image, require_path
from zsntta_cli.datasets.readers.levels import Place, at_level, literal
from zsntta_cli.datasets.readers.members import BROKEN, COMPRESSED, KINDS, Member, Read
from zsntta_cli.errors import DatasetError, first_line

BAD_NPY = (ValueError, EOFError, SyntaxError, TokenError)  # NumPy's own of an .npy that is none
_LARGEST = 2**30  # bytes of a member: more is no image, but a bomb


def is_archive(path: Path) -> bool:
    """Whether a path is to be read here, and not as a folder."""
    return not path.is_dir() and (path.is_file() or bool(kind_of(path)))


def archive(name: str, path: Path, within: str = "") -> ImageSet:
    """The images of an archive: folders below the one that all images share are labels.

    `within`: where it has a folder of this name, only what is in it is the set.

    Raises:
        DatasetError: not there, cut off, of another kind, without images, or with images beside
            class folders.
    """
    return archived(name, path, *open_archive(name, path), within=within)


def archived(
    name: str,
    path: Path,
    members: Sequence[Member],
    read: Read,
    *,
    within: str = "",
    above: Place = (),
) -> ImageSet:
    """The images of an archive that was opened; `above` are folders above those of its classes."""
    every, left_out = images_among(members), LeftOut()
    for member in members:
        if PurePosixPath(member.path).parts not in every:
            left_out.add(member.path)
    images = {parts: every[parts] for parts in every if within in parts[:-1]} or every
    if not images:
        raise no_image(name, path, left_out)
    shared = dict(zip(images, below_common_folder(list(images)), strict=True))
    below = at_level(list(shared.values()), above)
    if above and not below:  # named from the archive's root
        shared = {parts: parts for parts in images}
        below = at_level(list(images), above)
    if not below:
        raise no_image(name, path.joinpath(*above), left_out)
    left_out.add_others([place for place in shared.values() if place not in below])
    chosen = {place: images[parts] for parts, place in shared.items() if place in below}
    labels, class_names = by_folder(name, path, list(below.values()))
    ids = ["/".join(place[literal(above) :]) for place in below]
    found = member_images(
        name, [(read, member) for member in chosen.values()], labels, ids, class_names
    )
    origin = "the folders" if class_names else ""
    return replace(found, labels_from=origin, left_out=left_out.words())


def folder_or_archive(name: str, root: Path, *, path: str) -> ImageSet:
    """The images of a known set: of a folder `path` under the data root, or its archive.

    The archive has the name of the path's first folder, as `imagenet-o.tar` has.
    """
    packed = [p for p in sorted(root.glob(f"{path.partition('/')[0]}.*")) if kind_of(p)]
    if packed and not (root / path).exists():
        return archive(name, packed[0])
    return folder(name, require_path(root / path))


@dataclass(frozen=True)
class MemberImages(StoredImages):
    """Reads image i of a list of members, each with what reads it."""

    members: Sequence[tuple[Read, Member]]

    def path(self, i: int) -> str:
        """The member's path."""
        return self.members[i][1].path

    def source(self, i: int) -> bytes:
        """The member's content."""
        read, member = self.members[i]
        if member.size > _LARGEST:
            raise OSError(f"{member.size:,} bytes are no image")
        return read(member)


def member_images(
    name: str,
    members: Sequence[tuple[Read, Member]],
    labels: Sequence[int],
    ids: Sequence[str],
    class_names: Sequence[str],
) -> ImageSet:
    """A set of members of archives, with what was found out of them."""
    stored = MemberImages(members)
    return ImageSet(
        name,
        stored,
        np.array(labels, np.int32),
        ids,
        class_names,
        fingerprint=",".join(str(member.size) for _, member in members),
        reading=stored.reading(len(members)),
    )


def kind_of(path: Path) -> str:
    """The ending that says what kind of archive a path is; nothing of another file."""
    return next((kind for kind in KINDS if path.name.lower().endswith(kind)), "")


def open_archive(name: str, path: Path, kind: str = "") -> tuple[list[Member], Read]:
    """The regular files of an archive, by its ending or of a `kind`, and what reads one of them.

    Raises:
        DatasetError: not there, cut off, or of another kind.
    """
    if not path.is_file():
        raise DatasetError(f"data set '{name}': there is no file {path}.")
    kind = kind or kind_of(path)
    if not kind and path.name.lower().endswith(COMPRESSED):
        where = f"{shlex.quote(str(path))} -C {shlex.quote(str(path.parent))}"
        raise DatasetError(f"data set '{name}': unpack {path} first: tar -xzf {where}")
    if not kind:
        raise DatasetError(
            f"data set '{name}': cannot read {path}: give a folder or a file with one of the "
            f"endings {', '.join(KINDS)}."
        )
    try:
        return KINDS[kind](path)
    except (OSError, *BROKEN) as error:
        raise DatasetError(
            f"data set '{name}': {path} is no whole {kind} archive ({first_line(error)}): get it "
            f"again."
        ) from error


def images_among(
    members: Sequence[Member], suffixes: Set[str] = SUFFIXES
) -> dict[tuple[str, ...], Member]:
    """The images by the parts of their path, sorted; of two with one path the later, as tar has it.

    Without what is hidden, and without paths that lead out of the archive.
    """
    return {p: one for p, one in sorted_members(members).items() if _is_image(p, suffixes)}


def sorted_members(members: Sequence[Member]) -> dict[tuple[str, ...], Member]:
    """Members by the parts of their path, sorted; of two with one path the later, as tar has it.

    Without paths that lead out of the archive.
    """
    by_parts = {PurePosixPath(member.path).parts: member for member in members}
    return {parts: by_parts[parts] for parts in sorted(by_parts) if _is_within(parts)}


def _is_within(parts: tuple[str, ...]) -> bool:
    return bool(parts) and parts[0] != "/" and ".." not in parts


def _is_image(parts: tuple[str, ...], suffixes: Set[str]) -> bool:
    if hidden_part(parts) is not None:
        return False
    return PurePosixPath(parts[-1]).suffix.lower() in suffixes


def array_in(name: str, path: Path, file: str) -> NDArray[Any]:
    """An .npy of a plain .tar, by its name; its numbers are read from the disk as they are used.

    Raises:
        DatasetError: no whole tar, without such a file, or that is no .npy.
    """
    members, _ = open_archive(name, path, ".tar")
    member = next((m for m in members if PurePosixPath(m.path).name == file), None)
    if member is None:
        raise DatasetError(f"data set '{name}': {path} has no {file}.")
    try:
        return _mapped(path, member)
    except BAD_NPY as error:
        raise DatasetError(f"data set '{name}': {file} in {path} is broken or no .npy.") from error


def _mapped(path: Path, member: Member) -> NDArray[Any]:
    with path.open("rb") as tar:
        tar.seek(member.offset)
        is_first = np.lib.format.read_magic(tar) == (1, 0)
        header = (
            np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
        )
        shape, is_fortran, kind = header(tar)
        start = tar.tell()
    if kind.hasobject or start + kind.itemsize * math.prod(shape) > member.offset + member.size:
        raise ValueError("it ends before its numbers do")
    order: Literal["F", "C"] = "F" if is_fortran else "C"
    return np.memmap(path, kind, "r", start, shape, order)


def below_common_folder(places: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Paths without the folders that all have in common; sorted, so the ends tell."""
    first, last, depth = places[0][:-1], places[-1][:-1], 0
    while depth < min(len(first), len(last)) and first[depth] == last[depth]:
        depth += 1
    return [place[depth:] for place in places]
