"""Features as arrays of other tools: import .npz, .npy, .pt and .safetensors, export .npz.

An export has `image_features` (N, D), `labels` (N,), `sample_ids` (N,), `class_names` (C,), and
class text features (C, D): `text_features`, `text_features_1`, … of the `templates` in their order.
`generic_text` (D,), which is optional, is the encoder's, and `generic_source` its words.
`encoder` is the encoder's identity in JSON. An import reads these, with the texts of one template,
or other tools' arrays, whose encoder only has the name that the user gives it.
Nothing is ever unpickled, because a file is data, not a program.
"""

import json
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli import __version__, datasets
from zsntta_cli.cache import store
from zsntta_cli.cache.folder import described, feature_path, find, locked
from zsntta_cli.cache.identity import (
    SAME_ENCODER,
    UNIT_TOLERANCE,
    check_same,
    machine_facts,
    public_identity,
)
from zsntta_cli.cache.store import Features, Text, faults, row_norms
from zsntta_cli.datasets.images import numbered
from zsntta_cli.datasets.names import DATASET, NOISE, SetName, noise_name
from zsntta_cli.errors import StoreError, first_line, short
from zsntta_cli.files import check_target, whole_file
from zsntta_cli.settings import IMPORTED, NOISE_TYPES, ImportSettings
from zsntta_cli.settings.options import check
from zsntta_cli.settings.prompts import prompt_template

_SCALE = 100.0  # CLIP's own at the end of its training
_ROWS, _LABELS, _NAMES, _TEXT = "image_features", "labels", "class_names", "text_features"
_IDS, _TEMPLATES, _UNIT = "sample_ids", "templates", "normalized"
_GENERIC, _GENERIC_SOURCE, _ENCODER = "generic_text", "generic_source", "encoder"
_BESIDE_TEXT = (_TEMPLATES, _GENERIC, _GENERIC_SOURCE)
_ALSO = {  # names that other tools have for them
    "features": _ROWS, "targets": _LABELS, "target": _LABELS, "label": _LABELS,
    "classes": _NAMES, "classnames": _NAMES, "text_weights": _TEXT,
}  # fmt: skip
_KINDS = {"f": "floating-point numbers", "iu": "whole numbers", "US": "texts"}
_ENDINGS = (".npz", ".npy", ".pt", ".pth", ".safetensors")
_TEXT_IS_UNIT = 1e-4  # text features whose norms are further from 1 are normalised
_NO_LINE = re.compile(r"^\s*$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udc7f\udd00-\udfff]")

Array = NDArray[Any]
Arrays = Mapping[str, Array]  # of a file, by key
Note = Callable[[str], None]


def read_arrays(path: Path) -> Arrays:
    """Read the arrays of a file; one without a key has the key "".

    Raises:
        StoreError: the file does not exist, has an unknown type, is broken, or has objects.
    """
    ending = path.suffix.lower()
    if not path.is_file():
        raise StoreError(f"there is no file {path}.")
    if ending not in _ENDINGS:
        raise StoreError(f"{path} is not a readable file: must be one of {', '.join(_ENDINGS)}.")
    try:
        if ending == ".npy":
            return {"": np.lib.format.open_memmap(path, mode="r")}
        if ending == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as loaded:
                return {key: np.asarray(value) for key, value in loaded.items()}
        if ending == ".safetensors":
            from safetensors.torch import load_file

            return {key: _array(value) for key, value in load_file(path).items()}
        import torch

        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:  # torch advises to unpickle all the same
            raise ValueError("damaged, or has objects other than tensors and strings") from error
        content = content if isinstance(content, dict) else {"": content}
        return {str(key): _array(value) for key, value in content.items()}
    except Exception as error:  # damaged files make zipfile, NumPy and torch raise nearly anything
        reason = first_line(error).rstrip(".")
        raise StoreError(
            f"cannot read {path} ({reason}): save it again as plain arrays of numbers or strings."
        ) from error


def _array(value: Any) -> Array:
    """The array of a tensor, or of a list of texts."""
    if not hasattr(value, "untyped_storage"):
        return np.asarray(value)
    # With strides of 0, a small file can claim a tensor of any shape, and a copy fills the memory.
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise ValueError("it has an expanded tensor: save the tensor's .clone()")
    array: Array = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    return array  # NumPy has no bfloat16


