"""Imports: features made elsewhere are read, checked and written as an extraction writes them.

The encoder of an import is only known by the name that the user gives it, its dims and its logit
scale. An exported file also says what its encoder is, and that is believed.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from zsntta_cli import __version__, datasets
from zsntta_cli.cache import import_readers, store
from zsntta_cli.cache.export import text_key
from zsntta_cli.cache.folder import feature_path, lock_path, stored
from zsntta_cli.cache.identity import IMPORTED, SAME_ENCODER, difference
from zsntta_cli.cache.soundness import UNIT_TOLERANCE, faults_of_words, row_norms
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.catalogue import SEVERITY
from zsntta_cli.datasets.images import numbered
from zsntta_cli.datasets.names import (
    DATASET,
    NOISE,
    OWN_NAMES,
    SetName,
    check_plain,
    is_own_name,
    noise_name,
)
from zsntta_cli.datasets.readers import corruptions
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, short
from zsntta_cli.files import writing
from zsntta_cli.settings import NOISE_TYPES
from zsntta_cli.settings.options import LARGEST_SCALE, is_bias, is_scale
from zsntta_cli.settings.prompts import prompt_template

DEFAULT_ENCODER = "imported"
DEFAULT_LOGIT_SCALE = 100.0  # CLIP's own at the end of its training
_FEATURES, _LABELS, _NAMES, _TEXT = (
    ("features", "image_features"), ("labels", "targets", "label", "target"),
    ("class_names", "classes", "classnames"), ("text_features", "text_weights"),
)  # fmt: skip
_CHUNK = 8192  # rows that are written at a time
_UNIT = 1e-4  # text features whose norms are further from 1 are normalised
_LARGEST_LABEL = 2**31 - 1  # labels are stored as int32
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

    def identity(self, exported: Mapping[str, Any] | None) -> dict[str, Any]:
        """The encoder's identity: that of an export, or one with the keys of an extraction's."""
        if exported is not None:
            scales = {"logit_scale": self.logit_scale, "logit_bias": self.logit_bias}
            return {**exported, **{k: v for k, v in scales.items() if v is not None}}
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
class Checked:
    """Features made elsewhere that have passed all checks."""

    rows: NDArray[np.floating]  # (N, D)
    normalized: bool
    labels: NDArray[np.int32]  # (N,), -1 = none
    class_names: tuple[str, ...]
    texts: tuple[Text, ...]
    sample_ids: tuple[str, ...]
    notes: list[str]  # what the checks noticed or changed
    encoder: dict[str, Any] | None  # of an exported file

    def is_in(self, old: Features) -> bool:
        """Whether a feature file holds these features, labels and class names."""
        return (
            np.array_equal(old.image_features, self.rows)
            and np.array_equal(old.labels, self.labels)
            and (old.class_names, old.normalized) == (self.class_names, self.normalized)
        )


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
    if checked.encoder is None:
        plan = _with_scale_of_folder(plan, root, checked.notes)
    _check_neighbours(plan, checked, root, path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_path(path))  # an extraction takes the same lock
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
    files = {plan.features, *filter(None, (plan.labels, plan.class_names, plan.text))}
    contents = {file: import_readers.read(file) for file in files}
    own = contents[plan.features]
    rows = _rows(import_readers.pick(own, _FEATURES, plan.features), plan.features)
    notes = list[str]()
    encoder = _encoder(own["encoder"], plan.features) if "encoder" in own else None
    if encoder is not None:
        model = short(str(encoder.get("model")))
        notes.append(f"{plan.features.name} says that its features are of {model}")
    normalized, note = _normalized(rows, plan, own.get("normalized"))
    notes.append(note)
    ids = _texts(own["sample_ids"], "sample ids", plan.features) if "sample_ids" in own else ()
    ids = ids or tuple(numbered(len(rows)))
    if len(ids) != len(rows):
        raise StoreError(f"{plan.features} has {len(ids):,} sample ids for {len(rows):,} rows.")
    if plan.is_noise:
        labels = np.full(len(rows), -1, np.int32)
        return Checked(rows, normalized, labels, (), (), ids, notes, encoder)
    names, texts = _names_and_texts(plan, contents, rows.shape[1], notes)
    labels = _labels(plan, contents, len(rows), len(names))
    notes += [] if labels.max(initial=-1) >= 0 else ["no labels: can be an OOD set only"]
    return Checked(rows, normalized, labels, names, texts, ids, notes, encoder)


def _refuse(ok: bool, message: str) -> None:
    if not ok:
        raise StoreError(message)


def _rows(array: NDArray[Any], where: Path) -> NDArray[np.floating]:
    """Check image features (N, D); they become float32, or stay float16."""
    _check_matrix(array, f"{where}: the features")
    with np.errstate(all="ignore"):  # values that are not finite are refused here
        rows: NDArray[np.floating] = array.astype(
            np.float16 if array.dtype.itemsize == 2 else np.float32
        )
        _check_norms(row_norms(rows), f"{where}: the features")
    return rows


def _check_matrix(array: NDArray[Any], what: str) -> None:
    """Refuse an array that is not (N, D) of floating-point numbers."""
    _refuse(
        array.ndim == 2 and array.size > 0,
        f"{what} have the shape {array.shape}, must be (N, D): a row for each, and not empty.",
    )
    _refuse(
        array.dtype.kind == "f" and array.dtype.itemsize in (2, 4, 8),
        f"{what} are {array.dtype}, must be float16, float32 or float64: save them as float32.",
    )


def _check_norms(norms: NDArray[np.float64], what: str) -> None:
    for fault, bad in (("not finite", ~np.isfinite(norms)), ("zero", norms == 0)):
        _refuse(
            not bad.any(),
            f"{what} of row {bad.argmax()} are {fault} ({bad.sum():,} of {len(norms):,} rows), "
            f"must be finite and not zero: encode these again or leave them out.",
        )


def _encoder(array: NDArray[Any], where: Path) -> dict[str, Any]:
    """The identity of an encoder that an export has as JSON: StoreError if it is none."""
    try:
        identity = json.loads(str(array))
        faults = [*faults_of_words(DATASET, identity, {})]
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{where}: 'encoder' in it is no JSON object: export it again.") from error
    _refuse(not faults, f"{where} cannot be used: {'; '.join(faults)}.")
    return dict(identity)


def _normalized(
    rows: NDArray[np.floating], plan: ImportPlan, said: NDArray[Any] | None
) -> tuple[bool, str]:
    """Decide whether features count as normalised, with a note on why."""
    norms = row_norms(rows)
    unit = bool((abs(norms - 1) <= UNIT_TOLERANCE).all())
    span = f"norms are {norms.min():.4g} to {norms.max():.4g}"
    if said is not None:
        is_said = said.shape == () and said.dtype == bool
        _refuse(is_said, f"{plan.features}: 'normalized' in it is no truth value.")
    wanted = bool(said) if plan.normalized is None and said is not None else plan.normalized
    if wanted and not unit:
        raise StoreError(
            f"{plan.features}: the {span}, must be 1 of features that are said to be normalised",
            remedy="raw",
        )
    if wanted is not None:
        return wanted, f"{span}: {'normalised' if wanted else 'raw'} features, as said"
    return unit, f"{span}: taken as {'normalised' if unit else 'raw'} features"


def _names_and_texts(
    plan: ImportPlan, contents: Contents, dim: int, notes: list[str]
) -> tuple[tuple[str, ...], tuple[Text, ...]]:
    """Find class names (C,) and their text features (C, D), as far as the files have them."""
    fallbacks = (plan.text or plan.features, plan.features)
    source = _find(contents, _NAMES, plan.class_names, *fallbacks)
    names = _texts(source[0], "class names", source[1]) if source else ()
    texts = tuple(_prompted(plan, contents, (len(names), dim), notes))
    if texts and not names:
        names = tuple(f"class {i}" for i in range(len(texts[0].features)))
        notes.append(f"no class names: called '{names[0]}' … '{names[-1]}'")
    return names, texts


def _prompted(
    plan: ImportPlan, contents: Contents, shape: tuple[int, int], notes: list[str]
) -> Iterator[Text]:
    """The text features of a file: of the plan's prompt, or of the templates that an export has."""
    source = _find(contents, _TEXT, plan.text, plan.features)
    if source is None:
        return
    content, where = contents[source[1]], source[1]
    if "templates" not in content or plan.prompt is not None:
        yield Text(plan.template, _text(source[0], shape, where, notes))
        return
    templates = _texts(content["templates"], "templates", where)
    scales = content.get("logit_scales", np.full(len(templates), np.nan))
    fits = scales.shape == (len(templates),) and scales.dtype.kind == "f"
    _refuse(fits, f"{where}: 'logit_scales' in it are not one for each of the templates.")
    for i, template in enumerate(templates):
        array = import_readers.pick(content, (text_key(i),), where)
        own = None if np.isnan(scales[i]) else float(scales[i])
        _refuse(own is None or is_scale(own), f"{where}: the scale of '{template}' is {own}.")
        yield Text(template, _text(array, shape, where, notes), own)


