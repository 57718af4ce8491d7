"""The demo: the main job on the embedded encoder and the built-in sets, offline."""

from collections.abc import Iterator
from pathlib import Path

from zsntta_cli import datasets
from zsntta_cli.extraction.extractor import Extracted
from zsntta_cli.extraction.plan import ExtractPlan, extract
from zsntta_cli.progress import Reporter
from zsntta_cli.results.grid import Grid
from zsntta_cli.results.keeping import Keeping
from zsntta_cli.results.obtain import run_all
from zsntta_cli.settings import TINY, EncoderChoice, ExtractSettings
from zsntta_cli.simulation.record import Record
from zsntta_cli.simulation.simulator import LiveFactory

_ID_SET = "shapes"
_RATIOS = (0.0, 0.05, 0.25, 0.5, 0.75)  # the paper's, and one as people have it
_METHODS = ("zs-clip", "adand", "ridge")
_NOISE_COUNT = 5_000  # enough for 75 % noise: 40,000 test samples, one noise image every 8

_ENCODER = EncoderChoice(TINY)

# AdaND's detector decides from its 1,280th item on, so the stream has to be longer than that.
LIVE_LIMIT = 2_000
_LIVE_METHODS = ("zs-clip", "adand", "ridge", "tent", "sotta", "tpt", "adand+tent")


def extract_sets(root: Path, reporter: Reporter) -> Iterator[Extracted]:
    """Extract what the demo needs and is not there yet."""
    names = (_ID_SET, *datasets.partners(_ID_SET))
    plan = ExtractPlan(names, noise_count=_NOISE_COUNT)
    return extract(plan, _ENCODER, "cpu", root, ExtractSettings(batch_size=250), reporter)


def simulate(root: Path) -> list[Record]:
    """ZS-CLIP, AdaND and ridge against each built-in OOD set."""
    grid = Grid(_METHODS, _ENCODER, axes={"ratio": _RATIOS})
    return run_all(root, grid.runs(root), keeping=Keeping.beside(root))


def simulate_live(root: Path, live: LiveFactory) -> list[Record]:
    """All methods, with live encoder passes, on the first samples of each stream at 50 %."""
    grid = Grid(_LIVE_METHODS, _ENCODER, axes={"limit": [LIVE_LIMIT]})
    return run_all(root, grid.runs(root), live=live, keeping=Keeping.beside(root))
