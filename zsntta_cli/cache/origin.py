"""The origin of features: what a feature file says of it, what a record keeps, and what differs.

The encoder's identity and the source of a feature file decide its features, up to their last bits,
which depend on more: versions, threads, the processor, the batch size. The *origin* of a set is all
of this together, as one flat mapping of plain values, without any path of the machine.

A pulled file is left as it was published: a note `.SET.pulled.json` beside `SET.h5` has the
repository that it is from, and counts as long as the file holds what was pulled.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zsntta_cli.cache.identity import LOCAL_DIR, Difference, without_place
from zsntta_cli.errors import short
from zsntta_cli.files import read_input, write_whole

if TYPE_CHECKING:
    from zsntta_cli.cache.store import Features

PULLED = "pulled"  # the key in a record; its value is ORG/NAME@COMMIT
_LARGEST_NOTE = 2**14  # bytes
_SOURCE_PLACE = re.compile(r"[\w./-]{1,200}@\w{1,64}")

# The keys of an origin, in the order in which differences are listed.
_MACHINE = (
    "versions", "threads", "cpu", "device", "gpu", "platform", "batch_size", "memory_format",
)  # fmt: skip
_ENCODER = (
    "model", "pretrained", "weights_sha256", "quick_gelu", "precision", "image_size",
    "preprocessing", "logit_scale", "logit_bias",
)  # fmt: skip
_SOURCE = (
    "kind", "images", "limit", "content", "skipped", "imported", "split", "normalized",
    "as_shown",
)  # fmt: skip
_RECORDED = ("created", "prompt", PULLED)  # recorded, and never compared

# The usual value of these is not recorded, so a key that is missing in one origin is a difference.
_ALWAYS = (
    "limit",
    "skipped",
    "normalized",
    "as_shown",
)
_DIGITS = 12  # of a digest, as it is recorded or shown

Origin = Mapping[str, Any]
_ABSENT = object()


def origin_of(features: "Features", prompt: str = "") -> dict[str, Any]:
    """The origin of a file's features; `prompt` is that of the text features that were read.

    It is short, since every record has it, and a list of ten thousand records parses all of them.
    """
    identity, source, machine = features.identity, features.source, features.machine
    skipped, digest = source.get("skipped"), source.get("digest")
    values = {
        **{key: identity.get(key) for key in (*_MACHINE, *_ENCODER)},
        **{key: machine[key] for key in _MACHINE if key in machine},
        **{key: source.get(key) for key in ("images", "imported", "split", "as_shown")},
        "versions": {**_mapping(machine.get("versions")), **_mapping(identity.get("versions"))},
        "model": without_place(identity.get("model"), LOCAL_DIR),
        "pretrained": without_place(identity.get("pretrained")),
        "preprocessing": _as_text(identity.get("preprocessing")),
        "kind": features.kind,
        "content": digest[:_DIGITS] if isinstance(digest, str) else None,
        "skipped": len(skipped) if isinstance(skipped, list) else None,
        "normalized": features.normalized or None,
        "created": features.created or None,
        "prompt": prompt or None,
        PULLED: pulled_from(features.path, features.digest),
    }
    keys = (*_ENCODER, *_MACHINE, *_SOURCE, *_RECORDED)
    origin = {key: values[key] for key in keys if values.get(key) is not None}
    return origin | ({"limit": source["limit"]} if "limit" in source else {})


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(values: Any) -> str | None:
    """The preprocessing of images as a text: "size 32 32, interpolation bicubic"."""
    texts = {
        key: " ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in _mapping(values).items()
    }
    return ", ".join(f"{key} {text}" for key, text in texts.items()) or None


# A record has the origins of several sets, and keeps what they have in common once.

_SHARED, _SETS = "shared", "sets"


def shared_once(origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Turn the origins of sets into the form in which a record keeps them."""
    every = list(origins.values())
    shared = {
        key: value
        for key, value in (every[0] if every else {}).items()
        if all(other.get(key, _ABSENT) == value for other in every)
    }
    not_shared = {
        name: {key: value for key, value in origin.items() if key not in shared}
        for name, origin in origins.items()
    }
    return {_SHARED: shared, _SETS: not_shared}


def origins_in(recorded: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The origins of sets, by name, from a record; an older record may have none."""
    shared, sets = _mapping(recorded.get(_SHARED)), _mapping(recorded.get(_SETS))
    return {name: {**shared, **_mapping(own)} for name, own in sets.items()}


# Differences of origins.


def origin_differences(here: Origin, there: Origin) -> list[Difference]:
    """List all that both origins record and in which they differ, in a fixed order of keys.

    Versions are compared one by one (`versions.torch`). In each difference `one` is the value of
    `here`, and `other` that of `there`.
    """
    flat_here, flat_there = _compared(here), _compared(there)
    return [
        Difference(key, value, flat_there[key])
        for key, value in flat_here.items()
        if key in flat_there and value != flat_there[key]
    ]


def _compared(origin: Origin) -> dict[str, Any]:
    """The values that are compared, with a key for each version."""
    versions = _mapping(origin.get("versions"))
    keys = [key for key in (*_MACHINE, *_ENCODER, *_SOURCE) if key != "versions"]
    return {
        **{f"versions.{name}": versions[name] for name in sorted(versions)},
        **{key: origin.get(key) for key in keys if key in origin or (origin and key in _ALWAYS)},
    }


def differences_in_words(here: Origin, there: Origin) -> str:
    """Say what differs, as `key: there -> here`; or that nothing does, or nothing is recorded."""
    if not here or not there:
        whose = "the record does" if here else "the feature file here does"
        return f"{whose} not say how they were made"
    differences = origin_differences(here, there)
    if not differences:
        return "yet by all that is recorded they were made in the same way"
    return "; ".join(f"{key}: {_shown(old)} -> {_shown(new)}" for key, new, old in differences)


def _shown(value: Any) -> str:
    return "none" if value is None else short(str(value))


def note_path(path: Path) -> Path:
    """The path of the note beside a feature file."""
    return path.with_name(f".{path.stem}.pulled.json")


def note_source(path: Path, source: str, digest: str) -> None:
    """Note that a file was pulled from `source`; `digest` is that of its features and labels."""
    write_whole(note_path(path), json.dumps({"from": source, "digest": digest}).encode())


def pulled_from(path: Path, digest: str) -> str | None:
    """ORG/NAME@COMMIT of a feature file; None if it was made here or holds something else now."""
    try:
        note = json.loads(read_input(note_path(path), _LARGEST_NOTE))
        source = str(note["from"])
        is_of = note["digest"] == digest and _SOURCE_PLACE.fullmatch(source) is not None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return source if is_of else None
