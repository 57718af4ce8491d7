"""Draw a stream as `cull` sees it: the scores of clean and noisy items, and the threshold.

    zsntta demo && pip install matplotlib
    python tools/draw_detector.py features docs/detector.png

The encoder is the embedded one, with `shapes` against `glyphs` at 25 % noise, and the stream starts
clean (`--order late`).
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot

from zsntta_cli.simulation.runs import build_run
from zsntta_cli.simulation.simulator import Simulator
from zsntta_cli.simulation.stream import ID

_ITEMS = 6_000  # of the stream; all of them would be a cloud
_CLEAN, _NOISY, _LINE = "#0072b2", "#d55e00", "#222222"  # for colour-blind readers, too


def main(root: Path, target: Path) -> None:
    """Write the picture."""
    run = build_run(
        "cull", "tiny", "shapes", "glyphs", "a photo of a {}.", order="late", ratio=0.25
    )
    replay = Simulator(root).replay(run)
    stream, decided = replay.stream, replay.made.decisions
    assert decided.detector_threshold is not None
    scores, thresholds = 1 - decided.id_score, decided.detector_threshold
    scores[np.isnan(thresholds)] = np.nan  # as long as ZS-CLIP decides
    drawn = np.sort(np.random.default_rng(0).permutation(len(stream))[:_ITEMS])
    matplotlib.rcParams.update({"svg.hashsalt": "zsntta", "font.size": 9})
    figure, above = pyplot.subplots(figsize=(7.2, 3.4), layout="constrained")
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
    above.set_xlabel("item of the stream")
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
