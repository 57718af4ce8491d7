"""The digests of all that a run reads: known from the files' descriptions before a run is made."""

import hashlib
from pathlib import Path

from zsntta_cli.errors import ZsnttaError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import MoreText
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library, Sources

MORE_TEXT = "more_text"


def run_digests(run: RunSettings, sources: Sources, more: MoreText | None) -> dict[str, str]:
    """The digests of a run's inputs: of its files by name, and of how their features are read.

    `text/<ID set>` covers the class text features, the logit scale (for a sigmoid model also its
    bias), and whether the ID set's features are normalised; `norm/<set>` marks another set whose
    features are normalised; `more_text` are the words that a method needs besides.
    """
    files = {file.name: file for file in sources.present}
    digests = {name: file.digest for name, file in files.items()}
    id_set = files.pop(run.id_set)
    model = id_set.model(run.prompt)
    text = f"{id_set.texts[run.prompt].digest} {float(model['logit_scale'])!r} {id_set.normalized}"
    if model.get("logit_bias") is not None:
        text += f" {float(model['logit_bias'])!r}"
    digests[f"text/{run.id_set}"] = hashlib.sha256(text.encode()).hexdigest()
    for name, file in files.items():
        if file.normalized:
            digests[f"norm/{name}"] = hashlib.sha256(b"normalized").hexdigest()
    return digests if more is None else {**digests, MORE_TEXT: more.digest}


class Foreseen:
    """The digests that runs would have, by the descriptions of the files in one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.described, self._whole = Library(root, rows=False), Library(root)

    def digests(self, run: RunSettings) -> dict[str, str] | None:
        """The digests of a run; None if the run would fail, which then reports the reason."""
        try:
            # Only words are read as a whole.
            texts = self._whole if METHODS[run.method].needs else self.described
            return run_digests(run, self.described.sources(run), texts.more_text(run))
        except (ZsnttaError, ValueError, KeyError, TypeError):
            return None
