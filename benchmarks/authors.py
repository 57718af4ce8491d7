"""Each newer method beside a plain rendering of its authors' rule, on the same items: a table.

    python benchmarks/authors.py [--features FOLDER] [--items 600] [--method lame …]

The renderings are those of tests/reference: item by item, in float64, written from the papers'
equations and the released settings. Every item may be learned, as the authors do, so no detector
decides what a classifier sees. FOLDER has `SET-PART.npz` (features (N, D), labels (N,)) and, for a
set that can be ID, `text-SET.npz` (text_features (C, D), class_names). Each such set is run with
the first set that has no text, and the texts of other ID sets are the words. Without FOLDER,
features are drawn.

A cell has the share of equal classes, or of equal noise decisions, in percent; behind it, for
classifiers, the accuracy on ID of the rendering and of the method, and for detectors that name
classes the share of equal ones. Blocks and DDE of many classes take minutes to render.
"""

import argparse
import functools
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from zsntta_cli.methods import CLASSIFIERS, METHODS
from zsntta_cli.methods.base import Pool, StreamData
from zsntta_cli.methods.method import PairSettings
from zsntta_cli.methods.scores import unit, zero_shot
from zsntta_cli.settings import ThresholdSettings
from zsntta_cli.simulation.runs import build_run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference import block_classifiers, classifiers, dde, equations, words

Array = NDArray[Any]
SCALE = 100.0


@dataclass(frozen=True)
class Items:
    """A stream, and the ID class of each item, -1 for OOD."""

    name: str
    data: StreamData
    labels: Array


def by_block(solved: Callable[..., Array], data: StreamData, options: Any) -> Array:
    """Scores (T, C) by a rendering that is given the features, logits and texts of a block."""
    features, logits, texts = classifiers.frozen(data)
    starts = range(0, len(data), options.block)
    blocks = [slice(start, start + options.block) for start in starts]
    return np.concatenate([
        solved(np.array(features[part]), np.array(logits[part]), texts, options) for part in blocks
    ])  # fmt: skip


def gaussians(is_anchored: bool) -> Callable[..., Array]:
    def solved(x: Array, logits: Array, texts: Array, o: Any) -> Array:
        return block_classifiers.gaussians(
            x, logits, texts, o.block_neighbours, o.block_smoothing, o.block_steps, is_anchored
        )

    return functools.partial(by_block, solved)


def lame(x: Array, logits: Array, _texts: Array, o: Any) -> Array:
    return block_classifiers.lame(x, logits, o.lame_neighbours, o.lame_strength, o.lame_steps)


def of_items(rule: Callable[..., Array]) -> Callable[[StreamData, Any], Array]:
    return lambda data, options: rule(data, options, np.ones(len(data), bool))


def oodd(data: StreamData, own: Any, _: ThresholdSettings) -> tuple[Array, ...]:
    scale = data.pool.logit_scale if own.oodd_temperature is None else 1 / own.oodd_temperature
    noise_score = equations.oodd(
        data.features(slice(None)).astype(float), data.pool.text_features.astype(float), scale,
        own.oodd_items, own.oodd_neighbour, own.batch_size,
    )  # fmt: skip
    return (noise_score > equations.thresholds(noise_score, own.batch_size),)


# Line: the method, its preset, settings beside it, and the rendering.
Line = tuple[str, str, dict[str, Any], Callable[..., Any]]
NAMING: tuple[Line, ...] = (
    ("stata", "paper", {}, gaussians(is_anchored=True)),
    ("stata", "paper", {"block": 128}, gaussians(is_anchored=True)),
    ("transclip", "paper", {}, gaussians(is_anchored=False)),
    ("transclip", "paper", {"block": 128}, gaussians(is_anchored=False)),
    ("lame", "paper", {}, functools.partial(by_block, lame)),
    ("lame", "paper", {"block": 128}, functools.partial(by_block, lame)),
    ("dla", "paper", {}, of_items(classifiers.dla)),
    ("dla", "paper", {"dla_strength": 3.3}, of_items(classifiers.dla)),
    ("dmn", "paper", {}, of_items(classifiers.dmn)),
    ("oga", "official", {}, of_items(classifiers.oga)),
    ("onzeta", "official", {}, of_items(classifiers.onzeta)),
    ("bca", "paper", {}, of_items(classifiers.bca)),
)
DECIDING: tuple[Line, ...] = (
    ("neglabel", "paper", {}, words.neglabel),
    ("adaneg", "paper", {}, words.adaneg),
    ("tanl", "paper", {"tanl_words": 73}, words.tanl),  # an odd number
    ("dde", "paper", {}, dde.dde),
    ("dde", "official", {"dde_gate": 0.1}, dde.dde),
    ("oodd", "paper", {}, oodd),
    ("oodd", "official", {}, oodd),
)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=Path, help="a folder of .npz files; drawn without it")
    parser.add_argument("--items", type=int, default=600, help="of each stream, the first ones")
    parser.add_argument("--method", action="append", help="may be given again; all by default")
    return parser.parse_args()


