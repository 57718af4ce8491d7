"""A guard for HDF5 files by strangers: everything in a file is checked before it is read.

The guard refuses what would reach out of the file (external storage, links, virtual data sets,
filters by plug-ins) and what declares more than a file of its size can hold. All refusals are
ValueErrors. `hdf5.open_checked` makes one line of them, and of whatever else h5py raises.
"""

import json
import math
import zlib
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

# A file may be read up to 64 MiB, or up to 16 times its size if that is more.
_LEAST, _TIMES = 2**26, 16
_INSIDE = (h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED)
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
_ROWS = 4096  # strings at a time


class Budget:
    """The number of bytes that may still be read from a file."""

    def __init__(self, size: int) -> None:
        self.size, self.left = size, max(_LEAST, _TIMES * size)

    def take(self, count: int, what: str) -> None:
        """Count bytes that are to be read: ValueError if there are too many."""
        self.left -= count
        if self.left < 0:
            raise ValueError(f"'{what}' declares more than a file of {self.size:,} bytes can hold")


class GuardedGroup:
    """A group of a file; its content is read only through this class."""

    def __init__(self, group: h5py.Group, budget: Budget) -> None:
        self._group, self._budget = group, budget
        self._seen = dict[str, h5py.Dataset]()

    def __contains__(self, name: str) -> bool:
        return self._group.id.links.exists(name.encode())

    def groups(self, name: str) -> "Iterator[GuardedGroup]":
        """Give the groups within a group; none if there is no such group."""
        if name in self:
            within = GuardedGroup(self._member(name, h5py.Group), self._budget)
            for child in within._group:
                yield GuardedGroup(within._member(child, h5py.Group), self._budget)

    def tables(self) -> "Iterator[tuple[str, NDArray[Any] | tuple[str, ...]]]":
        """Read all data sets, by name: arrays of numbers and lists of texts."""
        for name in self._group:
            data = self._data_set(name)
            is_text = h5py.check_string_dtype(data.dtype) is not None
            yield name, self.strings(name) if is_text else self._numbers(name, data)

    def _numbers(self, name: str, data: h5py.Dataset) -> NDArray[Any]:
        if data.dtype.kind not in "fiub":
            raise ValueError(f"{name} is {data.dtype}, must be numbers")
        self._count(name, data)
        return data[()]

    def says(self, name: str) -> bool:
        """Whether the group has an attribute."""
        return bool(h5py.h5a.exists(self._group.id, name.encode()))

    def text(self, name: str) -> str:
        """Read an attribute that is a text."""
        value = self._attribute(name, "SO")
        text = value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
        if not isinstance(text, str):
            raise ValueError(f"its attribute '{name}' is no text")
        return text

    def mapping(self, name: str) -> dict[str, Any]:
        """Read an attribute that is a JSON object."""
        value = json.loads(self.text(name))
        if not isinstance(value, dict):
            raise ValueError(f"its attribute '{name}' is no JSON object")
        return value

    def number(self, name: str) -> int:
        """Read an attribute that is a whole number, or true or false."""
        return int(self._attribute(name, "iub"))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a data set."""
        return self._data_set(name).shape

    def count(self, name: str) -> int:
        """The number of texts in a data set (N,)."""
        data = self._data_set(name)
        if len(data.shape) != 1 or h5py.check_string_dtype(data.dtype) is None:
            raise ValueError(f"{name} is {data.dtype} {data.shape}, must be a list of texts")
        return len(data)

    def dtype(self, name: str) -> np.dtype[Any]:
        """The type of a data set's values."""
        return self._data_set(name).dtype

    def array(self, name: str, shape: tuple[int | None, ...], *dtypes: Any) -> NDArray[Any]:
        """Read a data set of numbers, of one of `dtypes`; None in `shape` stands for any length."""
        return self._checked(name, shape, *dtypes)[()]

    def _checked(self, name: str, shape: tuple[int | None, ...], *dtypes: Any) -> h5py.Dataset:
        data = self._data_set(name)
        fits = len(data.shape) == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, data.shape, strict=True)
        )
        if not fits or data.dtype not in dtypes:
            wanted = " or ".join(np.dtype(dtype).name for dtype in dtypes)
            lengths = ", ".join("any" if length is None else str(length) for length in shape)
            raise ValueError(
                f"{name} is {data.dtype} {data.shape}, must be {wanted} of shape ({lengths})"
            )
        self._count(name, data)
        return data

    def strings(self, name: str) -> tuple[str, ...]:
        """Read a data set of texts (N,)."""
        self.count(name)
        data = self._data_set(name)
        self._count(name, data)
        # Texts of variable length lie in a heap, where every row may name the same long text. Few
        # rows are read at a time, and the length of each text is counted.
        rows = _ROWS if data.dtype.kind == "S" else _TIMES
        texts: list[bytes] = []
        for start in range(0, len(data), rows):
            part = data[start : start + rows].tolist()
            if data.dtype.kind == "O":
                self._budget.take(sum(map(len, part)), name)
            texts += part
        return tuple(text.decode(errors="surrogateescape") for text in texts)

    def _attribute(self, name: str, kinds: str) -> Any:
        if not self.says(name):
            raise ValueError(f"it has no attribute '{name}'")
        attribute = h5py.h5a.open(self._group.id, name.encode())
        stored, kind = attribute.get_storage_size(), attribute.dtype.kind
        if attribute.shape != () or kind not in kinds or stored > self._budget.size:
            raise ValueError(f"its attribute '{name}' is of another type")
        self._budget.take(stored, name)
        if kind == "O":
            return self._group.attrs[name]
        value = np.empty((), attribute.dtype)
        attribute.read(value)
        return value[()]

    def _member(self, name: str, kind: type[Any]) -> Any:
        """Open a member of the group, which must lie in this file itself."""
        if name not in self:
            raise ValueError(f"it has no '{name}'")
        if self._group.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"'{name}' is a link, and links are not followed")
        member = self._group[name]
        if not isinstance(member, kind):
            raise ValueError(f"'{name}' is no {kind.__name__.lower()}")
        return member

    def _data_set(self, name: str) -> h5py.Dataset:
        """Open a data set that lies in this file, in one piece or in chunks, and check it once."""
        if name not in self._seen:
            self._seen[name] = self._member(name, h5py.Dataset)
            self._check_data_set(name, self._seen[name])
        return self._seen[name]

    def _check_data_set(self, name: str, data: h5py.Dataset) -> None:
        creation = data.id.get_create_plist()
        layout = creation.get_layout()
        if layout not in _INSIDE or creation.get_external_count():
            raise ValueError(f"'{name}' does not lie in the file as a plain data set")
        filters = [creation.get_filter(i)[0] for i in range(creation.get_nfilters())]
        if not set(filters) <= _FILTERS or len(set(filters)) < len(filters):
            raise ValueError(f"'{name}' is packed by something else than gzip")
        if data.shape is None:
            raise ValueError(f"'{name}' is empty")
        size = data.id.get_type().get_size()
        declared = math.prod(data.shape) * size
        if layout == h5py.h5d.CONTIGUOUS:
            stored = data.id.get_storage_size()
            # Kind "O" are texts of variable length, whose bytes lie in a heap beside the data set.
            short = stored < declared if data.dtype.kind == "O" else stored != declared
            if short or stored > self._budget.size:
                raise ValueError(f"'{name}' declares {declared:,} bytes, and {stored:,} are there")
        else:
            chunk = math.prod(data.chunks) * size
            # HDF5 takes the memory of a whole chunk, however few of its rows the data set has.
            if max(declared, chunk) > self._budget.left:
                self._budget.take(max(declared, chunk), name)
            if h5py.h5z.FILTER_DEFLATE in filters:
                _check_chunks(name, data, chunk, 1 << filters.index(h5py.h5z.FILTER_DEFLATE))

    def _count(self, name: str, data: h5py.Dataset) -> None:
        self._budget.take(math.prod(data.shape) * data.id.get_type().get_size(), name)


def _check_chunks(name: str, data: h5py.Dataset, size: int, not_packed: int) -> None:
    """Refuse a chunk that unpacks to more than its size and a checksum of four bytes.

    HDF5 would take the memory for all that is packed. So each chunk is unpacked here first, and no
    further than one byte beyond what is allowed.
    """
    for i in range(data.id.get_num_chunks()):
        mask, packed = data.id.read_direct_chunk(data.id.get_chunk_info(i).chunk_offset)
        unpacked = b"" if mask & not_packed else zlib.decompressobj().decompress(packed, size + 5)
        if len(unpacked) > size + 4:
            raise ValueError(f"'{name}' unpacks to more than it declares")
