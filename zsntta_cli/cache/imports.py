"""Imports: features made elsewhere are read, checked and written as an extraction writes them.

The encoder of an import is only known by the name that the user gives it, its dims and its logit
scale. An exported file and a feature file also say what their encoder is, and that is believed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import __version__, datasets
from zsntta_cli.cache import hdf5, import_readers
from zsntta_cli.cache.description import Description, read_description, stored_names
from zsntta_cli.cache.features import DATASET, IMPORTED, NOISE, SAME_ENCODER, Text, difference
from zsntta_cli.cache.folder import feature_path, lock_path, stored
from zsntta_cli.cache.import_checks import (
    Checked,
    ImportedRows,
    check_labels,
    check_names,
    check_text,
    no_labels,
    numbers_of_names,
)
from zsntta_cli.cache.soundness import LARGEST_SCALE, UNIT_TOLERANCE, is_bias, is_scale
from zsntta_cli.datasets.catalogue import SEVERITY
from zsntta_cli.datasets.images import numbered
from zsntta_cli.datasets.names import OWN_NAMES, SetName, check_plain, is_own_name, noise_name
from zsntta_cli.datasets.readers import corruptions
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, counted, short
from zsntta_cli.files import lock_at, writing
from zsntta_cli.settings import NOISE_TYPES
from zsntta_cli.settings.prompts import prompt_template

DEFAULT_ENCODER = "imported"
DEFAULT_LOGIT_SCALE = 100.0  # CLIP's own at the end of its training
_FAR = 100.0  # times the median, or below its hundredth: no encoder gives such norms
_POOLS = tuple(map(noise_name, NOISE_TYPES))

Contents = Mapping[Path, import_readers.Content]


@dataclass(frozen=True)
class ImportPlan:
    """The files to import, and the set and encoder that they are imported as."""

    name: str
    features: Path
    labels: Path | None = None
    class_names: Path | None = None
    text: Path | None = None
    encoder: str = DEFAULT_ENCODER
    logit_scale: float | None = None  # already exponentiated; None: an export's own, or CLIP's
    normalized: bool | None = None  # None: the norms decide
    prompt: str | None = None  # of the text features; None: the set's default
    overwrite: bool = False
    logit_bias: float | None = None  # of a sigmoid model
    as_is: bool = False  # rows that are far from the others are taken

    def __post_init__(self) -> None:
        _check_parameters(self.name)
        base = SetName.parse(self.name).base
        for what, value in (("name", base), ("encoder", self.encoder)):
            if not is_own_name(value):
                raise SettingsError(f"{what} is '{short(value)}', must be {OWN_NAMES}.")
        if self.logit_scale is not None and not is_scale(self.logit_scale):
            raise SettingsError(
                f"logit-scale is {self.logit_scale}, must be above 0 and at most "
                f"{LARGEST_SCALE:g}: 100 for most CLIP models."
            )
        if self.logit_bias is not None and not is_bias(self.logit_bias):
            raise SettingsError(f"logit-bias is {self.logit_bias}, must be a number: about -13.")
        pools = ", ".join(_POOLS)
        if SetName.parse(self.name).kind != DATASET and not self.is_noise:
            raise SettingsError(f"name is '{self.name}', must be a data set's or one of: {pools}.")
        if self.is_noise and (self.labels or self.class_names or self.text):
            raise SettingsError(f"'{self.name}' is a noise pool: it has neither labels nor text.")

    @property
    def is_noise(self) -> bool:
        """Whether the set is a noise pool."""
        return self.name in _POOLS

    @property
    def template(self) -> str:
        """The prompt template that the text features are filed under."""
        return prompt_template(self.prompt or datasets.default_prompt(self.name))

    def identity(self, description: Description | None = None) -> dict[str, Any]:
        """The encoder's identity, as the file describes it or with the keys of an extraction's."""
        if description is not None:
            scales = {"logit_scale": self.logit_scale, "logit_bias": self.logit_bias}
            return {**description.encoder, **{k: v for k, v in scales.items() if v is not None}}
        unknown = ("weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing")
        scale, bias = self.logit_scale, self.logit_bias
        sigmoid = {} if bias is None else {"loss": "sigmoid", "logit_bias": bias}
        return {
            "model": self.encoder, "pretrained": IMPORTED, **dict.fromkeys(unknown),
            "logit_scale": DEFAULT_LOGIT_SCALE if scale is None else scale,
            "versions": {"zsntta": __version__}, **sigmoid,
        }  # fmt: skip


def _check_parameters(name: str) -> None:
    """Refuse `NAME:…` as an extraction does, unless the set has such parameters."""
    if ":" not in name:
        return
    try:
        if datasets.known(name).parameters == SEVERITY:
            corruptions.parameters(name)
    except DatasetError as error:
        raise SettingsError(str(error)) from error
    check_plain("name", name)


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    path: Path
    checked: Checked
    written: bool  # False: the file had all of it already


def import_features(plan: ImportPlan, root: Path) -> Imported:
    """Check features made elsewhere and write their feature file.

    Raises:
        StoreError: a file is unreadable, arrays do not fit each other, or the feature file exists
            and holds other features.
    """
    checked = read_checked(plan)
    path = feature_path(root, plan.encoder, plan.name)
    if checked.description is None:
        plan = _with_scale_of_folder(plan, root, checked.notes)
    _check_neighbours(plan, checked, root, path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_at(lock_path(path))  # an extraction takes the same lock
        lock.acquire()
    try:
        return Imported(path, checked, _write(path, plan, checked))
    finally:
        lock.release()


def _with_scale_of_folder(plan: ImportPlan, root: Path, notes: list[str]) -> ImportPlan:
    """The plan with the scale of the other sets in its folder, where it names none."""
    if plan.logit_scale is not None or plan.logit_bias is not None:
        return plan
    for other in stored(root, plan.encoder):
        identity = other.header.identity if other.header else {}
        if identity.get("pretrained") == IMPORTED and identity.get("model") == plan.encoder:
            scale, bias = identity["logit_scale"], identity.get("logit_bias")
            if scale != DEFAULT_LOGIT_SCALE or bias is not None:
                notes.append(f"logit scale {scale:g}, as {other.path} has it")
            return replace(plan, logit_scale=scale, logit_bias=bias)
    return plan


def read_checked(plan: ImportPlan) -> Checked:
    """Read all files of a plan and check that they fit each other."""
    rows, contents = _read_all(plan)
    content = contents[plan.features]
    described = read_description(content, plan.features)
    notes = [_described(plan.features, described)] if described else []
    wanted = plan.normalized
    _check_turned(plan, contents, rows)
    normalized, note = _normalized(
        rows, described.normalized if described and wanted is None else wanted
    )
    notes += [note, *_far_rows(rows, plan.as_is)]
    if plan.features.is_dir() and (plan.features / "metadata").is_dir() and plan.labels is None:
        notes.append("metadata/ is not read: --labels FILE gives labels")
    ids = _sample_ids(content, len(rows), plan.features) if described else numbered(len(rows))
    if plan.is_noise:
        no_text = ((), ())
        return Checked(
            rows, normalized, no_labels(len(rows)), *no_text, tuple(ids), notes, described
        )
    if described and plan.text is None:
        names, texts = _exported_texts(plan, contents, rows.dim, described)
    else:
        names, texts = _names_and_texts(plan, contents, rows.dim, notes)
    labels = _labels(plan, contents, len(rows), names, notes)
    notes += [] if labels.max(initial=-1) >= 0 else ["no labels: can be an OOD set only"]
    return Checked(rows, normalized, labels, names, texts, tuple(ids), notes, described)


def _described(path: Path, description: Description) -> str:
    """A note on the encoder that a file says its features are of."""
    model = short(str(description.encoder.get("model")))
    return f"{path.name} says that its features are of {model}"


def _sample_ids(content: import_readers.Content, count: int, where: Path) -> Sequence[str]:
    """The sample ids (N,) of an exported file; numbers if it was exported without them."""
    ids = stored_names(content.get(import_readers.IDS), where) or numbered(count)
    if len(ids) != count:
        raise StoreError(f"{where} has {len(ids):,} sample ids for {count:,} features.")
    return ids


def _read_all(plan: ImportPlan) -> tuple[ImportedRows, Contents]:
    """Read the features of a plan, and what its files hold."""
    path = plan.features
    files = [file for file in (plan.labels, plan.class_names, plan.text) if file]
    files += [] if path.is_dir() else [path]
    contents = {file: import_readers.read(file) for file in files}
    if path.is_dir():
        parts, contents[path] = import_readers.read_parts(path), {}
    else:
        parts = [import_readers.pick(contents[path], import_readers.FEATURES, path)]
    return ImportedRows(parts, path), contents


def _normalized(rows: ImportedRows, wanted: bool | None) -> tuple[bool, str]:
    """Decide whether features count as normalised, with a note on why."""
    norms = rows.norms()
    unit = bool((abs(norms - 1) <= UNIT_TOLERANCE).all())
    span = f"norms are {norms.min():.4g} to {norms.max():.4g}"
    if wanted and not unit:
        raise StoreError(
            f"{rows.where}: the {span}, must be 1 of features that are said to be normalised",
            remedy="raw",
        )
    if wanted is not None:
        return wanted, f"{span}: {'normalised' if wanted else 'raw'} features, as said"
    return unit, f"{span}: taken as {'normalised' if unit else 'raw'} features"


def _check_turned(plan: ImportPlan, contents: Contents, rows: ImportedRows) -> None:
    """Refuse features (D, N) by the number of labels, or by the dims of the text features."""
    labels = _find(contents, import_readers.LABELS, plan.labels, plan.features)
    text = _find(contents, import_readers.TEXT, plan.text, plan.features)
    by_labels = labels is not None and labels[0].shape[:1] == (rows.dim,)
    by_text = text is not None and len(rows) in text[0].shape and rows.dim not in text[0].shape
    if len(rows) != rows.dim and by_labels and (by_text or (text is None and rows.dim > len(rows))):
        raise StoreError(
            f"{rows.where}: the features' shape is ({len(rows)}, {rows.dim}), and there are "
            f"{rows.dim} labels: they seem to be (D, N), must be (N, D): save them transposed."
        )


def _far_rows(rows: ImportedRows, as_is: bool) -> Iterator[str]:
    """A note on rows whose norms are far from the others'.

    Raises:
        StoreError: there are some, unless they are to be taken as they are.
    """
    norms = rows.norms()
    middle = float(np.median(norms))
    far = np.flatnonzero((norms > _FAR * middle) | (norms < middle / _FAR))
    if not len(far):
        return
    line = (
        f"{counted(len(far), 'row')} of {len(norms):,} have norms far from the others' median of "
        f"{middle:.4g}: row {far[0]} has {norms[far[0]]:.4g}"
    )
    if not as_is:
        raise StoreError(f"{rows.where}: {line}: encode them again, or take them with --as-is.")
    yield line


def _names_and_texts(
    plan: ImportPlan, contents: Contents, dim: int, notes: list[str]
) -> tuple[tuple[str, ...], tuple[Text, ...]]:
    """Find class names (C,) and their text features (C, D), as far as the files have them."""
    features_file = plan.features
    fallbacks = (plan.text or features_file, features_file)
    name_source = _find(contents, import_readers.NAMES, plan.class_names, *fallbacks)
    name_source = name_source or _label_names(contents, plan.labels, features_file)
    names = check_names(*name_source) if name_source else ()
    text_source = _find(contents, import_readers.TEXT, plan.text, features_file)
    if text_source is None:
        return names, ()
    features, note = check_text(text_source[0], dim, len(names), text_source[1])
    notes += [note] if note else []
    if not names:
        names = tuple(f"class {i}" for i in range(len(features)))
        notes.append(f"no class names: called '{names[0]}' … '{names[-1]}'")
    return names, (Text(plan.template, features),)


def _label_names(
    contents: Contents, labels: Path | None, features: Path
) -> tuple[NDArray[Any], Path] | None:
    """The texts that labels stand for, in alphabetical order; None if labels are numbers."""
    label_source = _find(contents, import_readers.LABELS, labels, features)
    if label_source is None:
        return None
    names = contents[label_source[1]].get(import_readers.LABEL_NAMES)
    return None if names is None else (names, label_source[1])


def _labels(
    plan: ImportPlan,
    contents: Contents,
    count: int,
    names: tuple[str, ...],
    notes: list[str],
) -> NDArray[np.int32]:
    """The labels (N,) as numbers of class names; all -1 if there are none."""
    label_source = _find(contents, import_readers.LABELS, plan.labels, plan.features)
    if label_source is None:
        return no_labels(count)
    labels, where = label_source
    label_names = contents[where].get(import_readers.LABEL_NAMES)
    if label_names is not None:
        labels = numbers_of_names(labels, label_names.tolist(), names, where)
    return check_labels(labels, count, len(names), where, notes)


def _exported_texts(
    plan: ImportPlan, contents: Contents, dim: int, description: Description
) -> tuple[tuple[str, ...], tuple[Text, ...]]:
    """Class names and text features as they were exported; a file of names replaces the names."""
    content, named = contents[plan.features], plan.class_names
    names = stored_names(content.get(import_readers.NAMES[0]), plan.features)
    if named:
        names = check_names(
            import_readers.pick(contents[named], import_readers.NAMES, named), named
        )
    return names, _chosen(plan, description.read_texts(content, (len(names), dim), plan.features))


def _chosen(plan: ImportPlan, texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """Choose the text features of the plan's prompt; without a prompt, all of them."""
    if plan.prompt is None:
        return texts
    chosen = tuple(text for text in texts if text.template in (plan.prompt, plan.template))
    if not chosen:
        held = ", ".join(f"'{short(text.template)}'" for text in texts) or "none"
        raise StoreError(f"{plan.features} has text features of {held}: choose with --prompt.")
    return chosen


