"""What to type: the only place where the program composes commands.

An error below the command line carries values, or one word for its remedy; here it becomes a line
that works as it is typed, with the options that the user's own command had.
"""

import contextlib
import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.datasets.names import CLIP_BENCHMARK, NOISE, WEB, WORDS, SetName
from zsntta_cli.errors import (
    MissingFeatures,
    MissingSets,
    MissingText,
    MissingWords,
    NoPartner,
    UnknownMethod,
    UnknownName,
    ZsnttaError,
    near,
)
from zsntta_cli.settings import DATA, FEATURES, EncoderChoice, known_folders
from zsntta_cli.settings.prompts import PHOTOS, WORD_SETS, set_of, templates_of

NEXT_STEPS = (
    "Your images:    zsntta extract --model tiny --dataset mine=FOLDER\n"
    "Another stream: zsntta simulate --model tiny --method zs-clip,adand --ratio 0.4"
)
NOTHING_CACHED = (
    "type zsntta demo, zsntta extract --dataset cifar10, "
    "or zsntta cache import NAME --features FILE"
)

_REMEDIES = {
    "data-root": "name the folder of all sets with --data-root",
    "delete-it": "delete it, and what it had is encoded again",
    "extract-again": "extract them again with --overwrite",
    "install-parquet": "pip install 'zsntta[parquet]' reads and writes it",
    "compare": "zsntta simulate runs what is missing, or choose with --id, --ood and --method",
    "fixed-thresholds": "zsntta simulate --method zs-clip --threshold adaptive --threshold 0.5",
    "list-paper": "zsntta paper lists them",
    "install-ray": "pip install 'zsntta[ray]'",
    "install-transformers": "pip install 'zsntta[transformers]' reads it",
    "keep-curves": "zsntta simulate --fresh keeps them",
    "keep-gradients": "zsntta simulate --method tent --scores FILE.csv keeps them",
    "live": "zsntta simulate --method tent",
    "list-settings": "zsntta methods show NAME lists those of a method",
    "list-records": "zsntta records list shows them",
    "make-again": "delete it, and extract or import it again",
    "match": "--score match takes the logit itself",
    "name-ood": "add --ood NAME",
    "no-text": "--set no-text=FILE.npy",
    "other-device": "try --device cpu",
    "other-folder": "delete it, or take another --features-dir",
    "other-prompt": "take another with --prompt",
    "other-room": "make room, or take another folder with --data-root",
    "overwrite": "--overwrite replaces it, --features-dir DIR puts the new one elsewhere",
    "overwrite-output": "--overwrite replaces it, --output names another place",
    "say-where": "add --dataset NAME=PATH",
    "simulate": "zsntta simulate keeps what it runs, or name another file with --records",
    "skip-broken": "mend or remove it, or leave such images out with --skip-broken",
}

# What lists all names of a kind, where a line cannot.
_OF_METHODS = ("method", "methods")
_LISTING = {
    **dict.fromkeys(_OF_METHODS, "zsntta methods lists them"),
    **dict.fromkeys(("columns", "metric"), "docs/results.md lists them"),
    "setting": "zsntta simulate -h --all lists them",
}
Given = Mapping[str, Any]  # the parameters of the command that failed


def worded(error: ZsnttaError, given: Given) -> str:
    """An error's line, with what to type behind a colon where there is something."""
    remedy = _mending(error, given) or _REMEDIES.get(error.remedy, "")
    joint = ", " if remedy.startswith("or ") else ": "
    return f"{str(error).removesuffix('.')}{joint}{remedy}" if remedy else str(error)


def _forgotten_plugin(method: str) -> str:
    """What loads the script of this folder which names the method, or a part of A+B."""
    parts = "|".join(map(re.escape, method.split("+")))
    names = re.compile(rf"""["'](?:{parts})["']""")
    for script in sorted(Path().glob("*.py")):
        with contextlib.suppress(OSError):
            text = script.read_text("utf-8", "replace")
            if "zsntta_cli" in text and names.search(text):
                return f"did you forget --plugin? zsntta {shlex.join(['--plugin', script.name])} …"
    return ""


