"""Turn .npz files of CLIP features into feature files and word lists for `zsntta simulate`.

    python benchmarks/real_features.py FOLDER [--features-dir features] [--encoder real]

FOLDER has `SET-PART.npz` with features (N, D) and labels (N,) and, for each set that can be an ID
set, `text-SET.npz` with text_features (C, D) of unit norm and class_names. Because the text tower
may be unavailable, the names of the other sets serve as words: each ID set has a list `not-SET` of
them, without its own class names, and the mean of the unit text features of `--generic SET` is the
generic text. Text features are stored under the sets' default prompt, whichever prompt made them.
The script prints a command that runs each ID set against each set without class names.
"""

import argparse
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path
from zsntta_cli.cache.npz import import_features
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets import default_prompt
from zsntta_cli.datasets.names import WORDS, words_name
from zsntta_cli.settings import ImportSettings

SAME = 0.98  # cosine of two spellings of one name


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--features-dir", type=Path, default=Path("features"))
    parser.add_argument("--encoder", default="real")
    parser.add_argument("--generic", default="imagenet-fewshot", help="set of as many words")
    return parser.parse_args()


def imported(given: argparse.Namespace) -> dict[str, Features]:
    """Import all sets; return their features by name."""
    found = {}
    for path in sorted(given.folder.glob("*.npz")):
        if path.stem.startswith("text-"):
            continue
        name = re.sub(r"-(val|test)$", "", path.stem)
        text = path.with_name(f"text-{name.partition('-')[0]}.npz")
        text = text if text.exists() else None
        what = ImportSettings(features=path, text=text, encoder=given.encoder)
        found[name] = import_features(name, what, given.features_dir, print)
        print(f"{name}: {len(found[name]):,} images, {len(found[name].class_names)} classes")
    return found


def own_text(one: Features) -> NDArray[np.float32]:
    [text] = (text.features for text in one.texts.values())
    return text


def add_generic(sets: Mapping[str, Features], of: str) -> None:
    """Write the mean of a set's text features into the files of all sets with text."""
    mean = own_text(sets[of]).mean(0, dtype=np.float64).astype(np.float32)
    for one in sets.values():
        if one.texts:
            source = f"the classes of {of}"
            store.write(replace(store.read(one.path), generic=mean, generic_source=source))


def write_words(given: argparse.Namespace, sets: Mapping[str, Features], id_set: str) -> int:
    """Write the names of all other sets that `id_set` does not have; return their number."""
    prompt, own = default_prompt(id_set), own_text(sets[id_set])
    words, rows = [], []
    for name, other in sets.items():
        if name == id_set:
            continue
        text = own_text(other)
        for i in np.flatnonzero((text @ own.T).max(axis=1) < SAME):
            words.append(f"{name}: {other.class_names[i]}")
            rows.append(text[i])
    name = words_name(f"not-{id_set}")
    path, identity = feature_path(given.features_dir, given.encoder, name), sets[id_set].identity
    source, no_rows = {"of": "class names of other sets"}, np.empty((0, own.shape[1]), np.float16)
    texts, no_labels = {prompt: Text(prompt, np.stack(rows))}, np.empty(0, np.int32)
    listed = Features(path, WORDS, name, identity, source, no_rows, no_labels, tuple(words), texts)
    store.write(listed, [])
    return len(words)


def main() -> None:
    given = options()
    sets = imported(given)
    named = {name: one for name, one in sets.items() if one.texts}
    if given.generic in named:
        add_generic(named, given.generic)
    for name in named:
        print(f"words not-{name}: {write_words(given, named, name):,}")
    folder = shlex.quote(str(given.features_dir))
    oods = ",".join(name for name in sets if name not in named)
    for name in named:
        print(
            f"zsntta simulate --method zs-clip,cull,neglabel --id {name} --ood {oods} "
            f"--set words=not-{name} --encoder {given.encoder} --features-dir {folder}"
        )


if __name__ == "__main__":
    main()
