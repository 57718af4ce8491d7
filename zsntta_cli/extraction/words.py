"""Encode word lists, in parts as images are: a list has thousands of words.

A part has whole batches, counted from the list's start: a resumed run gives the same bytes as an
uninterrupted one.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from zsntta_cli.cache import store
from zsntta_cli.cache.identity import ENCODING, machine_facts
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.images import ImageSet
from zsntta_cli.datasets.names import WORDS
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.encoders.text import BATCH, prompt_features
from zsntta_cli.extraction.parts import Parts, equal_parts
from zsntta_cli.progress import Reporter

_BATCHES_A_PART = 4  # a killed run loses at most this much
_SECONDS_TO_TELL = 60  # of work that is announced


def word_set(name: str, words: Sequence[str], limit: int | None = None) -> ImageSet:
    """A list as a set without images, whose class names are the words."""
    return ImageSet(name, _no_image, np.empty(0, np.int32), (), words, limit=limit)


def _no_image(_: int) -> Image.Image:
    raise AssertionError("a word list has no images")


def embed_words(
    path: Path,
    words: ImageSet,
    template: str,
    identity: Mapping[str, Any],
    encoder: Encoder,
    reporter: Reporter,
) -> Text:
    """The features of all words of a list under a template; finished parts are reused.

    The parts are kept until the features are in the list's file.
    """
    names, rows = words.class_names, range(len(words.class_names))
    ranges, layout = equal_parts(rows, BATCH * _BATCHES_A_PART)
    parts = Parts(path, {**identity, **layout}, ranges, reporter.note)
    missing = parts.missing()
    todo = sum(map(len, missing))
    with reporter.track(words.name, len(names), "words") as advance:
        advance(len(names) - todo)
        for part in missing:
            batches = []
            for start in range(0, len(part), BATCH):
                batch, started = part[start : start + BATCH], time.monotonic()
                batch_names = [names[i] for i in batch]
                batches.append(prompt_features(encoder.encode_texts, template, batch_names))
                if batch.start == missing[0].start:
                    _announce(words.name, todo, (time.monotonic() - started) / len(batch), reporter)
                advance(len(batch))
            parts.write(part, np.concatenate(batches), np.ones(len(part), bool))
    features = np.empty((len(names), encoder.embed_dim), np.float32)
    for part, block in zip(parts.all(), parts.blocks(), strict=True):
        features[part.start : part.stop] = block
    return Text(template, features)


def _announce(name: str, words: int, seconds_a_word: float, reporter: Reporter) -> None:
    """Report how long the work will take, by the time of the first batch, if it takes long."""
    seconds = words * seconds_a_word
    if seconds >= _SECONDS_TO_TELL:
        reporter.note(f"{name}: {words:,} words, about {seconds / 60:,.0f} minutes")


def write_words(path: Path, words: ImageSet, encoder: Encoder, text: Text) -> None:
    """Write the feature file of a list, with its features under one template."""
    no_rows = np.empty((0, encoder.embed_dim), np.float16)
    features = Features(
        path, WORDS, words.name, encoder.identity, words.identity(), no_rows, words.labels,
        tuple(words.class_names), {text.template: text}, machine=machine_facts(ENCODING),
    )  # fmt: skip
    store.write(features, ())