def _mending(error: ZsnttaError, given: Given) -> str:
    """What to type to mend an error that carries values; nothing where no command does."""
    from zsntta_cli.datasets import needs_no_hand

    match error:
        case UnknownName():
            listing = _LISTING.get(error.what, "") if error.is_cut else ""
            return (_forgotten_plugin(error.value) if error.what in _OF_METHODS else "") or listing
        case MissingFeatures():
            return _making_or_naming(error, given)
        case MissingSets():
            return _typing(error.missing, given)
        case MissingText():
            return _embedding(error, _of_encoder(given, error.encoder))
        case MissingWords():
            named = "name one with --set words=NAME, or " * bool(error.cached)
            options = options_of(_of_encoder(given, error.encoder))
            return f"{named}type zsntta extract --words wordnet{options}"
        case NoPartner() if error.partners:
            easy = [name for name in error.partners if needs_no_hand(name)]
            return _typing({"": easy or error.partners}, given)
        case UnknownMethod():
            words = ["zsntta", "--plugin", *(error.files[:1] or ("FILE.py",)), "simulate"]
            words += ["--from", str(given["record"])] if given.get("record") else []
            return f"name its script, {shlex.join(words)}"
    return ""


def _making_or_naming(error: MissingFeatures, given: Given) -> str:
    """What to type for a set's features; nothing where the message asks for a cached set."""
    from zsntta_cli.datasets import CATALOGUE

    typing, parsed = _typing({error.encoder: [error.name]}, given), SetName.parse(error.name)
    if parsed.kind == NOISE and "zsntta cache import" in typing:
        return f"leave injected noise out with --noise none, or {typing}"
    if parsed.base in CATALOGUE:
        return typing
    if near(error.name, error.there):
        return ""
    listed = near(parsed.base, tuple(CATALOGUE)).strip(" ()")
    return f"{listed} For images of your own {typing}" if listed else typing


def _embedding(error: MissingText, given: Given) -> str:
    """What to type for the text features of a set or of words under a prompt."""
    lists = [n for n, s in WORD_SETS.items() if error.prompt in s.prompts.values()]
    if lists and len(templates_of(error.prompt)) > 1 and _choice(given):  # no option names it
        return f"type zsntta extract --words {lists[0]}{options_of(given)}"
    prompt = f"--prompt {shlex.quote(error.prompt)}"
    if error.prompt == PHOTOS:
        prompt = "--class-photos DIR"
    limit = f" --limit {error.limit}" if error.limit else ""
    return f"type {_making([error.name], given)} {prompt}{limit}"


def _typing(missing: Mapping[str, Sequence[str]], given: Given) -> str:
    """What to type for missing features; where the model is misspelt, a question after it."""
    from zsntta_cli.encoders.weights import misspelt

    question = misspelt(given["model"]) if given.get("model") else ""
    return question or f"type {making_all(missing, given)}"


def making_all(missing: Mapping[str, Sequence[str]], given: Given) -> str:
    """The commands that make the features of several sets, of each encoder's folder."""
    each = (_making(names, _of_encoder(given, folder)) for folder, names in missing.items())
    return " && ".join(each)


def _making(names: Sequence[str], given: Given) -> str:
    """The command that makes the features of sets, or imports them where nothing can make them."""
    has_images = any(SetName.parse(name).kind != WORDS for name in names)
    if _choice(given) is None and has_images:
        where = options_of({name: given[name] for name in ("features_dir",) if name in given})
        by = f"--encoder {shlex.quote(given['encoder'])} --features FILE{where}"
        return " && ".join(f"zsntta cache import {shlex.quote(name)} {by}" for name in names)
    asked = " ".join(map(_asked, sorted(names, key=lambda n: SetName.parse(n).kind == NOISE)))
    return f"zsntta extract {asked}{options_of(given)}"


def _asked(name: str) -> str:
    """The options that name a set, a list of words or noise to be extracted."""
    from zsntta_cli.datasets import CATALOGUE

    parsed = SetName.parse(name)
    own = f"{CLIP_BENCHMARK}/{name}" if name.startswith(WEB) else f"{name}=PATH"
    what = {
        WORDS: ["--words", set_of(parsed.bare) or f"{parsed.bare}.txt"],
        NOISE: ["--noise", parsed.bare],
    }.get(parsed.kind, ["--dataset", name if parsed.base in CATALOGUE else own])
    return shlex.join(what)


