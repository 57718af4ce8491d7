"""Protocols: which streams and metrics the field's papers report on, as bundles of settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zsntta_cli.settings.ratios import NATURAL


@dataclass(frozen=True)
class Protocol:
    """What a protocol fixes; the sets of images are those that are named beside it."""

    source: str
    stream: Mapping[str, Any]  # settings of the stream
    report: str  # whose metrics it reports


PROTOCOLS = {
    "zs-ntta": Protocol(
        "Noisy Test-Time Adaptation in Vision-Language Models, ICLR 2025, Sec. 5.1",
        {"ratio": 0.5, "order": "shuffled"}, "accuracy",
    ),
    "openood": Protocol(
        "OpenOOD-VLM and DDE, arXiv 2606.25758: all images of an ID set and one OOD set, mixed",
        {"ratio": NATURAL, "order": "shuffled"}, "ood",
    ),
    "stata": Protocol(
        "StatA, arXiv 2501.03729, Sec. 5: the online setting of low correlation, without noise",
        {"ratio": 0.0, "order": "dirichlet:0.1"}, "accuracy",
    ),
    "rosita": Protocol(
        "ROSITA, arXiv 2406.00481: as many OOD as ID samples, one at a time",
        {"ratio": 0.5, "order": "shuffled"}, "accuracy",
    ),
    "unient": Protocol(
        "UniEnt, arXiv 2404.06065: as many OOD as ID samples",
        {"ratio": 0.5, "order": "shuffled"}, "open-set",
    ),
}  # fmt: skip
