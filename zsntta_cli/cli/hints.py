"""What to type: the only place where the program composes commands.

An error below the command line carries values, or one word for its remedy; here it becomes a line
that works as it is typed, with the options that the user's own command had.
"""

import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli.cache.pulled import PULLED, is_address
from zsntta_cli.cli.gone import gone
from zsntta_cli.datasets.names import CLIP_BENCHMARK, NOISE, WEB, WORDS, SetName
from zsntta_cli.errors import (
    IncompleteSet,
    MissingFeatures,
    MissingParts,
    MissingSets,
    MissingText,
    MissingWords,
    NoPartner,
    SettingsError,
    StoreError,
    UnknownMethod,
    UnknownName,
    ZsnttaError,
    near,
)
from zsntta_cli.settings import (
    DATA,
    FEATURES,
    KNOWN_FOLDERS,
    EncoderChoice,
    ExtractSettings,
)
from zsntta_cli.settings.prompts import (
    DEFAULT_PROMPT,
    PHOTOS,
    WORD_SETS,
    set_of,
    speech_prompt,
    templates_of,
)
from zsntta_cli.settings.sentences import is_filed

if TYPE_CHECKING:
    from zsntta_cli.cache.origin import Origin

NEXT_STEPS = (
    "Your images:    zsntta extract --model tiny --dataset mine=FOLDER\n"
    "Another stream: zsntta simulate --model tiny --method zs-clip --method adand --ratio 0.4"
)
NOTHING_CACHED = (
    "type zsntta demo, zsntta extract --dataset cifar10, "
    "or zsntta cache import NAME --features FILE"
)
_USUAL_WORDS = "wordnet"

_REMEDIES = {
    "cache-sentences": "sentences of a file are cached by zsntta extract --prompts FILE.json, and "
    "have its name",
    "name-sentences": "--prompts FILE.json",
    "data-root": "name the folder of all sets with --data-root",
    "delete-it": "delete it, and what it had is encoded again",
    "extract-again": "extract them again with --overwrite",
    "install-video": "pip install 'zsntta[video]' reads videos",
    "install-parquet": "pip install 'zsntta[parquet]' reads and writes it",
    "compare": "zsntta simulate runs what is missing, or choose with --id, --ood and --method",
    "fewer-lines": "choose with --method or --setting NAME=VALUE",
    "fewer-panels": "choose with --id, --ood or --method",
    "fixed-thresholds": "zsntta simulate --method zs-clip --threshold adaptive --threshold 0.5",
    "import-elsewhere": "--overwrite replaces it, --encoder NAME puts the new one elsewhere",
    "list-paper": "zsntta paper lists them",
    "install-ray": "pip install 'zsntta[ray]'",
    "install-transformers": "pip install 'zsntta[transformers]' reads it",
    "install-report": "pip install 'zsntta[report]', or --output FILE.csv for its numbers",
    "join-again": "zsntta cache join NAME, once all parts are there",
    "extract-parts": "zsntta extract --dataset NAME=… --part 1/64 makes one",
    "keep-curves": "zsntta simulate --fresh keeps them",
    "keep-gradients": "zsntta simulate --method tent --scores FILE.csv keeps them",
    "live": "zsntta simulate --method tent",
    "list-settings": "zsntta methods show NAME lists those of a method",
    "list-records": "zsntta records list shows them",
    "make-again": "delete it, and extract or import it again",
    "match": "--score match takes the logit itself",
    "name-ood": "add --ood NAME",
    "no-text": "--no-text FILE.npy",
    "other-device": "try --device cpu",
    "other-encoder": "give this one another name with --encoder NAME",
    "other-folder": "delete it, or take another --features-dir",
    "other-prompt": "take another with --prompt",
    "other-room": "make room, or take another folder with --data-root",
    "other-split": "name this one otherwise with --name NAME",
    "overwrite": "--overwrite replaces it, --features-dir DIR puts the new one elsewhere",
    "overwrite-output": "--overwrite replaces it, --output names another place",
    "raw": "leave --normalized out for raw features",
    "other-features": "simulate --from FILE --other-features runs on those that are here",
    "say-where": "add --dataset NAME=PATH",
    "simulate": "zsntta simulate keeps what it runs, or name another file with --records",
    "skip-broken": "mend or remove it, or leave such images out with --skip-broken",
}