def import_features(name: str, what: ImportSettings, root: Path, note: Note) -> Features:
    """Check features made elsewhere, and write them as an extraction does.

    `note` receives each observation.

    Raises:
        SettingsError: the name is not that of a set or a noise pool, or a pool has more files.
        StoreError: a file cannot be read, arrays do not match each other, or the feature file or
            the folder has different features.
    """
    pools = [noise_name(noise) for noise in NOISE_TYPES]
    kind = NOISE if name in pools else DATASET
    check(
        SetName.parse(name).kind == kind,
        f"name is '{name}', must be a data set name or one of: {', '.join(pools)}.",
    )
    check(
        kind == DATASET or not (what.labels or what.class_names or what.text),
        f"'{name}' is a noise pool: omit labels, class names and text.",
    )
    path, held = feature_path(root, what.encoder, name), _gathered(what)
    if kind == NOISE:
        held = {key: held[key] for key in (_ROWS, _IDS, _UNIT, _ENCODER) if key in held}
    new = _features(path, kind, what, held, note)
    if wrong := [*faults(new, every_row=True)]:
        raise StoreError(f"{what.features} cannot be used: {'; '.join(wrong)}.")
    for other in described(root, what.encoder):
        if other.path != path:
            check_same(
                other.path, {**other.identity, "dims": other.dim},
                {**new.identity, "dims": new.dim}, (*SAME_ENCODER, "dims"),
                then="name this encoder with --encoder NAME, or give the same --logit-scale",
            )  # fmt: skip
    with locked(path, note):
        if path.exists() and not what.overwrite:
            raise StoreError(
                f"{path} already exists: --overwrite replaces it, --encoder NAME writes elsewhere."
            )
        ids = _lines(held, _IDS, len(new)) if _IDS in held else numbered(len(new))
        return store.write(new, ids)


def _features(path: Path, kind: str, what: ImportSettings, held: Arrays, note: Note) -> Features:
    """The content of a feature file from arrays whose shapes are checked; values are not yet."""
    rows = _checked(held, _ROWS, ("N", "D"))
    count, dim = rows.shape
    with np.errstate(all="ignore"):  # values beyond the type become infinite
        rows = rows.astype(np.float16 if rows.dtype.itemsize == 2 else np.float32)
    # Texts come before labels, because their error tells how to mend transposed features.
    names, texts = _lines(held, _NAMES, "C") if _NAMES in held else (), dict[str, Text]()
    if _TEXT in held:
        text = _text(path.stem, what, held, (len(names) or "C", dim))
        texts[text.template] = text
        if not names:
            names = tuple(f"class {i}" for i in range(len(text.features)))
            note(f"no class names: using '{names[0]}' … '{names[-1]}'")
    generic, generic_source = None, ""
    if _GENERIC in held:
        generic = np.ascontiguousarray(_checked(held, _GENERIC, (dim,)), np.float32)
        source = np.ravel(held.get(_GENERIC_SOURCE, IMPORTED))
        [generic_source] = _lines({_GENERIC_SOURCE: source}, _GENERIC_SOURCE, 1)
    labels = np.full(count, -1, np.int32)
    if _LABELS in held:
        whole, bounds = _checked(held, _LABELS, (count,), "iu").astype(np.int64), np.iinfo(np.int32)
        labels = whole.clip(bounds.min, bounds.max).astype(np.int32)
    elif kind == DATASET:
        note("no labels: it can only be an OOD set")
    norms, is_unit = row_norms(rows), what.normalized
    if is_unit is None:
        is_unit = bool(np.all(held.get(_UNIT, abs(norms - 1) <= UNIT_TOLERANCE)))
    scale = "normalised" if is_unit else "raw"
    note(f"norms are {norms.min():.4g} to {norms.max():.4g}: taken as {scale} features")
    return Features(
        path, kind, path.stem, _identity(what, held, note),
        {"images": count, "imported": [file.name for file in _files(what).values()]},
        rows, labels, names, texts, generic, generic_source, is_unit, machine_facts(),
    )  # fmt: skip


def _files(what: ImportSettings) -> dict[str, Path]:
    """The files to import, each by the name of its array."""
    files = {
        _ROWS: what.features, _TEXT: what.text, _LABELS: what.labels, _NAMES: what.class_names
    }  # fmt: skip
    return {key: file for key, file in files.items() if file}


def _gathered(what: ImportSettings) -> dict[str, Array]:
    """The arrays of all files under the names of an export; empty ones are skipped."""
    gathered: dict[str, Array] = {}
    for wanted, file in _files(what).items():
        arrays = read_arrays(file).items()
        held = {_ALSO.get(key, key or wanted): array for key, array in arrays if array.size}
        if wanted not in held:
            named = ", ".join(f"'{key}'" for key in held) or "nothing"
            raise StoreError(f"{file} holds {named}, must hold '{wanted}': rename the array.")
        if wanted == _TEXT:  # in place of the texts beside the features
            gathered = {key: gathered[key] for key in gathered.keys() - {*_BESIDE_TEXT}}
            of_text = (_TEXT, _NAMES, *_BESIDE_TEXT)  # beginnings of names
            held = {key: held[key] for key in held if key.startswith(of_text)}
        gathered |= held if wanted in (_ROWS, _TEXT) else {wanted: held[wanted]}
    return gathered


