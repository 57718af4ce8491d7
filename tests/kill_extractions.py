"""Kill an extraction twenty times at random moments, finish it, compare with an undisturbed one.

Children are forked from a process that has torch imported but not used, so that a kill lands in
the work and not in the start of Python. Usage: kill_extractions.py FOLDER [KILLS]
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import open_clip  # noqa: F401
import torch  # noqa: F401

from zsntta_cli import datasets, store
from zsntta_cli.datasets.images import limited
from zsntta_cli.encoder import load_encoder
from zsntta_cli.extract import Extractor
from zsntta_cli.progress import ConsoleReporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings

KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
TINY = EncoderChoice("tiny")
SETTINGS = ExtractSettings(batch_size=10, workers=2)


def extract(root: Path) -> None:
    images = limited(datasets.load_images("glyphs", Path()), 2_000)
    load = lambda: load_encoder(TINY, "cpu")  # noqa: E731
    Extractor(TINY, load, root, SETTINGS, ConsoleReporter()).dataset(images)


def in_child(root: Path, seconds: float | None) -> float:
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        extract(root)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert seconds is not None or status == 0
    return time.monotonic() - started


def main() -> None:
    folder = Path(sys.argv[1])
    whole_run = in_child(folder / "whole", None)
    chance = random.Random(0)
    path = store.feature_path(folder / "killed", "tiny", "glyphs")
    kills = 0
    while kills < KILLS:
        path.unlink(missing_ok=True)  # it may have been quicker than the kill
        in_child(folder / "killed", chance.uniform(0, 1.2) * whole_run / 4)
        kills += 1
        if path.exists():
            store.read_features(path)  # absent or whole
    in_child(folder / "killed", None)
    reference = store.feature_path(folder / "whole", "tiny", "glyphs")
    one, other = store.read_features(reference), store.read_features(path)
    assert one.digest == other.digest
    assert one.image_features.tobytes() == other.image_features.tobytes()
    assert store.read_sample_ids(reference) == store.read_sample_ids(path)
    assert sorted(p.name for p in path.parent.iterdir()) == [".glyphs.lock", "glyphs.h5"]
    print(f"{kills} kills, digest {one.digest}")


if __name__ == "__main__":
    main()
