"""The ImageNet family: a folder a class, labels in ImageNet's standard order.

`imagenet_classes.tsv` has the 1000 wnids (from timm, Apache-2.0) with the curated names of CLIP
(from open_clip, MIT) and marks the 200 classes of ImageNet-A and of ImageNet-R.
"""

import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.known_sets import by_keys, existing, first_place
from zsntta_cli.errors import DatasetError, first_line

_TABLE = Path(__file__).with_name("imagenet_classes.tsv")


@cache
def names_by_wnid(subset: str = "") -> dict[str, str]:
    """The 1000 class names by their wnids, in standard order; the 200 of subset "a" or "r"."""
    lines = _TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {wnid: name for wnid, name, subsets in rows if subset in subsets}


def by_wnid(name: str, root: Path, *, places: Sequence[str], subset: str = "") -> ImageSet:
    """The images of a set with one folder a wnid, in a folder or an archive."""
    return by_keys(name, {"": first_place(root, places)}, names_by_wnid(subset))


def by_number(name: str, root: Path, *, places: Sequence[str]) -> ImageSet:
    """ImageNet-V2: the folders are the labels '0' to '999', so '10' is no neighbour of '1'."""
    names = {str(label): name for label, name in enumerate(names_by_wnid().values())}
    return by_keys(name, {"": first_place(root, places)}, names)


def validation(name: str, root: Path) -> ImageSet:
    """The validation set: `imagenet/val/` by wnid.

    It is made once of the tar of all images and the devkit, by torchvision.

    Raises:
        DatasetError: the devkit is not there, or one of them is not the published file.
    """
    folder = root / "imagenet"
    if not (folder / "val").exists() and (folder / "ILSVRC2012_img_val.tar").is_file():
        from torchvision.datasets import imagenet

        begun = folder / ".val.unpacking"
        try:
            imagenet.parse_devkit_archive(folder)
            _, wnids = imagenet.load_meta_file(folder)
            imagenet.parse_val_archive(folder, wnids=wnids, folder=begun.name)
            os.rename(begun, folder / "val")
        except (RuntimeError, OSError) as error:
            raise DatasetError(first_line(error)) from error
        finally:
            shutil.rmtree(begun, ignore_errors=True)
    return by_keys(name, {"": existing(folder / "val")}, names_by_wnid())
