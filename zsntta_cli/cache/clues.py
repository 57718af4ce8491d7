"""Clues in a feature file to why its zero-shot accuracy is off; they need no encoder.

The clues are class names that nobody would say, the other prompts of the file and their average.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from zsntta_cli.cache import hdf5
from zsntta_cli.cache.accuracy import zero_shot, zero_shots
from zsntta_cli.cache.features import FeatureSet
from zsntta_cli.cache.published import ComparedAccuracy, judge, judged, published_for
from zsntta_cli.errors import short
from zsntta_cli.settings.prompts import PHOTOS, join_templates

_WNID = re.compile(r"n\d{8}")
_CUT = 8  # the least length of names that seem to be cut, in letters
_CUT_SHARE = 0.1  # the least share of names that are as long as the longest; three at least


def judged_file(path: Path) -> list[ComparedAccuracy]:
    """Compare the zero-shot accuracies of a feature file with published ones.

    Those that are outside what is allowed get the clues that the file has to the cause.

    Raises:
        StoreError: the file is broken.
    """
    header, shots = hdf5.read_header(path), zero_shots(path)
    every = judged(header.identity, path.stem, shots, header.classes)
    if not any(one.is_outside for one in every):
        return every
    features = hdf5.read_features(path)
    clues = (*name_clues(features.class_names), *_prompt_clues(features, every))
    return [replace(one, clues=clues) if one.is_outside else one for one in every]


def name_clues(names: Sequence[str]) -> Iterator[str]:
    """Find faults of class names, most of which are forms that a text encoder has hardly met."""
    kinds = {
        "are ids of WordNet": [name for name in names if _WNID.fullmatch(name)],
        "are numbers": [name for name in names if name.isdecimal()],
        "have underscores for spaces": [name for name in names if "_" in name],
        "have several names in one": [name for name in names if "," in name],
        "are there twice": [name for name, count in Counter(names).items() if count > 1],
        "may be cut, for none is longer": _cut_names(names),
    }
    for words, faulty in kinds.items():
        if faulty:
            yield f"{len(faulty):,} of {len(names):,} class names {words} ('{short(faulty[0])}')"


def _cut_names(names: Sequence[str]) -> list[str]:
    """The longest names, if so many have this length that a field seems to be that wide."""
    longest = max(map(len, names), default=0)
    cut = [name for name in names if len(name) == longest]
    return cut if longest >= _CUT and len(cut) >= max(3, _CUT_SHARE * len(names)) else []


def _prompt_clues(features: FeatureSet, every: Sequence[ComparedAccuracy]) -> Iterator[str]:
    """Name the other prompts of the file that are within what is allowed, or their average."""
    for compared in every:
        if compared.published is not None and not compared.is_outside:
            yield f"under '{compared.shot.template}' it is within what is allowed"
    texts = {key: text for key, text in features.text_features.items() if key != PHOTOS}
    if len(texts) < 2:
        return
    mean = np.mean(list(texts.values()), axis=0)
    mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    joined = join_templates(*texts)
    shot = zero_shot(replace(features, text_features={joined: mean}), joined)
    if shot is None:
        return
    average = judge(shot, published_for(features.identity, features.path.stem))
    if average.published is not None and not average.is_outside:
        yield (
            f"the average of its {len(texts)} prompts gives {100 * shot.accuracy:.2f} %, which is "
            f"within what is allowed"
        )
