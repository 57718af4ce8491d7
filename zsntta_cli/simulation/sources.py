"""The feature files that runs read: found, read once, and checked to fit each other.

Their digests are known from their descriptions, before a run is made.
"""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from zsntta_cli.datasets.names import WORDS, SetName, noise_name, words_name
from zsntta_cli.errors import SettingsError, StoreError, ZsnttaError, counted, first_line
from zsntta_cli.files import open_regular
from zsntta_cli.methods import METHODS, NO_TEXT
from zsntta_cli.methods import WORDS as NEEDS_WORDS
from zsntta_cli.methods.base import MoreText
from zsntta_cli.methods.scores import unit
from zsntta_cli.settings import NO_NOISE
from zsntta_cli.settings.prompts import NOUN_PROMPT, WORD_SETS, lists_of, set_of, speech_prompt
from zsntta_cli.simulation.items import ListedItems, read_items
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.stream import ID, NOISE, OOD, Stream

MORE_TEXT, ITEMS = "more_text", "items"  # in digests
_USUAL_WORDS = "wordnet"  # where several lists are cached: what NegLabel was published with
_SWAPPED = ("cheese plate", "cheesecake")  # classes 16 and 17 of Food-101


@dataclass(frozen=True)
class Sources:
    """The feature files of a stream, by kind: ID, and OOD and NOISE where it has any."""

    files: Mapping[int, Features]
    listed: ListedItems | None = None  # which images of the OOD set take part; None: drawn ones

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


def generic_of(id_set: Features, prompt: str) -> MoreText | None:
    """The generic text of a set's file, and whether its encoder's level is known, if either is.

    Classes made from photos have another distance to texts than texts have to each other.
    """
    is_known = is_level_known(id_set.identity)
    if id_set.texts[prompt].logit_scale is not None or (id_set.generic is None and not is_known):
        return None
    return MoreText(generic=id_set.generic, is_level_known=is_known)


