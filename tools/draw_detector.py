"""Draw a stream as `ridge` sees it: scores of clean and noisy items, threshold, gate over time.

    zsntta demo && pip install matplotlib
    python tools/draw_detector.py features docs/detector.png

The embedded encoder, `shapes` against `glyphs` at 25 % noise, clean at first (`--order late`).
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot
from numpy.typing import NDArray

from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.detectors import ridge
from zsntta_cli.simulation.runs import RunSettings, build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.stream import ID, build_stream

_ITEMS = 6_000  # of the stream, every one of which would be a cloud
_CLEAN, _NOISY, _LINE = "#0072b2", "#d55e00", "#222222"  # told apart by colour-blind readers too


def main(root: Path, target: Path) -> None:
    """Write the picture."""
    run = build_run(
        "ridge", "tiny", "shapes", "glyphs", "a photo of a {}.", order="late", ratio=0.25
    )
    simulator = Simulator(root)
    sources = simulator._library.sources(run)
    stream = build_stream(run.stream, *sources.sizes, sources.id_set.labels)
    pool = simulator._pool(run.encoder, run.prompt, *sources.names)
    index = stream.row + np.cumsum([0, *sources.sizes])[stream.kind]
    data = StreamData(pool, index, np.zeros(len(index), bool))
    scores, gates, thresholds = _watched(data, run)
    drawn = np.sort(np.random.default_rng(0).permutation(len(index))[:_ITEMS])
    matplotlib.rcParams.update({"svg.hashsalt": "zsntta", "font.size": 9})
    figure, (above, below) = pyplot.subplots(
        2, 1, sharex=True, figsize=(7.2, 4.4), height_ratios=(3, 1), layout="constrained"
    )
    for is_id, colour, marker, label in (
        (True, _CLEAN, ".", "clean"),
        (False, _NOISY, "x", "noisy"),
    ):
        some = drawn[(stream.kind[drawn] == ID) == is_id]
        above.scatter(some, scores[some], 4, colour, marker=marker, linewidths=0.5, label=label)
    above.plot(thresholds, color=_LINE, linewidth=1.2, label="threshold")
    above.set_ylim(-3, 6)
    above.set_ylabel("noise score s")
    above.legend(loc="upper left", ncols=3, markerscale=3)
    below.plot(gates, color=_LINE, linewidth=1.2)
    below.set_ylim(-0.05, 1.05)
    below.set_ylabel("gate γ")
    below.set_xlabel("item of the stream")
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=110)


def _watched(data: StreamData, run: RunSettings) -> list[NDArray[np.float64]]:
    """Scores, gates and thresholds of all items, (T,) each; nan as long as ZS-CLIP decides."""
    columns = [np.full(len(data), np.nan) for _ in range(3)]
    stepper = ridge.stepper(data, run.options, run.threshold)
    for t in range(len(data)):
        item = slice(t, t + 1)
        rule, found = stepper.judge().rule, stepper.push(data.part(item))
        if rule is not None:
            known = (1 - found.id_score, rule.trust.gate, rule.threshold)
            for column, values in zip(columns, known, strict=True):
                column[item] = values
    return columns


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