def _of_encoder(given: Given, folder: str) -> Given:
    """What was typed; with the folder of the encoder, where no option names one."""
    named = any(given.get(name) for name in ("encoder", "model", "pretrained"))
    return given if named or not folder else {**given, "encoder": folder}


def options_of(given: Given) -> str:
    """The options that name the encoder and the folders, as the user gave them."""
    choice = _choice(given) or EncoderChoice()
    words = [encoder_options(choice)] if encoder_options(choice) else []
    for name, default in (("features_dir", FEATURES), ("data_root", DATA)):
        value = given.get(name, default)
        if Path(value) != default:
            words.append(f"--{name.replace('_', '-')} {shlex.quote(str(value))}")
    return "".join(f" {word}" for word in words)


def encoder_options(choice: EncoderChoice) -> str:
    """The options of the command line that name an encoder, none for the default one."""
    words = []
    for f in dataclasses.fields(choice):
        value = getattr(choice, f.name)
        if value != f.default and not (f.name == "pretrained" and choice.has_own_weights):
            words.append(f"--{'encoder' if f.name == 'folder' else f.name} {shlex.quote(value)}")
    return " ".join(words)


def simulate_command(sets: Sequence[str], choice: EncoderChoice, features_dir: Path) -> str:
    """The command that replays what was extracted; nothing where none of it can be an ID set."""
    from zsntta_cli.cache.folder import feature_path, folder_name, set_names
    from zsntta_cli.cache.store import read
    from zsntta_cli.datasets import partners

    folder = folder_name(choice)
    names = [str(SetName.parse(spec)) for spec in sets]
    paths = {n: feature_path(features_dir, folder, n) for n in names}
    name = next((n for n, p in paths.items() if p.exists() and read(p, rows=False).texts), "")
    if not name:
        return ""
    known = [n for n in partners(name) if feature_path(features_dir, folder, n).exists()]
    others = [n for n in set_names(features_dir, folder) if n != name]
    ood = "" if known else f" --ood {others[0]}" if others else " --ratio 0"
    given = {**vars(choice), "features_dir": features_dir}
    return f"zsntta simulate --method zs-clip,adand --id {name}{ood}{options_of(given)}"


def set_advice(name: str, entry: DatasetEntry, data_root: Path) -> dict[str, str]:
    """What lies there of a known set, and what one types with it."""
    place = entry.place(data_root)
    there = f"{place}" if place else "not there" if entry.layout else "built in"
    typed = name + ":fog:1" * (bool(entry.parameters) and not SetName.parse(name).parameters)
    commands = [f"zsntta datasets verify {typed}", f"zsntta extract --dataset {typed}"]
    if entry.role != "ood":
        commands.append(f"zsntta simulate --method zs-clip,adand --id {typed}")
    return {
        "on disk": there,
        "to get it": _way_to_get(name, entry, data_root) if not place else "",
        "commands": "\n".join(commands),
    }


def _way_to_get(name: str, entry: DatasetEntry, data_root: Path) -> str:
    if not entry.layout:
        return "nothing to do: it is built in"
    if entry.downloads:
        return f"nothing to do: verify and extract download it to {data_root}, with its checksum"
    if entry.files:
        return f"zsntta datasets get {name.partition(':')[0]}"
    return "download it from its home and lay it out as above, then verify"


def _choice(given: Given) -> EncoderChoice | None:
    """The encoder that was asked for; None where all that is known of it is a folder's name."""
    folder = given.get("encoder")
    if not isinstance(folder, str):
        names = ("model", "pretrained", "precision")
        return EncoderChoice(**{name: given[name] for name in names if given.get(name) is not None})
    return known_folders().get(folder) or _made_here(
        Path(given.get("features_dir", FEATURES)), folder
    )


def _made_here(root: Path, folder: str) -> EncoderChoice | None:
    """The encoder that made the features in a folder; None where they were imported."""
    from zsntta_cli.cache.folder import any_features

    try:
        made = any_features(root, folder)
        if made is None or made.identity.get("pretrained") == "imported":
            return None
        return EncoderChoice(*(made.identity[k] for k in ("model", "pretrained", "precision")))
    except (KeyError, TypeError, OSError, ZsnttaError):
        return None
