"""Protocols: the streams and metrics on which the field's papers report, as groups of settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zsntta_cli.settings.options import check
from zsntta_cli.settings.ratios import NATURAL


@dataclass(frozen=True)
class Protocol:
    """The settings that a protocol fixes; the user names the sets of images beside it."""

    source: str
    stream: Mapping[str, Any]  # settings of the stream
    block: int  # items that block classifiers classify together
    report: str  # the report with its metrics

    @property
    def settings(self) -> dict[str, Any]:
        """All settings that the protocol fixes."""
        return {**self.stream, "block": self.block}


PROTOCOLS = {
    "zs-ntta": Protocol(
        "Noisy Test-Time Adaptation in Vision-Language Models, ICLR 2025, Sec. 5.1",
        {"ratio": 0.5, "order": "shuffled", "reset": "never"}, 64, "accuracy",
    ),
    "openood": Protocol(
        "OpenOOD-VLM and DDE, arXiv 2606.25758: all images of an ID set and one OOD set, mixed",
        {"ratio": NATURAL, "order": "shuffled", "reset": "each"}, 256, "ood",
    ),
    "stata": Protocol(
        "StatA, arXiv 2501.03729, Sec. 5: the online setting of low correlation, without noise",
        {"ratio": 0.0, "order": "dirichlet:0.1", "reset": "each"}, 128, "accuracy",
    ),
    "rosita": Protocol(
        "ROSITA, arXiv 2406.00481: as many OOD as ID samples, one at a time",
        {"ratio": 0.5, "order": "shuffled", "reset": "never"}, 1, "accuracy",
    ),
    "unient": Protocol(
        "UniEnt, arXiv 2404.06065: as many OOD as ID samples",
        {"ratio": 0.5, "order": "shuffled", "reset": "never"}, 200, "open-set",
    ),
}  # fmt: skip


def check_fixed(name: str, value: Any, protocol: str) -> None:
    """Refuse a value of a setting that differs from the protocol's.

    Raises:
        SettingsError: the value differs; the message names the protocol's value.
    """
    fixed = PROTOCOLS[protocol].settings[name]
    check(
        value == fixed,
        f"{name} is {value}, but protocol {protocol} is of {name} {fixed}: leave one of them out.",
    )
