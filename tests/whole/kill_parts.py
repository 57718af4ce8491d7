"""Make 16 parts by four processes of which two are killed, join them, and compare with a whole set.

All is real but for the encoder, which costs nothing. Two kills a round land at random times, and
two more processes take the place of the killed. Each makes all parts in an order of its own: what
another one makes or has made is waited for, and taken.
Usage: kill_parts.py FOLDER [ROUNDS]
"""

import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from forks import TINY, Means, Noon, forked, was_killed
from web_writer import write_web_set

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path, part_path, parts_folder
from zsntta_cli.cache.parts import join_parts
from zsntta_cli.datasets import load_images
from zsntta_cli.extraction.extractor import Extractor
from zsntta_cli.progress import Silent
from zsntta_cli.settings import ExtractSettings

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 50
PARTS, WORKERS, KILLED = 16, 4, 2
SETTINGS = ExtractSettings(batch_size=4, workers=1)


def extractor(folder: Path, root: str) -> Extractor:
    made = Extractor(TINY, replace(SETTINGS, features_dir=folder / root), Silent())
    made.encoder = Means()
    return made


def start(folder: Path, root: str, first: int) -> int:
    """Begin a process that makes all parts, from some part on; gives its number."""

    def make_all() -> None:
        images = load_images(f"pets={folder / 'pets'}", Path())
        for index in (*range(first, PARTS + 1), *range(1, first)):
            extractor(folder, root).part(images, index, PARTS, ["a photo of a {}."])

    return forked(make_all)


def disturbed(folder: Path, path: Path, seconds: float, chance: random.Random) -> int:
    """Make all parts with two kills on the way; gives how many parts there were at the kills."""
    firsts = [1 + i * PARTS // WORKERS for i in range(WORKERS)]
    processes = [start(folder, "killed", first) for first in firsts]
    made = 0
    for first in firsts[:KILLED]:
        time.sleep(chance.uniform(0, seconds / KILLED))
        victim = processes.pop(0)
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        made = len(list(parts_folder(path).glob("0*.h5")))
        processes.append(start(folder, "killed", first))
    assert not any([*map(was_killed, processes)])
    return made


def main() -> None:
    store.datetime = Noon
    folder, chance, landed = Path(sys.argv[1]), random.Random(0), Counter()
    labels = [i % 3 for i in range(12 * PARTS)]
    write_web_set(folder / "pets", labels, ["cat", "dog", "ox"], form="png", a_shard=50)
    images = load_images(f"pets={folder / 'pets'}", Path())
    whole = extractor(folder, "whole").dataset(images, ["a photo of a {}."]).path.read_bytes()
    started = time.monotonic()
    assert not any([was_killed(start(folder, "undisturbed", 1))])
    seconds = time.monotonic() - started
    path = feature_path(folder / "killed", "tiny", "pets")
    for _ in range(ROUNDS):
        made = disturbed(folder, path, seconds, chance)
        landed["before" if not made else "after" if made == PARTS else "within"] += 1
        digest = join_parts(path).digest
        assert path.read_bytes() == whole
        files = {part_path(path, index, PARTS).name for index in range(1, PARTS + 1)}
        locks = {f".{name.removesuffix('.h5')}.lock" for name in files}
        lying = {file.name for file in parts_folder(path).iterdir()}
        assert files <= lying <= files | locks, lying
        shutil.rmtree(folder / "killed")
    where = ", ".join(f"{count} {place}" for place, count in sorted(landed.items()))
    print(f"{ROUNDS} rounds ({where} the work), digest {digest}")


if __name__ == "__main__":
    main()
