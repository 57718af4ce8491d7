"""What parts cost beside the encoder: shards by workers, rows a second of join.

    .venv/bin/python benchmarks/scale.py --shards 32 --images 8 --sleep 0.5 --join-rows 1000000

Workers are processes that make parts of one web data set at once, with an encoder that sleeps
instead of computing: what a shard takes above that is reading, writing and waiting for each other.
Join is of parts of random features. Memory by rows is what large_streams.py shows.
"""

import argparse
import io
import multiprocessing
import tarfile
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.features import PartOf, Shard
from zsntta_cli.cache.folder import part_path
from zsntta_cli.cache.parts import PartsIdentity, claim_parts, join_parts
from zsntta_cli.encoders.clip import Encoder, load_encoder
from zsntta_cli.extraction.plan import ExtractPlan
from zsntta_cli.extraction.sharded import PartMaker, PartsJob
from zsntta_cli.settings import EncoderChoice, ExtractSettings

TINY = EncoderChoice("tiny")


def write_shards(folder: Path, shards: int, images: int) -> None:
    """Write tars of so many small pictures each."""
    generator = np.random.default_rng(0)
    (folder / "test").mkdir(parents=True)
    for shard in range(shards):
        with tarfile.open(folder / "test" / f"{shard}.tar", "w") as tar:
            for i in range(images):
                file = io.BytesIO()
                Image.fromarray(generator.integers(0, 256, (32, 32, 3), np.uint8)).save(file, "png")
                for ending, content in (("png", file.getvalue()), ("cls", b"0")):
                    member = tarfile.TarInfo(f"s{shard * images + i:09d}.{ending}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    (folder / "test" / "nshards.txt").write_text(f"{shards}\n")
    (folder / "classnames.txt").write_text("thing\n")


def sleeping_encoder(seconds: float) -> Encoder:
    """An encoder that sleeps for every batch, and gives zeros."""
    encoder = load_encoder(TINY, "cpu")

    def encode_pixels(pixels: np.ndarray) -> np.ndarray:
        time.sleep(seconds)
        return np.zeros((len(pixels), encoder.embed_dim), np.float32)

    encoder.encode_pixels = encode_pixels  # type: ignore[method-assign]
    return encoder


def work(job: PartsJob, sleep: float, ready: Semaphore, start: Event, cpu: Connection) -> None:
    """Be one of several workers that make all parts of a set."""
    encoder = sleeping_encoder(sleep)
    with tempfile.TemporaryDirectory() as root:  # what is imported at the first use is no shard's
        PartMaker(replace(job, root=Path(root)), load=lambda: encoder).make(1)
    maker = PartMaker(job, load=lambda: encoder)
    ready.release()
    start.wait()
    before = time.process_time()
    for _ in maker.make_all():
        pass
    cpu.send(time.process_time() - before)


def time_workers(spec: str, workers: int, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds in which so many workers make a set in parts, and seconds of cores."""
    with tempfile.TemporaryDirectory() as root:
        plan = ExtractPlan((spec,))
        settings = ExtractSettings(batch_size=options.images, workers=1)
        job = PartsJob(spec, options.shards, plan, TINY, "cpu", Path(root), settings)
        context = multiprocessing.get_context("spawn")
        ready, start = context.Semaphore(0), context.Event()
        answers, end = context.Pipe()
        processes = [
            context.Process(target=work, args=(job, options.sleep, ready, start, end))
            for _ in range(workers)
        ]
        for process in processes:
            process.start()
        for _ in processes:
            ready.acquire()
        started = time.perf_counter()
        start.set()
        cpu = sum(answers.recv() for _ in processes)
        seconds = time.perf_counter() - started  # how long processes take to end is no shard's
        for process in processes:
            process.join()
            assert process.exitcode == 0
        return seconds, cpu


def show_workers(options: argparse.Namespace) -> None:
    """Print what a shard takes beside the encoder, by the number of workers."""
    table = Table(
        title=f"{options.shards} shards of {options.images} images, a part each; "
        f"a batch sleeps {options.sleep:g} s",
        title_justify="left",
    )
    for head in (
        "workers",
        "seconds",
        "ideal",
        "of the ideal",
        "ms a shard beside the encoder",
        "of cores",
    ):
        table.add_column(head, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        write_shards(Path(folder, "shards"), options.shards, options.images)
        for workers in map(int, options.workers.split(",")):
            seconds, cpu = time_workers(f"shards={folder}/shards", workers, options)
            rounds = -(-options.shards // workers)
            ideal, beside = rounds * options.sleep, seconds / rounds - options.sleep
            table.add_row(
                f"{workers}", f"{seconds:.2f}", f"{ideal:.2f}", f"{ideal / seconds:.0%}",
                f"{1000 * beside:.0f}", f"{1000 * cpu / options.shards:.0f}",
            )  # fmt: skip
    Console(width=100).print(table)


def write_parts(path: Path, rows: int, parts: int, dim: int) -> None:
    """Write the parts of a set of random features."""
    encoder = {"model": "made-up", "logit_scale": 20.0}
    source = {"dataset": path.stem, "shards": parts, "digest": "0"}
    claim_parts(path, PartsIdentity(encoder, source, parts))
    block = np.random.default_rng(0).standard_normal((-(-rows // parts), dim)).astype(np.float16)
    for index in range(1, parts + 1):
        count = rows * index // parts - rows * (index - 1) // parts
        hdf5.write_features(
            part_path(path, index), kind="dataset", name=path.stem, encoder=encoder,
            source={"dataset": path.stem}, blocks=[block[:count]],
            labels=np.full(count, -1, np.int32),
            sample_ids=[f"s{index:05d}-{i:09d}" for i in range(count)],
            part=PartOf(index, parts, "0", (Shard(f"{index}.tar", 0, ""),)),
        )  # fmt: skip


def measure_join(path: Path, answer: Connection) -> None:
    """Join the parts of a set, in a process of its own; send seconds and bytes it took."""
    started = time.perf_counter()
    join_parts(path)
    seconds = time.perf_counter() - started
    answer.send((seconds, path.stat().st_size))


def show_joins(options: argparse.Namespace) -> None:
    """Print what the join of sets of some sizes takes."""
    table = Table(title=f"join, {options.dim} dims", title_justify="left")
    for head in ("rows", "parts", "seconds", "rows/s", "file, bytes a row"):
        table.add_column(head, justify="right")
    context = multiprocessing.get_context("spawn")
    for rows in map(int, options.join_rows.split(",")):
        for parts in map(int, options.join_parts.split(",")):
            with tempfile.TemporaryDirectory() as root:
                path = Path(root, "made-up", "set.h5")
                write_parts(path, rows, parts, options.dim)
                answer, end = context.Pipe()
                process = context.Process(target=measure_join, args=(path, end))
                process.start()
                seconds, size = answer.recv()
                process.join()
            table.add_row(
                f"{rows:,}", f"{parts:,}", f"{seconds:.2f}", f"{rows / seconds:,.0f}",
                f"{size / rows:.1f}",
            )  # fmt: skip
    Console(width=100).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--shards", type=int, default=32)
    parser.add_argument("--images", type=int, default=8, help="of a shard, which is one batch")
    parser.add_argument("--sleep", type=float, default=0.5, help="seconds that a batch takes")
    parser.add_argument("--join-rows", default="100000,1000000")
    parser.add_argument("--join-parts", default="64,512")
    parser.add_argument("--dim", type=int, default=64)
    options = parser.parse_args()
    show_workers(options)
    show_joins(options)


if __name__ == "__main__":
    main()
