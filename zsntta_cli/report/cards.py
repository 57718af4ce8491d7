"""Cards and lists of data sets and feature files, drawn for the terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from zsntta_cli.cache.accuracy import ZeroShotAccuracy
from zsntta_cli.cache.answers import StoredAnswers
from zsntta_cli.cache.folder import Stored, encoders_with
from zsntta_cli.cache.soundness import row_norms
from zsntta_cli.cache.store import Features
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.errors import counted, printable

_NAMES_SHOWN = 6  # first and last class names
_ROLES = {"id": "ID", "ood": "OOD", "both": "both", "shift": "shift"}
_IN_WORDS = {"both": "ID or OOD", "shift": "ID under a shift"}


def card(title: str, facts: Mapping[str, str]) -> Table:
    """Draw one fact per line; empty facts are left out."""
    table = Table(title=_text(title), show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value:
            table.add_row(_text(name), _text(value))
    return table


def _text(value: str) -> Text:
    """A text from a file without markup: rich would turn ':fog:' into an emoji."""
    return Text(printable(value, kept="\n"))


def feature_lists(files: Sequence[Stored], answers: Sequence[StoredAnswers] = ()) -> list[Table]:
    """Feature files, unfinished extractions and TPT's answers: a table for each encoder."""
    tables: dict[str, Table] = {}
    for file in files:
        if file.encoder_name not in tables:
            tables[file.encoder_name] = _feature_list(file.encoder_name)
        tables[file.encoder_name].add_row(*map(_text, _feature_row(file)))
    for kept in answers:
        name = kept.path.parent.name
        table = tables.setdefault(name, _feature_list(name))
        table.add_row(*map(_text, _answers_row(kept)))
    return list(tables.values())


def _feature_list(encoder_name: str) -> Table:
    table = Table(title=_text(encoder_name), title_justify="left")
    table.add_column("Name", overflow="fold")
    table.add_column("Images", justify="right", no_wrap=True)
    table.add_column("Classes", justify="right", no_wrap=True)
    table.add_column("Prompt templates", overflow="fold")
    table.add_column("MiB", justify="right", no_wrap=True)
    table.add_column("Created", no_wrap=True)
    return table


def _feature_row(file: Stored) -> list[str]:
    header, size = file.header, f"{file.size / 2**20:,.1f}"
    if header is None:
        return [file.name, "", "", file.problem, size, ""]
    classes, templates = str(len(header.class_names) or ""), "\n".join(header.texts)
    return [file.name, f"{len(header):,}", classes, templates, size, header.created[:10]]


def _answers_row(kept: StoredAnswers) -> list[str]:
    created = kept.header.get("created", "")[:10]
    images = f"{kept.header['images']:,}" if kept.header else ""
    size = f"{kept.size / 2**20:,.1f}"
    return [f"{kept.name}, answers of TPT", images, "", kept.state, size, created]


def feature_card(
    features: Features,
    answers: Sequence[StoredAnswers] = (),
    shots: Sequence[ZeroShotAccuracy] = (),
) -> Table:
    """All facts about one feature file, its accuracies, and TPT's answers on it."""
    norms = row_norms(features.image_features)
    facts = {
        "kind": features.kind,
        "images": f"{len(features):,} × {features.dim} {features.image_features.dtype}",
        "norms": f"{norms.mean():.4g} on average, {norms.min():.4g} to {norms.max():.4g}"
        + (" (normalised)" if features.normalized else " (raw)")
        if len(norms)
        else "",
        "labels": _label_counts(features.labels),
        "class names": _abridged(features.class_names),
        "prompt templates": "\n".join(features.texts) or "none",
        **{f"under '{s.template}'": "; ".join(filter(None, (s.line, s.warning))) for s in shots},
        "generic text": features.generic_source,
        **{f"encoder: {key}": str(value) for key, value in features.identity.items()},
        **{f"source: {key}": str(value) for key, value in features.source.items()},
        **{f"made with: {key}": str(value) for key, value in features.machine.items()},
        "created": features.created,
        "digest": features.digest,
        **{f"answers: {kept.path.name}": kept.state for kept in answers},
    }
    return card(str(features.path), facts)


def _abridged(names: tuple[str, ...]) -> str:
    half = _NAMES_SHOWN // 2
    shortened = names if len(names) <= _NAMES_SHOWN else (*names[:half], "…", *names[-half:])
    return f"{len(names)}: {', '.join(shortened)}" if names else "none"


def _label_counts(labels: NDArray[np.int32]) -> str:
    """How many images the classes have, how many classes that is, and the unlabelled images."""
    counts = np.bincount(labels[labels >= 0])
    if not counts.any():
        return "none"
    present, unlabelled = counts[counts > 0], int((labels < 0).sum())
    fewest, most = int(present.min()), int(present.max())
    text = f"{len(present)} classes with {fewest}{f' to {most}' * (most > fewest)} images"
    return text + f", {counted(unlabelled, 'image')} without a label" * bool(unlabelled)


def set_list(entries: Mapping[str, DatasetEntry], data_root: Path, features_dir: Path) -> Table:
    """All known sets: role, images, classes, whether on disk, cached for which encoders."""
    table = Table()
    table.add_column("Name", no_wrap=True)
    table.add_column("Role", no_wrap=True)
    table.add_column("Images", justify="right", no_wrap=True)
    table.add_column("Classes", justify="right", no_wrap=True)
    table.add_column("On disk")
    table.add_column("Cached for", overflow="fold")
    for name, entry in entries.items():
        row = (
            name, _ROLES[entry.role], f"{entry.images:,}",
            f"{entry.classes:,}" if entry.classes else "",
            ("yes" if entry.place(data_root) else "no") if entry.layout else "built in",
            "\n".join(encoders_with(features_dir, name, bool(entry.parameters))),
        )  # fmt: skip
        table.add_row(*map(_text, row))
    return table


def set_card(
    name: str, entry: DatasetEntry, data_root: Path, features_dir: Path, advice: Mapping[str, str]
) -> Table:
    """All facts about a set, with advice: what lies there, and what to type."""
    facts = {
        "role": _IN_WORDS.get(entry.role, _ROLES[entry.role]),
        "images": f"{entry.images:,}",
        "classes": f"{entry.classes:,}" if entry.classes else "none",
        "split": entry.split,
        "prompt": entry.prompt if entry.role != "ood" else "",
        "parameters": entry.parameters,
        "OOD partners": ", ".join(entry.partners),
        "more partners": ", ".join(entry.extra_partners),
        "home": entry.home,
        "download": f"{entry.megabytes:,} MB" if entry.megabytes else "",
        "licence": entry.licence,
        "layout": f"{data_root}/{entry.layout}" * bool(entry.layout),
        "or packed": "\n".join(f"{data_root}/{file}" for file in entry.packed),
        "cached for": "\n".join(encoders_with(features_dir, name, bool(entry.parameters)))
        or "no encoder",
        **advice,
    }
    return card(name, facts)
