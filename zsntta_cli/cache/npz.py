"""Features as arrays of other tools: .npz, .npy, .pt and .safetensors in, .npz out.

An export has `image_features` (N, D), `labels` (N,), `sample_ids` (N,), `class_names` (C,), and
class text features (C, D): `text_features`, `text_features_1`, … of the `templates` in their order,
with `logit_scales` (NaN: the encoder's). `generic_text` (D,), which not every file has, is the mean
of the unit features of texts on anything, and `generic_source` names them. `encoder` is a JSON
text, the encoder's identity. An import reads these, or other tools' arrays, whose encoder is only
known by the name that the user gives it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from zsntta_cli import __version__, datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.arrays import Content, pick, read
from zsntta_cli.cache.folder import feature_path, find, lock_path, stored
from zsntta_cli.cache.identity import (
    IMPORTED,
    SAME_ENCODER,
    check_same,
    names_a_folder,
    public_identity,
)
from zsntta_cli.cache.soundness import UNIT_TOLERANCE, faults, row_norms
from zsntta_cli.cache.store import Features, Text
from zsntta_cli.datasets.images import numbered
from zsntta_cli.datasets.names import (
    DATASET,
    NOISE,
    OWN_NAMES,
    SetName,
    is_own_name,
    noise_name,
)
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, short
from zsntta_cli.files import check_target, whole_file, writing
from zsntta_cli.settings import NOISE_TYPES
from zsntta_cli.settings.options import LARGEST_SCALE, is_bias, is_scale
from zsntta_cli.settings.prompts import prompt_template

DEFAULT_LOGIT_SCALE = 100.0  # CLIP's own at the end of its training
_FEATURES, _LABELS, _NAMES, _TEXT = (
    ("features", "image_features"), ("labels", "targets", "label", "target"),
    ("class_names", "classes", "classnames"), ("text_features", "text_weights"),
)  # fmt: skip
_GENERIC, _GENERIC_SOURCE = "generic_text", "generic_source"
_UNIT = 1e-4  # text features whose norms are further from 1 are normalised
_LARGEST_LABEL = 2**31 - 1  # labels are stored as int32
_POOLS = tuple(map(noise_name, NOISE_TYPES))
_NO_LINE = re.compile(r"^\s*$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udc7f\udd00-\udfff]")


@dataclass(frozen=True)
class ImportPlan:
    """The files to import, and the set and encoder that they are imported as."""

    name: str
    features: Path
    labels: Path | None = None
    class_names: Path | None = None
    text: Path | None = None
    encoder: str = IMPORTED
    logit_scale: float | None = None  # already exponentiated; None: an export's own, or CLIP's
    normalized: bool | None = None  # None: the norms decide
    prompt: str | None = None  # of the text features; None: the set's default
    overwrite: bool = False
    logit_bias: float | None = None  # of a sigmoid model

    def __post_init__(self) -> None:
        if ":" in self.name:
            try:
                datasets.known(self.name)
            except DatasetError as error:
                raise SettingsError(str(error)) from error
        for what, value in (("name", SetName.parse(self.name).base), ("encoder", self.encoder)):
            if not is_own_name(value):
                raise SettingsError(f"{what} is '{short(value)}', must be {OWN_NAMES}.")
        if self.logit_scale is not None and not is_scale(self.logit_scale):
            raise SettingsError(
                f"logit-scale is {self.logit_scale}, must be above 0 and at most "
                f"{LARGEST_SCALE:g}: 100 for most CLIP models."
            )
        if self.logit_bias is not None and not is_bias(self.logit_bias):
            raise SettingsError(f"logit-bias is {self.logit_bias}, must be a number: about -13.")
        if SetName.parse(self.name).kind != DATASET and not self.is_noise:
            pools = ", ".join(_POOLS)
            raise SettingsError(f"name is '{self.name}', must be a data set's or one of: {pools}.")
        if self.is_noise and (self.labels or self.class_names or self.text):
            raise SettingsError(f"'{self.name}' is a noise pool: it has neither labels nor text.")

    @property
    def is_noise(self) -> bool:
        """Whether the set is a noise pool."""
        return self.name in _POOLS

    @property
    def files(self) -> list[Path]:
        """The files to read, that of the features first."""
        files = (self.features, self.labels, self.class_names, self.text)
        return [file for file in files if file]

    @property
    def template(self) -> str:
        """The prompt template that the text features are filed under."""
        return prompt_template(self.prompt or datasets.default_prompt(self.name))

    def identity(self, exported: Mapping[str, Any] | None) -> dict[str, Any]:
        """The encoder's identity: that of an export, or one with the keys of an extraction's."""
        scale, bias = self.logit_scale, self.logit_bias
        if exported is not None:
            scales = {"logit_scale": scale, "logit_bias": bias}
            return {**exported, **{key: v for key, v in scales.items() if v is not None}}
        unknown = ("weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing")
        sigmoid = {} if bias is None else {"loss": "sigmoid", "logit_bias": bias}
        return {
            "model": self.encoder, "pretrained": IMPORTED, **dict.fromkeys(unknown),
            "logit_scale": DEFAULT_LOGIT_SCALE if scale is None else scale,
            "versions": {"zsntta": __version__}, **sigmoid,
        }  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    features: Features
    notes: list[str]  # what was noticed or changed
    written: bool  # False: the file had all of it already


def import_features(plan: ImportPlan, root: Path) -> Imported:
    """Check features made elsewhere, and write them as an extraction does.

    Raises:
        StoreError: a file cannot be read, arrays do not fit each other, or the feature file or the
            folder has other features.
    """
    path, notes = feature_path(root, plan.encoder, plan.name), list[str]()
    contents = {file: read(file) for file in plan.files}
    beside = [one.header for one in stored(root, plan.encoder) if one.header]
    if "encoder" not in contents[plan.features]:
        plan = _with_scale_of_folder(plan, beside, notes)
    new, sample_ids = _gathered(plan, path, contents, notes)
    if wrong := faults(new, every_row=True):
        raise StoreError(f"{plan.features} cannot be used: {'; '.join(wrong)}.")
    for other in beside:
        if other.path != path:
            check_same(
                other.path, {**other.identity, "dims": other.dim},
                {**new.identity, "dims": new.dim}, (*SAME_ENCODER, "dims"),
                then="give this one another name with --encoder NAME",
            )  # fmt: skip
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock_path(path)):  # an extraction takes the same lock
            return Imported(new, notes, _write(new, sample_ids, plan.overwrite))


def _with_scale_of_folder(plan: ImportPlan, beside: list[Features], notes: list[str]) -> ImportPlan:
    """The plan with the scale of the other sets in its folder, where it names none."""
    if plan.logit_scale is not None or plan.logit_bias is not None:
        return plan
    for other in beside:
        identity = other.identity
        if identity.get("pretrained") == IMPORTED and identity.get("model") == plan.encoder:
            scale, bias = identity["logit_scale"], identity.get("logit_bias")
            if scale != DEFAULT_LOGIT_SCALE or bias is not None:
                notes.append(f"logit scale {scale:g}, as {other.path} has it")
            return replace(plan, logit_scale=scale, logit_bias=bias)
    return plan


def _gathered(
    plan: ImportPlan, path: Path, contents: Mapping[Path, Content], notes: list[str]
) -> tuple[Features, tuple[str, ...]]:
    """The features of a plan's files, and their sample ids; `notes` says what was noticed."""
    own = contents[plan.features]
    rows = pick(own, _FEATURES, plan.features)
    labels = _find(contents, _LABELS, plan.labels, plan.features)
    names = _find(contents, _NAMES, plan.class_names, plan.text or plan.features, plan.features)
    class_names = (
        () if names is None else _lines(names, "class names", plan.class_names or plan.features)
    )
    texts = [] if plan.is_noise else _texts(plan, contents)
    if texts and not class_names:
        class_names = tuple(f"class {i}" for i in range(len(texts[0].features)))
        notes.append(f"no class names: called '{class_names[0]}' … '{class_names[-1]}'")
    if labels is None or plan.is_noise:
        labels, class_names = np.full(rows.shape[:1], -1), () if plan.is_noise else class_names
        notes += [] if plan.is_noise else ["no labels: can be an OOD set only"]
    generic, source = (None, "") if plan.is_noise else _generic(plan, contents, rows.shape[1:])
    _check_shapes(plan, rows, labels, class_names, texts)
    with np.errstate(all="ignore"):  # what is not finite is refused with the other faults
        rows = rows.astype(np.float16 if rows.dtype.itemsize == 2 else np.float32)
    ids = _lines(own["sample_ids"], "sample ids", plan.features) if "sample_ids" in own else ()
    if ids and len(ids) != len(rows):
        raise StoreError(f"{plan.features} has {len(ids):,} sample ids for {len(rows):,} rows.")
    encoder = _encoder(own["encoder"], plan.features) if "encoder" in own else None
    if encoder is not None:
        model = short(str(encoder.get("model")))
        notes.append(f"{plan.features.name} says that its features are of {model}")
    features = Features(
        path, NOISE if plan.is_noise else DATASET, plan.name, plan.identity(encoder),
        {"images": len(rows), "imported": [file.name for file in plan.files]},
        rows, labels.astype(np.int32), class_names,
        {text.template: _unit(text, notes) for text in texts}, generic, source,
        _is_normalized(rows, plan.normalized, own.get("normalized"), notes),
    )  # fmt: skip
    return features, ids or tuple(numbered(len(rows)))


