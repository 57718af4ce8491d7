"""How much each corruption changes images, and how long it takes: PSNR (dB) by severity.

    python benchmarks/corruptions.py shapes --images 20
    python benchmarks/corruptions.py mine=photos --images 50 --after
    python benchmarks/corruptions.py cifar10 --images 1000      # beside cifar10-c, if there

Images are corrupted at their own size, or at 224 pixels. Of `cifar10` and `cifar100` the published
corrupted set is read too: its PSNR to the clean images follows in brackets, and the largest
difference stands below. It may be 0.5 dB but for frost, whose textures are others.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Column, Table

from zsntta_cli import datasets
from zsntta_cli.datasets.corruption import CORRUPTIONS, SEVERITIES, Corruption
from zsntta_cli.datasets.corruption.corrupting import corrupt, cropped
from zsntta_cli.datasets.images import subset
from zsntta_cli.errors import DatasetError

Images = Sequence[NDArray[np.uint8]]
LEVELS = range(1, SEVERITIES + 1)
OWN_TEXTURES = "frost"


def mean_psnr(clean: Images, others: Images) -> float:
    """The mean over images of the ratio of 255 to the error, in dB; 60 at most an image."""
    errors = [np.mean((a.astype(float) - b) ** 2) for a, b in zip(clean, others, strict=True)]
    return float(np.mean([10 * np.log10(255**2 / max(error, 0.065)) for error in errors]))


def published(name: str, rows: Sequence[int], root: Path) -> Images | None:
    """Images of a published set, if it is there."""
    try:
        images = datasets.load_images(name, root)
    except DatasetError:
        return None
    return [np.asarray(images.read(i)) for i in rows]


def main() -> None:
    """Print the table of a set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="a known set, or NAME=PATH")
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--data-root", type=Path, default=Path("data"))
    parser.add_argument("--after", action="store_true", help="after the resize to 224 pixels")
    asked = parser.parse_args()
    images = datasets.load_images(asked.name, asked.data_root)
    rows = subset(len(images), asked.images).tolist()
    pictures = [images.read(i).convert("RGB") for i in rows]
    clean = [np.asarray(cropped(image) if asked.after else image) for image in pictures]
    name_column = Column("Corruption", no_wrap=True)
    table = Table(name_column, *map(str, LEVELS), Column("ms an image", no_wrap=True))
    differences = {}
    for name in CORRUPTIONS:
        cells, started, spent = [], 0.0, 0.0
        for level in LEVELS:
            started = time.process_time()
            ours = mean_psnr(clean, [corrupt(image, Corruption(name, level)) for image in clean])
            spent += time.process_time() - started
            theirs = None
            if asked.name in ("cifar10", "cifar100") and not asked.after:
                theirs = published(f"{asked.name}-c:{name}:{level}", rows, asked.data_root)
            cells.append(f"{ours:.2f}")
            if theirs is not None:
                psnr = mean_psnr(clean, theirs)
                cells[-1] += f" ({psnr:.2f})"
                differences[name, level] = abs(ours - psnr)
        table.add_row(name, *cells, f"{1000 * spent / len(clean) / SEVERITIES:.1f}")
    Console(width=120).print(table)
    judged = {key: value for key, value in differences.items() if key[0] != OWN_TEXTURES}
    if judged:
        (name, level), most = max(judged.items(), key=lambda item: item[1])
        Console(width=120).print(
            f"largest difference but for {OWN_TEXTURES}: {most:.2f} dB ({name} {level})"
        )


if __name__ == "__main__":
    main()
