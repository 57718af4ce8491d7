"""Checks of an exported file at its import: whether it still holds what was exported.

Any file can have a manifest, since it is text. Features, labels, class names and sample ids must
match the digests in it, so none of them was damaged, altered or swapped since. Who wrote the file
cannot be known, and the source of features that are made of it says so.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from zsntta_cli.cache.import_checks import ImportedRows, no_labels
from zsntta_cli.cache.import_readers import IDS, LABELS, NAMES, Content
from zsntta_cli.cache.manifest import KEY, Manifest, is_storable, names_digest, rows_digest
from zsntta_cli.datasets.images import numbered
from zsntta_cli.errors import StoreError, first_line, short

_DIGITS = 12  # of a digest in a note
_LONGEST = 4096  # bytes of a name: no file has a longer path


def exported_manifest(path: Path, content: Content, rows: ImportedRows) -> Manifest | None:
    """Read the manifest of an exported file; None if a file has none.

    Raises:
        StoreError: its arrays are not those that were exported, or no feature file can hold what
            the manifest says.
    """
    text = content.get(KEY)
    if text is None:
        return None
    try:
        manifest = Manifest.parse(str(text))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"cannot read {path} ({first_line(error)}): export it again.") from error
    if not _is_as_exported(manifest, content, rows):
        raise StoreError(
            f"{path} was altered since it was exported: export it again, or leave '{KEY}' out, "
            f"which says whose features they were."
        )
    manifest.check(path)
    _check_texts([*exported_names(content), *exported_ids(content, 0)], path)
    return manifest


def claim(path: Path, manifest: Manifest) -> str:
    """Say in a note what an exported file claims about its encoder."""
    encoder, sha256 = manifest.encoder, manifest.encoder.get("weights_sha256")
    weights = f", weights {short(sha256[:_DIGITS])}…" if sha256 else ""
    return (
        f"{path.name} says that it was exported from features of {short(str(encoder.get('model')))}"
        f"{weights}: nothing in it was altered since, who wrote it is not known"
    )


def _check_texts(texts: Iterable[str], path: Path) -> None:
    """Refuse class names and sample ids that no feature file can hold."""
    for text in texts:
        if not is_storable(text) or len(text.encode(errors="surrogateescape")) > _LONGEST:
            raise StoreError(
                f"{path} holds {short(ascii(text))}, must be a name of up to {_LONGEST:,} bytes."
            )


def _is_as_exported(manifest: Manifest, content: Content, rows: ImportedRows) -> bool:
    """Whether features, labels, class names and sample ids are those that were exported."""
    labels = content.get(LABELS[0])
    labels = no_labels(len(rows)) if labels is None else labels
    names, ids = exported_names(content), exported_ids(content, len(rows))
    return (
        labels.shape == (len(ids),) == (len(rows),)
        and labels.dtype == np.int32
        and names_digest(names, ids) == manifest.names_digest
        and rows_digest(rows.blocks(), labels) == manifest.digest
    )


def exported_names(content: Content) -> tuple[str, ...]:
    """The class names of an exported file, or none."""
    array = content.get(NAMES[0])
    return () if array is None else tuple(map(str, array.ravel().tolist()))


def exported_ids(content: Content, count: int) -> list[str]:
    """The sample ids of an exported file; numbers if it was exported without them."""
    array = content.get(IDS)
    return numbered(count) if array is None else list(map(str, array.ravel().tolist()))
