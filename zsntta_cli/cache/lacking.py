"""Errors for missing features, texts or words, each with the command to type.

The command names the encoder if its folder tells which one it is; the command line adds the options
that the user typed (`cli/command.py`).
"""

import contextlib
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from shlex import join, quote

from zsntta_cli.cache.folder import described, find
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.names import CLIP_BENCHMARK, NOISE, WEB, WORDS, SetName
from zsntta_cli.errors import StoreError, ZsnttaError, first_of, near, short
from zsntta_cli.settings import FEATURES, IMPORTED, EncoderChoice, known_folders
from zsntta_cli.settings.prompts import PHOTOS, set_of

_CACHED = 6  # sets that are named in place of a missing one


def missing_features(name: str, encoder: str, root: Path, cached: Sequence[str] = ()) -> StoreError:
    """The error for a set that has no feature file; `cached` are the sets that have one.

    `encoder` is the folder of its features, empty for any.
    """
    parsed, close = SetName.parse(name), near(name, cached)
    hint = close or (f" (cached: {first_of(cached, _CACHED)})" if cached else "")
    encoders = [path.parent.name for path in find(root) if path.stem == name]
    if encoders := [folder for folder in encoders if folder != encoder]:
        hint = f" (available by {first_of(encoders, 3)}: --encoder NAME)"
    lacks = f"no features of '{name}'{f' by {encoder}' if encoder else ''} in {root}/{hint}"
    way = f"type {making([name], encoder, root)}"
    if parsed.kind == NOISE and _is_imported(encoder, root):
        way = f"omit injected noise with --noise none, or {way}"
    elif parsed.base not in CATALOGUE:
        if close:
            return StoreError(lacks)
        if listed := near(parsed.base, tuple(CATALOGUE)).strip(" ()"):
            way = f"{listed} For your own images, {way}"
    return StoreError(f"{lacks}: {way}")


def missing_sets(missing: Mapping[str, Sequence[str]], root: Path) -> StoreError:
    """The error for several sets without feature files, by the folders of their encoders."""
    sets = " and ".join(f"{len(names)} by {folder}" for folder, names in missing.items())
    return StoreError(f"feature files missing in {root}/: {sets}: type {making_all(missing, root)}")


def missing_text(
    prompt: str, name: str, cached: Sequence[str], limit: int | None, encoder: str, root: Path
) -> StoreError:
    """The error for a prompt without cached text features of a set's class names.

    `limit` is that of the extraction that made the set.
    """
    templates = ", ".join(f"'{short(template)}'" for template in cached) or "none"
    lacks = f"the prompt '{short(prompt)}' is not cached for '{name}' (cached: {templates})"
    option = "--class-photos DIR" if prompt == PHOTOS else f"--prompt {quote(prompt)}"
    of_limit = f" --limit {limit}" if limit else ""
    return StoreError(f"{lacks}: type {making([name], encoder, root)} {option}{of_limit}")


def missing_words(method: str, cached: Sequence[str], encoder: str, root: Path) -> StoreError:
    """The error for a method that needs a word list, if none or several are cached."""
    named = "name one with --set words=NAME, or " * bool(cached)
    return StoreError(
        f"{method} needs a word list (cached: {', '.join(cached) or 'none'}): {named}type zsntta "
        f"extract --words wordnet{_of(encoder, root)}"
    )


def no_partner(id_set: str, encoder: str, root: Path, partners: Sequence[str]) -> StoreError:
    """The error for a noise ratio above 0 if no OOD partner of an ID set is cached."""
    if not partners:
        return StoreError(f"a noise ratio above 0 needs an OOD set for '{id_set}': add --ood NAME")
    easy = [p for p in partners if CATALOGUE[p].downloads or not CATALOGUE[p].layout]
    return StoreError(
        f"no OOD partner of '{id_set}' is cached in {root / encoder}: type "
        f"{making(easy or partners, encoder, root)}"
    )


def making_all(missing: Mapping[str, Sequence[str]], root: Path) -> str:
    """The commands that make the features of several sets, by encoder folder."""
    return " && ".join(making(names, folder, root) for folder, names in missing.items())


def making(names: Sequence[str], encoder: str, root: Path) -> str:
    """The command that makes the features of sets, or imports those that cannot be made here."""
    sets = sorted(map(SetName.parse, names), key=lambda name: name.kind == NOISE)
    if any(name.kind != WORDS for name in sets) and _is_imported(encoder, root):
        by = f"--encoder {quote(encoder)} --features FILE{_folder(root)}"
        return " && ".join(f"zsntta cache import {quote(name)} {by}" for name in names)
    return f"zsntta extract {join(chain.from_iterable(map(_named, sets)))}{_of(encoder, root)}"


def _named(name: SetName) -> tuple[str, str]:
    """The option of `zsntta extract` that names a set."""
    if name.kind == WORDS:
        return "--words", set_of(name.bare) or f"{name.bare}.txt"
    if name.kind == NOISE:
        return "--noise", name.bare
    if name.base in CATALOGUE:
        return "--dataset", str(name)
    return "--dataset", f"{CLIP_BENCHMARK}/{name}" if name.base.startswith(WEB) else f"{name}=PATH"


def encoder_of(folder: str, root: Path) -> EncoderChoice | None:
    """The encoder whose features are in a folder; None if unknown."""
    if choice := known_folders().get(folder):
        return choice
    with contextlib.suppress(LookupError, ZsnttaError):  # an import says little of its encoder
        identity = described(root, folder)[0].identity
        choice = EncoderChoice(*map(str, itemgetter("model", "pretrained", "precision")(identity)))
        if choice.pretrained != IMPORTED and folder.startswith(choice.slug):  # it is not a copy
            return choice
    return None


def _is_imported(folder: str, root: Path) -> bool:
    """Whether an encoder's features are here, and nothing here can make more of them."""
    return bool(folder) and encoder_of(folder, root) is None and bool(described(root, folder))


def _of(encoder: str, root: Path) -> str:
    """The options that name an encoder by its folder, and the folder of all features."""
    choice = encoder_of(encoder, root)
    options = f" {choice.options}" if choice and choice.options else ""
    return options + _folder(root)


def _folder(root: Path) -> str:
    return "" if root == FEATURES else f" --features-dir {quote(str(root))}"
