"""The card of a place (README.md): its content in words and tables, made from the index."""

import json
from collections.abc import Iterator

from zsntta_cli.cache.published import judged
from zsntta_cli.datasets.names import DATASET
from zsntta_cli.sharing.index import Index, IndexEntry

_TAGS = ("zsntta", "clip", "image-features", "out-of-distribution-detection")
_HEAD = "| Set | Images | Classes | Prompts | Zero-shot accuracy | Licence of the images | Digest |"
_DIGITS = 12


def card(address: str, index: Index) -> str:
    """Make the card as Markdown, with the metadata of a hub before it."""
    lines = [
        "---",
        "license: other",
        "license_name: see-each-set",
        f"tags: {json.dumps(_TAGS)}",
        "pretty_name: Features for zsntta",
        "---",
        "",
        "# Features, not images",
        "",
        "Image features and text features of CLIP models, as `zsntta extract` makes them. They "
        "hold no images; what they were made from has terms of its own, which are named below.",
        "",
        "```sh",
        f"zsntta cache list {address}",
        f"zsntta cache pull {address}",
        "```",
        "",
    ]
    for encoder in index.encoders:
        lines += [*_encoder(index, encoder), ""]
    return "\n".join(lines)


def _encoder(index: Index, encoder: str) -> Iterator[str]:
    entries = {name: index.files[f"{encoder}/{name}.h5"] for name in index.names(encoder)}
    identity = next(iter(entries.values())).header.identity
    yield f"## {_text(encoder)}"
    yield ""
    for key in ("model", "pretrained", "weights_sha256", "precision", "image_size"):
        if identity.get(key) is not None:
            yield f"- {key.replace('_', ' ')}: {_text(str(identity[key]))}"
    yield f"- logit scale: {_text(str(identity.get('logit_scale')))}"
    yield ""
    yield _HEAD
    yield "|---|---:|---:|---|---|---|---|"
    for name, entry in entries.items():
        yield _row(name, entry)


def _row(name: str, entry: IndexEntry) -> str:
    header = entry.header
    prompts = "<br>".join(map(_text, header.templates)) if header.kind == DATASET else ""
    every = judged(header.identity, name, entry.shots, header.classes)
    accuracies = "<br>".join(_text(j.line) for j in every)
    cells = (
        _text(name), f"{header.images:,}" if header.images else "",
        f"{header.classes:,}" if header.classes else "", prompts, accuracies,
        _text(entry.licence), f"`{header.digest[:_DIGITS]}`",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _text(value: str) -> str:
    """Escape a text so that a cell of Markdown shows it as it is."""
    shown = "".join(c if c.isprintable() else " " for c in value)
    return "".join(f"\\{c}" if c in "\\|`*_<>[]" else c for c in shown)
