"""Streams of many items from sets in parts: memory, the score pass, time an item by method.

Features are random. Each line is a process of its own, whose memory is what it has beyond the page
cache (RssAnon), looked at fifty times a second. The score pass is timed on a cold page cache where
this user may drop it, beside reading the same files.
Usage: large_streams.py FOLDER [ITEMS …] [--methods zs-clip,adand] [--classes 100] [--equal]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import DATASET, PartOf, Shard, Text
from zsntta_cli.cache.folder import part_path
from zsntta_cli.cache.parts import PartsIdentity, claim_parts, join_parts

DIM, PART = 512, 250_000
ENCODER = {"model": "random", "logit_scale": 100.0}
METHODS = ("zs-clip", "adand", "ridge", "oodd", "adand+tda")


def make_set(root: Path, name: str, items: int, classes: int, seed: int) -> None:
    """Write a set of random features in parts of a quarter of a million, and join it."""
    path = root / "random" / f"{name}.h5"
    if path.exists():
        return
    generator = np.random.default_rng(seed)
    text = np.linalg.qr(np.random.default_rng(0).standard_normal((DIM, classes)))[0].T
    of = -(-items // PART)
    source = {"dataset": name, "images": items, "digest": f"{seed}"}
    claim_parts(path, PartsIdentity(ENCODER, source, of))
    for index in range(1, of + 1):
        count = min(PART, items - (index - 1) * PART)
        labels = generator.integers(0, classes, count).astype(np.int32)
        rows = generator.standard_normal((count, DIM), np.float32)
        if name == "id":
            rows += 3 * text[labels].astype(np.float32)
        hdf5.write_features(
            part_path(path, index), kind=DATASET, name=name, encoder=ENCODER, source=source,
            blocks=[rows.astype(np.float16)], labels=labels,
            sample_ids=[f"{index}-{i}" for i in range(count)],
            class_names=[f"class {i}" for i in range(classes)],
            texts=[Text("a photo of a {}.", text.astype(np.float32))] if index == 1 else (),
            part=PartOf(index, of, source["digest"], (Shard(str(index), 0, ""),)),
        )  # fmt: skip
    join_parts(path)


class Memory(threading.Thread):
    """Looks at the memory that this process has beyond the page cache."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text()
            [line] = [line for line in status.splitlines() if line.startswith("RssAnon")]
            self.peak = max(self.peak, int(line.split()[1]) * 1024)
            time.sleep(0.02)


def replay(root: Path, method: str, order: str) -> dict:
    """Replay a method on the stream of ID and OOD halves; what `--one` prints."""
    from dataclasses import replace

    from zsntta_cli.methods import METHODS as KNOWN
    from zsntta_cli.settings import StreamSettings, ThresholdSettings
    from zsntta_cli.simulation.runs import RunSettings
    from zsntta_cli.simulation.simulator import Simulator

    memory = Memory()
    memory.start()
    stream = replace(StreamSettings(), noise="none", ratio=0.5, order=order)
    settings = RunSettings(
        method, "random", "id", "ood", "a photo of a {}.", stream, ThresholdSettings(),
        KNOWN[method].settings(),
    )  # fmt: skip
    started = time.perf_counter()
    ran = Simulator(root).replay(settings)
    decided, memory_then = time.perf_counter() - started, memory.peak
    record = ran.record()
    total = time.perf_counter() - started
    import hashlib

    digest = hashlib.sha256(ran.decisions.class_index.tobytes())
    if ran.decisions.is_noise is not None:
        digest.update(ran.decisions.is_noise.tobytes())
    digest.update(ran.decisions.id_score.tobytes())
    return {
        "items": len(ran.stream), "peak": memory.peak, "before_record": memory_then,
        "method": ran.seconds, "decided": decided, "total": total,
        "acc_h": record.metric("acc_h"), "digest": digest.hexdigest(),
    }  # fmt: skip


def in_process(*arguments: str) -> dict:
    line = [sys.executable, __file__, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def drop_cache() -> bool:
    """Forget what the system has read, where it lets us."""
    try:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    return True


def read_rate(files: list[Path]) -> float:
    """Bytes a second of reading files one after the other."""
    started, count = time.perf_counter(), 0
    for file in files:
        with file.open("rb", buffering=0) as content:
            while block := content.read(2**22):
                count += len(block)
    return count / (time.perf_counter() - started)


def score_pass(root: Path) -> dict:
    """Score the ID set anew: what `--score` prints."""
    from zsntta_cli.simulation.scored import kept_zero_shot

    features = hdf5.read_features(root / "random" / "id.h5")
    [text] = features.text_features.values()
    memory = Memory()
    memory.start()
    started = time.perf_counter()
    kept_zero_shot(features, text, 100.0)
    return {"seconds": time.perf_counter() - started, "peak": memory.peak}


def flatten(root: Path, plain: Path) -> None:
    """The same sets as ordinary files, whose rows are read into memory."""
    for name in ("id", "ood"):
        features = hdf5.read_features(root / "random" / f"{name}.h5")
        hdf5.write_features(
            plain / "random" / f"{name}.h5", kind=DATASET, name=name, encoder=ENCODER,
            source=dict(features.source), blocks=[features.image_features[:]],
            labels=features.labels, sample_ids=hdf5.read_sample_ids(features.path),
            class_names=features.class_names, texts=features.texts(),
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("items", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--order", default="shuffled")
    parser.add_argument("--equal", action="store_true", help="replay in memory too, and compare")
    parser.add_argument("--one")
    parser.add_argument("--score", action="store_true")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(replay(asked.folder, asked.one, asked.order)))
        return
    if asked.score:
        print(json.dumps(score_pass(asked.folder)))
        return
    for items in asked.items:
        root = asked.folder / f"{items}-{asked.classes}"
        for seed, name in enumerate(("id", "ood")):
            make_set(root, name, items // 2, asked.classes, seed)
        shutil.rmtree(root / "random" / "id.scores", ignore_errors=True)
        is_cold, files = drop_cache(), sorted((root / "random" / "id.parts").glob("*.h5"))
        rate = read_rate(files)
        drop_cache()
        scored = in_process(str(root), "--score")
        size = sum(file.stat().st_size for file in files)
        own = size / scored["seconds"]
        print(
            f"{items:,} items of {DIM} dims, {asked.classes} classes: score pass of half of them "
            f"{scored['seconds']:.1f} s, {own / 1e6:,.0f} MB/s, {own / rate:.2f} of reading alone "
            f"({'cold' if is_cold else 'warm'} page cache), {scored['peak'] / 2**20:,.0f} MiB"
        )
        print(f"{'method':12} {'us/item':>8} {'total s':>8} {'MiB':>6} {'Acc_H':>6}")
        for method in asked.methods.split(","):
            line = in_process(str(root), "--one", method, "--order", asked.order)
            micro = 1e6 * line["method"] / line["items"]
            same = ""
            if asked.equal:
                plain = asked.folder / f"{items}-{asked.classes}-plain"
                if not plain.exists():
                    flatten(root, plain)
                other = in_process(str(plain), "--one", method, "--order", asked.order)
                same = "  equal" if other["digest"] == line["digest"] else "  OTHER DECISIONS"
                same += f" ({other['peak'] / 2**20:,.0f} MiB in memory)"
            print(
                f"{method:12} {micro:8.2f} {line['total']:8.1f} {line['peak'] / 2**20:6,.0f} "
                f"{100 * line['acc_h']:6.2f}{same}  [{line['before_record'] / 2**20:,.0f}]"
            )


if __name__ == "__main__":
    main()
