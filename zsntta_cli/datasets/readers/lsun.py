"""LSUN's 10,000 test images in ODIN's two variants, crops and small ones (arXiv 1706.02690)."""

from pathlib import Path

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.archives import folder_or_archive
from zsntta_cli.datasets.readers.folders import folder


def odin(name: str, root: Path, *, path: str) -> ImageSet:
    """One of ODIN's variants: images at `path`, in the folder above it, or in its archive."""
    top = root / path.partition("/")[0]
    if top.is_dir() and not (root / path).is_dir():
        return folder(name, top)
    return folder_or_archive(name, root, path=path)