def _check_shapes(
    plan: ImportPlan,
    rows: NDArray[Any],
    labels: NDArray[Any],
    class_names: tuple[str, ...],
    texts: list[Text],
) -> None:
    """Refuse arrays that do not fit each other."""
    dim, classes = rows.shape[1:], len(class_names)
    wrong = [rows] * (len(dim) != 1 or not rows.size or not _is_float(rows))
    wrong += [
        text.features
        for text in texts
        if text.features.shape != (classes, *dim) or not _is_float(text.features)
    ]
    for array in wrong[:1]:
        what = "the features" if array is rows else f"text features for {classes} classes"
        file = plan.features if array is rows else plan.text or plan.features
        raise StoreError(
            f"{file}: {what} are {array.dtype} {array.shape}, must be (N, D) of floating-point "
            f"numbers, for text (C, D): a row for each class."
        )
    most, numbers = classes - 1 if classes else _LARGEST_LABEL, labels.dtype.kind in "iu"
    if (
        labels.shape != rows.shape[:1]
        or not numbers
        or not -1 <= labels.min() <= labels.max() <= most
    ):
        span = f" from {labels.min()} to {labels.max()}" if labels.size else ""
        raise StoreError(
            f"{plan.labels or plan.features}: the labels are {labels.dtype} {labels.shape}{span}, "
            f"must be whole numbers ({len(rows)},) from 0 to {most}, or -1 for none."
        )


