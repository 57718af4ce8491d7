"""The content of a feature file in memory, and its encoder's identity; hdf5.py writes the file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.names import DATASET, NOISE, WORDS
from zsntta_cli.settings import CHECKPOINT, hub_folder

__all__ = ["DATASET", "NOISE", "WORDS", "FeatureSet", "Header", "PartOf", "Rows", "Text"]


@dataclass(frozen=True)
class PartOf:
    """The part of a set that a file has."""

    index: int  # from 1
    of: int  # the number of parts
    set_digest: str  # of the images of the whole set


@dataclass(frozen=True)
class FeatureSet:
    """The content of one feature file in memory, without its sample ids."""

    path: Path
    kind: str
    name: str
    identity: dict[str, Any]  # of the encoder
    source: dict[str, Any]
    digest: str  # sha256 over features and labels
    image_features: NDArray[np.floating]  # (N, D) float16 or float32, raw unless `normalized`
    labels: NDArray[np.int32]  # (N,), -1 = none
    class_names: tuple[str, ...]
    text_features: dict[str, NDArray[np.float32]]  # by template: (C, D) unit norm
    normalized: bool = False
    created: str = ""
    machine: dict[str, Any] = field(default_factory=dict)  # what made it
    text_scales: dict[str, float] = field(default_factory=dict)  # logit scales of some templates

    def model(self, template: str) -> dict[str, Any]:
        """The encoder's identity, with the logit scale that belongs to a template."""
        return with_scale(self.identity, self.text_scales.get(template))

    def texts(self, classes: Sequence[int] | slice = slice(None)) -> "list[Text]":
        """The text features of some classes, under all templates."""
        return [
            Text(template, text[classes], self.text_scales.get(template))
            for template, text in self.text_features.items()
        ]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def dim(self) -> int:
        """The dimensions of an image's features, D."""
        return int(self.image_features.shape[1])


def with_scale(identity: Mapping[str, Any], scale: float | None) -> dict[str, Any]:
    """Replace an encoder's logit scale, and drop its bias; None leaves the identity as it is."""
    replaced = {} if scale is None else {"logit_scale": scale, "logit_bias": None}
    return {**identity, **replaced}


class Rows:
    """Image features of several files, one below the other, converted to float32 on demand.

    Like an array it can be indexed by a slice or by row numbers, and has a shape and a length.
    """

    def __init__(
        self, parts: Sequence[NDArray[np.floating]], factors: Sequence[float] = ()
    ) -> None:
        """`parts` are features (N, D); `factors` are numbers by which each part is multiplied."""
        self._parts, self._factors = parts, np.array(factors or [1] * len(parts), np.float32)
        self._dtype = np.result_type(*(part.dtype for part in parts))
        self._starts = np.cumsum([0, *map(len, parts)])
        self.shape = int(self._starts[-1]), parts[0].shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> NDArray[np.float32]:
        numbers = _row_numbers(rows, len(self))
        stored = np.empty((len(numbers), self.shape[1]), self._dtype)
        for i, here in _places_in(self._starts, numbers):
            stored[here] = self._parts[i].take(numbers[here] - self._starts[i], axis=0)
        features = float32_of(stored)
        if (self._factors == 1).all():
            return features
        part_of = np.searchsorted(self._starts, numbers, side="right") - 1
        return features * self._factors[part_of, None]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("rows are made when asked for: there is no array without a copy")
        return self[:].astype(dtype or np.float32, copy=False)


def _row_numbers(rows: slice | NDArray[np.integer], count: int) -> NDArray[np.integer]:
    """Turn a slice of `count` rows, or numbers that may count from the end, into numbers from 0."""
    if isinstance(rows, slice):
        return np.arange(*rows.indices(count))
    beyond = rows[(rows < -count) | (rows >= count)]
    if len(beyond):
        raise IndexError(f"index {beyond[0]} is out of bounds for {count:,} rows")
    return np.where(rows < 0, rows + count, rows)


def _places_in(
    starts: NDArray[np.integer], rows: NDArray[np.integer]
) -> Iterator[tuple[int, slice | NDArray[np.integer]]]:
    """Find which of `rows` (M,) lie in each of N runs, which begin at `starts` (N + 1,).

    Give the number of each run with its places in `rows`: a slice if rows are in ascending order.
    """
    if len(rows) and (rows[1:] >= rows[:-1]).all():
        bounds = np.searchsorted(rows, starts)
        for i in np.flatnonzero(np.diff(bounds)).tolist():
            yield i, slice(bounds[i], bounds[i + 1])
        return
    run_of = np.searchsorted(starts, rows, side="right") - 1
    for i in np.flatnonzero(np.bincount(run_of)).tolist():  # np.unique would import numpy.ma
        yield i, np.flatnonzero(run_of == i)


