"""The revision of what decides a run's numbers: results of another one are never shown."""

import hashlib
import inspect
from pathlib import Path

from zsntta_cli.methods import METHODS

RULES = 1  # of streams, scores, thresholds and metrics: goes up where one changes a number


def revision(method: str) -> str | None:
    """The revision of all that decides a method's numbers, as "RULES.METHOD".

    A method of a user's own script also has a digest of the files that it and its settings are
    written in; None where there are no files to tell by, so that nothing can be kept.
    """
    chosen = METHODS[method]
    numbers = f"{RULES}.{chosen.revision}"
    if not chosen.own_code:
        return numbers
    try:
        files = {inspect.getsourcefile(one) for one in chosen.own_code}
        contents = [Path(file).read_bytes() for file in sorted(filter(None, files))]
    except (OSError, TypeError):
        return None
    if None in files or not contents:
        return None
    source = hashlib.sha256(b"".join(contents)).hexdigest()
    return f"{numbers}+{source[:16]}"
