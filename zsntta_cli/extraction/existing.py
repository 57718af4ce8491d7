"""What lies where a feature file is to be made: what is asked for, or it is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zsntta_cli.cache import store
from zsntta_cli.cache.identity import check_same, difference
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.images import AS_SHOWN, ImageSet
from zsntta_cli.errors import StoreError


def other_type(path: Path, stored_type: object, store: str) -> StoreError:
    """The error for a file whose features are of another type than is asked for."""
    return StoreError(
        f"{path} has features in {stored_type}, and {store} is asked for", remedy="overwrite"
    )


def existing_features(path: Path, images: ImageSet, request: Mapping[str, Any]) -> Features | None:
    """The file's content; None if there is no file.

    Raises:
        StoreError: it is of other images or of another encoder.
    """
    if not path.exists():
        return None
    existing = store.read(path)
    check_same(path, existing.identity, request, request)
    if what := _describe_other(existing, images):
        raise StoreError(f"{path} was made from other images: {what}", remedy="overwrite")
    return existing


def _describe_other(existing: Features, images: ImageSet) -> str:
    """How the images of a feature file differ from these; empty if they are the same."""
    keys = [*images.identity(), AS_SHOWN]
    mismatch = difference(existing.source, images.identity(), keys)
    if mismatch is None:
        same = list(existing.class_names) == list(images.class_names)
        return "" if same else "the class names are others"
    if mismatch.key == "digest":
        return "names, sizes, labels or class names of files are others"
    if mismatch.key == AS_SHOWN:
        return "read " + ("as shown, now not" if mismatch.one else "as published, now as shown")
    before, now = ("all" if value is None else f"{value}" for value in mismatch[1:])
    return f"{mismatch.key} {before}, now {now}"
