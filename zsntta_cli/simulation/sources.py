"""The feature files that runs read: found, read once, and checked to fit each other.

The OOD images of a stream may come from a list, one image per line: a folder has the lists as text
files, ODDS/ID_OOD.txt, such as 0.33/cifar10_svhn.txt. The released code of the paper has such lists
as pickles, which are not read here.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache import store
from zsntta_cli.cache.folder import feature_path, set_names
from zsntta_cli.cache.identity import check_same, is_level_known
from zsntta_cli.cache.lacking import missing_features, missing_text, missing_words
from zsntta_cli.cache.origin import origin_of
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.names import SKIPPED, WORDS, SetName, noise_name, words_name
from zsntta_cli.errors import SettingsError, StoreError, ZsnttaError, counted, first_line
from zsntta_cli.files import open_regular, read_input
from zsntta_cli.methods import METHODS, NO_TEXT
from zsntta_cli.methods import WORDS as NEEDS_WORDS
from zsntta_cli.methods.base import MoreText
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import MATCH, NATURAL, NO_NOISE, Ratio, ood_share, ratio_text
from zsntta_cli.settings.prompts import (
    NOUN_PROMPT,
    PHOTOS,
    WORD_SETS,
    lists_of,
    set_of,
    speech_prompt,
)
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream

MORE_TEXT, ITEMS = "more_text", "items"  # in digests
_LONGEST_LIST = 2**28  # bytes
_USUAL_WORDS = "wordnet"  # where several lists are cached: what NegLabel was published with
_SWAPPED = ("cheese plate", "cheesecake")  # classes 16 and 17 of Food-101

Words = tuple[tuple[Features, str], ...]  # descriptions of word lists, each with its prompt
Texts = tuple[Path, str, str]  # a file, a prompt, and the digest of the text features


@dataclass(frozen=True)
class ListedItems:
    """The OOD images that a list names and that the set has."""

    rows: NDArray[np.int64]  # in the OOD set's file, in the list's order; an image may come again
    lacking: tuple[str, ...]  # lines that name no image of the set
    digest: str  # SHA-256 (hex) of the list


@dataclass(frozen=True)
class Sources:
    """What a run reads: the feature files of its stream, and texts besides the class names."""

    run: RunSettings
    files: Mapping[int, Features]  # by kind: ID, and OOD and NOISE where the stream has any
    listed: ListedItems | None = None  # which images of the OOD set take part; None: drawn ones
    more: MoreText | None = None  # the texts that the method needs
    words: Words = ()  # its word lists

    @property
    def id_set(self) -> Features:
        """The file of the ID set."""
        return self.files[ID]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The number of images of each kind."""
        return len(self.id_set), len(self.files.get(OOD, ())), len(self.files.get(NOISE, ()))

    def rows(self, stream: Stream) -> NDArray[np.int64]:
        """The rows (T,) of a stream's items among the images of the sets, one below the other."""
        rows: NDArray[np.int64] = stream.row + np.cumsum([0, *self.sizes])[stream.kind]
        return rows

    def digests(self) -> dict[str, str]:
        """The digests of a run's inputs: of its files by name, and of how their features are read.

        `text/<ID set>` covers the class text features, the logit scale (for a sigmoid model also
        its bias), and whether the ID set's features are normalised; `norm/<set>` marks another set
        whose features are normalised; `items/<set>` is the list of the OOD images that take part;
        `more_text` are the words that a method needs besides.
        """
        id_set, prompt = self.id_set, self.run.prompt
        model = id_set.model(prompt)
        how = [id_set.texts[prompt].digest, repr(float(model["logit_scale"])), id_set.normalized]
        if model.get("logit_bias") is not None:
            how.append(repr(float(model["logit_bias"])))
        digests = dict(map(attrgetter("name", "digest"), self.files.values()))
        text = " ".join(map(str, how)).encode()
        digests[f"text/{self.run.id_set}"] = hashlib.sha256(text).hexdigest()
        for kind, file in self.files.items():
            if kind != ID and file.normalized:
                digests[f"norm/{file.name}"] = hashlib.sha256(b"normalized").hexdigest()
        if self.listed:
            digests[f"{ITEMS}/{self.run.ood_set}"] = self.listed.digest
        if self.more:
            digests[MORE_TEXT] = self.more.digest
        return digests

    def origins(self) -> dict[str, dict[str, Any]]:
        """The origins of the features of all sets that a run reads, by the files' names."""
        origins = {}
        for kind, file in self.files.items():
            origins[file.name] = origin_of(file, self.run.prompt if kind == ID else "")
        for file, prompt in self.words:
            origins[file.name] = origin_of(file, prompt)
        return origins


