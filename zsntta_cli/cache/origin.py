"""The origin of features: what made them, as one flat mapping without any path of the machine.

The encoder's identity and the source of a feature file determine its features up to their last
bits, which also depend on versions, threads, the processor and the batch size. A record keeps all
of it for each set that its run read, so that differences can be named later.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zsntta_cli.cache.identity import public_identity
from zsntta_cli.errors import short

if TYPE_CHECKING:
    from zsntta_cli.cache.store import Features

# The keys of an origin, in the order in which differences are listed.
_MADE_BY = (
    "threads", "cpu", "device", "gpu", "platform", "batch_size", "memory_format", "model",
    "pretrained", "weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing",
    "logit_scale", "logit_bias",
)  # fmt: skip
_MADE_OF = (
    "kind", "images", "limit", "content", "skipped", "imported", "split", "normalized", "as_shown",
)  # fmt: skip
_DIGITS = 12  # of a digest, as it is recorded
_SHARED, _SETS = "shared", "sets"  # a record keeps once what the sets of its run have in common

Origin = Mapping[str, Any]


def origin_of(features: "Features", prompt: str = "") -> dict[str, Any]:
    """The origin of a file's features; `prompt` is that of the text features that were read.

    It is short, because every record has it, and listing ten thousand records parses all of them.
    """
    identity, machine = public_identity(features.identity), features.machine
    source, steps = features.source, list[str]()
    skipped, digest = source.get("skipped"), source.get("digest")
    for step, value in _mapping(identity.get("preprocessing")).items():
        steps.append(f"{step} {' '.join(map(str, value)) if isinstance(value, list) else value}")
    values = {
        **dict(zip(_MADE_BY, map({**identity, **machine}.get, _MADE_BY), strict=True)),
        **dict(zip(_MADE_OF, map(source.get, _MADE_OF), strict=True)),
        "preprocessing": ", ".join(steps) or None,  # "size 32 32, interpolation bicubic"
        "kind": features.kind,
        "content": digest[:_DIGITS] if isinstance(digest, str) else None,
        "skipped": len(skipped) if isinstance(skipped, list) else None,
        "normalized": features.normalized or None,
        "versions": {**_mapping(machine.get("versions")), **_mapping(identity.get("versions"))},
        "created": features.created or None,  # neither this nor the prompt is compared
        "prompt": prompt or None,
    }
    recorded = {"limit"} & source.keys()  # that there is no limit is recorded, too
    return {key: value for key, value in values.items() if value is not None or key in recorded}


def shared_once(origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Turn the origins of sets into the format of a record."""
    shared, sets = {**next(iter(origins.values()), {})}, dict[str, dict[str, Any]]()
    for origin in origins.values():
        for key in [*shared]:
            if origin.get(key, origin) != shared[key]:
                del shared[key]
    for name, origin in origins.items():
        sets[name] = {key: value for key, value in origin.items() if key not in shared}
    return {_SHARED: shared, _SETS: sets}


def origins_in(recorded: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The origins of sets, by name, from a record, which may come from a stranger."""
    shared, sets = _mapping(recorded.get(_SHARED)), _mapping(recorded.get(_SETS))
    return {name: {**shared, **_mapping(origin)} for name, origin in sets.items()}


def differences_in_words(here: Origin, recorded: Origin) -> str:
    """Describe what differs, as `key: recorded -> here`, or say that nothing does or is known."""
    if not here or not recorded:
        return f"the {'record' if here else 'feature file here'} does not say how they were made"
    new, old = _flat(here), _flat(recorded)
    versions = sorted(key for key in {*new, *old} if key.startswith("versions."))
    differences = [
        f"{key}: {short(str(old.get(key, 'none')))} -> {short(str(new.get(key, 'none')))}"
        for key in (*versions, *_MADE_BY, *_MADE_OF)
        if new.get(key) != old.get(key)
    ]
    return "; ".join(differences) or "although all recorded settings agree"


def _flat(origin: Origin) -> dict[str, Any]:
    """An origin with a key for each version: `versions.torch`; without those that are None."""
    versions = {f"versions.{k}": v for k, v in _mapping(origin.get("versions")).items()}
    return {k: v for k, v in {**origin, **versions}.items() if v is not None}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