# What lists all names, by what is named.
_METHODS, _METRICS, _SETTING_OF = "zsntta methods", "docs/results.md", "the setting of "
_LISTING = {
    **dict.fromkeys(("method", "methods", "baseline"), _METHODS),
    **dict.fromkeys(("columns", "metric", "by", "sort"), _METRICS),
    "setting": "zsntta simulate -h --all",
}
_SHOWN = 6  # cached sets in a line
Given = Mapping[str, Any]  # the parameters of the command that failed


def worded(error: ZsnttaError, given: Given) -> str:
    """An error's line, with what to type behind a colon where there is something."""
    if isinstance(error, UnknownName) and (former := _gone_method(error)):
        return former
    remedy = mend(error, given) or _REMEDIES.get(error.remedy, "")
    return f"{str(error).removesuffix('.')}: {remedy}" if remedy else str(error)


def _gone_method(error: UnknownName) -> str:
    """What is said of a method, alone or behind a detector, that was taken out."""
    is_method = error.what.rpartition(": ")[2] == "method"
    return gone("simulate --method", error.value.rpartition("+")[2]) if is_method else ""


@singledispatch
def mend(_error: ZsnttaError, _given: Given) -> str:
    """What to type to mend an error; nothing where no command does."""
    return ""


@mend.register
def _(error: SettingsError, given: Given) -> str:
    cause = error.__cause__  # of an experiment file, which says where in it
    return mend(cause, given) if isinstance(cause, UnknownName) else ""


@mend.register
def _(error: UnknownName, _given: Given) -> str:
    what = error.what.rpartition(": ")[2]  # behind the place in a file
    method = what.removeprefix(_SETTING_OF)
    listing = _LISTING.get(what, "") if method == what else f"zsntta methods show {method}"
    return f"{listing} lists them" if error.is_cut and listing else ""


@mend.register
def _(error: IncompleteSet, _given: Given) -> str:
    fetch = f"zsntta datasets get {SetName.parse(error.name).base} fetches it, or "
    return fetch * error.is_fetched + _REMEDIES["data-root"]


@mend.register
def _(error: MissingParts, _given: Given) -> str:
    first = f"--part {error.missing[0]}/{error.of}"
    return f"zsntta extract with the options of the others and {first}, or --parts {error.of}"


@mend.register
def _(error: MissingFeatures, given: Given) -> str:
    from zsntta_cli.datasets import CATALOGUE

    if other := _other_model(given):
        return other
    is_known = SetName.parse(error.name).base in CATALOGUE
    meant = "" if is_known else near(error.name, error.there)  # the message asks for it
    if meant:
        return ""
    given = _of_encoder(given, error.encoder)
    typing = _cached_instead(error, given) + "type " + _making(error.name, given)
    listed = "" if is_known else near(SetName.parse(error.name).base, tuple(CATALOGUE))
    return f"{listed.strip(' ()')} For images of your own {typing}" if listed else typing


def _other_model(given: Given) -> str:
    """A question after the model that is meant, where there is none of that name."""
    if not given.get("model"):
        return ""
    from zsntta_cli.encoders.weights import misspelt

    return misspelt(given["model"])


def _cached_instead(error: MissingFeatures, given: Given) -> str:
    """What goes with the features that somebody has imported, where nothing can make more."""
    if _folder(given) is None or _choice(given) is not None:
        return ""
    if SetName.parse(error.name).kind == NOISE:
        return "leave injected noise out with --noise none, or " if "noise" in given else ""
    if not error.there or not {"pair", "id_set"} & {*given}:
        return ""
    shown = ", ".join(error.there[:_SHOWN]) + ", …" * (len(error.there) > _SHOWN)
    option = "--pair ID,OOD" if "pair" in given else "--id and --ood"
    return f"name cached sets ({shown}) with {option}, or "


@mend.register
def _(error: MissingSets, given: Given) -> str:
    return _other_model(given) or "type " + making_all(error.missing, given, error.origins)


