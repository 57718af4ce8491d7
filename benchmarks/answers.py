"""TPT live, compared with replays of its kept answers: seconds per stream, and the cost of keeping.

On the built-in sets with the embedded encoder, streams of two ratios and three pipelines run live
with nothing kept. Then a live run keeps an answer for every image, and the same streams are
replayed. The script prints medians over the streams and their ratio, and checks that all decisions
are equal.
Usage: answers.py [--images 20] [--views 64] [--device cpu]
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated
from unittest.mock import patch

import numpy as np
import typer

from zsntta_cli.extraction.plan import ExtractPlan, extract
from zsntta_cli.progress import Reporter
from zsntta_cli.settings import EncoderChoice, ExtractSettings, LiveSettings
from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator

PROMPT = "a photo of a {}."
STREAMS = [(ratio, pipeline) for ratio in (0.25, 0.5) for pipeline in ("normal", "gt", "all")]


def main(
    images: Annotated[int, typer.Option(help="Images of each set.")] = 20,
    views: int = 64,
    device: str = "cpu",
) -> None:
    """Time both, and compare their decisions."""
    runs = [
        build_run("tpt", "tiny", "shapes", "glyphs", PROMPT, ratio=r, pipeline=p, views=views)
        for r, p in STREAMS
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plan = ExtractPlan(("shapes", "glyphs"), limit=images, noise=("none",))
        settings = ExtractSettings(device=device, features_dir=root)
        list(extract(plan, EncoderChoice("tiny"), settings, Reporter()))
        simulator = Simulator(root, LiveSettings(device=device))
        with patch("zsntta_cli.simulation.tuned.tuned_stream", lambda *_: None):
            lived = [simulator.replay(run) for run in runs]
        started = time.perf_counter()
        simulator.replay(runs[STREAMS.index((0.5, "all"))])
        asking = time.perf_counter() - started
        replayed = [simulator.replay(run) for run in runs]
    for one, other in zip(lived, replayed, strict=True):
        for name, column in vars(one.made.decisions).items():
            same = getattr(other.made.decisions, name)
            assert column is None or np.array_equal(column, same), (one.sources.run, name)
    slow, fast = (statistics.median(r.made.seconds for r in runs) for runs in (lived, replayed))
    total = sum(r.made.seconds for r in lived)
    print(
        f"{len(runs)} streams of {min(len(r.stream) for r in lived)} items and more, {views} views"
    )
    print(f"live:     {slow:8.3f} s a stream (median), {total:.1f} s in all")
    print(f"asked:    {asking:8.3f} s once, {2 * images} images")
    print(f"replayed: {1000 * fast:8.2f} ms a stream (median): {slow / fast:,.0f} times as fast")
    print("all decisions are equal")


if __name__ == "__main__":
    typer.run(main)