def _is_float(array: NDArray[Any]) -> bool:
    return array.dtype.kind == "f" and array.dtype.itemsize in (2, 4, 8)


def _encoder(array: NDArray[Any], where: Path) -> dict[str, Any]:
    """The identity of an encoder that an export has as JSON: StoreError if it is none."""
    try:
        return dict(json.loads(str(array)).items())
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{where}: 'encoder' in it is no JSON object: export it again.") from error


def _is_normalized(
    rows: NDArray[np.floating], wanted: bool | None, said: NDArray[Any] | None, notes: list[str]
) -> bool:
    """Whether features count as normalised: as is asked, as an export says, or by their norms."""
    norms = row_norms(rows)
    if wanted is None:
        is_unit = bool((abs(norms - 1) <= UNIT_TOLERANCE).all())
        wanted = is_unit if said is None else bool(said.all())
    kind = "normalised" if wanted else "raw"
    notes.append(f"norms are {norms.min():.4g} to {norms.max():.4g}: taken as {kind} features")
    return wanted


def _texts(plan: ImportPlan, contents: Mapping[Path, Content]) -> list[Text]:
    """The text features of a file: of the plan's prompt, or of the templates that an export has."""
    array, where = _find(contents, _TEXT, plan.text, plan.features), plan.text or plan.features
    if array is None:
        return []
    content = contents[where]
    if "templates" not in content or plan.prompt is not None:
        return [Text(plan.template, array)]
    templates = _lines(content["templates"], "templates", where)
    scales = content.get("logit_scales", np.full(len(templates), np.nan))
    if scales.shape != (len(templates),) or scales.dtype.kind != "f":
        raise StoreError(f"{where}: 'logit_scales' in it are not one for each of the templates.")
    own = [None if np.isnan(scale) else float(scale) for scale in scales]
    if wrong := [scale for scale in own if scale is not None and not is_scale(scale)]:
        raise StoreError(f"{where}: the scale of a template in it is {wrong[0]}, must be above 0.")
    arrays = [pick(content, (_text_key(i),), where) for i in range(len(templates))]
    return [Text(*text) for text in zip(templates, arrays, own, strict=True)]


