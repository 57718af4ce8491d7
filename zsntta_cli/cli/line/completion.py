"""What a shell completes: names from the tables, and from the features folder by its files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zsntta_cli.cache.folder import encoder_names, set_names
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.names import DATASET, WORDS, SetName
from zsntta_cli.methods import CLASSIFIERS, METHODS, find_method
from zsntta_cli.settings import FEATURES, PRECISIONS, EncoderChoice
from zsntta_cli.settings.prompts import WORD_SETS, set_of
from zsntta_cli.simulation.runs import PRESETS


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def methods(incomplete: str) -> list[str]:
    """Methods, and pairs of a detector and a classifier once there is a plus."""
    if "+" not in incomplete:
        return _starting(METHODS, incomplete)
    pairs = (f"{name}+{classifier}" for name in METHODS for classifier in CLASSIFIERS)
    return _starting([*METHODS, *filter(find_method, pairs)], incomplete)


def presets(incomplete: str) -> list[str]:
    """Presets."""
    return _starting(PRESETS, incomplete)


def precisions(incomplete: str) -> list[str]:
    """Precisions of an encoder."""
    return _starting(PRECISIONS, incomplete)


def known_sets(incomplete: str) -> list[str]:
    """Sets of the catalogue."""
    return _starting(CATALOGUE, incomplete)


def word_sets(incomplete: str) -> list[str]:
    """Built-in sets of words."""
    return _starting(WORD_SETS, incomplete)


def methods_or_all(incomplete: str) -> list[str]:
    """Methods, and what stands for all of them."""
    return _starting((*METHODS, "all"), incomplete)


def metrics(incomplete: str) -> list[str]:
    """Metrics."""
    from zsntta_cli.simulation.metrics import METRICS  # which imports NumPy

    return _starting(METRICS, incomplete)


def cached_words(ctx: Any, incomplete: str) -> list[str]:
    """Built-in word lists, and those of one's own that there are features of."""
    lists = [SetName.parse(name).bare for name in _cached(ctx, WORDS)]
    return _starting({*WORD_SETS, *(name for name in lists if not set_of(name))}, incomplete)


def encoders(ctx: Any, incomplete: str) -> list[str]:
    """Encoders that there are features of."""
    return _starting(encoder_names(_root(ctx)), incomplete)


def cached(ctx: Any, incomplete: str) -> list[str]:
    """Sets that there are features of, by the encoder that is named, or by any."""
    return _starting(_cached(ctx, DATASET), incomplete)


def _cached(ctx: Any, kind: str) -> list[str]:
    given = ctx.params
    if given.get("encoder"):
        folders = [given["encoder"]]
    elif given.get("model"):
        folders = [EncoderChoice(given["model"], given.get("pretrained") or "openai").slug]
    else:
        folders = encoder_names(_root(ctx))
    return [name for folder in folders for name in set_names(_root(ctx), folder, kind)]


def _root(ctx: Any) -> Path:
    return Path(ctx.params.get("features_dir") or FEATURES)
