"""NINCO, arXiv 2306.00826: only the OOD classes of what is published are the set.

Beside them its archive has subsamples of other data sets, and unit tests.
"""

from pathlib import Path

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.readers.archives import archive, kind_of
from zsntta_cli.datasets.readers.folders import folder, require_path

_CLASSES = "NINCO_OOD_classes"
_FOLDERS = ("NINCO", ".", "NINCO/*", "NINCO_all", "NINCO_all/*")  # where it is looked for


def ood_classes(name: str, root: Path) -> ImageSet:
    """The images of the OOD classes, of a folder or an archive."""
    for place in _FOLDERS:
        for path in sorted(root.glob(f"{place}/{_CLASSES}")):
            return folder(name, path)
    packed = [p for top in ("NINCO", "NINCO_all") for p in sorted(root.glob(f"{top}.*"))]
    for path in filter(kind_of, packed):
        return archive(name, path, within=_CLASSES)
    return folder(name, require_path(root / "NINCO" / _CLASSES))
