"""Files of prompts: sentences for each class, whose features are averaged.

A file is JSON, `{class name: [sentence, …]}`, as those of CuPL (Pratt et al., ICCV 2023) and of
"Visual Classification via Description from Large Language Models" (Menon & Vondrick, ICLR 2023).
Class features made of a file have the key NAME@DIGEST, so another file of the same name is another
prompt.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zsntta_cli.errors import SettingsError, first_line, short
from zsntta_cli.files import read_input

_LARGEST = 2**26  # bytes
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,60}")
_FILED = re.compile(r"[A-Za-z0-9][\w.-]{0,60}@[0-9a-f]{8}")
_DIGITS = 8
_SHOWN = 3  # classes in an error


@dataclass(frozen=True)
class Sentences:
    """The sentences of a file, by class name in lower case with spaces for underscores."""

    name: str  # the file's name without its ending
    by_class: Mapping[str, tuple[str, ...]]

    @property
    def filed(self) -> str:
        """The key of class features that are made of these sentences."""
        content = json.dumps(dict(sorted(self.by_class.items())), ensure_ascii=False)
        return f"{self.name}@{hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]}"

    def of(self, set_name: str, class_names: Sequence[str]) -> list[tuple[str, ...]]:
        """The sentences of the classes of a set, in their order.

        Raises:
            SettingsError: the file has no sentences for a class.
        """
        lacking = [name for name in class_names if _plain(name) not in self.by_class]
        if lacking:
            shown = ", ".join(f"'{short(name)}'" for name in lacking[:_SHOWN])
            more = f" and {len(lacking) - _SHOWN} more" * (len(lacking) > _SHOWN)
            raise SettingsError(
                f"the prompts of '{self.name}' are not of {set_name}: they have no sentences for "
                f"{shown}{more} of its {len(class_names)} classes."
            )
        return [self.by_class[_plain(name)] for name in class_names]

    def surplus(self, class_names: Sequence[str]) -> str:
        """The number and names of the file's classes that are none of these; empty if all are."""
        extra = [*self.by_class.keys() - {*map(_plain, class_names)}]
        if not extra:
            return ""
        shown = ", ".join(f"'{short(name)}'" for name in sorted(extra)[:_SHOWN])
        return f"{len(extra)} ({shown}{', …' * (len(extra) > _SHOWN)})"


def is_filed(prompt: str) -> bool:
    """Whether a prompt is the key of a file's sentences, NAME@DIGEST."""
    return _FILED.fullmatch(prompt) is not None


def filed_as(prompt: str, cached: Sequence[str]) -> str:
    """Replace a file's name by its key among the cached prompts; other prompts stay as they are.

    Raises:
        SettingsError: sentences of several files of that name are cached.
    """
    meant = [name for name in cached if is_filed(name) and name.partition("@")[0] == prompt]
    if len(meant) > 1:
        raise SettingsError(
            f"prompt '{prompt}' is the name of {len(meant)} files: name one, {', '.join(meant)}."
        )
    return meant[0] if meant else prompt


def read_sentences(path: Path) -> Sentences:
    """Read the sentences of a file.

    Raises:
        SettingsError: the file cannot be read, or is not `{class name: [sentence, …]}`.
    """
    what = f"{path} is not {{class name: [sentence, …]}}, as CuPL's files are"
    if not _NAME.fullmatch(path.stem):
        raise SettingsError(f"'{path.name}' cannot name prompts: rename it, as cupl.json.")
    try:
        text = read_input(path, _LARGEST).decode("utf-8-sig")
        plain = json.loads(text, object_pairs_hook=_once)
        json.dumps(plain, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{what} ({first_line(error)}).") from error
    if not isinstance(plain, dict) or not plain:
        raise SettingsError(f"{what}: it holds {type(plain).__name__ if plain else 'nothing'}.")
    by_class: dict[str, tuple[str, ...]] = {}
    for name, sentences in plain.items():
        if not _are_sentences(sentences):
            raise SettingsError(f"{what}: '{short(name)}' has no list of sentences.")
        if _plain(name) in by_class:
            raise SettingsError(f"{what}: the class '{short(name)}' is there twice.")
        by_class[_plain(name)] = tuple(sentences)
    return Sentences(path.stem, by_class)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"'{short(twice)}' is there twice")
    return dict(pairs)


def _are_sentences(value: Any) -> bool:
    is_list = isinstance(value, list) and bool(value)
    return is_list and all(isinstance(text, str) and text.strip() for text in value)


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).lower()
