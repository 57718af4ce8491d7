"""The feature files that runs draw from: found, read once, checked to belong together."""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.settings import (
    NO_NOISE,
    ClipnSettings,
    NegLabelSettings,
    RunSettings,
    noise_name,
    words_name,
)
from zsntta_cli.store import FeatureSet, feature_path, read_features
from zsntta_cli.stream import ood_count

# What of two encoders' identities must agree for their features to meet in one stream.
SAME_ENCODER = (
    "model", "weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing",
    "logit_scale",
)  # fmt: skip


@dataclass(frozen=True)
class Sources:
    """The feature files of a stream: ID, OOD, injected noise."""

    id_set: FeatureSet
    ood_set: FeatureSet | None
    noise: FeatureSet | None

    @property
    def present(self) -> list[FeatureSet]:
        """Those that take part."""
        return [s for s in (self.id_set, self.ood_set, self.noise) if s is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of those that take part."""
        return tuple(source.name for source in self.present)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Images of each kind."""
        ood, noise = self.ood_set, self.noise
        return len(self.id_set), len(ood) if ood else 0, len(noise) if noise else 0


class Library:
    """The feature files under one folder."""

    def __init__(self, root: Path, options: str = "") -> None:
        """`options` are those of the command line that name the encoder, for messages."""
        self._root, self._options = root, options
        self.read = functools.lru_cache(maxsize=16)(self._read_file)

    def sources(self, settings: RunSettings) -> Sources:
        """The files of a run's stream, checked to be of one encoder and to fit the settings.

        Raises:
            StoreError: features that are missing, broken or of different encoders.
            SettingsError: the ID set is not labelled.
        """
        encoder, stream = settings.encoder, settings.stream
        id_set = self.read(encoder, settings.id_set)
        if not id_set.class_names or (id_set.labels < 0).any():
            raise SettingsError(f"'{id_set.name}' cannot be an ID set: it has no class labels.")
        ood = settings.ood_set if ood_count(stream, len(id_set)) else None
        sources = Sources(
            id_set,
            self.read(encoder, ood) if ood else None,
            self.read(encoder, noise_name(stream.noise)) if stream.noise != NO_NOISE else None,
        )
        for other in sources.present:
            _check_same_encoder(id_set, other)
        return sources

    def text(self, encoder: str, prompt: str, name: str) -> NDArray[np.float32]:
        """Text features (C, D) of a set's class names, or of a word list."""
        known = self.read(encoder, name).text_features
        if prompt not in known:
            cached = ", ".join(f"'{template}'" for template in known) or "none"
            what = f"--words {name[6:]}.txt" if name.startswith("words-") else f"--dataset {name}"
            raise StoreError(
                f"the prompt '{prompt}' is not cached for '{name}' (cached: {cached}): type "
                + self._command(name, what, f" --prompt '{prompt}'")
            )
        return known[prompt]

    def more_text(self, settings: RunSettings) -> NDArray[np.float32] | None:
        """What text features a method wants besides those of the class names."""
        if isinstance(settings.options, NegLabelSettings):
            words = words_name(settings.options.words or self._only_words(settings.encoder))
            return self.text(settings.encoder, settings.prompt, words)
        if isinstance(settings.options, ClipnSettings):
            names = self.text(settings.encoder, settings.prompt, settings.id_set)
            return _read_no_text(settings.options.no_text, names.shape)
        return None

    def _only_words(self, encoder: str) -> str:
        found = sorted((self._root / encoder).glob("words-*.h5"))
        if len(found) != 1:
            names = ", ".join(path.stem.removeprefix("words-") for path in found) or "none"
            raise StoreError(
                f"neglabel needs a word list (cached: {names}): name one with --words NAME, or "
                f"embed one: " + f"zsntta extract --words FILE.txt {self._options}".strip()
            )
        return found[0].stem.removeprefix("words-")

    def _read_file(self, encoder: str, name: str) -> FeatureSet:
        path = feature_path(self._root, encoder, name)
        if not path.exists():
            what = f"--dataset {name}"
            if name.startswith("noise-"):
                what = f"--dataset NAME --noise {name.removeprefix('noise-')}"
            if name.startswith("words-"):
                what = f"--words {name.removeprefix('words-')}.txt"
            raise StoreError(
                f"no features of '{name}' by {encoder} in {self._root}/: type "
                + self._command(name, what)
            )
        return read_features(path)

    def _command(self, name: str, what: str, more: str = "") -> str:
        """What to type for features that are missing; those made elsewhere are imported."""
        if self._options.startswith("--encoder ") and not name.startswith("words-"):
            return f"zsntta cache import {name} {self._options} --features FILE{more}"
        return f"zsntta extract {what}{more} {self._options}".strip()


def _check_same_encoder(one: FeatureSet, other: FeatureSet) -> None:
    different = [key for key in SAME_ENCODER if one.encoder.get(key) != other.encoder.get(key)]
    if different:
        key = different[0]
        raise StoreError(
            f"{one.path} and {other.path} are of different encoders ({key}: "
            f"{one.encoder.get(key)} and {other.encoder.get(key)}): extract one of them again."
        )


def _read_no_text(path: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """CLIPN's "no" text features (C, D), brought to unit norm."""
    if not path:
        raise SettingsError(
            "clipn needs the features of its 'no' text encoder: --no-text FILE.npy, an array "
            f"{shape} in the order of the class names."
        )
    try:
        features = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot read the 'no' text features {path} ({error}).") from error
    if features.shape != shape or not np.isfinite(features).all():
        raise SettingsError(
            f"{path} holds an array {features.shape}, must be {shape} of finite numbers: one row "
            f"a class, in the order of the class names."
        )
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    return (features / np.maximum(norms, 1e-12)).astype(np.float32)
