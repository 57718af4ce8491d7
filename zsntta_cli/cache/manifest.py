"""The manifest of an exported file: JSON beside or within its arrays, in every form of export.

Whoever writes a file can write any manifest. Its digests show that the arrays are still those that
were exported; what it says of the encoder remains a claim. A feature file that is made of an export
says so in its `source` (EXPORTED).
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import __version__
from zsntta_cli.cache.features import LOCAL_DIR, FeatureSet, Text, without_place
from zsntta_cli.cache.soundness import faults_of_texts, faults_of_words, is_scale
from zsntta_cli.datasets.images import numbered
from zsntta_cli.errors import StoreError

KEY = "zsntta"  # the manifest's key in a file of arrays
FILE = f"{KEY}.json"  # the manifest's file in a folder
EXPORTED = "as_exported"  # a source with this key: the identity is an exported file's claim
FORMAT = 1
TEXT_KEY = "text_features"


@dataclass(frozen=True)
class TextEntry:
    """The text features of one template, and their key in the file."""

    key: str
    template: str
    digest: str
    logit_scale: float | None = None


@dataclass(frozen=True)
class Manifest:
    """The description of an exported file, beside its arrays."""

    kind: str
    name: str
    encoder_name: str  # of its folder
    encoder: dict[str, Any]  # identity
    source: dict[str, Any]
    machine: dict[str, Any]
    created: str
    normalized: bool
    digest: str  # of features and labels, as in the feature file
    names_digest: str  # of class names and sample ids
    texts: tuple[TextEntry, ...]
    files: tuple[str, ...] = ()  # of a folder, all but FILE
    version: str = __version__
    format: int = FORMAT

    def to_json(self) -> str:
        """The manifest as the text that is written."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def parse(cls, text: str) -> "Manifest":
        """Parse the manifest of a file that may come from a stranger.

        Raises:
            ValueError: the text is no manifest, or one of a newer version.
        """
        values = json.loads(text)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError(f"its '{KEY}' is of no format that is known here, must be {FORMAT}")
        for key, kind in _KINDS.items():
            if not isinstance(values.get(key), kind):
                raise ValueError(f"'{key}' in its '{KEY}' is no {kind.__name__}")
        texts = tuple(map(_entry, values["texts"]))
        files = tuple(file for file in values["files"] if isinstance(file, str))
        return cls(**{key: values[key] for key in _KINDS} | {"texts": texts, "files": files})

    def check(self, where: Path) -> None:
        """Refuse values that no feature file may have: StoreError."""
        faults = [*faults_of_words(self.kind, self.encoder, self.source)]
        texts = [self.created, *(entry.template for entry in self.texts)]
        faults += [f"{text!a} is no text" for text in texts if not is_storable(text)]
        if faults:
            raise StoreError(f"{where} cannot be used: {'; '.join(faults)}.")

    def read_texts(
        self, content: Mapping[str, NDArray[Any] | None], shape: tuple[int, int], where: Path
    ) -> tuple[Text, ...]:
        """Read the text features (C, D) of all templates, as they were exported.

        Raises:
            StoreError: text features are missing, or were altered.
        """
        return tuple(_text(entry, content.get(entry.key), shape, where) for entry in self.texts)


_KINDS: dict[str, type] = {
    "kind": str, "name": str, "encoder_name": str, "encoder": dict, "source": dict, "machine": dict,
    "created": str, "normalized": bool, "digest": str, "names_digest": str, "texts": list,
    "files": list, "version": str,
}  # fmt: skip


def _entry(values: Any) -> TextEntry:
    key, template, digest = (values.get(name) for name in ("key", "template", "digest"))
    if not all(isinstance(text, str) for text in (key, template, digest)):
        raise ValueError(f"a template in its '{KEY}' lacks its name or digest")
    scale = values.get("logit_scale")
    if scale is not None and not is_scale(scale):
        raise ValueError(f"the logit scale of a template in its '{KEY}' is {scale}")
    return TextEntry(key, template, digest, scale)


def _text(
    entry: TextEntry, array: NDArray[Any] | None, shape: tuple[int, int], where: Path
) -> Text:
    if array is None or array.dtype != np.float32 or array.shape != shape:
        raise StoreError(f"{where}: '{entry.key}' is missing or of another shape.")
    if text_digest(array) != entry.digest:
        raise StoreError(f"{where}: '{entry.key}' was altered: its digest is another.")
    if faults := [*faults_of_texts(entry.template, array)]:
        raise StoreError(f"{where} cannot be used: {'; '.join(faults)}.")
    return Text(entry.template, np.ascontiguousarray(array), entry.logit_scale)


def is_storable(text: str) -> bool:
    """Whether a feature file can hold a text: JSON can have half of a surrogate pair."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def text_entries(texts: Iterable[Text]) -> tuple[TextEntry, ...]:
    """Give text features of templates their keys; the first get the usual key."""
    return tuple(
        TextEntry(f"{TEXT_KEY}_{i}" if i else TEXT_KEY, text.template, text_digest(text.features),
                  text.logit_scale)
        for i, text in enumerate(texts)
    )  # fmt: skip


def text_digest(array: NDArray[Any]) -> str:
    """The digest of text features, as a feature file has it."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def names_digest(class_names: Sequence[str], sample_ids: Sequence[str]) -> str:
    """The digest of class names and sample ids."""
    return hashlib.sha256(json.dumps([[*class_names], [*sample_ids]]).encode()).hexdigest()


def rows_digest(blocks: Iterable[NDArray[Any]], labels: NDArray[np.int32]) -> str:
    """The digest of image features and labels, as a feature file has it."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(np.ascontiguousarray(block).data)
    digest.update(np.ascontiguousarray(labels).data)
    return digest.hexdigest()


def manifest_of(
    features: FeatureSet, texts: Sequence[Text], sample_ids: Sequence[str], **values: Any
) -> Manifest:
    """Make the manifest of a feature file with some of its text features.

    `values` replace what the feature file says.
    """
    recorded: dict[str, Any] = {
        "kind": features.kind, "name": features.name, "encoder_name": features.path.parent.name,
        "encoder": features.identity, "source": features.source, "machine": features.machine,
        "created": features.created, "normalized": features.normalized, "digest": features.digest,
        "names_digest": names_digest(features.class_names, sample_ids),
        "texts": text_entries(texts),
    }  # fmt: skip
    return Manifest(**recorded | values)


def public_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An encoder's identity without the folders of this machine."""
    prefixes = {"model": LOCAL_DIR, "pretrained": ""}
    names = {
        key: without_place(identity[key], prefixes[key]) for key in identity if key in prefixes
    }
    return {**identity, **names}


def public_source(source: Mapping[str, Any], without_ids: bool) -> dict[str, Any]:
    """A source as it is published; without ids, it only says how many images were left out."""
    skipped = source.get("skipped")
    hidden = {"skipped": numbered(len(skipped))} if isinstance(skipped, list) else {}
    return {**source, **(hidden if without_ids else {})}
