"""The origin of features: what made them, as one flat mapping without any path of the machine.

The encoder's identity and the source of a feature file decide its features, up to their last bits,
which depend on more: versions, threads, the processor, the batch size. A record keeps all of it for
each set that its run read, and tells later what differs.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zsntta_cli.cache.identity import LOCAL_DIR, without_place
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
_RECORDED = ("versions", "created", "prompt")  # versions are compared one by one, the rest never
_DIGITS = 12  # of a digest, as it is recorded

Origin = Mapping[str, Any]
_ABSENT = object()


def origin_of(features: "Features", prompt: str = "") -> dict[str, Any]:
    """The origin of a file's features; `prompt` is that of the text features that were read.

    It is short, since every record has it, and a list of ten thousand records parses all of them.
    """
    identity, source, machine = features.identity, features.source, features.machine
    skipped, digest = source.get("skipped"), source.get("digest")
    values: dict[str, Any] = {}
    for key in _MADE_BY:
        values[key] = machine.get(key, identity.get(key))
    for key in _MADE_OF:
        values[key] = source.get(key)
    values |= {
        "model": without_place(identity.get("model"), LOCAL_DIR),
        "pretrained": without_place(identity.get("pretrained")),
        "preprocessing": _as_text(identity.get("preprocessing")),
        "kind": features.kind,
        "content": digest[:_DIGITS] if isinstance(digest, str) else None,
        "skipped": len(skipped) if isinstance(skipped, list) else None,
        "normalized": features.normalized or None,
        "versions": {**_mapping(machine.get("versions")), **_mapping(identity.get("versions"))},
        "created": features.created or None,
        "prompt": prompt or None,
    }
    for key in [*values]:
        if values[key] is None and not (key == "limit" and key in source):  # no limit is said, too
            del values[key]
    return values


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(values: Any) -> str | None:
    """The preprocessing of images as a text: "size 32 32, interpolation bicubic"."""
    texts = []
    for key, value in _mapping(values).items():
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        texts.append(f"{key} {text}")
    return ", ".join(texts) or None


# A record has the origins of several sets, and keeps what they have in common once.

_SHARED, _SETS = "shared", "sets"


def shared_once(origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Turn the origins of sets into the form in which a record keeps them."""
    every = list(origins.values())
    shared = dict(every[0]) if every else {}
    for origin in every:
        for key in [*shared]:
            if origin.get(key, _ABSENT) != shared[key]:
                del shared[key]
    own = {}
    for name, origin in origins.items():
        own[name] = dict(origin)
        for key in shared:
            del own[name][key]
    return {_SHARED: shared, _SETS: own}


def origins_in(recorded: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The origins of sets, by name, from a record, which may be a stranger's."""
    shared, sets = _mapping(recorded.get(_SHARED)), _mapping(recorded.get(_SETS))
    return {name: {**shared, **_mapping(own)} for name, own in sets.items()}


def differences_in_words(here: Origin, there: Origin) -> str:
    """Say what differs, as `key: there -> here`; or that nothing does, or nothing is recorded."""
    if not here or not there:
        whose = "the record does" if here else "the feature file here does"
        return f"{whose} not say how they were made"
    new, old = _flat(here), _flat(there)
    versions = sorted(key for key in {*new, *old} if key.startswith("versions."))
    differences = [
        f"{key}: {_shown(old.get(key))} -> {_shown(new.get(key))}"
        for key in (*versions, *_MADE_BY, *_MADE_OF)
        if new.get(key) != old.get(key)
    ]
    return "; ".join(differences) or "yet by all that is recorded they were made in the same way"


def _flat(origin: Origin) -> dict[str, Any]:
    """An origin with a key for each version: `versions.torch`."""
    versions = _mapping(origin.get("versions"))
    return {**origin, **{f"versions.{name}": value for name, value in versions.items()}}


def _shown(value: Any) -> str:
    return "none" if value is None else short(str(value))