class Library:
    """The feature files of a folder; each is read once."""

    def __init__(self, root: Path, rows: bool = True) -> None:
        """Without `rows`, only descriptions are read, and not checked against the rows.

        They are enough to know the digests of runs; only words are read in full.
        """
        self.root = root
        self._described = lru_cache(maxsize=None)(partial(self._read_file, False))
        whole = lru_cache(maxsize=16)(partial(self._read_file, True))
        self.read = whole if rows else self._described
        self._items = lru_cache(maxsize=64)(_read_list)

    def sources(self, run: RunSettings) -> Sources:
        """What a run reads, checked to fit each other and the settings.

        Raises:
            StoreError: features are missing, broken or made with different encoders.
            StoreError: the ID set is not labelled, or has no text features for the prompt.
            SettingsError: the method or its score does not fit the ID set, or lacks a file.
        """
        encoder, stream = run.encoder, run.stream
        id_set = self.read(encoder, run.id_set)
        _check_fits(run, id_set)
        if stream.swapped_names:
            id_set = replace(id_set, labels=_swapped(id_set))
        files, listed = {ID: id_set}, None
        if run.ood_set and stream.sizes(len(id_set), n_ood=1).wanted:
            files[OOD] = self.read(encoder, run.ood_set)
            if folder := stream.ood_items:
                listed = self._items(Path(folder), run.id_set, files[OOD], stream.ratio)
        if stream.noise != NO_NOISE:
            files[NOISE] = self.read(encoder, noise_name(stream.noise))
        then = f"extract it or {id_set.path} again"
        for file in files.values():
            check_same(file.path, file.identity, id_set.identity, then=then)
        self._texts(id_set, run.prompt)
        method, more, words = METHODS[run.method], None, Words()
        if method.needs == NEEDS_WORDS:
            more, words = self._words(run, id_set)
        elif method.needs == NO_TEXT:
            shape = len(id_set.class_names), id_set.dim
            more = MoreText(more_text=_read_no_text(run, shape))
        # Classes made from photos have another distance to texts than texts have to each other.
        elif method.reads_generic and id_set.texts[run.prompt].logit_scale is None:
            is_known = is_level_known(id_set.identity)
            if is_known or id_set.generic is not None:
                more = MoreText(generic=id_set.generic, is_level_known=is_known)
        return Sources(run, files, listed, more, words)

    def look(self, run: RunSettings) -> dict[str, str] | ZsnttaError:
        """The digests of a run, or the error that it would fail with."""
        try:
            return self.sources(run).digests()
        except ZsnttaError as error:
            return error
        except (ValueError, KeyError, TypeError):
            return StoreError(f"{run.method} cannot be run on '{run.id_set}' with these features.")

    def _words(self, run: RunSettings, id_set: Features) -> tuple[MoreText, Words]:
        """The joined word lists of a run, and the description and the prompt of each."""
        prompts, beside = self._word_prompts(run)
        lists = [self._described(run.encoder, words_name(name)) for name in prompts]
        words = tuple(zip(lists, prompts.values(), strict=True))
        names = self._texts(id_set, beside) if beside else None
        return _joined(tuple(starmap(self._texts, words)), names), words

    def _texts(self, file: Features, prompt: str) -> Texts:
        """Where a file has texts under a prompt, or StoreError if it has none."""
        if prompt not in file.texts:
            limit, folder = file.source.get("limit"), file.path.parent.name
            raise missing_text(prompt, file.name, tuple(file.texts), limit, folder, self.root)
        return file.path, prompt, file.texts[prompt].digest

    def _word_prompts(self, run: RunSettings) -> tuple[dict[str, str], str]:
        """The prompt of each word list, and that of the class names if it differs.

        The lists are those that are named, or else the one that is meant: wordnet, or the only one
        that is cached, without those of single methods. Built-in lists have prompts of their own;
        if there is one, so have all lists and the class names.
        """
        settings = run.flat()
        named = [name for part in settings["words"].split(",") if (name := part.strip())]
        if not named:
            cached = [SetName.parse(n).bare for n in set_names(self.root, run.encoder, WORDS)]
            every = list(dict.fromkeys(set_of(name) or name for name in cached))
            meant = [n for n in every if n not in WORD_SETS or not WORD_SETS[n].of_method]
            named = [_USUAL_WORDS] if _USUAL_WORDS in meant else meant
            if len(named) != 1:
                raise missing_words(run.method, tuple(every), run.encoder, self.root)
        prompts: dict[str, str] = {}
        for name in named:
            prompts |= lists_of(name) or {name: speech_prompt(name) or NOUN_PROMPT}
        if built_in := next(filter(None, map(set_of, prompts)), None):
            return prompts, WORD_SETS[built_in].class_prompt or ""
        if settings.get("word_prompts") == "speech":
            return prompts, NOUN_PROMPT
        return dict.fromkeys(prompts, run.prompt), ""

    def _read_file(self, rows: bool, encoder: str, name: str) -> Features:
        path = feature_path(self.root, encoder, name)
        if not path.exists():
            raise missing_features(name, encoder, self.root, tuple(set_names(self.root, encoder)))
        return replace(store.read(path, rows), name=name)  # of a copy that was renamed


