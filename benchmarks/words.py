"""What words for what else there may be change of ridge, on features of your own.

    zsntta cache split pets --classes 12 --features-dir features --encoder my-clip
    python benchmarks/words.py features/my-clip --pairs pets-12-s0-id:pets-12-s0-ood --lists own
    python benchmarks/words.py features/my-clip --pairs pets:dtd --lists cars --lists cars,imagenet

reads feature files as `zsntta extract`, `zsntta cache import` and `zsntta cache split` make them.
Words are the class names of other sets, but for those of the ID set; `own` stands for the set that
the ID set was cut from, pets of pets-12-s0-id. A table in Markdown: Acc_H in percent by noise ratio
(Acc_S at 0 %), the mean over pairs and seeds of streams without injected noise, and in brackets the
share of images whose best match is a word.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.features import FeatureSet
from zsntta_cli.cache.hdf5 import read_features
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, MoreText, Pool, StreamData
from zsntta_cli.settings import StreamSettings, ThresholdSettings
from zsntta_cli.simulation.stream import ID, Stream, build_stream

RATIOS = (0, 0.01, 0.05, 0.25, 0.5)
OWN = "own"


def names(text: str) -> list[str]:
    return text.split(",")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of feature files of one encoder")
    parser.add_argument("--pairs", type=names, required=True, help="ID:OOD,ID:OOD")
    parser.add_argument("--lists", action="append", type=names, required=True, help="repeatable")
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def text_of(source: FeatureSet) -> NDArray[np.float32]:
    [text] = source.text_features.values()
    return text


class Pair:
    """The images of an ID and an OOD set, scored once."""

    def __init__(self, folder: Path, pair: str) -> None:
        self._read = lambda name: read_features(folder / f"{name}.h5")
        self._whole, (id_name, ood_name) = pair.partition("-")[0], pair.split(":")
        self._id, self._ood = self._read(id_name), self._read(ood_name)
        rows = [np.asarray(one.image_features, np.float32) for one in (self._id, self._ood)]
        scale = self._id.identity["logit_scale"]
        self.frozen = Pool.scored(np.concatenate(rows), text_of(self._id), scale)

    def beside(self, lists: Sequence[str]) -> Pool:
        """The images beside the class names of some sets."""
        sets = [self._read(self._whole if name == OWN else name) for name in lists]
        words = np.concatenate([text_of(one) for one in sets])
        return self.frozen.beside(MoreText(words).without(text_of(self._id)))

    def stream(self, ratio: float, seed: int) -> Stream:
        settings = StreamSettings(ratio=ratio, seed=seed, noise="none")
        return build_stream(settings, len(self._id), len(self._ood), 0, self._id.labels)

    def data(self, pool: Pool, stream: Stream) -> StreamData:
        """A stream as a method sees it, beside a pool's words."""
        index = stream.row + np.array([0, len(self._id)])[stream.kind]
        return StreamData(pool, index, np.zeros(len(index), bool))

    def accuracy(self, decisions: Decisions, stream: Stream) -> float:
        """Acc_H of decisions on a stream; Acc_S where there is no noise."""
        clean = stream.kind == ID
        labels = self._id.labels[stream.row[clean]]
        is_right = ~decisions.is_noise[clean] & (decisions.class_index[clean] == labels)
        right = float(is_right.mean())
        if clean.all():
            return right
        found = float(decisions.is_noise[~clean].mean())
        return 2 * right * found / max(right + found, 1e-9)


def cell(pairs: Sequence[tuple[Pair, Pool]], name: str, ratio: float, seeds: int) -> str:
    accuracies, used = [], []
    method = METHODS[name]
    for pair, pool in pairs:
        for seed in range(seeds):
            stream = pair.stream(ratio, seed)
            data = pair.data(pool, stream)
            decisions = method.load()(data, method.settings_class(), ThresholdSettings())
            accuracies.append(pair.accuracy(decisions, stream))
            if scores := data.word_scores(slice(None)):
                used.append(scores.is_word.mean())
    share = f" ({100 * np.mean(used):.0f})" if used else ""
    return f"{100 * np.mean(accuracies):.1f}{share}"


def main() -> None:
    given = options()
    pairs = [Pair(given.folder, pair) for pair in given.pairs]
    frozen = [(pair, pair.frozen) for pair in pairs]
    rows = [("ZS-CLIP", "zs-clip", frozen), ("ridge", "ridge", frozen)]
    rows += [
        (f"ridge, {' and '.join(one)}", "ridge", [(pair, pair.beside(one)) for pair in pairs])
        for one in given.lists
    ]
    print("| Acc_H | " + " | ".join(f"{100 * ratio:g} %" for ratio in RATIOS) + " |")
    print("|---|" + "---:|" * len(RATIOS))
    for label, method, images in rows:
        cells = (cell(images, method, ratio, given.seeds) for ratio in RATIOS)
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
