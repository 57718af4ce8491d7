"""The material of checks: images of three kinds, as features, and streams over them."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import DATASET, NOISE, WORDS, Text
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.hdf5 import read_features, write_features
from zsntta_cli.methods import NO_TEXT
from zsntta_cli.methods import WORDS as NEEDS_WORDS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.scores import unit, zero_shot
from zsntta_cli.settings import NOISE_TYPES, StreamSettings
from zsntta_cli.settings.prompts import DEFAULT_PROMPT
from zsntta_cli.simulation.stream import NOISE as INJECTED
from zsntta_cli.simulation.stream import build_stream

Floats = NDArray[np.float32]

ENCODER, ID_SET, OOD_SET = "tiny", "shapes", "glyphs"  # the demo's, whose features may be at hand
NOISE_SET, WORD_LIST = f"noise-{NOISE_TYPES[0]}", "nouns"
_DIM, _CLASSES, _CLUSTERS = 32, 10, 4
_NOUNS, _ADJECTIVES = 240, 60  # words beside the classes
_OOD_SHARE, _NOISE_EVERY = 0.4, 8
_SEED = 24
_SCALE = 20.0  # of the logits
_IDENTITY = {"model": ENCODER, "pretrained": "drawn", "precision": "fp32"}


@dataclass(frozen=True)
class Material:
    """P images in the order of a pool, ID then OOD then noise, and texts."""

    about: str  # where the features are from
    features: Floats  # (P, D) raw
    sizes: tuple[int, int, int]  # images of each kind
    labels: NDArray[np.int32]  # (N_id,)
    text: Floats  # (C, D) unit norm
    words: Floats  # (W, D) unit norm
    no_text: Floats  # (C, D) unit norm: what CLIPN asks for
    logit_scale: float

    @classmethod
    def drawn(cls, items: int, classes: int = _CLASSES) -> Self:
        """Random clusters around class texts and elsewhere, noise around a point; fixed seed."""
        rng = np.random.default_rng(_SEED)
        sizes = _sizes(items)
        text = _unit(rng, classes)
        labels = rng.integers(classes, size=sizes[0]).astype(np.int32)
        clusters = _unit(rng, _CLUSTERS) / 2
        centres = np.concatenate([
            10 * text[labels], 10 * clusters[rng.integers(_CLUSTERS, size=sizes[1])],
            np.full((sizes[2], _DIM), 3),
        ])  # fmt: skip
        features = centres + 1.5 * rng.normal(size=(sum(sizes), _DIM))
        words = _unit(rng, _NOUNS + _ADJECTIVES)
        near = rng.integers(_CLUSTERS, size=len(words) // 5)  # a fifth name what the noise shows
        words[::5] = unit(2 * clusters[near] + 0.1 * rng.normal(size=(len(near), _DIM)))
        no_text = unit(rng.normal(size=text.shape) - text).astype(np.float32)
        about = f"drawn features: {classes} classes, {_DIM} dims"
        return cls(about, features.astype(np.float32), sizes, labels, text, words, no_text, _SCALE)

    @classmethod
    def cached(cls, root: Path, items: int) -> Self | None:
        """The demo's features, if they exist and are enough."""
        sizes, sets = _sizes(items), []
        for name, size in zip((ID_SET, OOD_SET, NOISE_SET), sizes, strict=True):
            path = feature_path(root, ENCODER, name)
            if not path.exists():
                return None
            sets.append(read_features(path))
            if len(sets[-1]) < size:
                return None
        text = sets[0].text_features[DEFAULT_PROMPT]
        drawn = np.random.default_rng(_SEED).normal(size=(_NOUNS + _ADJECTIVES, text.shape[1]))
        words = unit(text.mean(axis=0) + drawn / np.sqrt(text.shape[1])).astype(np.float32)
        parts = [s.image_features[:size] for s, size in zip(sets, sizes, strict=True)]
        return cls(
            f"features of {ID_SET}, {OOD_SET} and injected noise by {ENCODER}",
            np.concatenate(parts).astype(np.float32), sizes, sets[0].labels[: sizes[0]], text,
            words, unit(words[: len(text)] - text).astype(np.float32),
            sets[0].identity["logit_scale"],
        )  # fmt: skip

    @property
    def stream_settings(self) -> StreamSettings:
        """The stream over all images, each once."""
        share = self.sizes[1] / (self.sizes[0] + self.sizes[1])
        return StreamSettings(ratio=share, noise=NOISE_TYPES[0], noise_every=_NOISE_EVERY)

    def stream(self, needs: str = "") -> StreamData:
        """All images as a method with these needs sees them: noise injected, random order."""
        stream = build_stream(self.stream_settings, *self.sizes)
        index = stream.row + np.cumsum([0, *self.sizes[:2]])[stream.kind]
        return StreamData(self._pool(needs), index, stream.kind == INJECTED, 0)

    def clean_stream(self, needs: str = "") -> StreamData:
        """The ID images alone; nothing is injected."""
        count = self.sizes[0]
        index = np.random.default_rng(_SEED).permutation(count)
        return StreamData(self._pool(needs), index, np.zeros(count, bool), 0)

    def _pool(self, needs: str) -> Pool:
        scores = zero_shot(self.features, self.text, self.logit_scale)
        pool = Pool(self.features, self.text, self.logit_scale, scores)
        if needs == NEEDS_WORDS:
            return dataclasses.replace(pool, more_text=self.words, more_sizes=(_NOUNS, _ADJECTIVES))
        return dataclasses.replace(pool, more_text=self.no_text) if needs == NO_TEXT else pool

    def with_other_truth(self) -> Self:
        """The same pool with fewer images called ID, and these with other classes."""
        n_id, n_ood, n_noise = self.sizes
        sizes = (n_id - n_id // 4, n_ood + n_id // 4, n_noise)
        labels = (self.labels[: sizes[0]] + 1) % max(len(self.text), 1)
        return dataclasses.replace(self, sizes=sizes, labels=labels)

    def write(self, root: Path) -> None:
        """Write the feature files that a run would read."""
        n_id, n_ood, _ = self.sizes
        classes = Texts("class", self.text)
        self._write(root, ID_SET, DATASET, slice(n_id), classes)
        self._write(root, OOD_SET, DATASET, slice(n_id, n_id + n_ood))
        self._write(root, NOISE_SET, NOISE, slice(n_id + n_ood, None))
        self._write(root, f"words-{WORD_LIST}", WORDS, slice(0), Texts("word", self.words))
        np.save(root / "no-text.npy", self.no_text)

    def _write(
        self, root: Path, name: str, kind: str, rows: slice, texts: "Texts | None" = None
    ) -> None:
        features = self.features[rows]
        unknown = np.full(len(features), -1, np.int32)
        write_features(
            feature_path(root, ENCODER, name), kind=kind, name=name,
            encoder={**_IDENTITY, "logit_scale": self.logit_scale}, source={}, blocks=[features],
            labels=self.labels if name == ID_SET else unknown,
            sample_ids=_names(name, len(features)),
            class_names=_names(texts.kind, len(texts.features)) if texts else (),
            texts=[Text(DEFAULT_PROMPT, texts.features)] if texts else (),
        )  # fmt: skip


class Texts(NamedTuple):
    """Text features (N, D) of classes or words, with numbered names."""

    kind: str
    features: Floats


def _sizes(items: int) -> tuple[int, int, int]:
    """The numbers of ID, OOD and noise images in a stream of `items` items."""
    noise = items // (_NOISE_EVERY + 1)
    ood = round(_OOD_SHARE * (items - noise))
    return items - noise - ood, ood, noise


def _unit(rng: np.random.Generator, rows: int) -> Floats:
    return unit(rng.normal(size=(rows, _DIM))).astype(np.float32)


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind} {i}" for i in range(count)]
