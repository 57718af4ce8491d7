"""A detector in a file: HDF5, versioned, no pickle.

A state file has the classes, the settings, the encoder's identity, and everything that was learned:
a detector loaded from it continues as if it had never stopped. The content is checked before it is
used, because the file may come from anyone. One process at a time writes it, from its first write
on; when the process ends, for whatever reason, the system releases its locks.
"""

import hashlib
import json
import os
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import BaseFileLock, Timeout
from numpy.typing import NDArray

from zsntta_cli.cache.features import difference
from zsntta_cli.cache.hdf5 import read_state, write_table
from zsntta_cli.detection.inputs import MeantScale
from zsntta_cli.errors import SettingsError, StoreError, short
from zsntta_cli.files import check_target, lock_at, writing
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.learned import State
from zsntta_cli.methods.scores import scale_under

if TYPE_CHECKING:
    from zsntta_cli.detection.detector import OnlineDetector

_LEARNED = "learned."
_FORM = 2  # of what is learned: 1 was that of 0.2, whose methods wrote other names
_TEXT_TOLERANCE = 1e-3  # between the text features of one encoder on two machines


def write(path: Path, detector: "OnlineDetector", more: Mapping[str, Any]) -> None:
    """Write a detector, and `more` values that JSON has; StoreError if it cannot be written."""
    learned = detector.state()
    numbers = {k: v for k, v in learned.items() if not isinstance(v, np.ndarray)}
    columns: dict[str, NDArray[Any]] = {
        "class_names": np.array(detector.class_names, object),
        "text_features": detector.text_features,
    }
    columns |= {_LEARNED + k: v for k, v in learned.items() if isinstance(v, np.ndarray)}
    revision = METHODS[detector.method].revision
    header = {**_described(detector), "form": _FORM, "revision": revision}
    header |= {"numbers": numbers, "more": dict(more)}
    header["digest"] = _digest(header, columns)
    write_table(path, columns, header)


def _described(detector: "OnlineDetector") -> dict[str, Any]:
    """A detector's description, without its classes and what it learned."""
    return {
        "method": detector.method,
        "settings": detector.settings,
        "logit_scale": detector.logit_scale,
        "normalized": detector.normalized,
        "encoder": dict(detector.identity),
        **({} if detector.logit_bias is None else {"logit_bias": detector.logit_bias}),
    }