def _checked(held: Arrays, key: str, shape: tuple[int | str, ...], kinds: str = "f") -> Array:
    """An array of one of `kinds` of types and of a shape, where a letter means any length."""
    array = held.get(key, np.empty(0))
    is_typed = array.dtype.kind in kinds and array.size > 0
    is_shaped = array.ndim == len(shape) and all(
        isinstance(wanted, str) or wanted == length
        for wanted, length in zip(shape, array.shape, strict=True)
    )
    if not (is_typed and is_shaped):
        must, way = f"{_KINDS[kinds]} ({', '.join(map(str, shape))})", ""
        if array.ndim == 2 and len(shape) == 2:
            way = ": transpose it if rows are columns"
        elif array.ndim == 2:
            way = ": use .ravel() for a column, .argmax(1) for one-hot"
        elif kinds == "iu" and array.dtype.kind == "f":
            way = ": save .astype('int32')"
        raise StoreError(f"'{key}' is {array.dtype} {array.shape}, must be {must}{way}.")
    return array


def _lines(held: Arrays, key: str, count: int | str) -> tuple[str, ...]:
    """Texts (N,), each of which must be one line."""
    array = _checked(held, key, (count,), "US")
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    texts = tuple(map(str, array.tolist()))
    if any(map(_NO_LINE.search, texts)):
        raise StoreError(f"'{key}' must be texts of one line each.")
    return texts


def _text(name: str, what: ImportSettings, held: Arrays, shape: tuple[int | str, ...]) -> Text:
    """The text features (C, D) of the given prompt, the set's or an export's, at norm 1."""
    template = prompt_template(what.prompt or datasets.default_prompt(name))
    templates = _lines(held, _TEMPLATES, "T") if _TEMPLATES in held else (template,)
    template = template if what.prompt or template in templates else templates[0]
    index = templates.index(template) if template in templates else 0
    rows = _checked(held, _text_key(index), shape)
    norms = row_norms(rows)
    with np.errstate(all="ignore"):  # zeros cannot be normalised, and are refused later
        rows = rows if (abs(norms - 1) <= _TEXT_IS_UNIT).all() else rows / norms[:, None]
    return Text(template, np.ascontiguousarray(rows, np.float32))


def _identity(what: ImportSettings, held: Arrays, note: Note) -> dict[str, Any]:
    """The encoder's identity: that of an export, or one with the keys of an extraction's."""
    scales = {"logit_scale": what.logit_scale, "logit_bias": what.logit_bias}
    set_here = {key: value for key, value in scales.items() if value is not None}
    if _ENCODER in held:
        try:
            identity = dict(json.loads(str(held[_ENCODER])).items())
        except (ValueError, AttributeError, RecursionError) as error:
            raise StoreError(
                f"{what.features}: its 'encoder' is not a JSON object: export it again."
            ) from error
        note(f"{what.features.name} names its encoder: {short(str(identity.get('model')))}")
        return {**identity, **set_here}
    unknown = ("weights_sha256", "quick_gelu", "precision", "image_size", "preprocessing")
    sigmoid = {} if what.logit_bias is None else {"loss": "sigmoid"}
    return {
        "model": what.encoder, "pretrained": IMPORTED, **dict.fromkeys(unknown),
        "logit_scale": _SCALE, "versions": {"zsntta": __version__}, **sigmoid, **set_here,
    }  # fmt: skip


def export_features(
    root: Path,
    name: str,
    encoder: str | None,
    target: Path,
    without_ids: bool = False,
    overwrite: bool = False,
) -> Features:
    """Write a cached set as .npz, completely or not at all.

    Without `encoder`, only one encoder may have the set.

    Raises:
        StoreError: the set is not cached, has several encoders, has no images, or is broken; or
            the target already exists or cannot be written.
    """
    paths = find(root, [name], encoder)
    if len(paths) > 1:
        encoders = ", ".join(path.parent.name for path in paths)
        raise StoreError(f"'{name}' is cached for {encoders}: choose one with --encoder NAME.")
    if not check_target(target) and not overwrite and target.exists() and target.stat().st_size:
        raise StoreError(
            f"{target} already exists: --overwrite replaces it, --output names another file"
        )
    features = store.read(paths[0])
    if not len(features):
        raise StoreError(f"'{name}' has no images to export.")
    arrays: dict[str, Array] = {
        _ROWS: features.image_features,
        _LABELS: features.labels,
        _UNIT: np.array(features.normalized),
        _ENCODER: np.array(json.dumps(public_identity(features.identity))),
    }
    for i, text in enumerate(features.texts.values()):
        arrays[_text_key(i)] = text.features
    if not without_ids:
        arrays[_IDS] = np.array(store.read_sample_ids(paths[0]), np.str_)
    if features.class_names:
        arrays[_NAMES] = np.array(features.class_names)
    if features.texts:
        arrays[_TEMPLATES] = np.array([*features.texts])
    if features.generic is not None:
        arrays |= {_GENERIC: features.generic, _GENERIC_SOURCE: np.array(features.generic_source)}
    with whole_file(target) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    return features


def _text_key(index: int) -> str:
    return f"{_TEXT}_{index}" if index else _TEXT
