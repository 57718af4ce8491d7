"""Kill an extraction a hundred times at random, let it finish, compare with an undisturbed one.

All is real but for the images, which lie in memory, and the encoder, which costs nothing: a child
is forked in no time and a kill lands in the work. Every other kill waits for the assembly of the
feature file, which random times alone would seldom meet. `--tiny` takes the embedded encoder.
Usage: kill_extractions.py FOLDER [KILLS] [--tiny]
"""

import os
import random
import select
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from forks import TINY, Means, Noon, forked, was_killed
from PIL import Image

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.datasets.images import ImageSet, numbered
from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.extraction.extractor import Extractor
from zsntta_cli.progress import ConsoleReporter
from zsntta_cli.settings import ExtractSettings

KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 100
KILLS_A_FILE = 6  # then the extraction may finish, and its file is compared
SETTINGS = ExtractSettings(batch_size=4, workers=2)
BATCH = 4 * 512 * 2  # bytes: half a batch may be cut off
BEFORE, ASSEMBLY, AFTER = "before", "in", "after"  # where in its work a child died
WRITE = store.write


def make_images() -> ImageSet:
    pixels = np.random.default_rng(0).integers(0, 256, (240, 32, 32, 3), np.uint8)
    labels = np.arange(len(pixels), dtype=np.int32) % 3
    read = lambda i: Image.fromarray(pixels[i])  # noqa: E731
    return ImageSet("pets", read, labels, numbered(len(pixels)), ["cat", "dog", "ox"])


def make_encoder():
    if "--tiny" not in sys.argv:
        return Means()
    import torch

    torch.set_num_threads(1)  # more would not outlive a fork
    encoder = load_encoder(TINY, "cpu")
    encoder.encode_pixels(np.zeros((SETTINGS.batch_size, 32, 32, 3), np.uint8))
    return encoder


def extract(images: ImageSet, encoder, root: Path, pipe: int) -> None:
    """What a child does; it says when the assembly of the file starts and when it is over."""

    def write(*args, **kwargs):
        os.write(pipe, b"a")
        digest = WRITE(*args, **kwargs)
        os.write(pipe, b"b")
        return digest

    store.write = write
    extractor = Extractor(TINY, replace(SETTINGS, features_dir=root), ConsoleReporter())
    extractor.encoder = encoder
    extractor.dataset(images, ["a photo of a {}."])


class Victim:
    """An extraction in a process of its own."""

    def __init__(self, *work) -> None:
        self._pipe, end = os.pipe()
        self._id = forked(lambda: extract(*work, end))
        os.close(end)

    def finish(self) -> tuple[float, float]:
        """Let it finish; gives how long it took until the assembly, and from there to its end."""
        started = time.monotonic()
        os.read(self._pipe, 1)
        assembly = time.monotonic()
        assert not was_killed(self._id)
        os.close(self._pipe)
        return assembly - started, time.monotonic() - assembly

    def kill(self, seconds: float, in_assembly: bool) -> str:
        """Kill it after some time, from its start or from that of the assembly."""
        if in_assembly:
            os.read(self._pipe, 1)
            time.sleep(seconds)
        else:
            select.select([self._pipe], [], [], seconds)  # it may be quicker
        os.kill(self._id, signal.SIGKILL)
        os.waitpid(self._id, 0)
        said = (b"a" if in_assembly else b"") + os.read(self._pipe, 2)
        os.close(self._pipe)
        return {b"": BEFORE, b"a": ASSEMBLY, b"ab": AFTER}[said]


def kept_at(path: Path) -> int:
    """Bytes of finished rows."""
    rows = path.with_name(f".{path.stem}.rows")
    return rows.stat().st_size if rows.exists() else 0


def main() -> None:
    store.datetime = Noon
    folder, chance, landed = Path(sys.argv[1]), random.Random(0), Counter()
    work = make_images(), make_encoder()
    undisturbed = [Victim(*work, folder / f"whole-{i}").finish() for i in range(3)]
    encoding, assembly = map(min, zip(*undisturbed, strict=True))
    reference = feature_path(folder / "whole-0", "tiny", "pets")
    path = feature_path(folder / "killed", "tiny", "pets")
    print(f"undisturbed: {encoding:.3f} s and {assembly:.3f} s", file=sys.stderr)
    for kill in range(KILLS):
        kept, in_assembly = kept_at(path), kill % KILLS_A_FILE >= KILLS_A_FILE // 2
        seconds = chance.uniform(0, assembly if in_assembly else encoding / 3)
        where = Victim(*work, folder / "killed").kill(seconds, in_assembly)
        landed[where] += 1
        assert path.exists() == (where == AFTER) or where == ASSEMBLY
        assert path.exists() or kept - BATCH < kept_at(path), "finished rows are lost"
        if path.exists() or (kill + 1) % KILLS_A_FILE == 0 or kill + 1 == KILLS:
            Victim(*work, folder / "killed").finish()
            assert path.read_bytes() == reference.read_bytes()
            assert sorted(p.name for p in path.parent.iterdir()) == [".pets.lock", "pets.h5"]
            path.unlink()
    whole = store.read(reference)
    assert len(whole) == len(work[0])
    where = ", ".join(f"{landed[place]} {place}" for place in (BEFORE, ASSEMBLY, AFTER))
    print(f"{KILLS} kills ({where} assembly), digest {whole.digest}")


if __name__ == "__main__":
    main()