def _generic(
    plan: ImportPlan, contents: Mapping[Path, Content], dim: tuple[int, ...]
) -> tuple[NDArray[np.float32] | None, str]:
    """The generic text (D,) of the file of texts, or of that of the features, and its source."""
    where = next((f for f in (plan.text, plan.features) if f and _GENERIC in contents[f]), None)
    if where is None:
        return None, ""
    array, source = contents[where][_GENERIC], contents[where].get(_GENERIC_SOURCE)
    if array.shape != dim or not _is_float(array):
        raise StoreError(
            f"{where}: '{_GENERIC}' in it is {array.dtype} {array.shape}, must be {dim} of "
            f"floating-point numbers, as a row of the features."
        )
    with np.errstate(all="ignore"):  # what is not finite is refused with the other faults
        feature = np.ascontiguousarray(array, np.float32)
    return feature, IMPORTED if source is None else _lines(source.ravel(), "source", where)[0]


def _unit(text: Text, notes: list[str]) -> Text:
    """Text features of norm 1; `notes` says where they had another."""
    norms = row_norms(text.features)
    if (abs(norms - 1) <= _UNIT).all():
        return replace(text, features=np.ascontiguousarray(text.features, np.float32))
    notes.append(
        f"the text features' norms are {norms.min():.4g} to {norms.max():.4g}: brought to 1"
    )
    with np.errstate(all="ignore"):  # zeros, whose norm stays another: they are refused
        return replace(text, features=(text.features / norms[:, None]).astype(np.float32))


def _lines(array: NDArray[Any], what: str, where: Path) -> tuple[str, ...]:
    """Texts (N,), each of which must be one line."""
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    texts = tuple(map(str, array.tolist())) if array.ndim == 1 and array.dtype.kind == "U" else ()
    if not texts or any(map(_NO_LINE.search, texts)):
        raise StoreError(
            f"{where}: the {what} are {array.dtype} {array.shape}, each must be one line of text."
        )
    return texts


def _find(
    contents: Mapping[Path, Content], keys: tuple[str, ...], named: Path | None, *fallbacks: Path
) -> NDArray[Any] | None:
    """Find an array in the file named for it, or in the first fallback that has it."""
    if named:
        return pick(contents[named], keys, named)
    arrays = (contents[path].get(key) for path in fallbacks for key in keys)
    return next((array for array in arrays if array is not None and array.size), None)