def _text(
    array: NDArray[Any], shape: tuple[int, int], where: Path, notes: list[str]
) -> NDArray[np.float32]:
    """Check class text features (C, D), and normalise them if need be; `notes` says so."""
    _check_matrix(array, f"{where}: the text features")
    classes, dim = shape
    _refuse(
        array.shape[1] == dim,
        f"{where}: the text features have {array.shape[1]} dims, the image features {dim}: must be "
        f"(C, D) of one encoder.",
    )
    _refuse(
        classes in (0, len(array)),
        f"{where}: there are {len(array)} text features for {classes} class names, must be one for "
        f"each: take the list that they were made from.",
    )
    norms = row_norms(array)
    _check_norms(norms, f"{where}: the text features")
    if (abs(norms - 1) <= _UNIT).all():
        return np.ascontiguousarray(array, np.float32)
    span = f"{norms.min():.4g} to {norms.max():.4g}"
    notes.append(f"the text features' norms are {span}: brought to 1")
    return (array / norms[:, None]).astype(np.float32)


def _labels(plan: ImportPlan, contents: Contents, count: int, classes: int) -> NDArray[np.int32]:
    """The labels (N,) as numbers of class names, of which there may be none; -1 is no label."""
    source = _find(contents, _LABELS, plan.labels, plan.features)
    if source is None:
        return np.full(count, -1, np.int32)
    array, where = source
    _refuse(
        array.shape == (count,) and array.dtype.kind in "iu",
        f"{where}: the labels are {array.dtype} {array.shape}, must be integers ({count},): one "
        f"for each feature.",
    )
    low, high = int(array.min()), int(array.max())
    _refuse(low >= -1, f"{where}: a label is {low}, must be 0 or more, or -1 for none.")
    _refuse(
        not (classes and low == 1 and high == classes),
        f"{where}: the labels run from 1 to {high} for {classes} class names: they seem to be "
        f"counted from 1, must be from 0: subtract 1.",
    )
    largest = classes - 1 if classes else _LARGEST_LABEL
    _refuse(
        high <= largest,
        f"{where}: a label is {high}, must be at most {largest}"
        + (f", there are {classes} class names: give one for each class." if classes else "."),
    )
    return array.astype(np.int32)


