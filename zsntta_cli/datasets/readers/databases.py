"""Images from an LMDB, as LSUN is published: a folder with data.mdb, a picture file to a key.

It is read where it lies. The package lmdb is an extra, and this the only module that knows it.
"""

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from zsntta_cli.datasets.images import ImageSet, StoredImages
from zsntta_cli.errors import DatasetError, first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE = "data.mdb"
# A process may open an LMDB once: sets of one share it.
_opened: "WeakValueDictionary[Path, Any]" = WeakValueDictionary()


def is_database(path: Path) -> bool:
    """Whether a folder is an LMDB."""
    return (path / _FILE).is_file()


def database(name: str, path: Path) -> ImageSet:
    """The images of an LMDB in the order of their keys, without labels; ids are the keys.

    Raises:
        DatasetError: the package lmdb is not there, or the database is broken, cut off or empty.
    """
    if find_spec("lmdb") is None:
        raise DatasetError(
            f"{name} is an LMDB, {path}, which the package lmdb reads: pip install 'zsntta[lsun]'."
        )
    environment = _open(name, path)
    with _broken_as(partial(_refused, name, path)), environment.begin(buffers=True) as reading:
        sizes = {bytes(key): len(value) for key, value in reading.cursor()}
    if not sizes:
        raise DatasetError(f"data set '{name}': no image in {path}.")
    stored = DatabaseImages(environment, list(sizes))
    return ImageSet(
        name,
        stored,
        np.full(len(sizes), -1, np.int32),
        [stored.path(i) for i in range(len(sizes))],
        fingerprint=",".join(map(str, sizes.values())),
    )


@dataclass(frozen=True)
class DatabaseImages(StoredImages):
    """Reads image i of the keys of an LMDB."""

    environment: Any
    keys: Sequence[bytes]

    def path(self, i: int) -> str:
        """The key."""
        return self.keys[i].decode(errors="surrogateescape")

    def source(self, i: int) -> bytes:
        """The value of a key."""
        with _broken_as(OSError), self.environment.begin() as reading:
            value: bytes | None = reading.get(self.keys[i])
        if value is None:
            raise OSError("the database has lost it")
        return value


def _open(name: str, path: Path) -> Any:
    """An LMDB to read from, which is all there."""
    import lmdb

    place = path.resolve()
    environment = _opened.get(place)
    if environment is None:
        with _broken_as(partial(_refused, name, path)):
            environment = lmdb.open(str(place), readonly=True, lock=False, readahead=False)
            pages = environment.info()["last_pgno"] + 1
            whole = pages * environment.stat()["psize"]
        held = (place / _FILE).stat().st_size
        if held < whole:  # a page that is not there ends the process
            raise _refused(name, path, f"it is cut off: {held:,} of {whole:,} bytes")
        _opened[place] = environment
    return environment


@contextmanager
def _broken_as(error: Any) -> "Iterator[None]":
    """Raise an error of ours for what lmdb raises of a broken database."""
    import lmdb

    try:
        yield
    except lmdb.Error as broken:
        raise error(first_line(broken)) from broken


def _refused(name: str, path: Path, reason: str) -> DatasetError:
    return DatasetError(f"data set '{name}': {path} is no whole LMDB ({reason}): get it again.")