@mend.register
def _(error: MissingText, given: Given) -> str:
    given = _of_encoder(given, error.encoder)
    imported = _folder(given) is not None and _choice(given) is None
    if (
        words := _words_with(error.prompt)
    ) and not imported:  # class names get what no one types along with the words
        return f"type zsntta extract --words {words}{options_of(given)}"
    limit = f" --limit {error.limit}" if error.limit else ""
    if is_filed(error.prompt) and SetName.parse(error.name).kind == WORDS:
        return "a file only has sentences for classes, so add --word-prompts speech"
    return f"type {_making(error.name, given)} {_prompt_option(error.prompt)}{limit}"


def _prompt_option(prompt: str) -> str:
    """The option of extract that makes class features under a prompt."""
    if prompt == PHOTOS:
        return "--class-photos DIR"
    if is_filed(prompt):
        return f"--prompts {prompt.partition('@')[0]}.json"
    return f"--prompt {shlex.quote(prompt)}"


@mend.register
def _(error: MissingWords, given: Given) -> str:
    given = _of_encoder(given, error.encoder)
    embed = f"type zsntta extract --words {_USUAL_WORDS}{options_of(given)}"
    if not error.cached:
        return embed
    several = f", several with --words {','.join(error.cached)}" if len(error.cached) > 1 else ""
    return f"name one with --words NAME{several}, or {embed}"


@mend.register
def _(error: UnknownMethod, given: Given) -> str:
    plugin, record = error.files[0] if error.files else "FILE.py", given.get("record")
    words = ["zsntta", "--plugin", plugin, "simulate", *(["--from", str(record)] * bool(record))]
    return f"name its script, {shlex.join(words)}"


@mend.register
def _(error: NoPartner, given: Given) -> str:
    from zsntta_cli.datasets import needs_no_hand

    if not error.partners:
        return "add --ood NAME"
    easy = [name for name in error.partners if needs_no_hand(name)]
    named = " ".join(f"--dataset {name}" for name in easy or error.partners)
    return f"type zsntta extract {named}{options_of(given)}"


def _making(name: str, given: Given) -> str:
    """The command that makes the features of a set, or imports them where nothing can make them."""
    parsed, folder = SetName.parse(name), _folder(given)
    if folder is not None and _choice(given) is None and parsed.kind != WORDS:
        words = ["zsntta", "cache", "import", name, "--encoder", folder, "--features", "FILE"]
        if given.get("features_dir", FEATURES) != FEATURES:
            words += ["--features-dir", str(given["features_dir"])]
        return shlex.join(words)
    return f"zsntta extract {_asked(name)}{options_of(given)}"


def _asked(name: str) -> str:
    """The options that name a set, a list of words or noise to be extracted."""
    from zsntta_cli.datasets import CATALOGUE

    parsed = SetName.parse(name)
    what = {
        WORDS: ["--words", set_of(parsed.bare) or f"{parsed.bare}.txt"],
        NOISE: ["--noise", parsed.bare],
    }.get(parsed.kind, ["--dataset", name if parsed.base in CATALOGUE else _own_set(name)])
    return shlex.join(what)


def _own_set(name: str) -> str:
    """How a set is named that is not in the catalogue."""
    return f"{CLIP_BENCHMARK}/{name}" if name.startswith(WEB) else f"{name}=PATH"


def _words_with(prompt: str) -> str:
    """The built-in word lists that joined templates are of: no option names such."""
    joined = len(templates_of(prompt)) > 1
    found = (n for n, s in WORD_SETS.items() if prompt in (s.class_prompt, *s.prompts.values()))
    return next(found, "") if joined else ""


def making_all(
    missing: Mapping[str, Sequence[str]],
    given: Given,
    origins: "Mapping[str, Mapping[str, Origin]] | None" = None,
) -> str:
    """The commands that make the features of several sets, of each encoder's folder.

    `origins` say, by folder and name, how features were made that are to be made again.
    """
    commands = list[str]()
    for folder, names in missing.items():
        recorded = (origins or {}).get(folder, {})
        others = [name for name in names if name not in recorded]
        commands += making_again(folder, recorded, given)
        commands += [_making_some(folder, others, given)] if others else []
    return " && ".join(commands)


