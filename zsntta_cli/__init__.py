"""zsntta: zero-shot noisy test-time adaptation of vision-language models.

`NoiseDetector` decides on your images, and `OnlineDetector` on their features. `extract` and
`simulate` do what the commands of these names do, `table` draws the records of `simulate`, and
`runs` gives kept ones as plain rows. `scores` has pure functions on arrays. Add your own methods to
METHODS, and see with `check_method` whether one is honest. Every name is loaded at its first use,
so importing the package imports neither NumPy nor torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zsntta_cli.detection import (
        NoiseDetector,
        OnlineDetector,
        Verdict,
        Verdicts,
    )
    from zsntta_cli.errors import ZsnttaError
    from zsntta_cli.extraction import extract
    from zsntta_cli.methods import METHODS, Method, scores
    from zsntta_cli.report import table
    from zsntta_cli.results import runs, simulate
    from zsntta_cli.simulation.checks import check_method

__version__ = "0.3.0"
__all__ = [
    "METHODS",
    "Method",
    "NoiseDetector",
    "OnlineDetector",
    "Verdict",
    "Verdicts",
    "ZsnttaError",
    "__version__",
    "check_method",
    "extract",
    "runs",
    "scores",
    "simulate",
    "table",
]

_HOMES = {
    "NoiseDetector": "detection",
    "OnlineDetector": "detection",
    "Verdict": "detection",
    "Verdicts": "detection",
    "extract": "extraction",
    "runs": "results",
    "simulate": "results",
    "table": "report",
    "METHODS": "methods",
    "Method": "methods",
    "check_method": "simulation.checks",
    "ZsnttaError": "errors",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use (PEP 562)."""
    if name == "scores":
        return import_module(f"{__name__}.methods.scores")
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
