"""A set's name, parsed once: `cifar10-c:fog:1`, `mine=PATH`, `noise-gaussian`, `words-nouns`.

Sets from the hub are `mine=hf:ORG/NAME:SPLIT` and `clip-benchmark/wds_NAME`, which needs no name.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zsntta_cli.errors import DatasetError, SettingsError, short

DATASET, NOISE, WORDS = "dataset", "noise", "words"  # kinds of sets, and of feature files
# Keys of what a feature file records of its images: those skipped as broken, lists, and the hub.
SKIPPED = "skipped"
BESIDE = LISTS, HUB = "lists", "hub"
IMAGENET = "imagenet"
# The released code's list: I, K, A, R, V. Methods have other defaults there (methods/__init__.py).
# ImageNet-C is not on it, so it gets the defaults of all other sets.
_IMAGENET_SETS = ("imagenet", "imagenet-sketch", "imagenet-a", "imagenet-v2", "imagenet-r")

HF = "hf:"  # the prefix of what the library `datasets` loads
CLIP_BENCHMARK, WEB = "clip-benchmark", "wds_"  # web data sets on the hub: an owner, and a prefix
_REPOSITORY = rf"([\w-][\w.-]*/({WEB}\w[\w.-]*))"  # of a web data set, of any owner
# CLIP_benchmark's sets with all images and classes of a known set. Of Cars, Pets and others it has
# only the test splits.
_SAME_SETS = {
    "vtab-cifar10": "cifar10", "vtab-cifar100": "cifar100", "vtab-svhn": "svhn",
    "food101": "food101", "imagenet1k": "imagenet", "imagenet_sketch": "imagenet-sketch",
    "imagenetv2": "imagenet-v2", "imagenet-a": "imagenet-a", "imagenet-r": "imagenet-r",
    "imagenet-o": "imagenet-o",
}  # fmt: skip
_LABEL = "?label="  # after a path: the source of the labels of shards and lists
_LONGEST = 200  # bytes of a name: file systems take 255 with all that is added
_HALVES = r"\ud800-\udc7f\udd00-\udfff"  # half characters: JSON can have them, file names cannot


@dataclass(frozen=True)
class SetName:
    """A set's parsed name."""

    base: str  # "cifar10-c"
    parameters: str = ""  # "fog:1"
    path: Path | None = None  # of NAME=PATH
    hub: str = ""  # "hf:ORG/NAME:SPLIT", or "clip-benchmark/wds_NAME"
    label: str = ""  # the column, field of JSON or ending of files that has the labels

    @classmethod
    def parse(cls, text: "str | SetName") -> "SetName":
        """Parse a name as typed or as in a feature file; a parsed one is returned unchanged."""
        if isinstance(text, SetName):
            return text
        if web := re.fullmatch(_REPOSITORY, text, re.ASCII):
            original = web[1].removeprefix(f"{CLIP_BENCHMARK}/{WEB}")
            return cls(_SAME_SETS.get(original, web[2]), hub=web[1])
        name, _, place = text.partition("=")
        base, _, parameters = name.partition(":")
        if place.startswith(HF):
            address = os.path.expanduser(re.sub(r"^hf:(//(datasets/)?)?", "", place))
            if address.startswith(("/", "./", "../")):  # a folder on this machine
                address = os.path.abspath(address)
            return cls(base, parameters, hub=HF + address)
        if not place:  # "mine=" is not the current folder
            return cls(base, parameters)
        place, _, label = place.partition(_LABEL)
        return cls(base, parameters, Path(os.path.expanduser(place)), label=label)

    def __str__(self) -> str:
        return self.base + f":{self.parameters}" * bool(self.parameters)

    @property
    def says_where(self) -> bool:
        """Whether it says where the images are; otherwise the catalogue does."""
        return self.path is not None or bool(self.hub)

    @property
    def kind(self) -> str:
        """What the set holds: DATASET, NOISE or WORDS."""
        kind, dash, _ = self.base.partition("-")
        return kind if dash and kind in (NOISE, WORDS) else DATASET

    @property
    def bare(self) -> str:
        """The name of the noise type or the word list; for a data set the whole name."""
        return str(self) if self.kind == DATASET else str(self).removeprefix(f"{self.kind}-")

    @property
    def family(self) -> str:
        """The family: IMAGENET for five sets; empty for corrupted and own sets."""
        is_own = self.path is not None or bool(self.parameters)
        return IMAGENET if self.base in _IMAGENET_SETS and not is_own else ""


def check_plain(what: str, name: object) -> None:
    """Refuse a name that cannot be a file name in its folder, wherever it comes from.

    Raises:
        SettingsError: it is not a text, is too long, leads to another folder, or would be hidden.
    """
    is_plain = (
        isinstance(name, str)
        and not re.search(rf"^\.|^$|[/\x00-\x1f\x7f-\x9f{_HALVES}]", name)
        and len(name.encode(errors="surrogateescape")) <= _LONGEST
    )
    if not is_plain:
        raise SettingsError(f"{what} is {short(ascii(name))}, must be a valid file name.")


def noise_name(noise_type: str) -> str:
    """The name of the pool of one type of noise images."""
    return f"{NOISE}-{noise_type}"


def words_name(words: str) -> str:
    """The name of the features of a word list."""
    return f"{WORDS}-{words}"


def with_label(specs: Sequence[str], label: str) -> tuple[str, ...]:
    """Add the source of the labels to those sets, as typed, that name their files.

    Raises:
        DatasetError: none of them names its files.
    """
    with_files = [spec for spec in specs if SetName.parse(spec).path]
    if not with_files:
        raise DatasetError("--label is for your own shards and lists: --dataset NAME=PATH.tar.")
    return tuple(f"{spec}{_LABEL}{label}" if spec in with_files else spec for spec in specs)