def making_again(folder: str, origins: "Mapping[str, Origin]", given: Given) -> list[str]:
    """The commands that make sets' features again as a record says that they were made.

    Sets that were made alike are made by one command. What a record says may be anybody's: of it
    come quoted words and whole numbers alone.
    """
    wanted: dict[str, list[str]] = {}  # by the options: sets
    importing, splitting = list[str](), list[str]()
    published = {name: o[PULLED] for name, o in origins.items() if is_address(o.get(PULLED))}
    made_here = {name: origin for name, origin in origins.items() if name not in published}
    for name, origin in sorted(made_here.items(), key=lambda item: _is_noise(item[0])):
        of, split = _whole_of(name, origin)
        splitting += [split] if split else []
        choice = _recorded_choice(origin)
        if choice is None or origin.get("imported"):
            importing.append(_making(of, {**given, "encoder": folder}))
            continue
        options = _recorded_options(of, origin) + options_of({**vars(choice), **_folders(given)})
        if _is_noise(name):  # beside sets, whose limit and prompt are nothing to it
            alike = [o for o in wanted if o.endswith(options) and _batch(o) == _batch(options)]
            options = next(iter(alike), options)
        wanted.setdefault(options, []).append(_recorded_set(of, origin))
    extracting = [
        f"zsntta extract {' '.join(dict.fromkeys(sets))}{_only(sets)}{options}"
        for options, sets in wanted.items()
    ]
    pulling = _pulling(published, folder, given)
    return list(dict.fromkeys([*pulling, *extracting, *importing, *splitting]))


def _pulling(addresses: Mapping[str, str], folder: str, given: Given) -> list[str]:
    """The commands that pull sets, given by their addresses, into an encoder's folder."""
    sets: dict[str, list[str]] = {}
    for name, address in addresses.items():
        sets.setdefault(address, []).append(name)
    root = given.get("features_dir", FEATURES)
    place = [] if root == FEATURES else ["--features-dir", str(root)]
    return [
        shlex.join(["zsntta", "cache", "pull", address, *names, "--encoder", folder, *place])
        for address, names in sets.items()
    ]


def _is_noise(name: str) -> bool:
    return SetName.parse(name).kind == NOISE


def _batch(options: str) -> bool:
    return "--batch-size" in options


def _recorded_choice(origin: "Origin") -> EncoderChoice | None:
    """The encoder that a record names; of weights in a file there is its name alone."""
    names = [origin.get(key) for key in ("model", "pretrained", "precision")]
    if not all(isinstance(name, str) for name in names):
        return None
    try:
        return EncoderChoice(*map(str, names))
    except SettingsError:  # of nobody's extraction
        return None


def _recorded_set(name: str, origin: "Origin") -> str:
    """What extracts a set as many images as it had."""
    count = origin.get("images")
    has_count = _is_noise(name) and _is_count(count)
    return _asked(name) + f" --noise-count {count}" * has_count


