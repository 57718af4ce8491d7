"""Kept answers of TPT for the images of a stream; no torch.

If all answers that a stream needs are kept, a run of TPT is a replay. Otherwise it goes live, and
its answers are kept as they are computed.
"""

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.cache.answers import AnswerFile, is_known
from zsntta_cli.cache.identity import SAME_ENCODER
from zsntta_cli.errors import StoreError
from zsntta_cli.methods import METHODS
from zsntta_cli.methods.base import Decisions, StreamData
from zsntta_cli.methods.live.settings import BY_IMAGE
from zsntta_cli.methods.live.tuned import StreamAnswers, TunedStream
from zsntta_cli.settings import MATCH
from zsntta_cli.simulation.runs import RunSettings
from zsntta_cli.simulation.sources import Library, Sources
from zsntta_cli.simulation.stream import ID, Stream

CACHED_ANSWERS = "cached answers"  # what a record names as the device of a replay of TPT
_TPT = "tpt"
_SECONDS = 20.0  # after which new answers are kept: a kill loses no more
_ASKED = ("views", "keep", "augmix", "learning_rate", "steps")  # of TPT's settings


def question(
    run: RunSettings, encoder: Mapping[str, Any], digests: Mapping[str, str]
) -> dict[str, Any]:
    """Everything that a run's answers depend on besides the features of the images.

    The digest of the ID set's text features covers the class names, and how the features are read.
    """
    return {
        "text": digests[f"text/{run.id_set}"], "prompt": run.prompt,
        "encoder": {key: encoder.get(key) for key in SAME_ENCODER},
        "settings": {name: getattr(run.options, name) for name in _ASKED},
        "revision": METHODS[_TPT].revision,
    }  # fmt: skip


class KeptAnswers:
    """The answers for the images of a pool, and the files in which new ones are kept."""

    def __init__(self, files: Sequence[AnswerFile]) -> None:
        """The images of the files' sets form the pool, in this order."""
        self._files, self.problem = files, ""  # why new answers are not kept
        self._pool = np.concatenate([file.read() for file in files])
        self._saved_at = time.monotonic()

    def of_stream(self, rows: NDArray[np.int64]) -> StreamAnswers:
        """The answers for the items of a stream, which are in these rows (T,) of the pool."""
        return StreamAnswers(self._pool, rows, self._keep)

    def _keep(self) -> None:
        if time.monotonic() - self._saved_at >= _SECONDS:
            self.close()

    def close(self) -> None:
        """Keep what is not kept yet."""
        starts = np.cumsum([file.images for file in self._files])[:-1]
        try:
            for file, answers in zip(self._files, np.split(self._pool, starts), strict=True):
                if is_known(answers).any():
                    file.save(answers)
        except StoreError as error:
            self.problem = str(error)
        self._saved_at = time.monotonic()


def kept_answers(
    settings: RunSettings, sources: Sources, digests: Mapping[str, str]
) -> KeptAnswers | None:
    """The kept answers of a run with these digests; None if answers depend on the stream."""
    files = _answer_files(settings, sources, digests)
    return KeptAnswers([*files.values()]) if files else None


def _answer_files(
    run: RunSettings, sources: Sources, digests: Mapping[str, str]
) -> dict[str, AnswerFile]:
    """Where the answers for the images of a stream's sets are kept, by the sets' names.

    There are none where answers depend on the stream.
    """
    if run.method != _TPT or run.options.views_by != BY_IMAGE:
        return {}
    asked = question(run, sources.id_set.identity, digests)
    return {
        file.name: AnswerFile(file.path, asked, file.digest, len(file))
        for file in sources.files.values()
    }


def replay_tuned(
    settings: RunSettings, sources: Sources, stream: Stream, data: StreamData, known: StreamAnswers
) -> Decisions | None:
    """The decisions of a run whose answers are all known; None if some are missing."""
    tuned = TunedStream(
        data, settings.options, settings.threshold, known,
        truly_clean(settings, stream), match_bias(settings, sources),
    )  # fmt: skip
    return None if len(tuned.unanswered) else tuned.decide(slice(0, len(data)))


def truly_clean(settings: RunSettings, stream: Stream) -> NDArray[np.bool_] | None:
    """The mask (T,) of ID samples, which only the gt pipeline gets."""
    return stream.kind == ID if settings.flat().get("pipeline") == "gt" else None


def match_bias(settings: RunSettings, sources: Sources) -> float | None:
    """The bias of a sigmoid model, if noise is scored by "match"."""
    bias: float | None = sources.id_set.identity.get("logit_bias")
    return bias if settings.threshold.score == MATCH else None


def live_among(root: Path, runs: Iterable[RunSettings]) -> set[RunSettings]:
    """The runs that need the encoder: of live methods whose answers are not all kept.

    All answers means the answers for every image of the sets that the pipeline may tune on; a
    stream that needs only some of them may be a replay, too.
    """
    foreseen = Library(root, rows=False)
    return {run for run in runs if METHODS[run.method].live and not _is_answered(run, foreseen)}


def _is_answered(run: RunSettings, foreseen: Library) -> bool:
    if isinstance(digests := foreseen.look(run), Exception):
        return False
    files = _answer_files(run, foreseen.sources(run), digests)
    if not files:
        return False
    tuned_on: dict[str, list[str | None]] = {
        "all": [*files],
        "normal": [run.id_set, run.ood_set],
        "gt": [run.id_set],
    }
    needed = [name for name in tuned_on[run.options.pipeline] if name in files]
    with contextlib.suppress(StoreError):  # a broken file: the run says so
        return all(is_known(files[name].read()).all() for name in needed)
    return False
