"""Features as arrays of other tools: .npz, .npy, .pt and .safetensors in, .npz out.

An export has `image_features` (N, D), `labels` (N,), `sample_ids` (N,), `class_names` (C,), and
class text features (C, D): `text_features`, `text_features_1`, … of the `templates` in their order,
with `logit_scales` (NaN: the encoder's). `generic_text` (D,), which not every file has, is the mean
of the unit features of texts on anything, and `generic_source` names them. `encoder` is a JSON
text, the encoder's identity. An import reads these, or other tools' arrays, whose encoder is only
known by the name that the user gives it. Nothing is ever unpickled: a file is data, not a program.
"""

import json
import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import __version__, datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import described, feature_path, find, locked
from zsntta_cli.cache.identity import (
    IMPORTED,
    SAME_ENCODER,
    UNIT_TOLERANCE,
    check_same,
    names_a_folder,
    public_identity,
)
from zsntta_cli.cache.store import Features, Text, faults, row_norms
from zsntta_cli.datasets.images import numbered
from zsntta_cli.datasets.names import (
    DATASET,
    NOISE,
    OWN_NAMES,
    SetName,
    is_own_name,
    noise_name,
)
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, first_line, short
from zsntta_cli.files import check_target, whole_file, writing
from zsntta_cli.settings import NOISE_TYPES
from zsntta_cli.settings.prompts import prompt_template

_SCALE = 100.0  # CLIP's own at the end of its training
_FEATURES, _LABELS, _NAMES, _TEXT = (
    ("features", "image_features"), ("labels", "targets", "label", "target"),
    ("class_names", "classes", "classnames"), ("text_features", "text_weights"),
)  # fmt: skip
_BARE = ""  # the key of an array whose file gives it none
_UNIT = 1e-4  # text features whose norms are further from 1 are normalised
_LARGEST_LABEL = 2**31 - 1  # labels are stored as int32
_POOLS = tuple(map(noise_name, NOISE_TYPES))
_NO_LINE = re.compile(r"^\s*$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udc7f\udd00-\udfff]")

Array = NDArray[Any]
Content = Mapping[str, Array]  # of a file, by key
Note = Callable[[str], None]


# Files of arrays.


def read_arrays(path: Path) -> Content:
    """Read the arrays of a file.

    Raises:
        StoreError: there is no such file, its type is not known, it is broken, or has objects.
    """
    reader = _READERS.get(path.suffix.lower())
    if not path.is_file() or reader is None:
        raise StoreError(
            f"{path} is no file that can be read: must be one of {', '.join(_READERS)}."
        )
    try:
        return reader(path)
    except Exception as error:  # damaged files make zipfile, NumPy and torch raise nearly anything
        reason = first_line(error).rstrip(".")
        raise StoreError(
            f"cannot read {path} ({reason}): save it again as plain arrays of numbers or strings."
        ) from error


def _npz(path: Path) -> Content:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as loaded:
        content = dict(loaded)
    for key, array in content.items():  # NumPy gives the bytes of a member that is no array
        if not isinstance(array, np.ndarray):
            raise TypeError(f"'{key}' in it is no array")
    return content


def _torch(path: Path) -> Content:
    import torch

    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:  # torch's message advises to unpickle all the same
        raise ValueError("damaged, or with objects other than tensors and strings") from error
    if isinstance(loaded, torch.Tensor):
        loaded = {_BARE: loaded}
    if not isinstance(loaded, dict):
        raise TypeError(f"it holds a {type(loaded).__name__}, must be a tensor or a dict")
    return {str(key): _array(value) for key, value in loaded.items()}


def _safetensors(path: Path) -> Content:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return {key: _array(file.get_tensor(key)) for key in file.keys()}  # noqa: SIM118


