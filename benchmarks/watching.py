"""What an idle watch costs: a look at folders of many images in which nothing changes.

Files of one byte are made in a temporary folder, 1,000 to a folder, and taken; then looks are
timed, one a second's worth. The share is of one core at the default interval.
"""

import argparse
import resource
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from zsntta_cli.detection.runs.growing import Growing

EACH = 1000  # files of a folder
LOOKS = 60
SETTLE = 8  # looks after which folders are quiet


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", default="1000,50000,500000", help="so many, each in turn")
    return parser.parse_args()


def fill(root: Path, count: int) -> None:
    for number in range(count):
        folder = root / f"{number // EACH:04}"
        if number % EACH == 0:
            folder.mkdir()
        (folder / f"{number:06}.jpg").write_bytes(b"1")


def looks(root: Path) -> tuple[float, list[float]]:
    """Seconds of the first looks together, and CPU seconds of each that finds nothing."""
    growing = Growing({0: root})
    began = time.process_time()
    for _ in range(3):
        growing.take(growing.look())
    first = time.process_time() - began
    for _ in range(SETTLE):
        assert growing.look() == []
    seconds = []
    for _ in range(LOOKS):
        began = time.process_time()
        assert growing.look() == []
        seconds.append(time.process_time() - began)
    return first, seconds


HEAD = ("files", "first, s", "look, ms", "worst, ms", "of a core", "memory, MB")


def main() -> None:
    print("".join(f"{head:>12}" for head in HEAD))
    for count in map(int, options().files.split(",")):
        with TemporaryDirectory() as folder:
            fill(Path(folder), count)
            first, seconds = looks(Path(folder))
        middle, worst = statistics.median(seconds), max(seconds)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cells = (
            f"{count:,}", f"{first:.2f}", f"{1000 * middle:.2f}", f"{1000 * worst:.2f}",
            f"{middle:.1%}", f"{memory:.0f}",
        )  # fmt: skip
        print("".join(f"{cell:>12}" for cell in cells))


main()
