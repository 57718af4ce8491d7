"""Lists and cards of methods, data sets and feature files, drawn like the tables of results.

Everything about a method comes from its class: facts, the fields of its settings, its docstring.
"""

import ast
import contextlib
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zsntta_cli.cache import store
from zsntta_cli.cache.accuracy import ZeroShotAccuracy
from zsntta_cli.cache.folder import ANSWERS, PARTS, ROWS, encoder_names, entries, is_feature_file
from zsntta_cli.cache.store import Features, row_norms
from zsntta_cli.datasets.catalogue import DatasetEntry
from zsntta_cli.detection.inputs import DETECTORS
from zsntta_cli.errors import StoreError, counted, first_line, short
from zsntta_cli.methods import METHODS, NO_TEXT, WORDS, Live, Pair, live, own_code
from zsntta_cli.report.citations import Reference, find_reference
from zsntta_cli.report.sheet import Row, Sheet, card, list_sheet
from zsntta_cli.settings.options import option_name, value_type
from zsntta_cli.simulation.runs import PRESETS, preset_values

if TYPE_CHECKING:
    from zsntta_cli.simulation.checks import CheckResult

# Feature files.

_NAMES_SHOWN = 6  # first and last class names
_FEATURES = {
    "name": "Name", "images": "Images", "classes": "Classes", "templates": "Prompt templates",
    "mib": "MiB", "created": "Created",
}  # fmt: skip


def feature_rows(root: Path, encoder: str | None) -> list[Row]:
    """A row for each feature file, unfinished extraction, set in parts and file of answers."""
    rows: list[Row] = []
    for path in entries(root, encoder):
        name, state, header, files = path.stem, "", None, [path]
        if is_feature_file(path):
            try:
                header = store.read(path, rows=False)
            except StoreError as error:
                state = f"broken: {first_line(error.__cause__ or error)}"
        elif path.suffix == ROWS and path.name.startswith("."):
            name, state = path.stem[1:], "unfinished"
        elif path.suffix == ANSWERS and not path.name.startswith("."):
            name = f"{Path(path.stem).stem}, TPT's answers"
        elif path.suffix == PARTS and not path.with_suffix(".h5").exists():
            files = [*path.glob("[0-9]*.h5")]
            state = f"{len(files)} parts, not joined"
        else:
            continue
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
            rows.append({
                "encoder": path.parent.name, "name": name,
                "images": len(header) if header else None,
                "classes": (len(header.class_names) or None) if header else None,
                "templates": list(header.texts) if header else [state],
                "mib": f"{sum(file.stat().st_size for file in files) / 2**20:.1f}",
                "created": header.created[:10] if header else "",
            })  # fmt: skip
    return sorted(rows, key=itemgetter("encoder", "name"))


def feature_sheets(rows: Sequence[Row]) -> list[Sheet]:
    """A sheet for each encoder."""
    names = dict.fromkeys(row["encoder"] for row in rows)
    return [list_sheet([r for r in rows if r["encoder"] == n], _FEATURES, n) for n in names]


def feature_facts(features: Features, shots: Sequence[ZeroShotAccuracy]) -> dict[str, str]:
    """All facts about one feature file, and its accuracies."""
    norms, names = row_norms(features.image_features), features.class_names
    of_norms = ""
    if len(norms):
        of_norms = f"{norms.mean():.4g} on average, {norms.min():.4g} to {norms.max():.4g}"
        of_norms += " (normalised)" if features.normalized else " (raw)"
    counts = np.bincount(features.labels[features.labels >= 0])
    counts, unlabelled = counts[counts > 0], int((features.labels < 0).sum())
    labels = "none"
    if len(counts):
        several = f" to {counts.max()}" * bool(counts.max() > counts.min())
        labels = f"{len(counts)} classes with {counts.min()}{several} images"
        labels += f", {counted(unlabelled, 'image')} without a label" * bool(unlabelled)
    half = _NAMES_SHOWN // 2
    few = names if len(names) <= _NAMES_SHOWN else (*names[:half], "…", *names[-half:])
    facts = {
        "kind": features.kind,
        "images": f"{len(features):,} × {features.dim} {features.image_features.dtype}",
        "norms": of_norms,
        "labels": labels,
        "class names": f"{len(names)}: {', '.join(few)}" if names else "none",
        "prompt templates": "\n".join(features.texts) or "none",
        **{f"under '{s.template}'": "; ".join(filter(None, (s.line, s.warning))) for s in shots},
        "generic text": short(features.generic_source),
        **{f"encoder: {key}": str(value) for key, value in features.identity.items()},
        **{f"source: {key}": str(value) for key, value in features.source.items()},
        **{f"made with: {key}": str(value) for key, value in features.machine.items()},
        "created": features.created,
        "digest": features.digest,
    }
    return {fact: value for fact, value in facts.items() if value}


# Data sets.

_ROLES = {"id": "ID", "ood": "OOD", "both": "both", "shift": "shift"}
_IN_WORDS = {"both": "ID or OOD", "shift": "ID under a shift"}
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
            "cached_for": encoder_names(features_dir, name),
        }
        for name, entry in entries.items()
    ]


def set_card(
    name: str, entry: DatasetEntry, data_root: Path, features_dir: Path, advice: Mapping[str, str]
) -> Sheet:
    """All facts about a set, with advice: what is on disk, and what to type."""
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
        "cached for": "\n".join(encoder_names(features_dir, name)) or "no encoder",
        **advice,
    }
    return card(name, facts)


# Methods.

