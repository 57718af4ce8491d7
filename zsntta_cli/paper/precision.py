"""The precision of the paper's encoders if no option names one.

The released code runs under autocast on a GPU, which gave the paper's numbers; on a CPU it runs in
float32. The features of each precision have a folder of their own.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from zsntta_cli.cache.folder import set_names
from zsntta_cli.settings import AMP, FP32, PAPER_ENCODERS

_OFFICIAL = "official"  # one of simulation.runs.PRESETS


class PrecisionChoice(NamedTuple):
    """A precision, and a note on why it was chosen."""

    precision: str
    note: str = ""


def usual_precision(root: Path, preset: str, has_cuda: Callable[[], bool]) -> PrecisionChoice:
    """Choose the precision in which the paper's encoders are measured.

    The choice is that of the released code on this machine: amp under `official` if there is CUDA,
    else fp32. If there are only features of the other precision, it is chosen, with a note.
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
