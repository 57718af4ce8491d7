"""The time that each step of `zsntta detect` takes, on a folder for the first and the second time.

Usage: photos.py [--photos 500] [--times 3]

Photos of 1600 x 1200 pixels are made and judged with the embedded encoder, whose own pass is the
fastest. A busy machine affects the processor's seconds least; wall-clock seconds are given, too.
The start, which loads torch, is a first run on one photo. The other steps are measured one after
the other in one thread, on every tenth photo, and extrapolated to all. The rest of the command's
seconds is spent in our own code.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.table import Table

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.settings import EncoderChoice

SMALL = 5_000  # pictures in the folder that is judged twice
DETECT = (sys.executable, "-m", "zsntta_cli", "detect", "photos", "--model", "tiny", "--classes",
          "circle,square", "--output", "rows.jsonl")  # fmt: skip


def photo(seed: int, width: int, height: int) -> bytes:
    """A JPEG of coloured clouds with the grain of a camera."""
    generator = np.random.default_rng(seed)
    cloud = Image.fromarray(generator.integers(0, 256, (12, 16, 3), np.uint8))
    smooth = np.asarray(cloud.resize((width, height), Image.Resampling.BICUBIC), np.float32)
    grain = generator.normal(0, 6, (height, width, 1)).astype(np.float32)
    content = io.BytesIO()
    Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8)).save(
        content, "JPEG", quality=88
    )
    return content.getvalue()


def run(folder: Path) -> tuple[float, float]:
    """The processor's seconds and the wall-clock seconds of one run of the command."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(DETECT, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    now = os.times()
    own = now.children_user + now.children_system - before.children_user - before.children_system
    return own, time.perf_counter() - started


def medians(folder: Path, times: int, is_first: bool = False) -> tuple[float, float]:
    """The median seconds of several runs; without features from before if it is a first run."""
    runs = []
    for _ in range(times):
        if is_first:
            shutil.rmtree(folder / "features", ignore_errors=True)
        runs.append(run(folder))
    own, clock = zip(*runs, strict=True)
    return median(own), median(clock)


def parts(files: list[Path]) -> dict[str, float]:
    """The median processor seconds that each step takes per photo."""
    encoder = load_encoder(EncoderChoice("tiny"), "cpu")

    def decoded(data: bytes) -> Image.Image:
        image = Image.open(io.BytesIO(data))
        image.load()
        return image

    contents = [file.read_bytes() for file in files]
    images = [decoded(content) for content in contents]
    pixels: list[NDArray[np.uint8]] = [encoder.resize(image) for image in images]
    encoder.encode_pixels(np.stack(pixels))
    steps: dict[str, Callable[[int], object]] = {
        "reading, SHA-256": lambda i: hashlib.sha256(files[i].read_bytes()).digest(),
        "decoding (Pillow)": lambda i: decoded(contents[i]),
        "resizing (Pillow)": lambda i: encoder.resize(images[i]),
    }
    each = {}
    for name, step in steps.items():
        seconds = []
        for i in range(len(files)):
            started = time.thread_time()
            step(i)
            seconds.append(time.thread_time() - started)
        each[name] = median(seconds)
    started = time.process_time()
    encoder.encode_pixels(np.stack(pixels))
    return each | {"the encoder": (time.process_time() - started) / len(files)}


def main(photos: int = 500, times: int = 3) -> None:
    """Measure, and print medians and shares."""
    table = Table(title=f"Medians of {times} runs")
    for head in ("", "processor s", "clock s", "share of the first run"):
        table.add_column(head, justify="left" if not head else "right")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "photos").mkdir()
        for i in range(photos):
            (folder / f"photos/{i:05}.jpg").write_bytes(photo(i, 1600, 1200))
        own, clock = medians(folder, times, is_first=True)
        table.add_row(f"first run, {photos:,} photos", f"{own:.1f}", f"{clock:.1f}", "100 %")
        each = parts(sorted((folder / "photos").iterdir())[::10])
        seconds = {name: photos * value for name, value in each.items()}
        for path in sorted((folder / "photos").iterdir())[1:]:
            path.unlink()
        seconds = {"start": medians(folder, times, is_first=True)[0], **seconds}
        seconds["our own code"] = own - sum(seconds.values())
        for part, value in seconds.items():
            table.add_row(f"  {part}", f"{value:.1f}", "", f"{100 * value / own:.0f} %")
        shutil.rmtree(folder / "photos")
        (folder / "photos").mkdir()
        for i in range(SMALL):
            (folder / f"photos/{i:05}.jpg").write_bytes(photo(i, 96, 64))
        time.sleep(5)  # files that were just written would be read again
        run(folder)
        own, clock = medians(folder, times)
        table.add_row(f"second run, {SMALL:,} photos", f"{own:.1f}", f"{clock:.1f}", "")
    Console(width=100).print(table)


if __name__ == "__main__":
    typer.run(main)