def _recorded_options(name: str, origin: "Origin") -> str:
    """How a set was extracted, in options: nothing of what is the default."""
    from zsntta_cli.datasets import default_prompt

    kind, bare = SetName.parse(name).kind, SetName.parse(name).bare
    usual = [default_prompt(name)]
    if kind == WORDS:
        usual = [DEFAULT_PROMPT, speech_prompt(bare) or ""]
    limit, prompt, batch_size = (origin.get(key) for key in ("limit", "prompt", "batch_size"))
    is_prompt = isinstance(prompt, str) and prompt not in usual and not set_of(bare)
    is_batch_size = _is_count(batch_size) and batch_size != ExtractSettings.batch_size
    return (
        f" --limit {limit}" * _is_count(limit)
        + f" {_prompt_option(str(prompt))}" * is_prompt
        + f" --batch-size {batch_size}" * is_batch_size
        + " --as-shown" * (origin.get("as_shown") is True)
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value is not True and value > 0


def _only(sets: Sequence[str]) -> str:
    """The option that keeps an extraction from adding the OOD partners of its ID sets."""
    from zsntta_cli.datasets import CATALOGUE

    names = [words.removeprefix("--dataset ") for words in sets if words.startswith("--dataset ")]
    roles = [CATALOGUE[name].role for name in map(_base, names) if name in CATALOGUE]
    return " --no-partners" if roles and len(roles) == len(names) and "ood" not in roles else ""


def _base(name: str) -> str:
    return SetName.parse(name).base


def _whole_of(name: str, origin: "Origin") -> tuple[str, str]:
    """The set that a split was made of, and the command that makes the split; else the set."""
    split: Any = origin.get("split")
    of = split.get("of") if isinstance(split, dict) else None
    if not isinstance(of, str) or "images" in split:  # before 0.3 images could be split, too
        return name, ""
    drawn = re.fullmatch(rf"{re.escape(of)}-(\d+)-s(\d+)-(id|ood)", name)
    how = f"--id-classes {drawn[1]} --seed {drawn[2]}" if drawn else "--id-classes FILE"
    stem = name.removesuffix("-id").removesuffix("-ood")
    called = "" if drawn else f" --name {shlex.quote(stem)}"
    return of, f"zsntta cache split {shlex.quote(of)} {how}{called}"


def _folders(given: Given) -> dict[str, Any]:
    return {name: given[name] for name in ("features_dir", "data_root") if name in given}


def _of_encoder(given: Given, folder: str) -> Given:
    """What was typed; with the folder of the encoder, where no option names one."""
    named = any(given.get(name) for name in ("encoder", "model", "pretrained"))
    return given if named or not folder else {**given, "encoder": folder}


def _making_some(folder: str, names: Sequence[str], given: Given) -> str:
    own = _of_encoder(given, folder)
    if (choice := _choice(own)) is None:  # features that were made elsewhere
        return " && ".join(_making(name, own) for name in names)
    words = " ".join(map(_asked, sorted(names, key=_is_noise)))
    return f"zsntta extract {words}{options_of({**vars(choice), **_folders(given)})}"


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
    from zsntta_cli.cache.folder import feature_path, folder_name, set_names, stored
    from zsntta_cli.datasets import partners

    folder = folder_name(features_dir, choice)
    names = [str(SetName.parse(spec)) for spec in sets]
    headers = {one.name: one.header for one in stored(features_dir, folder) if one.header}
    id_sets = [n for n in names if n in headers and headers[n].templates]
    if not id_sets:
        return ""
    name = id_sets[0]
    known = [n for n in partners(name) if feature_path(features_dir, folder, n).exists()]
    others = [n for n in set_names(features_dir, folder) if n != name]
    ood = "" if known else f" --ood {others[0]}" if others else " --ratio 0"
    given = {**vars(choice), "features_dir": features_dir}
    return f"zsntta simulate --method zs-clip --method adand --id {name}{ood}{options_of(given)}"


def set_commands(name: str, parameters: str, is_id: bool) -> list[str]:
    """What one types with a known set; `parameters` are those that its name may have."""
    name += ":fog:1" * (bool(parameters) and not SetName.parse(name).parameters)
    simulate = [f"zsntta simulate --method adand --id {name}"] if is_id else []
    return [f"zsntta datasets verify {name}", f"zsntta extract --dataset {name}", *simulate]


def _folder(given: Given) -> str | None:
    folder = given.get("encoder")
    return folder if isinstance(folder, str) else None


def _choice(given: Given) -> EncoderChoice | None:
    """The encoder that was asked for; None where all that is known of it is a folder's name."""
    names = ("model", "pretrained", "precision")
    named = {name: given[name] for name in names if given.get(name) is not None}
    folder = _folder(given)
    if folder is None:
        return EncoderChoice(**named)
    return KNOWN_FOLDERS.get(folder) or _made_here(
        Path(given.get("features_dir", FEATURES)), folder
    )


def _made_here(root: Path, folder: str) -> EncoderChoice | None:
    """The encoder that made the features in a folder; None where they were imported."""
    from zsntta_cli.cache.folder import stored

    try:
        headers = [one.header for one in stored(root, folder) if one.header]
        known = [h.identity for h in headers if h.identity.get("pretrained") != "imported"]
        return EncoderChoice(*(known[0][k] for k in ("model", "pretrained", "precision")))
    except (IndexError, KeyError, TypeError, OSError, StoreError, ZsnttaError):
        return None
