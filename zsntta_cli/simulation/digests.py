"""The digests of the features that a run reads, also before any file is read as a whole."""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.identity import difference
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.names import noise_name
from zsntta_cli.errors import ZsnttaError
from zsntta_cli.methods import METHODS
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library
from zsntta_cli.simulation.stream import has_ood

MORE_TEXT = "more_text"


def run_digests(
    id_name: str,
    sources: Sequence[tuple[str, Features]],
    text_digest: str,
    encoder: Mapping[str, Any],
    more_text: str | None,
) -> dict[str, str]:
    """The digests of a run: of its files by name, and of how their features are read.

    `sources`: files by the sets' names, the first that of the ID set, `id_name`. `text/<ID set>`
    covers the class text features, the logit scale (for a sigmoid model also its bias), and whether
    the ID set's features are normalised; `norm/<set>` marks another set whose features are
    normalised.
    """
    digests = {name: source.digest for name, source in sources}
    (_, id_set), *other_sources = sources
    text_identity = f"{text_digest} {float(encoder['logit_scale'])!r} {id_set.normalized}"
    if encoder.get("logit_bias") is not None:
        text_identity += f" {float(encoder['logit_bias'])!r}"
    digests[f"text/{id_name}"] = hashlib.sha256(text_identity.encode()).hexdigest()
    for name, source in other_sources:
        if source.normalized:
            digests[f"norm/{name}"] = hashlib.sha256(b"normalized").hexdigest()
    return digests if more_text is None else {**digests, MORE_TEXT: more_text}


class Foreseen:
    """The digests that runs would have, read from the headers of the files in one folder."""

    def __init__(self, root: Path) -> None:
        self.root, self._library = root, Library(root)
        self.header = functools.lru_cache(maxsize=None)(self._read)

    def digests(self, settings: RunSettings) -> dict[str, str] | None:
        """The digests of a run; None if the run would fail, which then reports the reason."""
        try:
            return self._digests(settings)
        except (ZsnttaError, ValueError, KeyError, TypeError):
            return None

    def _digests(self, settings: RunSettings) -> dict[str, str] | None:
        stream, encoder = settings.stream, settings.encoder
        id_set = self.header(encoder, settings.id_set)
        ood = settings.ood_set if has_ood(stream, len(id_set)) else None
        noise = noise_name(stream.noise) if stream.noise != NO_NOISE else None
        names = list(dict.fromkeys((settings.id_set, *filter(None, (ood, noise)))))
        headers = [self.header(encoder, name) for name in names]
        if any(difference(id_set.identity, header.identity) for header in headers):
            return None
        sources = list(zip(names, headers, strict=True))
        text = id_set.texts[settings.prompt].digest
        needs_more = METHODS[settings.method].needs
        more = self._library.more_text(settings) if needs_more else None
        model = id_set.model(settings.prompt)
        return run_digests(settings.id_set, sources, text, model, more.digest if more else None)

    def _read(self, encoder_name: str, name: str) -> Features:
        return store.read(feature_path(self.root, encoder_name, name), rows=False)
