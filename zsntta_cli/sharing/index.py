"""The index of a place: one small file that describes its feature files, and is never trusted."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from zsntta_cli import __version__
from zsntta_cli.addresses import MissingAtStore
from zsntta_cli.cache import hdf5
from zsntta_cli.cache.accuracy import ZeroShotAccuracy, parsed_shot
from zsntta_cli.cache.features import Header
from zsntta_cli.datasets.names import check_plain
from zsntta_cli.errors import SettingsError, StoreError, first_line
from zsntta_cli.files import sha256 as sha256_of
from zsntta_cli.sharing.stores import FeaturePlace, MissingPlace

INDEX = "index.json"
FORMAT = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LARGEST = 2**44  # bytes of a feature file


@dataclass(frozen=True)
class IndexEntry:
    """The entry of one feature file in an index."""

    size: int  # bytes
    sha256: str  # of the file
    header: Header
    licence: str = ""  # of the images, in short
    shots: tuple[ZeroShotAccuracy, ...] = ()  # zero-shot accuracies, one for each prompt
    has_ids: bool = True  # sample ids, and not numbers in their place

    @property
    def digest(self) -> str:
        """The digest of features and labels."""
        return self.header.digest


@dataclass(frozen=True)
class Index:
    """The content of a place: entries by path, ENCODER/SET.h5."""

    files: Mapping[str, IndexEntry] = field(default_factory=dict)

    @property
    def encoders(self) -> list[str]:
        """The folders of encoders."""
        return sorted({path.partition("/")[0] for path in self.files})

    def names(self, encoder: str) -> list[str]:
        """The sets of an encoder, in order."""
        paths = map(PurePosixPath, sorted(self.files))
        return [path.stem for path in paths if path.parent.name == encoder]

    def with_files(self, new: Mapping[str, IndexEntry]) -> "Index":
        """This index with files that are added or replaced."""
        return Index({**self.files, **new})

    def to_json(self) -> str:
        """The index as the text that is written."""
        files = {path: asdict(entry) for path, entry in sorted(self.files.items())}
        content = {"format": FORMAT, "zsntta": __version__, "files": files}
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def path_of(encoder: str, name: str) -> str:
    """The path of a feature file at a place."""
    return f"{encoder}/{name}.h5"


def read_index(store: FeaturePlace) -> Index:
    """Read the index of a place.

    Raises:
        StoreError: there is no index, or it is broken or of a newer version.
    """
    where = f"{store.address}/{INDEX}"
    try:
        return parse_index(store.read(INDEX))
    except MissingPlace:
        raise
    except MissingAtStore as error:
        raise MissingAtStore(
            f"{store.address} holds no features of zsntta: it has no {INDEX}."
        ) from error
    except KeyError as error:
        raise StoreError(f"{where} is no index of features (it lacks {error}).") from error
    except (ValueError, TypeError, SettingsError) as error:
        raise StoreError(f"{where} is no index of features ({first_line(error)}).") from error


def parse_index(content: bytes) -> Index:
    """Parse an index; errors of several types, but no StoreError, if the content is none."""
    plain = json.loads(content)
    version = plain["format"]
    if version != FORMAT:
        raise ValueError(f"its format is {version}, must be {FORMAT}")
    return Index({path: _entry(path, entry) for path, entry in _mapping(plain["files"]).items()})


def _entry(path: str, plain: Any) -> IndexEntry:
    place, entry = PurePosixPath(path), _mapping(plain)
    if len(place.parts) != 2 or place.suffix != ".h5" or str(place) != path:
        raise ValueError(f"'{path}' is not ENCODER/SET.h5")
    for what, name in (("encoder", place.parent.name), ("set", place.stem)):
        check_plain(what, name)
    size, sha256 = entry["size"], entry["sha256"]
    if not _is_count(size) or size > _LARGEST:
        raise ValueError(f"the size of {path} is no number of bytes")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise ValueError(f"the sha256 of {path} is none")
    header, licence = _header(_mapping(entry["header"]), path), _text(entry["licence"], path)
    shots = tuple(map(parsed_shot, entry["shots"]))
    return IndexEntry(size, sha256, header, licence, shots, bool(entry["has_ids"]))


def _header(plain: Mapping[str, Any], path: str) -> Header:
    counts = [plain[key] for key in ("images", "dim", "classes")]
    if not all(map(_is_count, counts)):
        raise ValueError(f"{path} has counts that are none")
    images, dim, classes = counts
    scales = _mapping(plain["text_scales"])
    return Header(
        _text(plain["kind"], path), images, dim, _text(plain["dtype"], path), classes,
        created=_text(plain["created"], path), digest=_text(plain["digest"], path),
        templates=tuple(_text(text, path) for text in plain["templates"]),
        text_digests=tuple(_text(text, path) for text in plain["text_digests"]),
        normalized=bool(plain["normalized"]), identity=dict(_mapping(plain["identity"])),
        text_scales={key: float(value) for key, value in scales.items()},
        source=dict(_mapping(plain["source"])),
    )  # fmt: skip


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("it holds something that is no JSON object where one must be")
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{path} has something that is no text where one must be")
    return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def local_entry(
    path: Path, licence: str, shots: Sequence[ZeroShotAccuracy], has_ids: bool
) -> IndexEntry:
    """Make the entry of a feature file on this machine."""
    header, size = hdf5.read_header(path), path.stat().st_size
    return IndexEntry(size, sha256_of(path), header, licence, tuple(shots), has_ids)