def _find(
    contents: Contents, keys: tuple[str, ...], named: Path | None, *fallbacks: Path
) -> tuple[NDArray[Any], Path] | None:
    """Find an array in the file named for it, or in the first fallback that has it.

    Return the array and its file, or None.
    """
    if named:
        return import_readers.pick(contents[named], keys, named), named
    for path in fallbacks:
        for key in keys:
            array = contents.get(path, {}).get(key)
            if array is not None and array.size:
                return array, path
    return None


def _check_neighbours(plan: ImportPlan, checked: Checked, root: Path, path: Path) -> None:
    """Refuse a folder that holds the features of another encoder."""
    identity, dim = plan.identity(checked.description), checked.rows.dim
    keys = SAME_ENCODER if checked.description else (*identity, "logit_bias")
    wanted = {**identity, "dims": dim}
    for other in stored(root, plan.encoder):
        if other.header is None or other.path == path:
            continue
        theirs = {**other.header.identity, "dims": other.header.dim}
        if mismatch := difference(theirs, wanted, sorted({*keys, "dims"} - {"versions"})):
            raise StoreError(
                f"{other.path} is of another encoder ({mismatch.key}: {mismatch.one}, not "
                f"{mismatch.other})",
                remedy="other-encoder",
            )


def _write(path: Path, plan: ImportPlan, checked: Checked) -> bool:
    """Write the file, or add what it lacks; False if it has all of it already."""
    if path.exists() and not plan.overwrite:
        return _complete(path, plan, checked)
    files = (plan.features, plan.labels, plan.class_names, plan.text)
    hdf5.write_features(
        path,
        kind=NOISE if plan.is_noise else DATASET,
        name=plan.name,
        encoder=plan.identity(checked.description),
        source={"images": len(checked.rows), "imported": [file.name for file in files if file]},
        blocks=checked.rows.blocks(),
        labels=checked.labels,
        sample_ids=checked.sample_ids,
        class_names=checked.class_names,
        texts=checked.texts,
        normalized=checked.normalized,
    )
    return True


def _complete(path: Path, plan: ImportPlan, checked: Checked) -> bool:
    """Add text features of new templates to a file with the same features; False if none is new."""
    old = hdf5.read_features(path)
    new = [text for text in checked.texts if text.template not in old.text_features]
    shared = [text for text in checked.texts if text not in new]
    same_text = all(
        np.array_equal(old.text_features[text.template], text.features)
        and old.text_scales.get(text.template) == text.logit_scale
        for text in shared
    )
    identity = plan.identity(checked.description)
    same_scale = not difference(old.identity, identity, ("logit_scale", "logit_bias"))
    if not (checked.is_in(old) and same_text and same_scale):
        raise StoreError(
            f"{path} holds other features, labels or text than these", remedy="import-elsewhere"
        )
    if new:
        hdf5.add_texts(path, new)
    return bool(new)
