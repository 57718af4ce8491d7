"""The revision of the code that determines a run's numbers: other revisions are never shown."""

import functools
import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path

from zsntta_cli.methods import METHODS, own_code

RULES = 1  # of streams, scores and thresholds: goes up where a number changes or a metric comes


def revision(method: str) -> str | None:
    """The revision of all code that determines a method's numbers, as "RULES.METHOD".

    A method in a user's script also has the script's digest; it is None if no file has the source,
    so that nothing can be kept.
    """
    numbers = f"{RULES}.{METHODS[method].revision}"
    if not own_code(method):
        return numbers
    files = source_digests(method)
    digest = hashlib.sha256("".join(sorted(files.values())).encode()).hexdigest()
    return f"{numbers}+{digest[:16]}" if files else None


def source_digests(method: str) -> Mapping[str, str]:
    """SHA-256 (hex) of the script of a user's own method, by file name; of a pair maybe of two.

    It is empty for a method of this package, and if no file has the source.
    """
    try:
        return _digests(own_code(method))
    except (OSError, TypeError):
        return {}


@functools.lru_cache(maxsize=256)  # as it was loaded: asked for each of thousands of runs
def _digests(classes: tuple[type, ...]) -> Mapping[str, str]:
    digests: dict[str, str] = {}
    for path in dict.fromkeys(Path(inspect.getsourcefile(part) or "") for part in classes):
        name = f"{path.parent.name}/{path.name}" if path.name in digests else path.name
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests
