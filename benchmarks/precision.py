"""Images per second of an encoder in each precision, and how much its features change.

    .venv/bin/python benchmarks/precision.py --model ViT-B-16

By default the weights are random, which take as long as any others. Images are built-in shapes, and
features are compared with those in fp32. The precisions are measured alternately.
"""

import argparse
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from zsntta_cli.datasets.drawn.builtin import render
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.settings import EncoderChoice

PRECISIONS = ("fp32", "bf16", "amp")
WANTED = ("avx512_bf16", "amx_bf16")  # instructions that multiply such numbers
HEAD = ("precision", "images/s", "of fp32", "cosine", "least", "same class, %")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="ViT-B-16")
    parser.add_argument("--pretrained", default="none")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def instructions() -> str:
    """The wanted instructions that this processor has, according to Linux."""
    info = Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    return ", ".join(name for name in WANTED if name in flags) or "none that it says"


def seconds(encoder: Encoder, pixels: np.ndarray) -> float:
    began = time.perf_counter()
    encoder.encode_pixels(pixels)
    return time.perf_counter() - began


def main() -> None:
    chosen = options()
    encoders = {
        precision: load_encoder(
            EncoderChoice(chosen.model, chosen.pretrained, precision), chosen.device
        )
        for precision in PRECISIONS
    }
    images = render("shapes")
    pixels = np.stack([encoders["fp32"].resize(images.read(i)) for i in range(chosen.images)])
    text = encoders["fp32"].encode_texts([f"a photo of a {name}." for name in images.class_names])
    features = {name: encoder.encode_pixels(pixels) for name, encoder in encoders.items()}
    units = {name: rows / np.linalg.norm(rows, axis=1)[:, None] for name, rows in features.items()}
    times: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(chosen.rounds):  # alternating, because others may use the machine
        for name, encoder in encoders.items():
            times[name].append(seconds(encoder, pixels))
    middle = {name: statistics.median(times[name]) for name in encoders}
    threads = torch.get_num_threads()
    print(f"{chosen.model}, {threads} threads, {platform.machine()}, bf16: {instructions()}")
    print("".join(f"{head:>15}" for head in HEAD))
    for name in encoders:
        cosines = (units[name] * units["fp32"]).sum(axis=1)
        same = ((units[name] @ text.T).argmax(1) == (units["fp32"] @ text.T).argmax(1)).mean()
        cells = (
            name, f"{chosen.images / middle[name]:.1f}", f"{middle['fp32'] / middle[name]:.2f}",
            f"{cosines.mean():.5f}", f"{cosines.min():.5f}", f"{100 * same:.1f}",
        )  # fmt: skip
        print("".join(f"{cell:>15}" for cell in cells))


main()
