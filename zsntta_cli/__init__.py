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

    from zsntta_cli.detection.detector import Detector as Detector
    from zsntta_cli.detection.encoding import encode as encode
    from zsntta_cli.detection.verdicts import Verdicts as Verdicts
    from zsntta_cli.encoders.clip import load_encoder as load_encoder
    from zsntta_cli.errors import ZsnttaError as ZsnttaError
    from zsntta_cli.extraction import extract as extract
    from zsntta_cli.methods import METHODS as METHODS
    from zsntta_cli.methods import Method as Method
    from zsntta_cli.methods import scores as scores
    from zsntta_cli.report import table as table
    from zsntta_cli.results import runs as runs
    from zsntta_cli.results import simulate as simulate
    from zsntta_cli.settings import EncoderChoice as EncoderChoice
    from zsntta_cli.simulation.checks import check_method as check_method

__version__ = "0.3.0"
_HOMES = {
    "METHODS": "methods",
    "Detector": "detection.detector",
    "EncoderChoice": "settings",
    "Method": "methods",
    "Verdicts": "detection.verdicts",
    "ZsnttaError": "errors",
    "check_method": "simulation.checks",
    "encode": "detection.encoding",
    "extract": "extraction",
    "load_encoder": "encoders.clip",
    "runs": "results",
    "scores": "methods",
    "simulate": "results",
    "table": "report",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> "Any":
    """Import a public name at its first use (PEP 562)."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    home = f"{__name__}.{_HOMES[name]}"
    return (
        import_module(f"{home}.scores") if name == "scores" else getattr(import_module(home), name)
    )


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
