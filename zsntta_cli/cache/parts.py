"""Sets in parts: what all parts must agree in, and how one set is made of them.

The folder `NAME.parts/` beside `NAME.h5` has a feature file for each part (`00003.h5` is part 3)
and `identity.json`, which is written once and says the encoder, the set and the number of parts.
A joined set is a feature file like any other, and does not depend on the number of its parts; the
parts stay where they are until somebody removes them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import part_path, parts_folder
from zsntta_cli.cache.identity import check_same, difference
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.names import SIZES, SKIPPED
from zsntta_cli.errors import MissingParts, StoreError, first_line
from zsntta_cli.files import read_input, write_whole

_IDENTITY = "identity.json"
_LARGEST = 2**20  # bytes of identity.json
_MOST = 1_000_000  # parts
_SHARDS = "shards"  # in the source of a set that was joined, their number


class PartsIdentity(NamedTuple):
    """The values in which all parts of a set agree."""

    encoder: Mapping[str, Any]
    source: Mapping[str, Any]  # of the whole set: its name and a digest of its shards
    of: int

    def difference(self, other: "PartsIdentity") -> str:
        """Say in which value another identity differs; empty if they agree."""
        if self.of != other.of:
            return f"{self.of:,} parts, not {other.of:,}"
        if differs := difference(self.encoder, other.encoder):
            return f"another encoder: {differs}"
        if differs := difference(self.source, other.source, sorted({*self.source, *other.source})):
            return f"other images: {differs}"
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
    try:
        values = json.loads(content)
        identity = PartsIdentity(dict(values["encoder"]), dict(values["source"]), int(values["of"]))
        if not (isinstance(identity.source["digest"], str) and 1 <= identity.of <= _MOST):
            raise ValueError("no digest, or no number of parts")
        return identity
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{file} is broken: remove it and extract again.") from error


def read_part(path: Path, index: int, identity: PartsIdentity) -> Features | None:
    """Read the description of part `index` of the set at `path`; None if there is no such part.

    Raises:
        StoreError: it exists, but is broken or not the part that is meant.
    """
    file = part_path(path, index)
    if not file.exists():
        return None
    features = store.read(file, rows=False)
    then = f"remove it, and extract part {index}/{identity.of}"
    if features.part is None or (features.part.index, features.part.of) != (index, identity.of):
        what = f"part {features.part.index} of {features.part.of}" if features.part else "no part"
        raise StoreError(f"{file} is {what}: {then}.")
    check_same(file, features.identity, identity.encoder, then=then)
    if features.part.set_digest != identity.source["digest"]:
        raise StoreError(f"{file} is of other images: {then}.")
    return features


def join_parts(path: Path) -> Features:
    """Join the parts of `path` into one set, write it, and return its description.

    Raises:
        StoreError: parts are missing, broken or of another encoder, set or number; or `path` is a
            set that was not joined from parts.
    """
    identity = read_identity(path)
    every = {i: read_part(path, i, identity) for i in range(1, identity.of + 1)}
    missing = tuple(i for i, part in every.items() if part is None)
    if missing:
        raise MissingParts(path.stem, str(parts_folder(path)), missing, identity.of)
    check_not_whole(path)
    parts = [part for part in every.values() if part]
    first = store.read(parts[0].path)
    for other in parts[1:]:
        _check_alike(first, other)
    labels = np.concatenate([part.labels for part in parts])
    has_labels = bool((labels >= 0).any())
    whole = replace(
        first, path=path, labels=labels, image_features=first.image_features[:0], part=None,
        source={**_shared(parts), **identity.source, "images": len(labels)},
        class_names=first.class_names if has_labels else (),
        texts=first.texts if has_labels else {}, created=max(part.created for part in parts),
    )  # fmt: skip
    files = [part.path for part in parts]
    ids = [*chain.from_iterable(map(store.read_sample_ids, files))]
    return replace(
        whole, digest=store.write(whole, ids, (store.read(file).image_features for file in files))
    )


def is_joined(path: Path) -> bool:
    """Whether the set at `path` exists and was joined from parts."""
    return path.exists() and _SHARDS in store.read(path, rows=False).source


def check_not_whole(path: Path) -> None:
    """Refuse to replace a set that was extracted whole by parts.

    Raises:
        StoreError: there is such a set.
    """
    if path.exists() and not is_joined(path):
        raise StoreError(
            f"{path} is there and was not made in parts: remove it, or take another --features-dir."
        )


def _shared(parts: Sequence[Features]) -> dict[str, Any]:
    """The source values that all parts share, and the images that any of them left out.

    The range of image sizes is left out: each part found it from a sample of its own images.
    """
    first, *rest = (part.source for part in parts)
    same = {
        key: value
        for key, value in first.items()
        if key != SIZES and all(source.get(key) == value for source in rest)
    }
    skipped = [i for part in parts for i in part.source.get(SKIPPED, ())]
    return {**same, **({SKIPPED: skipped} if skipped else {})}


def _check_alike(first: Features, other: Features) -> None:
    """Refuse a part whose features are of another form than those of the first part."""
    of_first, of_other = (
        (part.kind, part.dim, part.image_features.dtype.name, part.normalized, part.class_names)
        for part in (first, other)
    )
    if of_first != of_other:
        raise StoreError(
            f"{other.path} and {first.path} do not go together: kind, dims, type or classes are "
            f"others. Remove the one that is wrong and extract it."
        )