def _array(value: Any) -> Array:
    import torch

    if not isinstance(value, torch.Tensor):
        return np.array(value)
    # With strides of 0, a small file can claim a tensor of any shape, and a copy fills the memory.
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise ValueError("a tensor in it repeats itself: save its .clone()")
    # NumPy has no bfloat16.
    array: Array = (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return array


_READERS: dict[str, Callable[[Path], Content]] = {
    ".npz": _npz, ".npy": lambda path: {_BARE: np.lib.format.open_memmap(path, mode="r")},
    ".pt": _torch, ".pth": _torch, ".safetensors": _safetensors,
}  # fmt: skip


# In.


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
    def template(self) -> str:
        """The prompt template that the text features are filed under."""
        return prompt_template(self.prompt or datasets.default_prompt(self.name))

    def identity(self, exported: Mapping[str, Any] | None) -> dict[str, Any]:
        """The encoder's identity: that of an export, or one with the keys of an extraction's."""
        scales = {"logit_scale": self.logit_scale, "logit_bias": self.logit_bias}
        given = {key: value for key, value in scales.items() if value is not None}
        if exported is not None:
            return {**exported, **given}
        unknown = ("weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing")
        sigmoid = {} if self.logit_bias is None else {"loss": "sigmoid"}
        return {
            "model": self.encoder, "pretrained": IMPORTED, **dict.fromkeys(unknown),
            "logit_scale": _SCALE, "versions": {"zsntta": __version__}, **sigmoid, **given,
        }  # fmt: skip


def import_features(plan: ImportPlan, root: Path, note: Note) -> Features:
    """Check features made elsewhere, and write them as an extraction does.

    `note` is given each thing that was noticed.

    Raises:
        StoreError: a file cannot be read, arrays do not fit each other, or the feature file or the
            folder has other features.
    """
    path = feature_path(root, plan.encoder, plan.name)
    new, sample_ids = _gathered(plan, path, note)
    if wrong := faults(new, every_row=True):
        raise StoreError(f"{plan.features} cannot be used: {'; '.join(wrong)}.")
    for other in described(root, plan.encoder):
        if other.path == path:
            continue
        check_same(
            other.path, {**other.identity, "dims": other.dim}, {**new.identity, "dims": new.dim},
            (*SAME_ENCODER, "dims"),
            then="give this one another name with --encoder NAME, or the same --logit-scale",
        )  # fmt: skip
    with locked(path, note):
        if path.exists() and not plan.overwrite:
            raise StoreError(
                f"{path} is there already: --overwrite replaces it, --encoder NAME puts the new "
                f"one elsewhere."
            )
        store.write(new, sample_ids)
    return new


def _gathered(plan: ImportPlan, path: Path, note: Note) -> tuple[Features, tuple[str, ...]]:
    """The features of a plan's files, and their sample ids."""
    files = [file for file in (plan.features, plan.labels, plan.class_names, plan.text) if file]
    contents = {file: read_arrays(file) for file in files}
    own, beside = contents[plan.features], plan.text or plan.features
    rows = _pick(own, _FEATURES, plan.features)
    labels = _find(contents, _LABELS, plan.labels, plan.features)
    names = _find(contents, _NAMES, plan.class_names, beside, plan.features)
    texts, generic = ([], (None, "")) if plan.is_noise else _texts(plan, contents, rows.shape[1:])
    if names is not None:
        class_names = _lines(names, "class names", plan.class_names or plan.features)
    else:
        class_names = tuple(f"class {i}" for text in texts[:1] for i in range(len(text.features)))
        if class_names:
            note(f"no class names: called '{class_names[0]}' … '{class_names[-1]}'")
    if plan.is_noise:
        labels, class_names = None, ()
    elif labels is None:
        note("no labels: can be an OOD set only")
    labels = np.full(rows.shape[:1], -1) if labels is None else labels
    _check_shapes(plan, rows, labels, class_names, texts)
    with np.errstate(all="ignore"):  # what is not finite is refused with the other faults
        rows = rows.astype(np.float16 if rows.dtype.itemsize == 2 else np.float32)
    ids = _lines(own["sample_ids"], "sample ids", plan.features) if "sample_ids" in own else ()
    if ids and len(ids) != len(rows):
        raise StoreError(f"{plan.features} has {len(ids):,} sample ids for {len(rows):,} rows.")
    encoder = _encoder(own["encoder"], plan.features) if "encoder" in own else None
    if encoder is not None:
        model = short(str(encoder.get("model")))
        note(f"{plan.features.name} says that its features are of {model}")
    features = Features(
        path, NOISE if plan.is_noise else DATASET, plan.name, plan.identity(encoder),
        {"images": len(rows), "imported": [file.name for file in files]},
        rows, labels.astype(np.int32), class_names,
        {text.template: replace(text, features=_unit(text.features)) for text in texts}, *generic,
        _is_normalized(rows, plan.normalized, own.get("normalized"), note),
    )  # fmt: skip
    return features, ids or tuple(numbered(len(rows)))


def _pick(content: Content, keys: tuple[str, ...], path: Path) -> Array:
    """Pick the array under the first of `keys` that is there, or the only array if it has no key.

    Raises:
        StoreError: there is no such array.
    """
    for key in (*keys, _BARE):
        if key in content:
            return content[key]
    held = ", ".join(f"'{key}'" for key in content) or "nothing"
    wanted = " or ".join(f"'{key}'" for key in keys)
    raise StoreError(f"{path} holds {held}, must hold {wanted}: save it under that name.")


def _find(
    contents: Mapping[Path, Content], keys: tuple[str, ...], named: Path | None, *fallbacks: Path
) -> Array | None:
    """Find an array in the file named for it, or in the first fallback that has it."""
    if named:
        return _pick(contents[named], keys, named)
    arrays = (contents[path].get(key) for path in fallbacks for key in keys)
    return next((array for array in arrays if array is not None and array.size), None)


def _texts(
    plan: ImportPlan, contents: Mapping[Path, Content], dim: tuple[int, ...]
) -> tuple[list[Text], tuple[NDArray[np.float32] | None, str]]:
    """The text features of the plan's prompt, or of an export's templates; and the generic text."""
    where = plan.text or plan.features
    content, array = contents[where], _find(contents, _TEXT, plan.text, plan.features)
    generic = _generic(content, where, dim)
    if array is None:
        return [], generic
    if "templates" not in content or plan.prompt is not None:
        return [Text(plan.template, array)], generic
    templates = _lines(content["templates"], "templates", where)
    scales = content.get("logit_scales", np.full(len(templates), np.nan))
    if scales.shape != (len(templates),) or scales.dtype.kind != "f":
        raise StoreError(f"{where}: 'logit_scales' in it are not one for each of the templates.")
    own = [None if np.isnan(scale) else float(scale) for scale in scales]
    arrays = [_pick(content, (_text_key(i),), where) for i in range(len(templates))]
    return [Text(*text) for text in zip(templates, arrays, own, strict=True)], generic


def _generic(
    content: Content, where: Path, dim: tuple[int, ...]
) -> tuple[NDArray[np.float32] | None, str]:
    """The generic text (D,) of a file, and its source."""
    if "generic_text" not in content:
        return None, ""
    array, source = content["generic_text"], content.get("generic_source", np.array(IMPORTED))
    if array.shape != dim or not _is_float(array):
        raise StoreError(
            f"{where}: 'generic_text' in it is {array.dtype} {array.shape}, must be {dim} of "
            f"floating-point numbers, as a row of the features."
        )
    with np.errstate(all="ignore"):  # what is not finite is refused with the other faults
        feature = np.ascontiguousarray(array, np.float32)
    return feature, _lines(source.ravel(), "source", where)[0]


def _check_shapes(
    plan: ImportPlan, rows: Array, labels: Array, class_names: tuple[str, ...], texts: list[Text]
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
        way = ""
        if labels.ndim == 2:
            way = (
                ": labels.ravel() of a column" if labels.shape[1] == 1 else ": argmax(1) of one-hot"
            )
        elif not numbers:
            way = ": labels.astype('int32')"
        raise StoreError(
            f"{plan.labels or plan.features}: the labels are {labels.dtype} {labels.shape}{span}, "
            f"must be whole numbers ({len(rows)},) from 0 to {most}, or -1 for none{way}."
        )


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" and array.dtype.itemsize in (2, 4, 8)


def _lines(array: Array, what: str, where: Path) -> tuple[str, ...]:
    """Texts (N,), each of which must be one line."""
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    texts = tuple(map(str, array.tolist())) if array.ndim == 1 and array.dtype.kind == "U" else ()
    if not texts or any(map(_NO_LINE.search, texts)):
        raise StoreError(
            f"{where}: the {what} are {array.dtype} {array.shape}, each must be one line of text."
        )
    return texts


def _encoder(array: Array, where: Path) -> dict[str, Any]:
    """The identity of an encoder that an export has as JSON: StoreError if it is none."""
    try:
        return dict(json.loads(str(array)).items())
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{where}: 'encoder' in it is no JSON object: export it again.") from error


def _is_normalized(
    rows: NDArray[np.floating], wanted: bool | None, said: Array | None, note: Note
) -> bool:
    """Whether features count as normalised: as is asked, as an export says, or by their norms."""
    norms = row_norms(rows)
    if wanted is None:
        is_unit = bool((abs(norms - 1) <= UNIT_TOLERANCE).all())
        wanted = is_unit if said is None else bool(said.all())
    kind = "normalised" if wanted else "raw"
    note(f"norms are {norms.min():.4g} to {norms.max():.4g}: taken as {kind} features")
    return wanted


def _unit(text: Array) -> NDArray[np.float32]:
    """Text features (C, D) at norm 1; those that have it stay as they are."""
    norms = row_norms(text)
    if (abs(norms - 1) <= _UNIT).all():
        return np.ascontiguousarray(text, np.float32)
    with np.errstate(all="ignore"):  # zeros, whose norm stays another: they are refused
        return np.asarray(text / norms[:, None], np.float32)


# Out.


def export_features(
    path: Path, target: Path, without_ids: bool = False, overwrite: bool = False
) -> tuple[Features, str]:
    """Write a feature file as .npz, whole or not at all; a note says where ids name folders.

    Raises:
        StoreError: the target exists already, the set has no images, or the file is broken or
            cannot be written.
    """
    if not check_target(target) and not overwrite and _has_content(target):
        raise StoreError(
            f"{target} is there already: --overwrite replaces it, --output names another place"
        )
    features, ids = store.read(path), store.read_sample_ids(path)
    if not len(features):
        raise StoreError(f"'{path.stem}' has no images, so there is nothing to export.")
    texts = [*features.texts.values()]
    arrays: dict[str, Array] = {
        "image_features": features.image_features,
        "labels": features.labels,
        "normalized": np.array(features.normalized),
        "encoder": np.array(json.dumps(public_identity(features.identity))),
        "logit_scales": np.array([text.logit_scale for text in texts], np.float64),
        **{_text_key(i): text.features for i, text in enumerate(texts)},
    }
    if not without_ids:
        arrays["sample_ids"] = np.array(ids, np.str_)
    if features.class_names:
        arrays["class_names"] = np.array(features.class_names)
    if texts:
        arrays["templates"] = np.array([text.template for text in texts])
    if features.generic is not None:
        arrays["generic_text"] = features.generic
        arrays["generic_source"] = np.array(features.generic_source)
    with whole_file(target) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    leading = next((name for name in ids if names_a_folder(name)), "")
    note = f"sample ids have folders of this machine ('{short(leading)}'): --without-ids leaves "
    return features, f"{note}them out" if leading and not without_ids else ""


def only_file(root: Path, name: str, encoder: str | None) -> Path:
    """The feature file of a set, by the only encoder that has it if none is named.

    Raises:
        StoreError: the set is not cached, or it is of several encoders.
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
