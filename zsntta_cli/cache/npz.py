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
from typing import Any, NoReturn

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
from zsntta_cli.datasets.names import DATASET, NOISE, OWN_NAMES, SetName, is_own_name, noise_name
from zsntta_cli.errors import DatasetError, SettingsError, StoreError, first_line, short
from zsntta_cli.files import check_target, whole_file
from zsntta_cli.settings import NOISE_TYPES
from zsntta_cli.settings.options import LARGEST_SCALE, is_bias, is_scale
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
        if self.logit_scale is not None and not is_scale(self.logit_scale):
            most = f"above 0 and at most {LARGEST_SCALE:g}"
            raise SettingsError(f"logit-scale is {self.logit_scale}, must be {most}.")
        if self.logit_bias is not None and not is_bias(self.logit_bias):
            raise SettingsError(f"logit-bias is {self.logit_bias}, must be a number, about -13.")
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
        if other.path != path:
            check_same(
                other.path, {**other.identity, "dims": other.dim},
                {**new.identity, "dims": new.dim}, (*SAME_ENCODER, "dims"),
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
    own, where = read_arrays(plan.features), plan.text or plan.features
    of_text = read_arrays(plan.text) if plan.text else own
    rows = _array_of(own, _FEATURES, plan.features)
    if rows.ndim != 2 or not rows.size or not _is_float(rows):
        _refuse(plan.features, "the features", rows, "(N, D) of floating-point numbers")
    dim = rows.shape[1:]
    texts, generic = ([], None) if plan.is_noise else _texts(plan, of_text, where, dim)
    source = of_text.get("generic_source", np.array(IMPORTED)).ravel()
    of_words = "" if generic is None else _lines(source, "source", where)[0]
    class_names = _class_names(plan, [of_text, own], texts, note)
    for text in texts:
        if text.features.shape != (len(class_names), *dim) or not _is_float(text.features):
            what = f"text features for {len(class_names)} classes"
            wanted = f"({len(class_names)}, {dim[0]}): a row for each class, with the features' D"
            _refuse(where, what, text.features, f"{wanted}; transpose what has columns for rows")
    labels = _labels(plan, own, len(rows), len(class_names), note)
    with np.errstate(all="ignore"):  # what is not finite is refused with the other faults
        rows = rows.astype(np.float16 if rows.dtype.itemsize == 2 else np.float32)
    ids = _lines(own["sample_ids"], "sample ids", plan.features) if "sample_ids" in own else ()
    if ids and len(ids) != len(rows):
        raise StoreError(f"{plan.features} has {len(ids):,} sample ids for {len(rows):,} rows.")
    identity = plan.identity(_encoder(own["encoder"], plan.features) if "encoder" in own else None)
    if "encoder" in own:
        model = short(str(identity.get("model")))
        note(f"{plan.features.name} says that its features are of {model}")
    files = [file for file in (plan.features, plan.labels, plan.class_names, plan.text) if file]
    features = Features(
        path, NOISE if plan.is_noise else DATASET, plan.name, identity,
        {"images": len(rows), "imported": [file.name for file in files]},
        rows, labels, class_names,
        {text.template: replace(text, features=_unit(text.features)) for text in texts},
        generic, of_words, _is_normalized(rows, plan.normalized, own.get("normalized"), note),
    )  # fmt: skip
    return features, ids or tuple(numbered(len(rows)))


def _array_of(content: Content, keys: tuple[str, ...], path: Path) -> Array:
    """The array under the first of `keys` that is there, or the only array if it has no key.

    Raises:
        StoreError: there is no such array.
    """
    for key in (*keys, _BARE):
        if key in content:
            return content[key]
    held = ", ".join(f"'{key}'" for key in content) or "nothing"
    wanted = " or ".join(f"'{key}'" for key in keys)
    raise StoreError(f"{path} holds {held}, must hold {wanted}: save it under that name.")


def _first(keys: tuple[str, ...], *contents: Content) -> Array | None:
    """The first array under one of `keys` in some contents; None where all are empty."""
    arrays = (content[key] for content in contents for key in keys if key in content)
    return next((array for array in arrays if array.size), None)


def _refuse(file: Path, what: str, array: Array, wanted: str) -> NoReturn:
    raise StoreError(f"{file}: {what} are {array.dtype} {array.shape}, must be {wanted}.")


def _texts(
    plan: ImportPlan, content: Content, where: Path, dim: tuple[int, ...]
) -> tuple[list[Text], NDArray[np.float32] | None]:
    """The text features of the plan's prompt, or of an export's templates; and the generic text."""
    generic, feature = content.get("generic_text"), None
    if generic is not None:
        if generic.shape != dim or not _is_float(generic):
            _refuse(where, "'generic_text' in it", generic, f"{dim}, as a row of the features")
        with np.errstate(all="ignore"):  # what is not finite is refused with the other faults
            feature = np.ascontiguousarray(generic, np.float32)
    array = _array_of(content, _TEXT, where) if plan.text else _first(_TEXT, content)
    if array is None:
        return [], feature
    if "templates" not in content or plan.prompt is not None:
        return [Text(plan.template, array)], feature
    templates = _lines(content["templates"], "templates", where)
    scales = content.get("logit_scales", np.full(len(templates), np.nan))
    if scales.shape != (len(templates),) or scales.dtype.kind != "f":
        raise StoreError(f"{where}: 'logit_scales' in it are not one for each of the templates.")
    own = [None if np.isnan(scale) else float(scale) for scale in scales]
    arrays = [_array_of(content, (_text_key(i),), where) for i in range(len(templates))]
    return [Text(*text) for text in zip(templates, arrays, own, strict=True)], feature


def _class_names(
    plan: ImportPlan, contents: list[Content], texts: list[Text], note: Note
) -> tuple[str, ...]:
    """The class names (C,) of their own file, or of the others; numbers where texts have none."""
    if plan.is_noise:
        return ()
    file = plan.class_names
    names = _array_of(read_arrays(file), _NAMES, file) if file else _first(_NAMES, *contents)
    if names is not None:
        return _lines(names, "class names", file or plan.features)
    class_names = tuple(f"class {i}" for text in texts[:1] for i in range(len(text.features)))
    if class_names:
        note(f"no class names: called '{class_names[0]}' … '{class_names[-1]}'")
    return class_names


def _labels(
    plan: ImportPlan, own: Content, count: int, classes: int, note: Note
) -> NDArray[np.int32]:
    """The labels (N,) of their own file or that of the features, -1 for none."""
    file = plan.labels
    labels = _array_of(read_arrays(file), _LABELS, file) if file else _first(_LABELS, own)
    if plan.is_noise or labels is None:
        if not plan.is_noise:
            note("no labels: can be an OOD set only")
        return np.full(count, -1, np.int32)
    most, are_whole = classes - 1 if classes else _LARGEST_LABEL, labels.dtype.kind in "iu"
    if labels.shape != (count,) or not are_whole or not -1 <= labels.min() <= labels.max() <= most:
        way = "" if are_whole else ": labels.astype('int32')"
        if labels.ndim == 2:
            is_column = labels.shape[1] == 1
            way = f": {'labels.ravel() of a column' if is_column else 'argmax(1) of one-hot'}"
        span = f" ({labels.min()} to {labels.max()})" if labels.size else ""
        wanted = f"whole numbers ({count},) from 0 to {most}, or -1 for none{way}"
        _refuse(file or plan.features, f"the labels{span}", labels, wanted)
    return labels.astype(np.int32)


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" and array.dtype.itemsize in (2, 4, 8)


def _lines(array: Array, what: str, where: Path) -> tuple[str, ...]:
    """Texts (N,), each of which must be one line."""
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    texts = tuple(map(str, array.tolist())) if array.ndim == 1 and array.dtype.kind == "U" else ()
    if not texts or any(map(_NO_LINE.search, texts)):
        _refuse(where, f"the {what}", array, "texts of one line each")
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
    if not check_target(target) and not overwrite and target.exists() and target.stat().st_size:
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
