"""What lies in a features folder: feature files, unfinished work, parts, answers of TPT."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from zsntta_cli.cache import store
from zsntta_cli.cache.answers import SUFFIX, AnswerFile, is_known
from zsntta_cli.cache.folder import entries, is_feature_file
from zsntta_cli.cache.store import Features
from zsntta_cli.cache.unfinished import ROWS, said_of
from zsntta_cli.errors import StoreError, first_line


@dataclass(frozen=True)
class Stored:
    """One file, or one folder of parts."""

    path: Path
    name: str  # of its set; of answers also what they are
    size: int  # bytes
    header: Features | None = None  # of a feature file that is whole
    state: str = ""  # of anything else: what it is, or what is wrong with it
    is_bad: bool = False
    images: int | None = None  # on which there are answers
    created: str = ""  # the day of the last answer


def stored(root: Path, encoder_name: str | None = None) -> list[Stored]:
    """List feature files, unfinished extractions and parts that are not joined, by their names."""
    found = []
    for path in entries(root, encoder_name):
        try:
            size = path.stat().st_size
            if is_feature_file(path):
                found.append(Stored(path, path.stem, size, store.read(path, rows=False)))
            elif path.name.startswith(".") and path.suffix == ROWS:
                found.append(Stored(path, path.stem[1:], size, state="unfinished"))
            elif path.suffix == ".parts" and not path.with_suffix(".h5").exists():
                sizes = [part.stat().st_size for part in path.glob("[0-9]*.h5")]
                state = f"{len(sizes)} parts, not joined"
                found.append(Stored(path, path.stem, sum(sizes), state=state))
        except FileNotFoundError:  # it was removed meanwhile
            continue
        except StoreError as error:
            reason = f"broken: {first_line(error.__cause__ or error)}"
            found.append(Stored(path, path.stem, size, state=reason, is_bad=True))
    return sorted(found, key=lambda one: (one.path.parent.name, one.name, one.state))


def stored_answers(
    root: Path, encoder_name: str | None = None, names: Sequence[str] = ()
) -> list[Stored]:
    """List the files of TPT's answers for some sets, or for all, and what is wrong with each."""
    files = (path for path in entries(root, encoder_name) if path.suffix == SUFFIX)
    return [
        _answers(path)
        for path in files
        if not path.name.startswith(".") and (not names or Path(path.stem).stem in names)
    ]


def _answers(path: Path) -> Stored:
    """What a file of answers holds, or what is wrong with it."""
    status, features = path.stat(), path.with_name(f"{Path(path.stem).stem}.h5")
    images, day, is_bad = None, "", True
    try:
        said = json.loads(said_of(path).read_bytes())
        asked, count, digest = dict(said["asked"]), int(said["images"]), said["features"]
        now = store.read(features, rows=False)
        if (digest, count) == (now.digest, len(now)):
            answered = is_known(AnswerFile(features, asked, digest, count).read()).sum()
            settings = ", ".join(f"{k} {v}" for k, v in dict(asked.get("settings", {})).items())
            state = f"{answered:,} of {count:,} images, '{asked.get('prompt')}', {settings}"
            images, is_bad = count, False
            day = datetime.fromtimestamp(status.st_mtime, UTC).date().isoformat()
        else:
            state = f"answers on other features than {features.name} has now: delete it"
    except StoreError as error:
        state = str(error)
    except (OSError, ValueError, KeyError, TypeError):
        state = f"does not say what it is of: delete {path}"
    name = f"{features.stem}, answers of TPT"
    return Stored(path, name, status.st_size, None, state, is_bad, images, day)
