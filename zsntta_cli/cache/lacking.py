"""Errors for missing features, texts or words, each with the command to type.

The command names the encoder as far as its folder tells; the command line adds the options that the
user typed (`cli/command.py`).
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join, quote

from zsntta_cli.cache.folder import described, encoder_names
from zsntta_cli.datasets.catalogue import CATALOGUE
from zsntta_cli.datasets.names import CLIP_BENCHMARK, NOISE, WEB, WORDS, SetName
from zsntta_cli.errors import StoreError, ZsnttaError, first_of, near, short
from zsntta_cli.settings import FEATURES, IMPORTED, EncoderChoice, known_folders
from zsntta_cli.settings.prompts import PHOTOS, set_of

_CACHED = 6  # of the sets that there are in place of one that is missing


def missing_features(name: str, encoder: str, root: Path, there: Sequence[str] = ()) -> StoreError:
    """The error for a set that has no feature file; `there` are the sets that have one.

    `encoder` is the folder of its features, empty for any.
    """
    parsed, close = SetName.parse(name), near(name, there)
    hint = close or (f" (cached: {first_of(there, _CACHED)})" if there else "")
    if others := [one for one in encoder_names(root, name) if one != encoder]:
        hint = f" (available by {first_of(others, 3)}: --encoder NAME)"
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


def missing_sets(missing: Mapping[str, Sequence[str]], root: Path, way: str = "") -> StoreError:
    """The error for several sets without feature files, by the folders of their encoders.

    `way` is what to do, if not the commands that make these files.
    """
    sets = " and ".join(f"{len(names)} by {folder}" for folder, names in missing.items())
    way = way or f"type {making_all(missing, root)}"
    return StoreError(f"feature files missing in {root}/: {sets}: {way}")


def missing_text(
    prompt: str, name: str, cached: Sequence[str], limit: int | None, encoder: str, root: Path
) -> StoreError:
    """The error for a prompt without cached text features of a set's class names.

    `limit` is that of the extraction that made the set.
    """
    there = ", ".join(f"'{short(template)}'" for template in cached) or "none"
    lacks = f"the prompt '{short(prompt)}' is not cached for '{name}' (cached: {there})"
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
    entries = {name: CATALOGUE[name] for name in partners}
    easy = [name for name, entry in entries.items() if entry.downloads or not entry.layout]
    return StoreError(
        f"no OOD partner of '{id_set}' is cached in {root / encoder}: type "
        f"{making(easy or partners, encoder, root)}"
    )


def making_all(missing: Mapping[str, Sequence[str]], root: Path) -> str:
    """The commands that make the features of several sets, by encoder folder."""
    return " && ".join(making(names, folder, root) for folder, names in missing.items())


def making(names: Sequence[str], encoder: str, root: Path) -> str:
    """The command that makes the features of sets, or imports those that cannot be made here."""
    kinds = {name: SetName.parse(name).kind for name in names}
    if {*kinds.values()} != {WORDS} and _is_imported(encoder, root):
        by = f"--encoder {quote(encoder)} --features FILE{_folder(root)}"
        return " && ".join(f"zsntta cache import {quote(name)} {by}" for name in names)
    asked: list[str] = []
    for name in sorted(names, key=lambda name: kinds[name] == NOISE):
        bare, known = SetName.parse(name).bare, SetName.parse(name).base in CATALOGUE
        own = f"{CLIP_BENCHMARK}/{name}" if name.startswith(WEB) else f"{name}=PATH"
        what = {WORDS: ("--words", set_of(bare) or f"{bare}.txt"), NOISE: ("--noise", bare)}
        asked += what.get(kinds[name], ("--dataset", name if known else own))
    return f"zsntta extract {join(asked)}{_of(encoder, root)}"


def encoder_of(folder: str, root: Path) -> EncoderChoice | None:
    """The encoder whose features are in a folder; None if unknown."""
    return known_folders().get(folder) or _made_by(folder, root)[1]


def _made_by(folder: str, root: Path) -> tuple[bool, EncoderChoice | None]:
    """Whether a folder has features, and the encoder with which they were extracted."""
    made: Mapping[str, object] = {}
    with contextlib.suppress(LookupError, ZsnttaError):  # an import says little
        made = described(root, folder)[0].identity if folder else {}
        choice = EncoderChoice(*(str(made[key]) for key in ("model", "pretrained", "precision")))
        if made["pretrained"] != IMPORTED and folder.startswith(choice.slug):  # it is no copy
            return True, choice
    return bool(made), None


def _is_imported(folder: str, root: Path) -> bool:
    """Whether an encoder's features are here, and nothing here can make more of them."""
    return folder not in known_folders() and _made_by(folder, root) == (True, None)


def _of(encoder: str, root: Path) -> str:
    """The options that name an encoder by its folder, and the folder of all features."""
    choice = encoder_of(encoder, root) if encoder else None
    options = choice.options if choice else ""
    return f" {options}" * bool(options) + _folder(root)


def _folder(root: Path) -> str:
    return "" if root == FEATURES else f" --features-dir {quote(str(root))}"
