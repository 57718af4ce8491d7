"""Whether what is cached already is what is asked for, of the same encoder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import FeatureSet
from zsntta_cli.cache.folder import stored
from zsntta_cli.cache.identity import difference
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.errors import StoreError


def check_folder(root: Path, folder: str, identity: Mapping[str, Any]) -> None:
    """A folder holds the features of one encoder, and weights behind a name may change."""
    for other in stored(root, folder):
        if other.header and (found := difference(other.header.identity, identity)):
            raise StoreError(
                f"{other.path} was made by another encoder than this is now ({found.key}: "
                f"{found.one}, now {found.other})",
                remedy="other-folder",
            )


def check_encoder(existing: FeatureSet, request: Mapping[str, Any]) -> None:
    """Refuse features of another encoder than the one asked for."""
    if found := difference(existing.identity, request, request):
        raise StoreError(
            f"{existing.path} was made by another encoder ({found.key} is {found.one}, not "
            f"{found.other})",
            remedy="other-folder",
        )


def existing_features(
    path: Path, images: ImageSet, request: Mapping[str, Any]
) -> FeatureSet | None:
    """The file's content; None where there is no file.

    Raises:
        StoreError: it is of other images or of another encoder.
    """
    if not path.exists():
        return None
    existing = hdf5.read_features(path)
    check_encoder(existing, request)
    if what := _other(existing, images):
        raise StoreError(f"{path} was made from other images: {what}", remedy="overwrite")
    return existing


def _other(existing: FeatureSet, images: ImageSet) -> str:
    """What of a feature file's images is other than of these; nothing if they are the same."""
    found = difference(existing.source, images.identity(), images.identity())
    if found is None:
        same = list(existing.class_names) == list(images.class_names)
        return "" if same else "the class names are others"
    if found.key == "digest":
        return "names, sizes, labels or class names of files are others"
    one, other = ("all" if value is None else f"{value}" for value in found[1:])
    return f"{found.key} {one}, now {other}"