def _texts(array: NDArray[Any], what: str, where: Path) -> tuple[str, ...]:
    """Check texts (N,), each of which must be one line."""
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    texts = tuple(map(str, array.tolist())) if array.ndim == 1 else ()
    _refuse(
        array.dtype.kind == "U" and bool(texts),
        f"{where}: the {what} are {array.dtype} of shape {array.shape}, must be a list of texts.",
    )
    for i, text in enumerate(texts):
        _refuse(
            _is_line(text),
            f"{where}: number {i} of the {what} is {ascii(text)[:60]}, must be one line of text.",
        )
    return texts


def _is_line(text: str) -> bool:
    """Whether a text is one line that a feature file can hold; names of files may be no UTF-8."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return bool(text.strip()) and all(unicodedata.category(c) != "Cc" for c in text)


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
            array = contents[path].get(key)
            if array is not None and array.size:
                return array, path
    return None


def _check_neighbours(plan: ImportPlan, checked: Checked, root: Path, path: Path) -> None:
    """Refuse a folder that holds the features of another encoder."""
    identity, dim = plan.identity(checked.encoder), checked.rows.shape[1]
    keys = SAME_ENCODER if checked.encoder else (*identity, "logit_bias")
    wanted = {**identity, "dims": dim}
    for other in stored(root, plan.encoder):
        if other.header is None or other.path == path:
            continue
        theirs = {**other.header.identity, "dims": other.header.dim}
        if mismatch := difference(theirs, wanted, sorted({*keys, "dims"} - {"versions"})):
            raise StoreError(
                f"{other.path} is of another encoder ({mismatch}): give this one another name with "
                f"--encoder NAME."
            )


def _write(path: Path, plan: ImportPlan, checked: Checked) -> bool:
    """Write the file, or add what it lacks; False if it has all of it already."""
    if path.exists() and not plan.overwrite:
        return _complete(path, plan, checked)
    files = (plan.features, plan.labels, plan.class_names, plan.text)
    source = {"images": len(checked.rows), "imported": [file.name for file in files if file]}
    features = Features(
        path, NOISE if plan.is_noise else DATASET, plan.name, plan.identity(checked.encoder),
        source, checked.rows, checked.labels, checked.class_names,
        {text.template: text for text in checked.texts}, checked.normalized,
    )  # fmt: skip
    store.write(features, checked.sample_ids)
    return True


def _complete(path: Path, plan: ImportPlan, checked: Checked) -> bool:
    """Add text features of new templates to a file with the same features; False if none is new."""
    old = store.read(path)
    new = [text for text in checked.texts if text.template not in old.texts]
    shared = [text for text in checked.texts if text not in new]
    same_text = all(
        np.array_equal(old.texts[text.template].features, text.features)
        and old.texts[text.template].logit_scale == text.logit_scale
        for text in shared
    )
    identity = plan.identity(checked.encoder)
    same_scale = not difference(old.identity, identity, ("logit_scale", "logit_bias"))
    if not (checked.is_in(old) and same_text and same_scale):
        raise StoreError(
            f"{path} holds other features, labels or text than these", remedy="import-elsewhere"
        )
    if new:
        store.add_texts(path, new)
    return bool(new)