def stream(
    name: str, images: Array, labels: Array, others: Array, texts: Array, word_texts: Array, n: int
) -> Items:
    """The first n items of an equal number of ID and OOD images, shuffled by PCG64(0)."""
    generator = np.random.Generator(np.random.PCG64(0))
    chosen = generator.permutation(len(others))[: len(images)]
    rows = np.concatenate([images, others[chosen]]).astype(np.float32)
    truth = np.concatenate([labels, np.full(len(chosen), -1)])
    order = generator.permutation(len(rows))[:n]
    text = unit(texts.astype(np.float32))
    pool = Pool(rows, text, SCALE, zero_shot(rows, text, SCALE))
    word_text = unit(word_texts.astype(np.float32))
    pool = replace(pool, more_text=word_text, more_sizes=(len(word_text),))
    return Items(name, StreamData(pool, order, np.zeros(len(order), bool)), truth[order])


def drawn(n: int, classes: int = 24, dim: int = 64) -> Items:
    """Images about texts that share a direction, as CLIP's do, and noise about other words."""
    rng = np.random.default_rng(0)
    every = rng.normal(size=(classes + 150, dim)) / np.sqrt(dim) + 2 * np.eye(1, dim)
    texts, labels = every[:classes], rng.integers(classes, size=n)
    near = [texts[labels], every[classes + rng.integers(40, size=n)]]
    images, others = (unit(rows + 0.35 * rng.normal(size=rows.shape)) for rows in near)
    return stream("drawn", images, labels, others, texts, every[classes:], n)


def read(folder: Path, n: int) -> list[Items]:
    """One stream for each ID set of a folder."""
    images = {re.sub(r"-(val|test)$", "", p.stem): p for p in sorted(folder.glob("*.npz"))}
    texts = {name: p for name, p in images.items() if name.startswith("text-")}
    sets = {name: np.load(p) for name, p in images.items() if name not in texts}
    text_of = {name: f"text-{name.partition('-')[0]}" for name in sets}
    ids = [name for name in sets if text_of[name] in texts]
    other = next(name for name in sets if name not in ids)
    features = {name: np.load(path)["text_features"] for name, path in texts.items()}
    return [
        stream(
            f"{name} + {other}", sets[name]["features"], sets[name]["labels"],
            sets[other]["features"], features[text_of[name]],
            np.concatenate([rows for key, rows in features.items() if key != text_of[name]]), n,
        )
        for name in ids
    ]  # fmt: skip


def accuracy(class_index: Array, items: Items) -> float:
    is_id = items.labels >= 0
    return float(100 * (class_index[is_id] == items.labels[is_id]).mean())


def named(items: Items, line: Line) -> str:
    """The shares of a classifier that may learn from every item."""
    method, preset, values, rendering = line
    chosen = CLASSIFIERS[method]
    given = build_run(method, "", "", None, "", preset, **values).options
    own = given.classifier if isinstance(given, PairSettings) else given
    ours = chosen(items.data, own).classify(items.data, np.ones(len(items.data), bool))
    theirs = rendering(items.data, own).argmax(axis=1)
    equal = 100 * (ours == theirs).mean()
    return f"{equal:.2f} ({accuracy(theirs, items):.2f} / {accuracy(ours, items):.2f})"


def decided(items: Items, line: Line) -> str:
    """The share of equal noise decisions of a detector, and that of equal classes if it has any."""
    method, preset, values, rendering = line
    own = build_run(method, "", "", None, "", preset, **values).options
    threshold = ThresholdSettings()
    ours = METHODS[method](items.data, own, threshold).push(items.data)
    is_noise, _, classes, *_ = *rendering(items.data, own, threshold), None, None
    shares = [f"{100 * (ours.is_noise == is_noise).mean():.2f}"]
    if classes is not None:
        named = classes if classes.ndim == 1 else classes.argmax(axis=1)
        shares.append(f"{100 * (ours.class_index == named).mean():.2f}")
    return ", classes ".join(shares)


def main() -> None:
    given = options()
    streams = read(given.features, given.items) if given.features else [drawn(given.items)]
    title = "equal to the authors' rule, % (accuracy on ID: theirs / ours)"
    columns = (f"{items.name}, {len(items.data):,} items" for items in streams)
    table = Table("method", "preset", *columns, title=title)
    for lines, compared in ((NAMING, named), (DECIDING, decided)):
        for line in lines:
            method, preset, values, _ = line
            if given.method and method not in given.method:
                continue
            settings = ", ".join(f"{k.replace('_', '-')} {v}" for k, v in values.items())
            label = f"{method}, {settings}" if settings else method
            table.add_row(label, preset, *(compared(items, line) for items in streams))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
