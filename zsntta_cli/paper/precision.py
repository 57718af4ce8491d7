"""In which precision the paper's encoders are taken where no option names one.

The released code runs under autocast on a GPU, and the paper's numbers were made so; on a CPU it
runs in float32. Features of either lie in folders of their own.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.cache.folder import set_names
from zsntta_cli.settings import AMP, FP32, PAPER_ENCODERS

_OFFICIAL = "official"  # of simulation.runs.PRESETS


class PrecisionChoice(NamedTuple):
    """A precision, and what is to be said of it."""

    precision: str
    note: str = ""


def usual_precision(root: Path, preset: str, has_cuda: Callable[[], bool]) -> PrecisionChoice:
    """The precision that the paper's encoders are measured in.

    As the released code does on this machine: amp under `official` where there is CUDA, else fp32.
    Where features of the other one are all that there are, these are taken, with a note.
    """
    wanted = AMP if preset == _OFFICIAL and has_cuda() else FP32
    cached = [precision for precision in (FP32, AMP) if _has_features(root, precision)]
    if wanted in cached or not cached:
        return PrecisionChoice(wanted)
    [other] = cached
    note = f"note: of the paper's encoders there are features in {other} alone: these are taken"
    if wanted == AMP:
        note += (
            "; the paper's numbers were made under autocast: --precision amp says what is missing"
        )
    return PrecisionChoice(other, note)


def _has_features(root: Path, precision: str) -> bool:
    choices = (replace(encoder, precision=precision) for encoder in PAPER_ENCODERS)
    return any(set_names(root, choice.slug) for choice in choices)