def _write(new: Features, sample_ids: tuple[str, ...], overwrite: bool) -> bool:
    """Write the file, or add the texts that it lacks; False if it has all of it already."""
    if overwrite or not new.path.exists():
        store.write(new, sample_ids)
        return True
    old = store.read(new.path)
    check_same(
        new.path, old.identity, new.identity, ("logit_scale", "logit_bias"),
        then="--overwrite replaces it, --encoder NAME puts the new one elsewhere",
    )  # fmt: skip
    if (
        not np.array_equal(old.image_features, new.image_features)
        or not np.array_equal(old.labels, new.labels)
        or (old.class_names, old.normalized) != (new.class_names, new.normalized)
        or any(
            not np.array_equal(text.features, new.texts[template].features)
            or text.logit_scale != new.texts[template].logit_scale
            for template, text in old.texts.items()
            if template in new.texts
        )
        or (
            old.generic is not None
            and new.generic is not None
            and (old.generic_digest, old.generic_source) != (new.generic_digest, new.generic_source)
        )
    ):
        raise StoreError(
            f"{new.path} holds other features, labels or text than these: --overwrite replaces it, "
            f"--encoder NAME puts the new one elsewhere."
        )
    missing = [text for template, text in new.texts.items() if template not in old.texts]
    generic = new.generic if old.generic is None else None
    if missing or generic is not None:
        store.add_texts(new.path, missing, generic, new.generic_source)
        return True
    return False


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    path: Path
    images: int
    dim: int
    note: str  # empty if there is nothing to note


def export_features(
    path: Path, target: Path, without_ids: bool = False, overwrite: bool = False
) -> Exported:
    """Write a feature file as .npz, whole or not at all.

    Raises:
        StoreError: the target exists already, the set has no images, or the file is broken or
            cannot be written.
    """
    if not check_target(target) and not overwrite and _has_content(target):
        raise StoreError(f"{target} is there already", remedy="overwrite-output")
    features, ids = store.read(path), store.read_sample_ids(path)
    if not len(features):
        raise StoreError(f"'{path.stem}' has no images, so there is nothing to export.")
    texts = [*features.texts.values()]
    arrays = {
        "image_features": features.image_features,
        "labels": features.labels,
        "normalized": np.array(features.normalized),
        "encoder": np.array(json.dumps(public_identity(features.identity))),
        **({} if without_ids else {"sample_ids": np.array(ids, np.str_)}),
        **({"class_names": np.array(features.class_names)} if features.class_names else {}),
        **({"templates": np.array([text.template for text in texts])} if texts else {}),
        "logit_scales": np.array([text.logit_scale for text in texts], np.float64),
        **{_text_key(i): text.features for i, text in enumerate(texts)},
        **(
            {}
            if features.generic is None
            else {
                _GENERIC: features.generic,
                _GENERIC_SOURCE: np.array(features.generic_source),
            }
        ),
    }
    with whole_file(target) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    leading = next((name for name in ids if names_a_folder(name)), "")
    note = f"sample ids have folders of this machine ('{short(leading)}'): --without-ids leaves "
    is_told = bool(leading) and not without_ids
    return Exported(target, len(features), features.dim, f"{note}them out" if is_told else "")


def only_file(root: Path, name: str, encoder: str | None) -> Path:
    """The feature file of a set, by the only encoder that has it if none is named.

    Raises:
        MissingFeatures: the set is not cached. StoreError: it is of several encoders.
    """
    paths = find(root, [name], encoder)
    if len(paths) > 1:
        encoders = ", ".join(path.parent.name for path in paths)
        raise StoreError(f"'{name}' is cached of {encoders}: choose one with --encoder NAME.")
    return paths[0]


def _text_key(index: int) -> str:
    return f"text_features_{index}" if index else "text_features"


def _has_content(file: Path) -> bool:
    with writing(file):
        return file.exists() and file.stat().st_size > 0
