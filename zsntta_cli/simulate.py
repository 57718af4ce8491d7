"""Stream x method -> run record, and grids of runs over one encoder's feature files."""

import dataclasses
import functools
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import __version__
from zsntta_cli.errors import SettingsError, StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.metrics import Accuracies, Detection, accuracies, detection
from zsntta_cli.scores import ZeroShot, zero_shot
from zsntta_cli.settings import NO_NOISE, RunSettings, noise_name
from zsntta_cli.store import FeatureSet, feature_path, read_features
from zsntta_cli.stream import ID, NOISE, OOD, Stream, build_stream, ood_count

# What of two encoders' identities must agree for their features to meet in one stream.
_SAME_ENCODER = (
    "model", "weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing",
    "logit_scale",
)  # fmt: skip

_KINDS = {"id": ID, "ood": OOD, "noise": NOISE}
_CLIP_NORM = 10.0  # about the norm of raw features of OpenAI's ViT-B encoders


@dataclass(frozen=True)
class Record:
    """What one run gave, with all that it takes to run it again."""

    settings: RunSettings
    accuracies: Accuracies
    detection: Detection
    counts: dict[str, int]  # items of each kind in the stream
    digests: dict[str, str]  # of the feature files
    seconds: float  # of the method alone
    created: str
    versions: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values; a metric without samples is None."""
        plain = dataclasses.asdict(self)
        for group in ("accuracies", "detection"):
            plain[group] = {k: None if np.isnan(v) else v for k, v in plain[group].items()}
        return plain


@dataclass(frozen=True)
class Sources:
    """The feature files that a stream draws from: ID, OOD, injected noise."""

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


class Simulator:
    """Runs on the feature files under one folder; each file is read and scored once."""

    def __init__(self, root: Path, options: str = "") -> None:
        """`options` are those of the command line that name the encoder, for messages."""
        self._root, self._options = root, options
        self._read = functools.lru_cache(maxsize=16)(self._read_file)
        self._zero_shot = functools.lru_cache(maxsize=16)(self._score_file)
        self._pool = functools.lru_cache(maxsize=1)(self._make_pool)

    def run(self, settings: RunSettings) -> Record:
        """One run.

        Raises:
            StoreError: features that are missing, broken or of different encoders.
            SettingsError: settings that do not fit the sets.
        """
        sources = self._sources(settings)
        stream = build_stream(settings.stream, *sources.sizes)
        pool = self._pool(settings.encoder, settings.prompt, *sources.names)
        index = stream.row + np.cumsum([0, *sources.sizes])[stream.kind]
        data = StreamData(pool, index, stream.kind == NOISE, settings.stream.seed)
        started = time.perf_counter()
        decisions = METHODS[settings.method](data, settings)
        seconds = time.perf_counter() - started
        return _record(settings, sources, stream, decisions, seconds)

    def _sources(self, settings: RunSettings) -> Sources:
        """The feature files of a run, checked to be of one encoder and to fit the settings."""
        encoder, stream = settings.encoder, settings.stream
        id_set = self._read(encoder, settings.id_set)
        if not id_set.class_names or (id_set.labels < 0).any():
            raise SettingsError(f"'{id_set.name}' cannot be an ID set: it has no class labels.")
        ood = settings.ood_set if ood_count(stream, len(id_set)) else None
        sources = Sources(
            id_set,
            self._read(encoder, ood) if ood else None,
            self._read(encoder, noise_name(stream.noise)) if stream.noise != NO_NOISE else None,
        )
        for other in sources.present:
            _check_same_encoder(id_set, other)
        return sources

    def _read_file(self, encoder: str, name: str) -> FeatureSet:
        path = feature_path(self._root, encoder, name)
        if not path.exists():
            what = f"--dataset {name}"
            if name.startswith("noise-"):
                what = f"--dataset NAME --noise {name.removeprefix('noise-')}"
            raise StoreError(
                f"no features of '{name}' by {encoder} in {self._root}/: type "
                + f"zsntta extract {what} {self._options}".strip()
            )
        return read_features(path)

    def _text(self, encoder: str, prompt: str, id_set: str) -> NDArray[np.float32]:
        known = self._read(encoder, id_set).text_features
        if prompt not in known:
            cached = ", ".join(f"'{template}'" for template in known) or "none"
            raise StoreError(
                f"the prompt '{prompt}' is not cached for '{id_set}' (cached: {cached}): type "
                + f"zsntta extract --dataset {id_set} --prompt '{prompt}' {self._options}".strip()
            )
        return known[prompt]

    def _score_file(self, encoder: str, prompt: str, id_set: str, name: str) -> ZeroShot:
        source = self._read(encoder, name)
        text = self._text(encoder, prompt, id_set)
        return zero_shot(source.image_features, text, source.encoder["logit_scale"])

    def _make_pool(self, encoder: str, prompt: str, id_set: str, *others: str) -> Pool:
        names = (id_set, *others)
        scores = [self._zero_shot(encoder, prompt, id_set, name) for name in names]
        return Pool(
            _raw_features([self._read(encoder, name) for name in names]),
            self._text(encoder, prompt, id_set),
            self._read(encoder, id_set).encoder["logit_scale"],
            ZeroShot(
                np.concatenate([s.class_index for s in scores]),
                np.concatenate([s.noise_score for s in scores]),
            ),
        )


def _raw_features(sources: Sequence[FeatureSet]) -> NDArray[np.float32]:
    """Features of all sources, one below the other; normalised ones get the norm of raw ones."""
    shape = sum(len(source) for source in sources), sources[0].image_features.shape[1]
    pool = np.empty(shape, np.float32)
    start = 0
    for source in sources:
        rows = pool[start : start + len(source)]
        rows[:] = source.image_features
        if source.normalized:
            rows *= _CLIP_NORM
        start += len(source)
    return pool


def _check_same_encoder(one: FeatureSet, other: FeatureSet) -> None:
    different = [key for key in _SAME_ENCODER if one.encoder.get(key) != other.encoder.get(key)]
    if different:
        key = different[0]
        raise StoreError(
            f"{one.path} and {other.path} are of different encoders ({key}: "
            f"{one.encoder.get(key)} and {other.encoder.get(key)}): extract one of them again."
        )


def _record(
    settings: RunSettings, sources: Sources, stream: Stream, decisions: Decisions, seconds: float
) -> Record:
    """Judge the decisions on the test samples; injected items do not count."""
    tests = stream.kind != NOISE
    is_id = stream.kind[tests] == ID
    labels = np.where(is_id, sources.id_set.labels[np.where(is_id, stream.row[tests], 0)], -1)
    return Record(
        settings,
        accuracies(labels, decisions.class_index[tests], decisions.is_noise[tests]),
        detection(decisions.id_score[tests], is_id),
        {name: int((stream.kind == kind).sum()) for name, kind in _KINDS.items()},
        {source.name: source.digest for source in sources.present},
        seconds,
        datetime.now(UTC).isoformat(timespec="seconds"),
        {"zsntta": __version__, "numpy": np.__version__, "python": platform.python_version()},
    )
