"""LSUN's 10,000 test images in three variants: at full size, ODIN's crops, ODIN's small ones.

ODIN is arXiv 1706.02690. Which of them the paper's "LSUN" is, its text does not say.
"""

from pathlib import Path

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.archives import folder_or_archive
from zsntta_cli.datasets.readers.databases import database, is_database
from zsntta_cli.datasets.readers.folders import folder, images_in
from zsntta_cli.errors import DatasetError

_DATABASES = ("lsun", "lsun/test_lmdb", "test_lmdb")
_PACKED_DATABASES = ("lsun/test_lmdb.zip", "test_lmdb.zip")


def full_size(name: str, root: Path) -> ImageSet:
    """The test set as published, an LMDB, or its images in a folder or an archive."""
    for place in _DATABASES:
        if is_database(root / place):
            return database(name, root / place)
    for place in _PACKED_DATABASES:
        if (root / place).is_file() and not _has_images(root / "lsun"):
            raise DatasetError(
                f"{name} is an LMDB, which is not read within a zip: unpack it by unzip "
                f"{root / place} -d {(root / place).parent}"
            )
    return folder_or_archive(name, root, path="lsun")


def _has_images(path: Path) -> bool:
    return path.is_dir() and bool(images_in(path))


def odin(name: str, root: Path, *, path: str) -> ImageSet:
    """One of ODIN's variants: images at `path`, in the folder above it, or in its archive."""
    top = root / path.partition("/")[0]
    if top.is_dir() and not (root / path).is_dir():
        return folder(name, top)
    return folder_or_archive(name, root, path=path)