@dataclass(frozen=True)
class Text:
    """The class text features of one prompt template."""

    template: str
    features: NDArray[np.float32]  # (C, D) unit norm
    logit_scale: float | None = None  # classes that are made of photos have their own


@dataclass(frozen=True)
class Header:
    """The description of a feature file, without its arrays."""

    kind: str
    images: int
    dim: int
    dtype: str
    classes: int
    templates: tuple[str, ...]
    normalized: bool
    created: str
    identity: dict[str, Any]  # of the encoder
    digest: str  # sha256 over features and labels
    text_digests: tuple[str, ...]  # sha256 over the text features of each template
    text_scales: dict[str, float]  # of templates that have a logit scale of their own
    source: dict[str, Any]  # of the images


_EXPONENT = np.float32(2.0**112)
_SIGN_AND_MAGNITUDE = np.int32(~0x70000000)  # bits 28 to 30 have copies of the sign
_INFINITE = 0x7C00  # the bits of infinity as a half; those of NaN are larger
_CHUNK = 2**16  # numbers at a time: they stay in the processor's cache
_TINY = np.float32(2.0**-136)  # the smallest half with the wrong exponent: a subnormal float32


def float32_of(
    values: NDArray[np.floating], out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Convert values (N, D) to float32, exactly as `astype` does; `out` takes them if given.

    For float16 this takes a quarter of the time of NumPy's cast. The bits of a half, moved 13
    places up, are those of a float32 whose exponent is 112 too small. A product with 2**112
    corrects that, for the subnormal numbers of float16 too.
    """
    if out is None:
        out = np.empty(values.shape, np.float32)
    if values.dtype != np.float16 or not out.size or not _TINY * _EXPONENT:
        # The last condition: a library has told the processor to take subnormal numbers for 0.
        out[...] = values
        return out
    rows = max(1, _CHUNK // (out.size // len(out)))
    for start in range(0, len(out), rows):
        part = slice(start, start + rows)
        _widen(values[part], out[part])
    return out


def _widen(halves: NDArray[np.float16], out: NDArray[np.float32]) -> None:
    signed, unsigned = halves.view(np.int16), halves.view(np.uint16)
    if signed.max() >= _INFINITE or unsigned.max() >= _INFINITE + 2**15:
        out[...] = halves
        return
    bits = out.view(np.int32)
    bits[...] = signed
    bits <<= 13
    bits &= _SIGN_AND_MAGNITUDE
    out *= _EXPONENT


# The keys in which two encoders' identities must agree for their features to be in one stream.
SAME_ENCODER = (
    "model", "weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing",
    "logit_scale", "logit_bias",
)  # fmt: skip


class Difference(NamedTuple):
    """The first key in which two identities differ, and both values."""

    key: str
    one: Any
    other: Any


def difference(
    one: Mapping[str, Any], other: Mapping[str, Any], keys: Iterable[str] = SAME_ENCODER
) -> Difference | None:
    """Find the first of `keys` whose values differ; None if all agree.

    A model in a folder counts as the same model when the folder has moved.
    """
    for key in keys:
        if without_place(one.get(key), LOCAL_DIR) != without_place(other.get(key), LOCAL_DIR):
            return Difference(key, one.get(key), other.get(key))
    return None


IMPORTED = "imported"  # replaces the weights' tag of an encoder that is only known by its name
LOCAL_DIR = "local-dir:"  # open_clip's own word for a model in a folder


def without_place(name: Any, prefix: str = "") -> Any:
    """The name of a model or its weights, without the folders of the machine it lay on."""
    if not isinstance(name, str):
        return name
    if prefix == LOCAL_DIR and (folder := hub_folder(name)):
        return f"{CHECKPOINT}./{folder.name}"
    if not name.startswith(prefix):
        return name
    return prefix + PurePath(name.removeprefix(prefix)).name


def public_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An encoder's identity without the folders of this machine."""
    prefixes = {"model": LOCAL_DIR, "pretrained": ""}
    names = {
        key: without_place(identity[key], prefixes[key]) for key in identity if key in prefixes
    }
    return {**identity, **names}


def names_a_folder(sample_id: str) -> bool:
    """Whether a sample id is an absolute path, which names folders of this machine."""
    return PurePosixPath(sample_id).is_absolute() or PureWindowsPath(sample_id).is_absolute()