@lru_cache(maxsize=4)  # by the digests of texts: one command has several libraries
def _joined(lists: tuple[Texts, ...], class_names: Texts | None) -> MoreText:
    """Word lists, joined, and the class names under a prompt of their own, if any.

    A word that an earlier list has is left out.
    """
    parts, seen, names = [], set[str](), None
    for path, prompt, _ in lists:
        file = store.read(path)
        parts.append(file.texts[prompt].features[[w not in seen for w in file.class_names]])
        seen.update(file.class_names)
    if class_names:
        path, prompt, _ = class_names
        names = store.read(path).texts[prompt].features
    sizes = tuple(len(part) for part in parts if len(part))
    return MoreText(more_text=np.concatenate(parts), more_sizes=sizes, more_names=names)


def _check_fits(run: RunSettings, id_set: Features) -> None:
    """Refuse a set without labels, and a method or a score that its classes do not suit."""
    name, method = run.method, METHODS[run.method]
    unlabelled = int((id_set.labels < 0).sum())
    if unlabelled or not id_set.class_names:
        is_without = f"{counted(unlabelled, 'image')} of {len(id_set):,} without a label"
        what = is_without if id_set.class_names else "no class names"
        raise StoreError(f"'{id_set.name}' cannot be an ID set: it has {what}.")
    if run.prompt == PHOTOS and (method.live or method.needs):
        raise SettingsError(
            f"{name} needs class names or words, but classes of the prompt 'photos' are made from "
            f"photos: omit one of the two."
        )
    is_match = run.threshold.score == MATCH
    if method.decides and len(id_set.class_names) == 1 and not is_match:
        raise SettingsError(
            f"{run.id_set} has only one class, so MCM is 1 for any image: --set score=match uses "
            f"the logit itself"
        )
    if is_match and method.live:
        raise SettingsError(f"score is match, which live methods do not support: omit {name}.")