_JOINED = re.compile(r"(?<!\n)\n(?!\n|\d\. |- | )")  # lines of a paragraph
_NEEDS = {
    WORDS: "words: zsntta extract --words",
    NO_TEXT: "the features of its 'no' text encoder: --set no-text=FILE.npy",
}
_PAIRS = "A classifier can follow any cached method that decides: adand+tda, oodd+oga …"
_HEADS = {"method": "Method", "about": "What it is", "runs": "Runs; needs"}
_SETTING_HEADS = {"setting": "Setting", "default": "Default", "range": "Range", "about": "What"}
_CHECK_HEADS = {
    "check": "Check", "outcome": "Result", "evidence": "On what, or what differs first",
}  # fmt: skip


def method_rows(names: Iterable[str]) -> list[Row]:
    """A row for each method: name, what it is, how it runs, what it needs, its paper."""
    rows = []
    for name in names:
        method = METHODS[name]
        about = (_parts(method)[-1].__doc__ or "").strip().partition("\n")[0]
        if isinstance(method, Pair):
            decides = next((n for n, m in METHODS.items() if m is method.detector), "a detector")
            about = f"{about.removesuffix('.')}; {decides} decides on noise."
        needs = "pixels and the encoder" if method.live else _NEEDS.get(method.needs, "")
        kinds = "live" if method.live else "cached", "offline" if method.offline else "online"
        rows.append({
            "method": name, "about": about, "runs": ", ".join(kinds),
            "needs": needs.partition(":")[0],
            "paper": "; ".join(paper.short for paper in _papers(method)),
        })  # fmt: skip
    return rows


def method_sheet(rows: Sequence[Row]) -> Sheet:
    """The rows of methods as a sheet of texts."""
    lines = [{**row, "runs": "; ".join(filter(None, (row["runs"], row["needs"])))} for row in rows]
    sheet = list_sheet(lines, _HEADS)
    sheet.notes = [_PAIRS]
    return sheet


def method_sheets(name: str) -> list[Sheet]:
    """All facts about a method, then its settings; facts that do not apply are left out."""
    method, [row], settings = METHODS[name], method_rows([name]), setting_rows(name)
    options, fields = method.settings(), method.fields()
    first, together = options.warm_up, options.at_once
    warm_up = f"{first:,} items, decided by zs-clip ({options.warm_up_by})"
    delay = "none: each item is decided before the next arrives"
    if method.offline:
        delay = "the whole stream: it decides when all items are there"
    elif together > 1:
        delay = f"up to {together - 1:,} items: {together:,} are decided together"
    presets = []
    for preset in PRESETS:
        values = {n: v for n, v in preset_values(preset, name).items() if n in fields}
        presets += [f"{preset}: {_values(values)}"] if values else []
    single = ": zsntta detect, Detector" * (name in DETECTORS or bool(own_code(name)))
    facts = {
        "about": row["about"],
        "runs": row["runs"],
        "needs": _NEEDS.get(method.needs) or row["needs"] or "only features and class names",
        "paper": "\n".join(f"{paper.title} ({paper.short})" for paper in _papers(method)),
        "decides": "yes" if method.decides else "no: it gives a score, for --report ood",
        "warm-up": warm_up if first else "none: its own rule decides from the first item",
        "delay": delay,
        "by default": _values(method.defaults),
        "on ImageNet's family": _values(method.imagenet),
        "presets": "\n".join(presets),
        "in pieces": f"it decides as items arrive{single}" * method.online,
        "cost": method.cost,
        "how": _JOINED.sub(" ", "\n\n".join(map(_how, _parts(method)))),
    }
    sheets = [card(name, facts)]
    return [*sheets, list_sheet(settings, _SETTING_HEADS, "Settings")] if settings else sheets


def setting_rows(name: str) -> list[Row]:
    """A row for each setting of a method: its default, its range and its help text."""
    method, rows = METHODS[name], []
    for declared in method.fields().values():
        facts, (kind, _) = declared.metadata, value_type(declared)
        within = facts.get("within") or {bool: "true, false", str: "text"}.get(kind, "")
        value = method.defaults.get(declared.name, declared.default)
        rows.append({
            "setting": option_name(declared), "default": facts.get("shown") or _text(value),
            "range": ", ".join(facts.get("choices") or [str(within)]),
            "about": facts.get("about", ""),
        })  # fmt: skip
    return rows


def check_sheet(name: str, results: "Sequence[CheckResult]") -> Sheet:
    """The result of each check of a method, and below it whether all passed."""
    sheet = list_sheet([vars(result) for result in results], _CHECK_HEADS, name)
    counts = Counter(result.outcome for result in results)
    sheet.notes = [f"{name}: {', '.join(f'{n} {outcome}' for outcome, n in counts.items())}."]
    return sheet


def _parts(method: Any) -> list[Any]:
    """The class of a method; of a pair those of its detector and its classifier."""
    return [method.detector, method.classifier] if isinstance(method, Pair) else [method]


def _papers(method: Any) -> list[Reference]:
    """The articles of a method itself: for a classifier behind ZS-CLIP only the classifier's."""
    is_alone = isinstance(method, Pair) and method.detector is METHODS["zs-clip"]
    cites = dict.fromkeys((method.classifier if is_alone else method).cites)
    return [paper for paper in map(find_reference, cites) if paper]


def _how(line: Any) -> str:
    """The docstring of the module of a method; that of a live one is read, as it imports torch."""
    if not (issubclass(line, Live) and line.place):
        return inspect.getdoc(sys.modules[line.__module__]) or ""
    file = Path(live.__file__).with_name(f"{line.place.partition(':')[0]}.py")
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', '-')} {_text(value)}" for name, value in values.items())


def _text(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text.lower() if isinstance(value, bool) else text
