"""The time of an extraction, stage by stage, compared with the encoder alone on ready tensors.

    .venv/bin/python benchmarks/extraction.py FOLDER --model ViT-B-16 --pretrained none

FOLDER is a folder or an archive of images, from which `--images` are taken (repeatedly if it has
fewer). Each stage is timed alone, then the whole extraction. Values are medians of `--rounds`.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from zsntta_cli import datasets
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.extraction.extractor import Extractor
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings


def repeated(images: ImageSet, count: int) -> ImageSet:
    rows = np.arange(count) % len(images)
    return replace(
        images,
        read=lambda i: images.read(int(rows[i])),
        labels=np.full(count, -1, np.int32),
        sample_ids=[str(i) for i in range(count)],
        class_names=(),
    )


def median_rate(work: Callable[[], object], images: int, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return images / statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--pretrained", default="openai")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    choice = EncoderChoice(options.model, options.pretrained)
    encoder = load_encoder(choice, options.device)
    images = repeated(datasets.load_images(f"bench={options.folder}", Path()), options.images)
    batches = range(0, options.images, options.batch_size)
    pictures = [images.read(i) for i in range(options.images)]
    pixels = np.stack([encoder.resize(picture) for picture in pictures])
    tensors = encoder.normalize(pixels)

    def encode() -> None:
        for start in batches:
            encoder.encode_images(tensors[start : start + options.batch_size])

    def extract() -> None:
        with tempfile.TemporaryDirectory() as root:
            settings = ExtractSettings(options.batch_size, features_dir=Path(root))
            extractor = Extractor(choice, settings, Reporter())
            extractor.encoder = encoder
            extractor.dataset(images)

    stages: dict[str, Callable[[], object]] = {
        "read and decode (one thread)": lambda: [images.read(i) for i in range(options.images)],
        "resize (one thread)": lambda: [encoder.resize(picture) for picture in pictures],
        "scale and normalise": lambda: encoder.normalize(pixels),
        "bare encoder on ready tensors": encode,
        "extraction, whole": extract,
    }
    encode()
    rates = {
        name: median_rate(work, options.images, options.rounds) for name, work in stages.items()
    }
    table = Table(title=f"{options.images} images, {choice.slug}", title_justify="left")
    for head in ("stage", "images/s", "of the bare encoder"):
        table.add_column(head, justify="left" if head == "stage" else "right")
    for name, rate in rates.items():
        share = rate / rates["bare encoder on ready tensors"]
        table.add_row(name, f"{rate:,.1f}", f"{share:.0%}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
