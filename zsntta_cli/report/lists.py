"""Lists and cards of data sets, feature files and other things, as the tables of results are."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.accuracy import ZeroShotAccuracy
from zsntta_cli.cache.answers import StoredAnswers
from zsntta_cli.cache.folder import Stored, encoders_with
from zsntta_cli.cache.store import Features, row_norms
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.errors import counted, short
from zsntta_cli.report.sheet import Row, Sheet, card, list_sheet

_NAMES_SHOWN = 6  # first and last class names
_ROLES = {"id": "ID", "ood": "OOD", "both": "both", "shift": "shift"}
_IN_WORDS = {"both": "ID or OOD", "shift": "ID under a shift"}
_FEATURES = {
    "name": "Name", "images": "Images", "classes": "Classes", "templates": "Prompt templates",
    "mib": "MiB", "created": "Created",
}  # fmt: skip


def feature_rows(files: Sequence[Stored], answers: Sequence[StoredAnswers] = ()) -> list[Row]:
    """A row for each feature file, unfinished extraction, and file of TPT's answers."""
    rows: list[Row] = []
    for file in files:
        header = file.header
        rows.append({
            "encoder": file.encoder_name, "name": file.name,
            "images": len(header) if header else None,
            "classes": (len(header.class_names) or None) if header else None,
            "templates": list(header.texts) if header else [file.problem],
            "mib": f"{file.size / 2**20:.1f}", "created": header.created[:10] if header else "",
        })  # fmt: skip
    of_answers = [
        {
            "encoder": kept.path.parent.name, "name": f"{kept.name}, answers of TPT",
            "images": kept.images, "classes": None, "templates": [kept.state],
            "mib": f"{kept.size / 2**20:.1f}", "created": kept.created,
        }
        for kept in answers
    ]  # fmt: skip
    return rows + of_answers


def feature_sheets(rows: Sequence[Row]) -> list[Sheet]:
    """A sheet for each encoder."""
    encoders = dict.fromkeys(row["encoder"] for row in rows)
    return [
        list_sheet([row for row in rows if row["encoder"] == name], _FEATURES, name)
        for name in encoders
    ]


def feature_card(
    features: Features,
    answers: Sequence[StoredAnswers] = (),
    shots: Sequence[ZeroShotAccuracy] = (),
) -> Sheet:
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
        "generic text": short(features.generic_source),
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


SETS = {
    "name": "Name", "role": "Role", "images": "Images", "classes": "Classes",
    "on_disk": "On disk", "cached_for": "Cached for",
}  # fmt: skip


def set_rows(entries: Mapping[str, DatasetEntry], data_root: Path, features_dir: Path) -> list[Row]:
    """A row for each known set: role, images, classes, whether on disk, cached for whom."""
    return [
        {
            "name": name,
            "role": _ROLES[entry.role],
            "images": entry.images,
            "classes": entry.classes or None,
            "on_disk": ("yes" if entry.place(data_root) else "no") if entry.layout else "built in",
            "cached_for": encoders_with(features_dir, name, bool(entry.parameters)),
        }
        for name, entry in entries.items()
    ]


def set_card(
    name: str, entry: DatasetEntry, data_root: Path, features_dir: Path, advice: Mapping[str, str]
) -> Sheet:
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
