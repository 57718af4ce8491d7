"""What a shell completes: names from the tables, and from the features folder by its files."""

from pathlib import Path
from typing import Any

from zsntta_cli.cli.options import FEATURES
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import TINY, EncoderChoice
from zsntta_cli.simulation.runs import PRESETS


def _starting(names: Any, incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def methods(incomplete: str) -> list[str]:
    """Methods."""
    return _starting(METHODS, incomplete)


def presets(incomplete: str) -> list[str]:
    """Presets."""
    return _starting(PRESETS, incomplete)


def known_sets(incomplete: str) -> list[str]:
    """Sets of the catalogue."""
    return _starting(CATALOGUE, incomplete)


def encoders(ctx: Any, incomplete: str) -> list[str]:
    """Encoders that there are features of."""
    found = _root(ctx).glob("*/*.h5")
    return _starting((path.parent.name for path in found), incomplete)


def cached(ctx: Any, incomplete: str) -> list[str]:
    """Sets that there are features of, by the encoder that is named, or by any."""
    given = ctx.params
    folder = given.get("encoder") or (TINY if given.get("model") == TINY else "*")
    if folder == "*" and given.get("model"):
        folder = EncoderChoice(given["model"], given.get("pretrained") or "openai").slug
    names = (path.stem for path in _root(ctx).glob(f"{folder}/*.h5"))
    return _starting((n for n in names if not n.startswith(("noise-", "words-"))), incomplete)


def _root(ctx: Any) -> Path:
    return Path(ctx.params.get("features_dir") or FEATURES)
