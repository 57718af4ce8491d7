"""Make 64 parts by four processes of which two are killed, and compare with undisturbed ones.

All is real but for the encoder, which costs nothing. Two kills a round land at random times, and
two more processes take the place of the killed.
Usage: kill_parts.py FOLDER [ROUNDS]
"""

import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from forks import TINY, Means, Noon, forked, was_killed
from web_writer import write_web_set

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import part_path, parts_folder
from zsntta_cli.extraction.plan import ExtractPlan
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.settings import ExtractSettings

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 50
PARTS, WORKERS, KILLED = 64, 4, 2
SETTINGS = ExtractSettings(batch_size=4, workers=1)


def maker(folder: Path, root: str) -> PartMaker:
    spec = f"pets={folder / 'pets'}"
    job = PartsJob(spec, PARTS, ExtractPlan((spec,)), TINY, "cpu", folder / root, SETTINGS)
    return PartMaker(job, load=Means)


def start(folder: Path, root: str) -> int:
    """Begin a process that makes all parts that lack; gives its number."""
    return forked(lambda: [*maker(folder, root).make_all()])


def disturbed(folder: Path, root: str, seconds: float, chance: random.Random) -> int:
    """Make all parts with two kills on the way; gives how many parts there were at the kills."""
    processes = [start(folder, root) for _ in range(WORKERS)]
    made = 0
    for _ in range(KILLED):
        time.sleep(chance.uniform(0, seconds / KILLED))
        victim = processes.pop(0)
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        made = len(list(parts_folder(maker(folder, root).path).glob("0*.h5")))
        processes.append(start(folder, root))
    assert not any([*map(was_killed, processes)])
    return made


def main() -> None:
    store.datetime = Noon
    folder, chance, landed = Path(sys.argv[1]), random.Random(0), Counter()
    labels = [i % 3 for i in range(3 * PARTS)]
    write_web_set(folder / "pets", labels, ["cat", "dog", "ox"], form="png", a_shard=3)
    started = time.monotonic()
    whole = [start(folder, "whole") for _ in range(WORKERS)]
    assert not any([*map(was_killed, whole)])
    seconds = time.monotonic() - started
    undisturbed = maker(folder, "whole")
    undisturbed.join()
    digest = store.read(undisturbed.path).digest
    for _ in range(ROUNDS):
        made = disturbed(folder, "killed", seconds, chance)
        landed["before" if not made else "after" if made == PARTS else "within"] += 1
        killed = maker(folder, "killed")
        killed.join()
        assert store.read(killed.path).digest == digest
        for index in range(1, PARTS + 1):
            as_it_was, again = (part_path(m.path, index) for m in (undisturbed, killed))
            assert as_it_was.read_bytes() == again.read_bytes(), f"part {index} is another"
        lying = {path.name for path in parts_folder(killed.path).iterdir()}
        names = {f"{index:05d}" for index in range(1, PARTS + 1)}
        files = {f"{name}.h5" for name in names} | {f".{name}.lock" for name in names}
        assert lying <= files | {"identity.json"}, lying
        shutil.rmtree(folder / "killed")
    where = ", ".join(f"{count} {place}" for place, count in sorted(landed.items()))
    print(f"{ROUNDS} rounds ({where} the work), digest {digest}")


if __name__ == "__main__":
    main()