def _digest(header: Mapping[str, Any], columns: Mapping[str, Any]) -> str:
    """SHA-256 of the whole content of a file."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(columns):
        column = columns[name]
        is_text = isinstance(column, tuple) or column.dtype == object
        digest.update(name.encode())
        if is_text:
            digest.update("\0".join(column).encode(errors="surrogateescape"))
        else:
            digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


def read(path: Path) -> tuple["OnlineDetector", dict[str, Any]]:
    """The detector of a file, and what else was written.

    Raises:
        StoreError: there is no file, or it is broken, of a newer version, or has invalid values.
    """
    header, columns = read_state(path)
    if header.pop("digest", None) != _digest(header, columns):
        raise StoreError(f"{path} is damaged: its content does not match its digest.")
    _check_form(path, header)
    _check_revision(path, header)
    try:
        return _restored(header, columns), _object(header, "more")
    except (SettingsError, TypeError, ValueError) as error:
        raise StoreError(f"{path} holds no detector: {short(str(error), 200)}") from error


def _check_form(path: Path, header: Mapping[str, Any]) -> None:
    form = header.get("form", 1)
    if form == _FORM or "method" not in header:  # it is no detector, which is told in other words
        return
    when = "0.2" if form == 1 else f"another version (form {short(str(form))}, here {_FORM})"
    raise StoreError(
        f"{path} is a detector of zsntta {when}, which cannot be continued: begin anew with "
        "another file."
    )


def _check_revision(path: Path, header: Mapping[str, Any]) -> None:
    """Refuse what was learned by other rules than the current ones, which use other numbers."""
    method, then = str(header.get("method")), header.get("revision", 1)  # of 1 it was not said
    if method not in METHODS or not METHODS[method].online:
        return  # it is no detector, which is told in other words
    if (now := METHODS[method].revision) == then:
        return
    raise StoreError(
        f"{path} is of {method} as another version of zsntta has it (revision {short(str(then))}, "
        f"here {now}), and cannot be continued: begin anew with another file."
    )


def _restored(header: Mapping[str, Any], columns: dict[str, Any]) -> "OnlineDetector":
    from zsntta_cli.detection.detector import OnlineDetector

    names, text = columns.pop("class_names", None), columns.pop("text_features", None)
    settings, normalized = _object(header, "settings"), header.get("normalized")
    if not isinstance(names, tuple) or not isinstance(text, np.ndarray):
        raise ValueError("it has no classes.")
    if not isinstance(normalized, bool):
        raise ValueError("it does not say whether features are normalised.")
    for name, column in columns.items():
        if not name.startswith(_LEARNED) or not isinstance(column, np.ndarray):
            raise ValueError(f"'{short(name)}' is nothing that a detector learns.")
    scale: Any = header.get("logit_scale")
    if isinstance(scale, float):
        scale = scale_under(_object(header, "encoder").get("precision"), MeantScale(scale))
    detector = OnlineDetector(
        text, scale, str(header.get("method")),
        class_names=names, normalized=normalized, logit_bias=header.get("logit_bias"),
        **settings,
    )  # fmt: skip
    detector.identity = _object(header, "encoder")
    learned: State = {k.removeprefix(_LEARNED): v for k, v in columns.items()}
    numbers = _object(header, "numbers")
    for name in learned.keys() & numbers.keys():
        raise ValueError(f"{short(name)} is there twice.")
    detector.restore(learned | numbers)
    return detector


def _object(header: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = header.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"its {name} are no JSON object.")
    return value


def resume(path: Path, detector: "OnlineDetector") -> None:
    """Let a detector continue from a file.

    Raises:
        StoreError: the file is of other classes, another encoder or other settings.
    """
    kept, _ = read(path)
    if other := _other(kept, detector):
        raise StoreError(f"{path} is of {other}: take another file for these.")
    detector.restore(kept.state())


def _other(kept: "OnlineDetector", here: "OnlineDetector") -> str:
    """How two detectors differ, in words; empty if one can continue for the other."""
    if kept.class_names != here.class_names:
        names, other_names = (short(", ".join(d.class_names)) for d in (kept, here))
        return f"other classes ({names}; here {other_names})"
    text, other_text = kept.text_features, here.text_features  # and an encoder is loaded
    if kept.identity and here.identity and (other := difference(kept.identity, here.identity)):
        return f"another encoder ({other.key}: {other.one}, here {other.other})"
    if text.shape != other_text.shape or abs(text - other_text).max() > _TEXT_TOLERANCE:
        return "other text features: another encoder's, or of another prompt (or class photos)"
    before, now = ({**_described(d), **d.settings} for d in (kept, here))
    keys = ("method", "logit_scale", "logit_bias", "normalized")
    for key in (*keys, *sorted({*kept.settings, *here.settings})):
        if before.get(key) != now.get(key):
            return f"other settings ({key}: {before.get(key)}, here {now.get(key)})"
    return ""


class _Owned:
    """A state file that this process owns, with the number of its writers."""

    def __init__(self, lock: BaseFileLock) -> None:
        self.lock, self.writers = lock, 0


_LOCK = threading.RLock()  # a finalizer may come within
_OWNED: dict[tuple[int, str], _Owned] = {}  # by process (a fork owns nothing) and path
_OF_DETECTORS: "weakref.WeakKeyDictionary[object, set[str]]" = weakref.WeakKeyDictionary()


def own(path: Path) -> str:
    """Become a writer of a state file, and return what `disown` needs.

    Raises:
        StoreError: another process writes it.
    """
    place = os.path.realpath(path)
    with _LOCK:
        owned_file = _OWNED.get((os.getpid(), place)) or _Owned(_acquired(path, Path(place)))
        owned_file.writers += 1
        _OWNED[os.getpid(), place] = owned_file
    return place


def _acquired(path: Path, place: Path) -> BaseFileLock:
    with writing(path):
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_at(place.with_name(f".{place.name}.lock"), thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"{path} is written by another process that runs: end that, or name another file."
            ) from None
    return lock


def disown(place: str) -> None:
    """Stop being a writer of a state file."""
    with _LOCK:
        owned_file = _OWNED.get((os.getpid(), place))
        if owned_file is None:  # of the process that forked this one
            return
        owned_file.writers -= 1
        if not owned_file.writers:
            del _OWNED[os.getpid(), place]
            owned_file.lock.release()


def own_as_long_as(detector: object, path: Path) -> None:
    """Become a writer of a state file for as long as a detector exists.

    A pipe or a device has no owner.
    """
    if check_target(path):
        return
    with _LOCK:
        places = _OF_DETECTORS.setdefault(detector, set())
        place = os.path.realpath(path)
        if place not in places or (os.getpid(), place) not in _OWNED:
            places.add(own(path))
            weakref.finalize(detector, disown, place)
