"""What features depend on: the identity of their encoder, and the machine that made them."""

import contextlib
import functools
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from zsntta_cli import __version__
from zsntta_cli.errors import StoreError, counted, first_of, short
from zsntta_cli.settings import CHECKPOINT, IMPORTED, hub_folder, known_folders

if TYPE_CHECKING:
    from zsntta_cli.cache.store import Features

SAME_ENCODER = (
    "model", "weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing",
    "logit_scale", "logit_bias",
)  # fmt: skip
# For these encoders it is known by how many nats a fitting text's logit exceeds any other's: OpenAI
# trained them in batches of 32,768 (docs/detector.md).
_OPENAI, _LEVEL_KNOWN = "openai", ("ViT-B-32", "ViT-B-16", "ViT-L-14", "ViT-L-14-336")
_LOCAL_DIR = "local-dir:"  # open_clip's own word for a model in a folder
UNIT_TOLERANCE = 1e-2  # unit norms in half precision differ by less, raw CLIP norms by far more
TEXT_TOLERANCE = 1e-3
_SHOWN = 3  # names of classes in a line


def is_level_known(identity: Mapping[str, Any]) -> bool:
    """Whether it is known how far an encoder's logits of fitting texts exceed those of others."""
    model = str(identity.get("model")).removesuffix("-quickgelu")
    return model in _LEVEL_KNOWN and identity.get("pretrained") == _OPENAI


def foreign_model(features: "Features") -> str:
    """The model of features in a folder that is named after another encoder; empty otherwise.

    Only the folders of the paper's encoders and of the embedded one are known.
    """
    model, folder = str(features.identity.get("model")), features.path.parent.name
    is_named = folder in known_folders() and features.identity.get("pretrained") != IMPORTED
    return short(model) if is_named and not folder.startswith(model) else ""


def difference(
    facts: Mapping[str, Any], expected: Mapping[str, Any], keys: Iterable[str] = SAME_ENCODER
) -> str:
    """The first of `keys` whose values differ, in words; empty if all agree.

    A model in a folder stays the same model when the folder is moved.
    """
    for key in keys:
        value, wanted = facts.get(key), expected.get(key)
        if _without_place(value) != _without_place(wanted):
            if key == "digest":  # of a source
                return "file names, sizes, labels or classes differ"
            return f"{key} is {short(str(value))}, not {short(str(wanted))}"
    return ""


def check_same(
    path: Path,
    facts: Mapping[str, Any],
    expected: Mapping[str, Any],
    keys: Iterable[str] = SAME_ENCODER,
    *,
    what: str = "encoder",
    then: str = "delete it, or choose another --features-dir",
) -> None:
    """Refuse the file at `path` if its facts differ from the expected ones.

    Raises:
        StoreError: they differ in one of `keys`; `then` tells what the user can do.
    """
    if differs := difference(facts, expected, keys):
        raise StoreError(f"{path} is from a different {what} ({differs}): {then}.")


def _without_place(value: Any) -> Any:
    """A value of an identity; the name of a model is without the folders of its machine."""
    if isinstance(value, str) and (folder := hub_folder(value)):
        return f"{CHECKPOINT}./{folder.name}"
    if isinstance(value, str) and value.startswith(_LOCAL_DIR):
        return _LOCAL_DIR + PurePath(value.removeprefix(_LOCAL_DIR)).name
    return value


def public_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An encoder's identity without the folders of this machine."""
    public = {**identity, "model": _without_place(identity.get("model"))}
    if isinstance(weights := identity.get("pretrained"), str):
        public["pretrained"] = PurePath(weights).name
    return public


def overlap(id_set: "Features", ood_set: "Features") -> str:
    """A clause on what two sets share, all images or class names; empty if nothing.

    Single shared images are not detected, because that would need all rows.
    """
    if id_set.digest and id_set.digest == ood_set.digest:
        return "have the same images"
    ood_names = {*map(_plain, ood_set.class_names)}
    names = [short(name) for name in id_set.class_names if _plain(name) in ood_names]
    if not names:
        return ""
    return f"share {counted(len(names), 'class', 'classes')} ({first_of(names, _SHOWN)})"


def _plain(name: str) -> str:
    return " ".join(re.split(r"[\s_-]+", name.casefold()))


ENCODING = {  # libraries that encode images and class names, by module, with their distributions
    "torch": "torch",
    "open_clip": "open_clip_torch",
    "torchvision": "torchvision",
    "pillow": "pillow",
}


def machine_facts(distributions: Mapping[str, str] | None = None, **facts: Any) -> dict[str, Any]:
    """What features made by this process may depend on, besides their encoder and images.

    `distributions` are the libraries that make them: package names by library name.
    """
    from importlib import metadata  # takes 20 ms, and no replay needs it

    versions = {"zsntta": __version__, "python": platform.python_version()}
    for name, distribution in {"numpy": "numpy", **(distributions or {})}.items():
        try:
            versions[name] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            versions[name] = "not known"
    kind = f"{platform.system()} {platform.machine()}"
    facts = {name: value for name, value in facts.items() if value is not None}
    return {"versions": versions, "cpu": _cpu_name(), "platform": kind, **facts}


@functools.cache
def _cpu_name() -> str:
    """The processor's model, as far as the system names it."""
    cpuinfo = ""
    with contextlib.suppress(OSError):  # only Linux has this file
        cpuinfo = Path("/proc/cpuinfo").read_text()
    named = re.search(r"^model name\s*:[ \t]*(.*\S)", cpuinfo, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()
