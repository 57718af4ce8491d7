"""Corrupted test sets, named with corruption and severity: `cifar10-c:fog:1`, `imagenet-c:all:1`.

Benchmarking Neural Network Robustness to Common Corruptions and Perturbations
(arXiv:1903.12261). CIFAR-C has one .npy a corruption: the test set five times, by severity.
"""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.catalogue import CORRUPTIONS
from zsntta_cli.datasets.imagenet import names_by_wnid
from zsntta_cli.datasets.images import ImageSet, array_set
from zsntta_cli.datasets.known_sets import by_keys, existing, first_place
from zsntta_cli.datasets.tree import files_in
from zsntta_cli.errors import DatasetError

ALL, SEVERITIES = "all", 5  # the 15 corruptions one after the other
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")  # in the archives too


def parameters(name: str) -> tuple[tuple[str, ...], int]:
    """The corruptions and the severity that follow a set's name.

    Raises:
        DatasetError: they are missing or unknown.
    """
    base, *choices = name.split(":")
    corruption, severity = choices if len(choices) == 2 else ("", "")
    levels = [str(level) for level in range(1, SEVERITIES + 1)]
    if corruption not in (ALL, *CORRUPTIONS, *EXTRA) or severity not in levels:
        raise DatasetError(
            f"'{name}' must be {base}:CORRUPTION:SEVERITY, as in {base}:fog:1, with severity 1 to "
            f"{SEVERITIES} and corruption {ALL}, {', '.join((*CORRUPTIONS, *EXTRA))}."
        )
    return CORRUPTIONS if corruption == ALL else (corruption,), int(severity)


def imagenet_c(name: str, root: Path) -> ImageSet:
    """ImageNet-C: `imagenet-c/CORRUPTION/SEVERITY/WNID/*.JPEG`; of several, ids begin with that."""
    corruptions, severity = parameters(name)
    places = [f"imagenet-c/{corruption}/{severity}" for corruption in corruptions]
    by_prefix = {p if len(places) > 1 else "": existing(root / p) for p in places}
    return by_keys(name, by_prefix, names_by_wnid())


def cifar_c(
    name: str, root: Path, *, places: Sequence[str], class_names: Sequence[str]
) -> ImageSet:
    """CIFAR-10-C or CIFAR-100-C: `labels.npy` and one .npy a corruption, also in their tar.

    Raises:
        DatasetError: a file is missing, or its numbers are not those of CIFAR-C: labels (N,) and
            images (N, 32, 32, 3) of bytes, five severities one after the other.
    """
    corruptions, severity = parameters(name)
    place = first_place(root, places)
    files = {file.parts[-1]: file for file in files_in(place)}

    def array(file: str) -> NDArray[Any]:
        if file not in files:
            raise DatasetError(f"{place} has no {file}.")
        try:
            content: NDArray[Any] = np.load(io.BytesIO(files[file].read()))
        except (ValueError, EOFError) as error:
            raise DatasetError(f"{file} in {place} is broken or no .npy file.") from error
        size = len(content) // SEVERITIES
        return content[(severity - 1) * size : severity * size].copy()  # all is held no longer

    labels = array("labels.npy")
    blocks = [array(f"{corruption}.npy") for corruption in corruptions]
    shape = (len(labels), 32, 32, 3) if labels.ndim == 1 else ()
    if any(block.shape != shape or block.dtype != np.uint8 for block in blocks) or not len(labels):
        raise DatasetError(
            f"its .npy files are not CIFAR-C's: labels (N,) and images "
            f"(N, 32, 32, 3) of bytes, {SEVERITIES} severities one after the other."
        )
    ids = [f"{corruption}/{i:05d}" for corruption in corruptions for i in range(len(labels))]
    images = array_set(name, np.concatenate(blocks), np.tile(labels, len(blocks)), class_names)
    return replace(images, sample_ids=ids)
