"""Notes on a set's classes, given before its images are encoded, which may take hours."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.folders import deeper_classes
from zsntta_cli.errors import counted, short

_SHOWN = 5  # names


def class_notes(images: ImageSet, path: Path | None) -> Iterator[str]:
    """How many classes a set has, the first of them, and whether others seem to be meant.

    `path`: the folder of the user's own images. There are no notes on known OOD sets.
    """
    names = images.class_names
    if names and (path or datasets.has_text(images)):
        yield f"note: {images.name}: {counted(len(names), 'class', 'classes')}: {_first(names)}"
    deeper = deeper_classes(images.sample_ids) if path else None
    if deeper:
        folder = f"--dataset {images.name}={path}/{deeper.above}"
        where = folder if path and path.is_dir() else f"unpack it and name its {deeper.above}"
        yield (
            f"note: the {len(names):,} class folders of {images.name} hold "
            f"{len(deeper.names):,} folders of images ({_first(deeper.names)}). If those are the "
            f"classes, name the folder above them: {where}"
        )


def _first(names: Sequence[str]) -> str:
    return ", ".join(map(short, names[:_SHOWN])) + ", …" * (len(names) > _SHOWN)
