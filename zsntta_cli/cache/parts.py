"""Sets in parts: what all parts must agree in, and how one set is made of them.

The folder `NAME.parts/` beside `NAME.h5` has a feature file for each part (`00003.h5` is part 3)
and `identity.json`, which is written once and says the encoder, the set and the number of parts.
Features are not copied when parts are joined. The digest of the joined set is that of its shards'
digests in order, so it does not depend on the number of parts.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from zsntta_cli.addresses import fetch_file, read_text
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import SAME_ENCODER, FeatureSet, Header, PartFile, PartOf, difference
from zsntta_cli.cache.folder import part_path, parts_folder
from zsntta_cli.cache.mapped import MappedRows
from zsntta_cli.datasets.names import SIZES, SKIPPED
from zsntta_cli.errors import MissingParts, StoreError, first_line
from zsntta_cli.files import read_input, write_whole

_IDENTITY = "identity.json"
_LARGEST = 2**20  # bytes of identity.json
_MOST = 1_000_000  # parts


class PartsIdentity(NamedTuple):
    """The values in which all parts of a set agree."""

    encoder: Mapping[str, Any]
    source: Mapping[str, Any]  # of the whole set: its name and a digest of its shards
    of: int

    def difference(self, other: "PartsIdentity") -> str:
        """Say in which value another identity differs; empty if they agree."""
        if self.of != other.of:
            return f"{self.of:,} parts, not {other.of:,}"
        if mismatch := difference(self.encoder, other.encoder, SAME_ENCODER):
            return f"another encoder: {mismatch.key} is {mismatch.one}, not {mismatch.other}"
        if mismatch := difference(self.source, other.source, sorted({*self.source, *other.source})):
            return f"other images: {mismatch.key} is {mismatch.one}, not {mismatch.other}"
        return ""


def claim_parts(path: Path, identity: PartsIdentity) -> None:
    """Write the identity of the parts of the set at `path`, or check it against the one there.

    Raises:
        StoreError: the parts there are of another encoder or other images, or of another number.
    """
    file = parts_folder(path) / _IDENTITY
    if not file.exists():
        write_whole(file, json.dumps(identity._asdict(), sort_keys=True).encode())
    # Read it in any case: of two processes that begin at once, the later one has written it.
    if what := read_identity(path).difference(identity):
        raise StoreError(
            f"{file.parent} has parts that do not go with this one ({what}): remove the folder, or "
            f"take another --features-dir."
        )


def read_identity(path: Path) -> PartsIdentity:
    """Read the identity of the parts of the set at `path`.

    Raises:
        StoreError: there are no parts, or the identity file is broken.
    """
    file = parts_folder(path) / _IDENTITY
    if not file.exists():
        raise StoreError(f"no parts at {file.parent}", remedy="extract-parts")
    try:
        content = read_input(file, _LARGEST)
    except OSError as error:
        raise StoreError(f"cannot read {file} ({first_line(error)}).") from error
    return _identity(content, str(file))


def _identity(content: bytes, where: str) -> PartsIdentity:
    """Parse an identity file: StoreError if it is none."""
    try:
        values = json.loads(content)
        identity = PartsIdentity(dict(values["encoder"]), dict(values["source"]), int(values["of"]))
        if not (isinstance(identity.source["digest"], str) and 1 <= identity.of <= _MOST):
            raise ValueError("no digest, or no number of parts")
        return identity
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{where} is broken: remove it and extract again.") from error


def fetch_parts(address: str, path: Path, advance: Callable[[int], None]) -> None:
    """Fetch the parts of a set from an address into the parts folder of the set at `path`.

    Parts that exist are not fetched again, and what came of a file before an error is kept.

    Raises:
        StoreError: the parts are those of another set or encoder, are missing or cannot be read.
    """
    address = address.rstrip("/")
    content = read_text(f"{address}/{_IDENTITY}", _LARGEST)
    if content is None:
        raise StoreError(
            f"there is no {address}/{_IDENTITY}: the address must be that of NAME.parts."
        )
    claim_parts(path, _identity(content, f"{address}/{_IDENTITY}"))
    for number in range(1, read_identity(path).of + 1):
        file = part_path(path, number)
        fetch_file(f"{address}/{file.name}", file)
        advance(1)


def is_whole_part(path: Path, index: int, identity: PartsIdentity) -> bool:
    """Whether part `index` of the set at `path` exists.

    Raises:
        StoreError: it exists, but is broken or not the part that is meant.
    """
    file = part_path(path, index)
    if not file.exists():
        return False
    _Part.read(path, index, identity)
    return True


def join_parts(path: Path) -> FeatureSet:
    """Join the parts of `path` into one set, write it, and return it; no feature is read.

    Raises:
        StoreError: parts are missing, broken or of another encoder, set or number; or `path` is a
            set that was not joined from parts.
    """
    identity = read_identity(path)
    numbers = range(1, identity.of + 1)
    missing = tuple(number for number in numbers if not part_path(path, number).exists())
    if missing:
        raise MissingParts(path.stem, str(parts_folder(path)), missing, identity.of)
    check_not_whole(path)
    parts = [_Part.read(path, number, identity) for number in numbers]
    whole = _whole(path, identity, parts)
    labels = (hdf5.read_labels(part.file.path) for part in parts)
    hdf5.write_joined(path, whole, labels)
    return hdf5.read_features(path)


def check_not_whole(path: Path) -> None:
    """Refuse to replace a set that was extracted whole by parts.

    Raises:
        StoreError: there is such a set.
    """
    if path.exists() and not hdf5.read_header(path).parts:
        raise StoreError(
            f"{path} is there and was not made in parts: remove it, or take another --features-dir."
        )


class _Part(NamedTuple):
    """One part that is joined."""

    file: PartFile
    header: Header
    part: PartOf

    @classmethod
    def read(cls, path: Path, index: int, identity: PartsIdentity) -> "_Part":
        """Read a part without its rows, and check that it is the part that is meant."""
        file = part_path(path, index)
        header, part = hdf5.read_header(file), hdf5.read_part(file)
        if what := _other(header, part, index, identity):
            raise StoreError(f"{file} {what}: remove it, and extract part {index}/{identity.of}.")
        size = file.stat().st_size
        return cls(PartFile(file, header.images, size, header.digest), header, part)


def _other(header: Header, part: PartOf, index: int, identity: PartsIdentity) -> str:
    """Say what is wrong with the file of a part; empty if nothing is."""
    if (part.index, part.of) != (index, identity.of):
        return f"is part {part.index} of {part.of}"
    if mismatch := difference(header.identity, identity.encoder):
        return f"is of another encoder ({mismatch.key} is {mismatch.one}, not {mismatch.other})"
    if part.set_digest != identity.source["digest"]:
        return "is of other images"
    if sum(shard.images for shard in part.shards) != header.images:
        return "has other images than its shards"
    return ""


def _whole(path: Path, identity: PartsIdentity, parts: Sequence[_Part]) -> FeatureSet:
    """The set that the parts make together, without rows."""
    first = parts[0]
    for other in parts[1:]:
        _check_alike(first, other)
    content, _ = hdf5.read_without_rows(first.file.path)
    images = sum(part.file.images for part in parts)
    has_labels = any((hdf5.read_labels(part.file.path) >= 0).any() for part in parts)
    digest = hashlib.sha256(
        "".join(shard.digest for part in parts for shard in part.part.shards).encode()
    )
    rows = MappedRows([images], first.header.dim, content.image_features.dtype, _no_rows)
    return FeatureSet(
        path, content.kind, content.name, content.identity,
        {**_shared(parts), **identity.source, "images": images}, digest.hexdigest(), rows,
        content.labels, content.class_names if has_labels else (),
        content.text_features if has_labels else {}, content.normalized,
        max(part.header.created for part in parts), content.machine, content.text_scales,
        tuple(part.file for part in parts),
    )  # fmt: skip


def _shared(parts: Sequence[_Part]) -> dict[str, Any]:
    """The source values that all parts share, and the images that any of them left out.

    The range of image sizes is left out: each part found it from a sample of its own images.
    """
    first, *rest = (part.header.source for part in parts)
    same = {
        key: value
        for key, value in first.items()
        if key != SIZES and all(source.get(key) == value for source in rest)
    }
    skipped = [i for part in parts for i in part.header.source.get(SKIPPED, ())]
    return {**same, **({SKIPPED: skipped} if skipped else {})}


def _no_rows(_: int) -> Any:
    raise AssertionError("a set that is being joined has no rows")


def _check_alike(first: _Part, other: _Part) -> None:
    """Refuse a part whose features are of another form than those of the first part."""
    of_first = [getattr(first.header, name) for name in ("kind", "dim", "dtype", "normalized")]
    of_other = [getattr(other.header, name) for name in ("kind", "dim", "dtype", "normalized")]
    if of_first != of_other or first.header.classes != other.header.classes:
        raise StoreError(
            f"{other.file.path} and {first.file.path} do not go together (kind, dims, type and "
            f"number of classes are {of_other} {other.header.classes} and {of_first} "
            f"{first.header.classes}): remove the one that is wrong and extract it."
        )
