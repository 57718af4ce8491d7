"""zsntta: zero-shot noisy test-time adaptation of vision-language models.

`Detector` decides on features of images, which `encode` makes with an encoder of `load_encoder`.
`extract` and `simulate` do what the commands of these names do, `table` draws the records of
`simulate`, and `runs` gives kept ones as plain rows. `scores` has pure functions on arrays. Add
your own methods to METHODS, and see with `check_method` whether one is honest. Every name is loaded
at its first use, so importing the package imports neither NumPy nor torch.
"""

TYPE_CHECKING = False  # typing itself is imported when it is needed
if TYPE_CHECKING:
    from typing import Any

    from zsntta_cli.detection.detector import Detector
    from zsntta_cli.detection.encoding import encode
    from zsntta_cli.detection.verdicts import Verdicts
    from zsntta_cli.encoders.clip import load_encoder
    from zsntta_cli.errors import ZsnttaError
    from zsntta_cli.extraction import extract
    from zsntta_cli.methods import METHODS, Method, scores
    from zsntta_cli.report import table
    from zsntta_cli.results import runs, simulate
    from zsntta_cli.settings import EncoderChoice
    from zsntta_cli.simulation.checks import check_method

__version__ = "0.3.0"
__all__ = [
    "METHODS",
    "Detector",
    "EncoderChoice",
    "Method",
    "Verdicts",
    "ZsnttaError",
    "__version__",
    "check_method",
    "encode",
    "extract",
    "load_encoder",
    "runs",
    "scores",
    "simulate",
    "table",
]

_HOMES = {
    "Detector": "detection.detector",
    "Verdicts": "detection.verdicts",
    "encode": "detection.encoding",
    "load_encoder": "encoders.clip",
    "EncoderChoice": "settings",
    "extract": "extraction",
    "runs": "results",
    "simulate": "results",
    "table": "report",
    "METHODS": "methods",
    "Method": "methods",
    "check_method": "simulation.checks",
    "ZsnttaError": "errors",
}


def __getattr__(name: str) -> "Any":
    """Import a public name at its first use (PEP 562)."""
    from importlib import import_module

    if name == "scores":
        return import_module(f"{__name__}.methods.scores")
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
