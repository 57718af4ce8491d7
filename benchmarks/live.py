"""Time and memory of live methods, compared with a plain version like the released code.

It prints the paper's runtime table (seconds per sample, peak memory) for K classes, where half of
the samples are noise. Both versions run one after the other on the same images, each in its own
process. For AdaND, "plain" is ZS-CLIP: both encode live, alternating in one process.
Usage: live.py [--model tiny] [--model ViT-B-16] [--classes 10] [--method tent] [--runs 3]
               [--device cuda] [--samples 512]
On a GPU the memory is the peak that torch allocated there.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from PIL import Image
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

PROMPT = "a photo of a {}."
# Samples of a run, fewer if a plain pass takes longer. The gt pipeline adapts on exactly half of
# them, whatever random weights decide.
SAMPLES = {"tiny": {"tent": 256, "sotta": 128, "tpt": 32, "adand": 256},
           "big": {"tent": 64, "sotta": 4, "tpt": 4, "adand": 32}}  # fmt: skip
FROZEN = "adand"  # its plain version is ZS-CLIP: both encode each image once
MEASURED = (FROZEN, "tent", "sotta", "tpt")
PLAIN, OURS = "plain", "zsntta"


def live_data(encoder, samples: int, classes: int):  # type: ignore[no-untyped-def]
    """Noise pictures of ImageNet's size; the features are cached, as always."""
    from zsntta_cli.datasets import known_sets
    from zsntta_cli.datasets.images import ImageSet
    from zsntta_cli.methods.base import StreamData
    from zsntta_cli.methods.live.base import LiveData
    from zsntta_cli.settings.prompts import class_prompts

    generator = np.random.default_rng(0)
    pictures = [
        Image.fromarray(generator.integers(0, 256, (375, 500, 3), np.uint8)) for _ in range(8)
    ]
    ids = [str(i) for i in range(samples)]
    images = ImageSet("bench", lambda i: pictures[i % 8], np.full(samples, -1, np.int32), ids)
    some = encoder.encode_pixels(np.stack([encoder.resize(picture) for picture in pictures]))
    features = some[np.arange(samples) % 8]
    names = [*known_sets.names_by_wnid().values()][:classes]
    text = encoder.encode_texts(class_prompts(PROMPT, names))
    scale = encoder.identity["logit_scale"]
    stream = StreamData.scored(features, text, scale)
    truly_clean = np.arange(samples) % 2 == 0
    return LiveData(
        stream, encoder, images, names, PROMPT, truly_clean=truly_clean, view_seeds=range(samples)
    )


def settings(method: str, samples: int):  # type: ignore[no-untyped-def]
    from zsntta_cli.simulation.runs import build_run

    every: dict[str, Any] = {"update_every": min(samples, 64)} if method == "sotta" else {}
    gt: dict[str, Any] = {"pipeline": "gt"} if method in ("tent", "sotta", "tpt") else {}
    batch: dict[str, Any] = {"batch_size": 64} if method == "tent" else {}
    confident: dict[str, Any] = (
        {"confidence": 0.0} if method == "sotta" else {}
    )  # random weights are not confident
    return build_run(method, "", "bench", None, PROMPT, **gt, **batch, **every, **confident)


def frozen(data, samples: int) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """ZS-CLIP and AdaND on live images, in turn on each image: seconds per sample."""
    from zsntta_cli.methods import METHODS

    times: dict[str, list[float]] = {"zs-clip": [], "adand": []}
    for i, image in data.batches([np.array([i]) for i in range(samples)]):
        for encoded in list(times.values())[:: 1 if i[0] % 2 else -1]:  # neither is always second
            started = time.perf_counter()
            data.encoder.encode_images(image)
            encoded.append(time.perf_counter() - started)
    seconds = []
    for method, encoded in times.items():
        run, chosen = settings(method, samples), METHODS[method]  # imported before it is timed
        started = time.perf_counter()
        chosen(data.stream, run.options, run.threshold).push(data.stream)
        replay = time.perf_counter() - started
        seconds.append(statistics.median(encoded) + replay / samples)
    return seconds[0], seconds[1]


