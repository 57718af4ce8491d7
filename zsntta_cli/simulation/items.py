"""The OOD images of a stream from a list, one image per line, instead of drawn ones.

The released code of the paper has such lists as pickles: for each pair and each OOD:ID ratio, the
numbers of the images that take part. Pickles are not read here; a folder has the lists as text
files, ODDS/ID_OOD.txt, such as 0.33/cifar10_svhn.txt.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.store import Features, read_sample_ids
from zsntta_cli.datasets.names import SKIPPED, SetName
from zsntta_cli.errors import SettingsError, StoreError, first_line
from zsntta_cli.files import read_input
from zsntta_cli.settings import NATURAL, Ratio, ood_share, ratio_text

_MOST = 2**28  # bytes of a list


@dataclass(frozen=True)
class ListedItems:
    """The OOD images that a list names and that the set has."""

    rows: NDArray[np.int64]  # in the OOD set's file, in the list's order; an image may come again
    lacking: tuple[str, ...]  # lines that name no image of the set
    digest: str  # SHA-256 (hex) of the list


def list_path(folder: Path, id_set: str, ood_set: str, ratio: Ratio) -> Path:
    """Where a folder has the list for a pair at a noise ratio.

    Raises:
        SettingsError: the ratio is natural, which takes every image.
    """
    if ratio == NATURAL:
        raise SettingsError(
            f"ratio is {NATURAL}, which takes all images of both sets: omit --ood-items."
        )
    share = ood_share(ratio)
    pair = f"{SetName.parse(id_set).base}_{SetName.parse(ood_set).base}.txt"
    return folder / f"{round(share / (1 - share), 2):g}" / pair


def read_items(folder: Path, id_set: str, ood: Features, ratio: Ratio) -> ListedItems:
    """Read the list for a pair: images by their sample ids, or by their numbers from 0.

    Raises:
        SettingsError: there is no list for the pair.
        StoreError: the list is not text, or names no image of the set.
    """
    path = list_path(folder, id_set, ood.name, ratio)
    try:
        content = read_input(path, _MOST)
        names = [line.strip() for line in content.decode().splitlines() if line.strip()]
    except FileNotFoundError:
        raise SettingsError(
            f"--ood-items has no list for '{id_set}' with '{ood.name}' at a ratio of "
            f"{ratio_text(ratio)}: write one to {path}, with one image per line."
        ) from None
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read the list {path}: {first_line(error)}") from error
    if all(map(str.isdecimal, names)):
        if ood.source.get(SKIPPED) or ood.source.get("limit"):
            raise StoreError(
                f"{path} numbers images of the whole set, but {ood.path} has only part: "
                "extract it without --limit and --skip-broken, or list image names."
            )
        row_of = {str(row): row for row in range(len(ood))}
    else:
        row_of = {name: row for row, name in enumerate(read_sample_ids(ood.path))}
    rows = [row_of[name] for name in names if name in row_of]
    if not rows:
        raise StoreError(
            f"{path} names no image of '{ood.name}': a line must be an image's name in the set or "
            f"its number, from 0 to {len(ood) - 1}."
        )
    lacking = tuple(dict.fromkeys(name for name in names if name not in row_of))
    return ListedItems(np.array(rows, np.int64), lacking, hashlib.sha256(content).hexdigest())