def _swapped(id_set: Features) -> NDArray[np.int32]:
    """Labels (N,) with two names of Food-101 swapped, if the set has these two.

    The released code confuses the names of these two classes. Swapping the labels of the images
    instead gives the same numbers on a shuffled stream.
    """
    names = [name.replace("_", " ").lower() for name in id_set.class_names]
    labels = id_set.labels.copy()
    if {*_SWAPPED} <= {*names}:
        first, second = map(names.index, _SWAPPED)
        labels[id_set.labels == first], labels[id_set.labels == second] = second, first
    return labels


def _read_no_text(run: RunSettings, shape: tuple[int, int]) -> NDArray[np.float32]:
    """The "no" text features (C, D) of CLIPN or an own method, scaled to unit norm."""
    path = run.flat()["no_text"]
    wanted = f"an array {shape} of finite numbers, one row per class, in the order of class names"
    if not path:
        raise SettingsError(
            f"{run.method} needs the features of its 'no' text encoder: {wanted}: --set "
            "no-text=FILE.npy"
        )
    try:
        open_regular(Path(path)).close()
        features = np.lib.format.open_memmap(path, mode="r")  # a declared shape takes no memory
    except Exception as error:  # a damaged header makes NumPy raise nearly anything
        raise StoreError(
            f"cannot read the 'no' text features {path} ({first_line(error)}): expected .npy with "
            f"{wanted}."
        ) from error
    is_real = features.dtype.kind in "fiu"
    if not is_real or features.shape != shape or not np.isfinite(features).all():
        kind = "" if is_real else f" of {features.dtype}"
        raise StoreError(f"{path} holds an array {features.shape}{kind}, but must hold {wanted}.")
    return unit(features).astype(np.float32)


def list_path(folder: Path, id_set: str, ood_set: str, ratio: Ratio) -> Path:
    """Where a folder has the list of OOD images for a pair at a noise ratio.

    Raises:
        SettingsError: the ratio is natural, which takes every image.
    """
    if ratio == NATURAL:
        raise SettingsError(
            f"ratio is {NATURAL}, which takes all images of both sets: omit --ood-items."
        )
    share = ood_share(ratio)
    pair = f"{SetName.parse(id_set).base}_{SetName.parse(ood_set).base}.txt"
    return folder / f"{round(share / (1 - share), 2):g}" / pair


def _read_list(folder: Path, id_set: str, ood: Features, ratio: Ratio) -> ListedItems:
    """Read the list for a pair: images by their sample ids, or by their numbers from 0."""
    path = list_path(folder, id_set, ood.name, ratio)
    try:
        content = read_input(path, _LONGEST_LIST)
        names = [name for line in content.decode().splitlines() if (name := line.strip())]
    except FileNotFoundError:
        raise SettingsError(
            f"--ood-items has no list for '{id_set}' with '{ood.name}' at a ratio of "
            f"{ratio_text(ratio)}: write one to {path}, with one image per line."
        ) from None
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read the list {path}: {first_line(error)}") from error
    if not all(map(str.isdecimal, names)):
        row_of = {name: row for row, name in enumerate(store.read_sample_ids(ood.path))}
    elif ood.source.get(SKIPPED) or ood.source.get("limit"):
        raise StoreError(
            f"{path} numbers images of the whole set, but {ood.path} has only part: "
            "extract it without --limit and --skip-broken, or list image names."
        )
    else:
        row_of = {str(row): row for row in range(len(ood))}
    rows = [row_of[name] for name in names if name in row_of]
    if not rows:
        raise StoreError(
            f"{path} names no image of '{ood.name}': a line must be an image's name in the set or "
            f"its number, from 0 to {len(ood) - 1}."
        )
    lacking = tuple(dict.fromkeys(name for name in names if name not in row_of))
    return ListedItems(np.array(rows, np.int64), lacking, hashlib.sha256(content).hexdigest())