class Library:
    """The feature files in one folder, each of which is read once."""

    def __init__(self, root: Path, rows: bool = True) -> None:
        """Without `rows`, only descriptions are read, and not checked against the rows.

        They are enough to know the digests of runs. Words are always read in full.
        """
        self.root, self._rows, self._whole = root, rows, self if rows else Library(root)
        self.read = functools.lru_cache(maxsize=16 if rows else None)(self._read_file)
        self._words = functools.lru_cache(maxsize=4)(self._read_words)
        self._items = functools.lru_cache(maxsize=64)(read_items)

    def sources(self, settings: RunSettings) -> Sources:
        """The files of a run's stream, checked to fit each other and the settings.

        Raises:
            StoreError: features are missing, broken or made with different encoders.
            StoreError: the ID set is not labelled, or has no text features for the prompt.
        """
        encoder, stream = settings.encoder, settings.stream
        id_set = self.read(encoder, settings.id_set)
        if stream.swapped_names:
            id_set = replace(id_set, labels=_swapped(id_set))
        unlabelled = int((id_set.labels < 0).sum())
        if unlabelled or not id_set.class_names:
            is_without = f"{counted(unlabelled, 'image')} of {len(id_set):,} without a label"
            what = is_without if id_set.class_names else "no class names"
            raise StoreError(f"'{id_set.name}' cannot be an ID set: it has {what}.")
        files, listed = {ID: id_set}, None
        if settings.ood_set and stream.sizes(len(id_set), n_ood=1).wanted:
            files[OOD] = self.read(encoder, settings.ood_set)
            if stream.ood_items:
                folder = Path(stream.ood_items)
                listed = self._items(folder, settings.id_set, files[OOD], stream.ratio)
        if stream.noise != NO_NOISE:
            files[NOISE] = self.read(encoder, noise_name(stream.noise))
        then = f"extract it or {id_set.path} again"
        for file in files.values():
            check_same(file.path, file.identity, id_set.identity, then=then)
        self._text(encoder, settings.prompt, settings.id_set)
        return Sources(files, listed)

    def digests(self, settings: RunSettings) -> dict[str, str]:
        """The digests of a run's inputs: of its files by name, and of how their features are read.

        `text/<ID set>` covers the class text features, the logit scale (for a sigmoid model also
        its bias), and whether the ID set's features are normalised; `norm/<set>` marks another set
        whose features are normalised; `items/<set>` is the list of the OOD images that take part;
        `more_text` are the words that a method needs besides.

        Raises:
            SettingsError, StoreError: the run cannot be made.
        """
        sources, more = self.sources(settings), self.more_text(settings)
        id_set = sources.id_set
        model, of_text = id_set.model(settings.prompt), id_set.texts[settings.prompt].digest
        text = f"{of_text} {float(model['logit_scale'])!r} {id_set.normalized}"
        if model.get("logit_bias") is not None:
            text += f" {float(model['logit_bias'])!r}"
        digests = dict(map(attrgetter("name", "digest"), sources.files.values()))
        digests[f"text/{settings.id_set}"] = hashlib.sha256(text.encode()).hexdigest()
        for kind, file in sources.files.items():
            if kind != ID and file.normalized:
                digests[f"norm/{file.name}"] = hashlib.sha256(b"normalized").hexdigest()
        if sources.listed:
            digests[f"{ITEMS}/{settings.ood_set}"] = sources.listed.digest
        return digests if more is None else {**digests, MORE_TEXT: more.digest}

    def look(self, settings: RunSettings) -> dict[str, str] | ZsnttaError:
        """The digests of a run, or the error that it would fail with."""
        try:
            return self.digests(settings)
        except ZsnttaError as error:
            return error
        except (ValueError, KeyError, TypeError):
            return StoreError(
                f"{settings.method} cannot be run on '{settings.id_set}' with these features."
            )

    def more_text(self, settings: RunSettings) -> MoreText | None:
        """The text features that a method needs besides the class names'."""
        encoder, prompt, id_set = settings.encoder, settings.prompt, settings.id_set
        method = METHODS[settings.method]
        if method.needs == NEEDS_WORDS:
            prompts, beside = self._word_prompts(settings)
            return self._whole._words(encoder, tuple(prompts.items()), id_set, beside)
        if method.needs == NO_TEXT:
            names = self._whole._text(encoder, prompt, id_set)
            return MoreText(more_text=_read_no_text(settings.flat()["no_text"], names.shape))
        return generic_of(self.read(encoder, id_set), prompt) if method.reads_generic else None

    def origins(self, settings: RunSettings) -> dict[str, dict[str, Any]]:
        """The origins of the features of all sets that a run reads, by the files' names."""
        origins = {}
        for kind, file in self.sources(settings).files.items():
            origins[file.name] = origin_of(file, settings.prompt if kind == ID else "")
        if METHODS[settings.method].needs == NEEDS_WORDS:
            for name, prompt in self._word_prompts(settings)[0].items():
                file = self.read(settings.encoder, words_name(name))
                origins[file.name] = origin_of(file, prompt)
        return origins

    def _text(self, encoder: str, prompt: str, name: str) -> NDArray[np.float32]:
        """Text features (C, D) of a set's class names, or of a word list.

        Raises:
            StoreError: there are none of this prompt.
        """
        features = self.read(encoder, name)
        if prompt not in features.texts:
            limit, cached = features.source.get("limit"), tuple(features.texts)
            raise missing_text(prompt, name, cached, limit, encoder, self.root)
        return features.texts[prompt].features

    def _word_prompts(self, settings: RunSettings) -> tuple[dict[str, str], str]:
        """The prompt of each word list, and that of the class names if it differs.

        The lists are those that are named, or else the one that is meant: wordnet, or the only one
        that is cached, without those of single methods. Built-in lists have prompts of their own;
        if there is one, so have all lists and the class names.
        """
        flat, encoder = settings.flat(), settings.encoder
        named = [name.strip() for name in flat["words"].split(",") if name.strip()]
        if not named:
            cached = [SetName.parse(n).bare for n in set_names(self.root, encoder, WORDS)]
            every = list(dict.fromkeys(set_of(name) or name for name in cached))
            meant = [n for n in every if n not in WORD_SETS or not WORD_SETS[n].of_method]
            named = [_USUAL_WORDS] if _USUAL_WORDS in meant else meant
            if len(named) != 1:
                raise missing_words(settings.method, tuple(every), encoder, self.root)
        prompts: dict[str, str] = {}
        for name in named:
            prompts |= lists_of(name) or {name: speech_prompt(name) or NOUN_PROMPT}
        for name in prompts:
            if built_in := set_of(name):
                return prompts, WORD_SETS[built_in].class_prompt or ""
        if flat.get("word_prompts") == "speech":
            return prompts, NOUN_PROMPT
        return dict.fromkeys(prompts, settings.prompt), ""

    def _read_words(
        self, encoder: str, lists: Sequence[tuple[str, str]], id_set: str, beside: str
    ) -> MoreText:
        """Lists by name and prompt, joined, and the class names under their own prompt, if any.

        A word that an earlier list has is left out.
        """
        parts, seen = [], set[str]()
        for name, prompt in lists:
            features = self._text(encoder, prompt, words_name(name))
            words = self.read(encoder, words_name(name)).class_names
            new = [row for row, word in enumerate(words) if word not in seen]
            parts.append(features if len(new) == len(words) else features[new])
            seen.update(words)
        names = self._text(encoder, beside, id_set) if beside else None
        sizes = tuple(len(part) for part in parts if len(part))
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return MoreText(more_text=joined, more_sizes=sizes, more_names=names)

    def _read_file(self, encoder: str, name: str) -> Features:
        path = feature_path(self.root, encoder, name)
        if not path.exists():
            raise missing_features(name, encoder, self.root, tuple(set_names(self.root, encoder)))
        return replace(store.read(path, self._rows), name=name)  # of a copy that was renamed


def _swapped(id_set: Features) -> NDArray[np.int32]:
    """Labels (N,) with two names of Food-101 swapped, if the set has these two.

    The released code confuses the names of these two classes. Swapping the labels of the images
    instead gives the same numbers on a shuffled stream.
    """
    names = [name.replace("_", " ").lower() for name in id_set.class_names]
    if not all(name in names for name in _SWAPPED):
        return id_set.labels
    first, second = map(names.index, _SWAPPED)
    renamed = np.arange(len(names), dtype=np.int32)
    renamed[[first, second]] = second, first
    return np.where(id_set.labels < 0, id_set.labels, renamed[id_set.labels])


def _read_no_text(path: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """CLIPN's "no" text features (C, D), scaled to unit norm."""
    wanted = f"an array {shape} of finite numbers, one row per class, in the order of class names"
    if not path:
        raise SettingsError(
            f"clipn needs the features of its 'no' text encoder: {wanted}: --set no-text=FILE.npy"
        )
    try:
        open_regular(Path(path)).close()
        features = np.lib.format.open_memmap(path, mode="r")  # of what is declared, none is taken
    except Exception as error:  # a damaged header makes NumPy raise nearly anything
        raise StoreError(
            f"cannot read the 'no' text features {path} ({first_line(error)}): expected .npy with "
            f"{wanted}."
        ) from error
    real = features.dtype.kind in "fiu"
    if not real or features.shape != shape or not np.isfinite(features).all():
        kind = "" if real else f" of {features.dtype}"
        raise StoreError(f"{path} holds an array {features.shape}{kind}, but must hold {wanted}.")
    return unit(features).astype(np.float32)