def one(model: str, classes: int, device: str, samples: int, method: str, version: str) -> None:
    """Run once, and print seconds per sample and peak memory."""
    import plain_live
    import torch

    from zsntta_cli.encoders.clip import load_encoder
    from zsntta_cli.methods import METHODS
    from zsntta_cli.settings import EncoderChoice

    weights = "openai" if model == "tiny" else "none"
    encoder = load_encoder(EncoderChoice(model, weights), device)
    samples = samples or SAMPLES["tiny" if model == "tiny" else "big"][method]
    data, run = live_data(encoder, samples, classes), settings(method, samples)
    if method == FROZEN:
        print(json.dumps([[seconds, peak_memory(device)] for seconds in frozen(data, samples)]))
        return
    if device != "cpu":
        torch.cuda.synchronize()
    started = time.perf_counter()
    if version == PLAIN:
        plain_live.PLAIN[method](data, run)
    else:
        live: Any = METHODS[method]
        list(live(data, run.options, run.threshold).run())
    seconds = time.perf_counter() - started
    print(json.dumps([[seconds / samples, peak_memory(device)]]))


def peak_memory(device: str) -> float:
    """The peak memory of the process, or of torch on the GPU, in GiB."""
    if device == "cpu":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    import torch

    return torch.cuda.max_memory_allocated() / 2**30


def measured(
    model: str, classes: int, device: str, samples: int, method: str
) -> list[tuple[float, float] | None]:
    """Seconds per sample and GiB, of the plain version and of ours."""
    versions = (OURS,) if method == FROZEN else (PLAIN, OURS)
    run = (model, str(classes), device, str(samples), method)
    return [pair for version in versions for pair in in_child(*run, version)]


def in_child(*arguments: str) -> list[tuple[float, float] | None]:
    """The output of a separate process; None if it was killed because memory ran out."""
    command = [sys.executable, __file__, "--one", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return [None]
    if done.returncode:
        raise SystemExit(done.stderr)
    return [(seconds, peak) for seconds, peak in json.loads(done.stdout.splitlines()[-1])]


def medians(runs: list[tuple[float, float] | None]) -> tuple[float, float] | None:
    known = [run for run in runs if run is not None]
    if len(known) < len(runs) or not runs:
        return None
    return statistics.median(r[0] for r in known), max(r[1] for r in known)


def main(
    model: Annotated[list[str] | None, typer.Option()] = None,
    classes: Annotated[list[int] | None, typer.Option()] = None,
    method: Annotated[list[str] | None, typer.Option()] = None,
    runs: int = 3,
    device: str = "cpu",
    samples: int = 0,
) -> None:
    """Measure and print."""
    table = Table(title="Seconds a sample and peak memory (GiB), 50 % noise")
    for head in ("model", "K", "method", "plain", "GiB", "zsntta", "GiB", "ratio"):
        table.add_column(head, justify="left" if head in ("model", "method") else "right")
    for name in model or ("tiny", "ViT-B-16"):
        for count in classes or (10, 100, 1000):
            for what in method or MEASURED:
                both = [measured(name, count, device, samples, what) for _ in range(runs)]
                plain, ours = (medians([run[i] for run in both]) for i in (0, 1))
                cells = [
                    text
                    for pair in (plain, ours)
                    for text in ((f"{pair[0]:.4f}", f"{pair[1]:.2f}") if pair else ("-", "-"))
                ]
                ratio = f"{ours[0] / plain[0]:.3f}" if plain and ours else "-"
                table.add_row(name, str(count), what, *cells, ratio)
                print(name, count, what, *cells, ratio, file=sys.stderr, flush=True)
    Console(width=100).print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), *sys.argv[6:8])
    else:
        typer.run(main)
